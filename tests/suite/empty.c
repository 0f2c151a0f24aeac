// SPDX-License-Identifier: MIT
// Arrays without elements: every installed primitive that takes inputs, on operands of
// which some are empty. What it gives for arrays of the application it gives as well where
// the graph computes the empty ones, or all: operations that compute no elements are left
// out, so nobody writes the memory that others are told of.
#include "cases.h"

enum how {
    GIVEN,         // all are the application's
    EMPTY_BETWEEN, // the empty ones are computed from the application's
    EMPTY_MADE,    // the empty ones are computed from numbers
    ALL_MADE,      // all are: the graph has no inputs
    NUM_HOWS
};
static const char *const how_names[NUM_HOWS] = {"given", "between", "made", "all made"};

enum { EMPTY_RESULTS = 8 };

struct empty {
    struct suite *suite;
    const tn_primitive *record;
    const struct prim_case *c;
    tn_dtype dtype;
    struct host_array in[MAX_OPERANDS];
    uint32_t num_results;
};

// --- operands --------------------------------------------------------------------------

// The number that fills an operand: an index is the first one.
static double empty_number(const struct host_array *in)
{
    return tn_is_float(in->tensor.layout.dtype) ? 1 : 0;
}

static void empty_inputs(struct empty *a)
{
    case_inputs(a->suite, a->c, a->dtype, a->in);
    for (uint32_t i = 0; i < a->c->num_inputs; i++)
        for (int64_t k = 0; k < a->in[i].count; k++)
            tn_set_f64(&a->in[i].tensor, k, empty_number(&a->in[i]));
}

static tn_array *empty_filled(tn_scope *scope, const struct host_array *in)
{
    const tn_layout *layout = &in->tensor.layout;
    tn_ints shape = {.count = (uint32_t)layout->rank, .given = 1};
    memcpy(shape.value, layout->extent, sizeof(shape.value));
    return tn_op(scope, "base.full", NULL, 0,
                 tn_attrs("shape", &shape, "value", empty_number(in), "dtype",
                          (int64_t)layout->dtype));
}

static tn_array *empty_operand(tn_scope *scope, const struct host_array *in, enum how how)
{
    struct host_array copy = *in;
    if (in->tensor.layout.dtype == TN_DTYPE_NONE)
        return NULL;
    if (how == ALL_MADE || (how == EMPTY_MADE && in->count == 0))
        return empty_filled(scope, in);
    tn_array *given = host_array_upload(scope, &copy, PLAIN);
    if (how == EMPTY_BETWEEN && in->count == 0)
        return tn_op(scope, "base.add", TN_IN(given, given), TN_NO_ATTRS);
    return given;
}

// --- one application -------------------------------------------------------------------

// Applies the primitive; false when it refuses these operands. `sums`: gives the sum of
// each result in its place, so that the results are read by more operations.
static bool empty_apply(const struct empty *a, tn_scope *scope, enum how how, bool sums,
                        tn_array **out)
{
    const tn_array *in[MAX_OPERANDS];
    tn_attr items[MAX_ATTRS];
    tn_attr_list list = case_attrs(a->c, items);
    for (uint32_t i = 0; i < a->c->num_inputs; i++)
        in[i] = empty_operand(scope, &a->in[i], how);
    tn_op_n(scope, a->c->primitive, in, a->c->num_inputs, list, out, a->num_results);
    for (uint32_t r = 0; r < a->num_results && sums; r++)
        out[r] = tn_op(scope, "base.sum", TN_IN(out[r]), TN_NO_ATTRS);
    return tn_scope_status(scope) == TN_OK;
}

static bool empty_is_accepted(struct empty *a)
{
    tn_attr items[MAX_ATTRS];
    tn_array *out[EMPTY_RESULTS];
    const tn_array *in[MAX_OPERANDS];
    tn_scope *scope = tn_scope_open(a->suite->runtime);
    uint64_t count = a->record->num_outputs;
    for (uint32_t i = 0; i < a->c->num_inputs; i++)
        in[i] = empty_operand(scope, &a->in[i], GIVEN);
    if (TN_HAS(a->record, count_outputs))
        count = tn_op_outputs(scope, a->c->primitive, in, a->c->num_inputs,
                              case_attrs(a->c, items));
    a->num_results = (uint32_t)count;
    bool accepted =
        count > 0 && count <= EMPTY_RESULTS && empty_apply(a, scope, GIVEN, false, out);
    tn_scope_close(scope);
    return accepted;
}

// Compares the results with those for the application's arrays, or keeps these in `want`.
static const char *empty_compare(const struct empty *a, enum how how, bool sums,
                                 struct host_array *want)
{
    static char text[300];
    tn_array *out[EMPTY_RESULTS] = {NULL};
    const char *failure = NULL;
    tn_scope *scope = tn_scope_open(a->suite->runtime);
    empty_apply(a, scope, how, sums, out);
    for (uint32_t r = 0; r < a->num_results && !failure; r++) {
        struct host_array got;
        if (!host_array_read(scope, out[r], &got)) {
            snprintf(text, sizeof(text), "%s", tn_scope_error(scope));
            failure = text;
        } else if (how == GIVEN) {
            want[r] = got;
        } else {
            failure = host_array_compare(&got, &want[r], 1e-5, 1e-6);
            host_array_free(&got);
        }
    }
    tn_scope_close(scope);
    return failure;
}

static void empty_check(struct empty *a)
{
    for (int sums = 0; sums < (a->suite->is_cpu ? 2 : 1); sums++) {
        struct host_array want[EMPTY_RESULTS] = {0};
        const char *failure = empty_compare(a, GIVEN, sums, want);
        check(a->suite, failure, "%s given%s", a->c->label, sums ? ", summed" : "");
        for (int how = EMPTY_BETWEEN; how < NUM_HOWS && !failure; how++)
            check(a->suite, empty_compare(a, (enum how)how, sums, want), "%s %s%s",
                  a->c->label, how_names[how], sums ? ", summed" : "");
        for (uint32_t r = 0; r < a->num_results; r++)
            host_array_free(&want[r]);
    }
}

static bool empty_try(struct suite *s, const tn_primitive *record,
                      const struct prim_case *c, tn_dtype dtype)
{
    struct empty a = {.suite = s, .record = record, .c = c, .dtype = dtype};
    empty_inputs(&a);
    bool enough = !s->is_cpu && s->checks >= 12; // kernels are compiled
    bool accepted = !enough && empty_is_accepted(&a);
    if (accepted)
        empty_check(&a);
    for (uint32_t i = 0; i < c->num_inputs; i++)
        host_array_free(&a.in[i]);
    return accepted;
}

// --- which -----------------------------------------------------------------------------

// The case with each extent `size` 0; with `size` 0 all extents. False: none was it.
static bool empty_case(const struct prim_case *c, int64_t size, struct prim_case *out)
{
    bool any = false;
    *out = *c;
    for (uint32_t i = 0; i < c->num_inputs; i++)
        for (int32_t k = 0; k < c->in[i].rank; k++)
            if (size == 0 || c->in[i].extent[k] == size) {
                out->in[i].extent[k] = 0;
                any = true;
            }
    return any;
}

static void empty_cases(struct suite *s, const tn_primitive *record,
                        const struct prim_case *cases, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        struct prim_case c;
        if (!case_is_of(cases[k].primitive, record->id))
            continue;
        for (int64_t size = 0; size < 9; size++)
            if (size != 1 && empty_case(&cases[k], size, &c))
                empty_try(s, record, &c, TN_F32);
    }
}

// Of primitives that the tables above have no empty application of.
#define F TN_FLOAT_DTYPES
#define BLOCKS                                                                             \
    {                                                                                      \
        "format", "q8_0"                                                                   \
    }
// clang-format off
static const struct prim_case empties[] = {
    {"base.astype", "to i32", F, 1, {{1, {0}}}, {{"dtype", "i32"}}, 0, NULL},
    {"base.broadcast_to", "rows", F, 1, {{2, {1, 0}}}, {{"shape", "[3, 0]"}}, 0, NULL},
    {"base.broadcast_to", "no rows", F, 1, {{2, {1, 4}}}, {{"shape", "[0, 4]"}}, 0, NULL},
    {"base.random_bits", "none", F, 1, {{1, {2}, TN_U32}}, {{"shape", "[0, 3]"}}, 0, NULL},
    {"base.random_uniform", "none", F, 1, {{1, {2}, TN_U32}}, {{"shape", "[0]"}}, 0, NULL},
    {"base.random_normal", "none", F, 1, {{1, {2}, TN_U32}}, {{"shape", "[0]"}}, 0, NULL},
    {"base.split", "columns", F, 1, {{2, {0, 6}}}, {{"sections", "3"}, {"axis", "1"}}, 0, NULL},
    {"base.split", "parts", F, 1, {{1, {0}}}, {{"sections", "2"}}, 0, NULL},
    {"blas.gemv", "no rows", F, 3, {{2, {0, 3}}, {1, {3}}, {1, {0}}}, {{0}}, 0, NULL},
    {"blas.ger", "no columns", F, 3, {{1, {3}}, {1, {0}}, {2, {3, 0}}}, {{0}}, 0, NULL},
    {"fft.fft2", "resized", F, 1, {{2, {0, 3}}}, {{"s", "[2, 3]"}}, 0, NULL},
    {"fft.ifft2", "resized", F, 1, {{2, {0, 3}}}, {{"s", "[2, 3]"}}, 0, NULL},
    {"fft.rfft2", "resized", F, 1, {{2, {0, 3}}}, {{"s", "[2, 3]"}}, 0, NULL},
    {"fft.irfft2", "resized", F, 1, {{2, {0, 3}, TN_COMPLEX64}}, {{"s", "[2, 4]"}}, 0, NULL},
    {"fft.fftn", "resized", F, 1, {{2, {0, 3}}}, {{"s", "[2, 3]"}}, 0, NULL},
    {"fft.ifftn", "resized", F, 1, {{2, {0, 3}}}, {{"s", "[2, 3]"}}, 0, NULL},
    {"fft.rfftn", "resized", F, 1, {{2, {0, 3}}}, {{"s", "[2, 3]"}}, 0, NULL},
    {"fft.irfftn", "resized", F, 1, {{2, {0, 3}, TN_COMPLEX64}}, {{"s", "[2, 4]"}}, 0, NULL},
    {"fft.istft", "no signals", F, 1, {{3, {0, 5, 3}, TN_COMPLEX64}}, {{0}}, 0, NULL},
    {"linalg.cond", "no matrices", F, 1, {{3, {0, 3, 3}}}, {{0}}, 0, NULL},
    {"linalg.lu_permutation", "no matrices", F, 1, {{2, {0, 3}, TN_I32}}, {{"rows", "3"}}, 0, NULL},
    {"libm.ldexp", "none", F, 2, {{1, {0}, TN_F64}, {1, {0}, TN_I32}}, {{0}}, 0, NULL},
    {"nn.adam", "a step", F, 5, {{1, {0}}, {1, {0}}, {1, {0}}, {1, {0}}, {0}}, {{0}}, 0, NULL},
    {"nn.layer_norm_grad", "no rows", F, 3, {{2, {0, 3}}, {1, {3}}, {2, {0, 3}}}, {{0}}, 0, NULL},
    {"nn.layer_norm_grad", "no columns", F, 3, {{2, {3, 0}}, {1, {0}}, {2, {3, 0}}}, {{0}}, 0, NULL},
    {"nn.cross_entropy/1", "no rows", F, 2, {{2, {0, 3}}, {1, {0}, TN_I64}}, {{0}}, 0, NULL},
    {"optim.adagrad", "a step", F, 4, {{1, {0}}, {1, {0}}, {1, {0}}, {0}}, {{0}}, 0, NULL},
    {"optim.adam", "a step", F, 5, {{1, {0}}, {1, {0}}, {1, {0}}, {1, {0}}, {0}}, {{0}}, 0, NULL},
    {"optim.adamax", "a step", F, 5, {{1, {0}}, {1, {0}}, {1, {0}}, {1, {0}}, {0}}, {{0}}, 0, NULL},
    {"optim.adamw", "a step", F, 5, {{1, {0}}, {1, {0}}, {1, {0}}, {1, {0}}, {0}}, {{0}}, 0, NULL},
    {"optim.amsgrad", "a step", F, 6, {{1, {0}}, {1, {0}}, {1, {0}}, {1, {0}}, {1, {0}}, {0}}, {{0}}, 0, NULL},
    {"optim.sgd", "a step", F, 4, {{1, {0}}, {1, {0}}, {1, {0}}, {0}}, {{0}}, 0, NULL},
    {"nn.affine_grid", "no images", F, 1, {{3, {0, 2, 3}}}, {{"size", "[0, 1, 3, 4]"}}, 0, NULL},
    {"optim.adafactor", "no rows", F, 5, {{2, {0, 3}}, {2, {0, 3}}, {2, {0, 1}}, {2, {1, 3}}, {0}}, {{0}}, 0, NULL},
    {"quant.cache_update", "no rows", F, 4, {{4, {2, 1, 3, 4}}, {4, {0, 1, 1, 4}}, {1, {0}, TN_I64}, {1, {0}, TN_I64}}, {{0}}, 0, NULL},
    {"quant.cached_attention", "no queries", F, 5, {{4, {0, 1, 2, 4}}, {4, {2, 1, 3, 4}}, {4, {2, 1, 3, 4}}, {1, {0}, TN_I64}, {1, {0}, TN_I64}}, {{0}}, 0, NULL},
    {"quant.dequantize", "no rows", F, 1, {{2, {0, 34}, TN_U8}}, {BLOCKS}, 0, NULL},
    {"quant.quantize", "no rows", F, 1, {{2, {0, 32}}}, {BLOCKS}, 0, NULL},
    {"quant.experts_matmul", "no rows", F, 3, {{3, {0, 1, 32}}, {3, {2, 3, 34}, TN_U8}, {2, {0, 2}, TN_I64}}, {BLOCKS}, 0, NULL},
    {"quant.groupwise_quantize", "no rows", F, 1, {{2, {0, 64}}}, {{0}}, 0, NULL},
    {"quant.groupwise_quantize", "no groups", F, 1, {{2, {2, 0}}}, {{0}}, 0, NULL},
    {"quant.groupwise_dequantize", "no rows", F, 3, {{2, {0, 8}, TN_U32}, {2, {0, 1}}, {2, {0, 1}}}, {{0}}, 0, NULL},
    {"quant.groupwise_matmul", "no rows", F, 4, {{2, {0, 64}}, {2, {3, 8}, TN_U32}, {2, {3, 1}}, {2, {3, 1}}}, {{0}}, 0, NULL},
    {"quant.groupwise_matmul", "no columns", F, 4, {{2, {2, 64}}, {2, {0, 8}, TN_U32}, {2, {0, 1}}, {2, {0, 1}}}, {{0}}, 0, NULL},
    {"quant.groupwise_matmul", "no terms", F, 4, {{2, {2, 0}}, {2, {3, 0}, TN_U32}, {2, {3, 0}}, {2, {3, 0}}}, {{0}}, 0, NULL},
    {"quant.groupwise_matmul", "no terms, not transposed", F, 4, {{2, {2, 0}}, {2, {0, 8}, TN_U32}, {2, {0, 1}}, {2, {0, 1}}}, {{"transpose", "false"}}, 0, NULL},
    {"quant.groupwise_gather_matmul", "no rows", F, 4, {{3, {2, 0, 64}}, {3, {2, 3, 8}, TN_U32}, {3, {2, 3, 1}}, {3, {2, 3, 1}}}, {{0}}, 0, NULL},
    {"quant.groupwise_gather_matmul", "no matrices", F, 6, {{3, {0, 1, 64}}, {3, {2, 3, 8}, TN_U32}, {3, {2, 3, 1}}, {3, {2, 3, 1}}, {1, {0}, TN_I64}, {1, {0}, TN_I64}}, {{0}}, 0, NULL},
    {"quant.normed_matmul", "no rows", F, 3, {{2, {0, 32}}, {1, {32}}, {2, {3, 34}, TN_U8}}, {BLOCKS}, 0, NULL},
    {"quant.normed_matmul", "no columns", F, 3, {{2, {2, 32}}, {1, {32}}, {2, {0, 34}, TN_U8}}, {BLOCKS}, 0, NULL},
    {"quant.pack", "no rows", F, 1, {{2, {0, 34}, TN_U8}}, {BLOCKS, {"to", "q8_0"}}, 0, NULL},
    {"quant.quantized_matmul", "no rows", F, 2, {{2, {0, 32}}, {2, {3, 34}, TN_U8}}, {BLOCKS}, 0, NULL},
    {"quant.quantized_matmul", "no columns", F, 2, {{2, {2, 32}}, {2, {0, 34}, TN_U8}}, {BLOCKS}, 0, NULL},
    {"quant.quantized_matmul", "no terms", F, 2, {{2, {2, 0}}, {2, {3, 0}, TN_U8}}, {BLOCKS}, 0, NULL},
    {"random.bits", "none", F, 1, {{1, {2}, TN_U32}}, {{"shape", "[0, 3]"}}, 0, NULL},
    {"random.random", "none", F, 1, {{1, {2}, TN_U32}}, {{"shape", "[0, 3]"}}, 0, NULL},
    {"random.standard_normal", "none", F, 1, {{1, {2}, TN_U32}}, {{"shape", "[0, 3]"}}, 0, NULL},
    {"random.uniform", "none", F, 1, {{1, {2}, TN_U32}}, {{"shape", "[0, 3]"}}, 0, NULL},
    {"random.normal", "none", F, 1, {{1, {2}, TN_U32}}, {{"shape", "[0, 3]"}}, 0, NULL},
    {"random.gumbel", "none", F, 1, {{1, {2}, TN_U32}}, {{"shape", "[0, 3]"}}, 0, NULL},
    {"random.laplace", "none", F, 1, {{1, {2}, TN_U32}}, {{"shape", "[0, 3]"}}, 0, NULL},
    {"random.exponential", "none", F, 1, {{1, {2}, TN_U32}}, {{"shape", "[0, 3]"}}, 0, NULL},
    {"random.bernoulli", "none", F, 1, {{1, {2}, TN_U32}}, {{"shape", "[0, 3]"}}, 0, NULL},
    {"random.randint", "none", F, 1, {{1, {2}, TN_U32}}, {{"shape", "[0, 3]"}}, 0, NULL},
    {"random.split", "none", F, 1, {{1, {2}, TN_U32}}, {{"num", "0"}}, 0, NULL},
    {"random.truncated_normal", "none", F, 3, {{1, {2}, TN_U32}, {1, {0}}, {0}}, {{0}}, 0, NULL},
    {"random.permutation", "none", F, 2, {{1, {2}, TN_U32}, {2, {0, 3}}}, {{0}}, 0, NULL},
    {"random.permutation", "rows", F, 2, {{1, {2}, TN_U32}, {2, {3, 0}}}, {{"independent", "true"}}, 0, NULL},
    {"random.choice", "none", F, 2, {{1, {2}, TN_U32}, {2, {3, 0}}}, {{"shape", "[2]"}}, 0, NULL},
    {"random.choice", "none of none", F, 2, {{1, {2}, TN_U32}, {1, {0}}}, {{"shape", "[0]"}}, 0, NULL},
    {"random.categorical", "no rows", F, 2, {{1, {2}, TN_U32}, {2, {0, 3}}}, {{0}}, 0, NULL},
    {"random.gamma", "none", F, 2, {{1, {2}, TN_U32}, {1, {0}}}, {{0}}, 0, NULL},
    {"random.beta", "none", F, 3, {{1, {2}, TN_U32}, {1, {0}}, {1, {0}}}, {{0}}, 0, NULL},
    {"random.dirichlet", "none", F, 2, {{1, {2}, TN_U32}, {2, {0, 3}}}, {{0}}, 0, NULL},
    {"random.multivariate_normal", "none", F, 3, {{1, {2}, TN_U32}, {2, {0, 2}}, {3, {0, 2, 2}}}, {{0}}, 0, NULL},
    {"random.poisson", "none", F, 2, {{1, {2}, TN_U32}, {1, {0}}}, {{0}}, 0, NULL},
    {"quant.quantized_take", "no indices", F, 2, {{2, {3, 34}, TN_U8}, {1, {0}, TN_I64}}, {BLOCKS}, 0, NULL},
};
// clang-format on

// The dtype of operand `i` of an application in `dtype`: the first that the record takes,
// where it does not take that one.
static tn_dtype empty_dtype(const tn_primitive *record, uint32_t i, tn_dtype dtype)
{
    const void *at = (const char *)record->inputs + (size_t)i * record->input_size;
    const tn_input_info *info = at;
    uint32_t taken = info->dtypes ? info->dtypes : TN_FIRST_DTYPES;
    if (taken & TN_DTYPE_BIT(dtype))
        return dtype;
    for (dtype = 1; dtype + 1 < TN_NUM_DTYPES && !(taken & TN_DTYPE_BIT(dtype));)
        dtype++;
    return dtype;
}

// One application in each dtype, the usual ones first, until one is accepted.
static void empty_in_dtypes(struct suite *s, const tn_primitive *record,
                            struct prim_case *c)
{
    static const tn_dtype usual[] = {TN_F32, TN_I64, TN_COMPLEX64};
    const uint32_t count = sizeof(usual) / sizeof(usual[0]);
    bool accepted = false;
    for (uint32_t d = 0; d < count + TN_NUM_DTYPES - 1 && !accepted; d++) {
        tn_dtype dtype = d < count ? usual[d] : (tn_dtype)(d - count + 1);
        if (d >= count && empty_dtype(record, 0, dtype) != dtype)
            continue;
        for (uint32_t i = 0; i < c->num_inputs; i++)
            c->in[i].dtype = empty_dtype(record, i, dtype);
        accepted = empty_try(s, record, c, dtype);
    }
}

// Operands of one shape, for primitives without cases: elementwise, and of other packs.
static void empty_shapes(struct suite *s, const tn_primitive *record)
{
    static const struct operand shapes[] = {
        {1, {0}}, {2, {0, 3}}, {2, {3, 0}}, {2, {0, 0}}, {3, {2, 0, 3}}};
    for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++)
        for (int n = 0; n < 2; n++) {
            struct prim_case c = {.primitive = record->id,
                                  .label = n ? "resized" : "same shapes",
                                  .num_inputs = record->num_inputs,
                                  .attrs = {{n ? "n" : NULL, "4"}}};
            for (uint32_t i = 0; i < c.num_inputs; i++)
                c.in[i] = shapes[k];
            empty_in_dtypes(s, record, &c);
        }
}

// Whether the tables have applications of the primitive's pack; what operators of another
// pack take is not known.
static bool empty_is_known(const tn_primitive *record)
{
    size_t length = strcspn(record->id, ".") + 1;
    bool is_known = false;
    for (size_t k = 0; k < sizeof(empties) / sizeof(empties[0]); k++)
        is_known |= strncmp(empties[k].primitive, record->id, length) == 0;
    return is_known;
}

// Whether GPUs run it; what other packs have may be for the CPU alone.
static bool is_everywhere(const tn_primitive *record)
{
    return strncmp(record->id, "base.", 5) == 0 || strncmp(record->id, "nn.", 3) == 0 ||
           (strncmp(record->id, "quant.", 6) == 0 &&
            strcmp(record->id, "quant.groupwise_quantize/1") != 0 &&
            strcmp(record->id, "quant.quantize/1") != 0 &&
            strcmp(record->id, "quant.pack/1") != 0);
}

// As NumPy, these take no empty arrays at all; nor does a key of a number.
static bool empty_refused(const tn_primitive *record)
{
    return strcmp(record->id, "base.convolve/1") == 0 ||
           strcmp(record->id, "base.correlate/1") == 0 ||
           strcmp(record->id, "random.fold_in/1") == 0;
}

void empty_tests(struct suite *s)
{
    const char *const *ids = tn_primitive_names(s->runtime);
    for (uint32_t i = 0; ids && ids[i]; i++) {
        const tn_primitive *record = tn_primitive_find(s->runtime, ids[i]);
        if (!record || record->num_inputs == 0 || record->num_inputs > MAX_OPERANDS ||
            record->effects || takes_graphs(record) || empty_refused(record) ||
            !(s->is_cpu || is_everywhere(record)) ||
            !test_begin(s, "empty arrays of %s", ids[i]))
            continue;
        empty_cases(s, record, prim_cases, num_prim_cases);
        empty_cases(s, record, operator_cases, num_operator_cases);
        for (size_t k = 0; k < sizeof(empties) / sizeof(empties[0]); k++)
            if (case_is_of(empties[k].primitive, record->id))
                empty_try(s, record, &empties[k], TN_F32);
        empty_shapes(s, record);
        if (s->checks == 0 && !empty_is_known(record))
            test_skip(s, s->name, "it takes none of the empty arrays that were tried");
        else
            test_end(s); // fails when no check was made
    }
}
