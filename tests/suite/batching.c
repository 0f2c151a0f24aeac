// SPDX-License-Identifier: MIT
// Batching: every primitive mapped over its inputs, against a loop over the slices; its
// reverse-mode derivatives likewise, which maps the primitives that those are made of; and
// the derivatives of what is mapped.
//
// Every set of mapped inputs is tried with batches of 3, 1 and 0; the axes are random. A
// batch runs the same arithmetic in another order of loops: 1e-12 of what a term may be.
#include "cases.h"

enum { MAX_RESULTS = 6, WITH_COTANGENTS = -2 };

static const double bound = 1e-11;

// An application to slices, of which `mapped` (bits) are mapped.
struct batching {
    struct suite *suite;
    const char *primitive;
    tn_attr_list list;
    uint32_t num_inputs, num_outputs;
    struct host_array
        slice[MAX_OPERANDS]; // types of slices, and the values of unmapped inputs
    double lo[MAX_OPERANDS], hi[MAX_OPERANDS];
    // -1: the primitive; -2: that and cotangents of its outputs; else its derivative with
    // respect to this input.
    int derived;
    uint32_t mapped;
    int64_t size;
    int32_t in_axes[MAX_OPERANDS], out_axes[MAX_RESULTS];
    struct host_array batch[MAX_OPERANDS]; // of mapped inputs
};

static uint32_t num_results(const struct batching *b)
{
    return b->derived < 0 ? b->num_outputs : 1;
}

// Cotangents that differ from element to element.
static tn_status body(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                      tn_array **outputs, uint64_t num_outputs, void *user)
{
    const struct batching *b = user;
    const tn_array *const *in = (const tn_array *const *)inputs;
    tn_array *made[MAX_RESULTS] = {NULL}, *cotangents[MAX_RESULTS], *wrt;
    if (b->derived == -1)
        return tn_op_n(scope, b->primitive, in, num_inputs, b->list, outputs, num_outputs);
    tn_op_n(scope, b->primitive, in, num_inputs, b->list, made, b->num_outputs);
    for (uint32_t i = 0; i < b->num_outputs; i++)
        cotangents[i] =
            tn_expr(scope, "x -> x * 0 + 1 + index % 3", TN_IN(made[i]), TN_NO_ATTRS);
    if (b->derived == WITH_COTANGENTS) {
        memcpy(outputs, made, b->num_outputs * sizeof(*made));
        memcpy(outputs + b->num_outputs, cotangents, b->num_outputs * sizeof(*made));
        return tn_scope_status(scope);
    }
    wrt = inputs[b->derived];
    return tn_vjp(scope, made, cotangents, b->num_outputs, &wrt, 1, outputs);
}

// --- slices on the host ----------------------------------------------------------------

static struct host_array with_axis(const struct host_array *slice, int32_t axis,
                                   int64_t size)
{
    const tn_layout *l = &slice->tensor.layout;
    int64_t extent[TN_MAX_RANK];
    for (int32_t i = 0; i <= l->rank; i++)
        extent[i] = i == axis ? size : l->extent[i - (i > axis)];
    return host_array_new(l->dtype, l->rank + 1, extent);
}

// Slice `i` of a batch, in place.
static tn_tensor slice_of(const struct host_array *batch, int32_t axis, int64_t i)
{
    tn_tensor slice = batch->tensor;
    tn_layout *l = &slice.layout;
    l->offset += i * l->stride[axis];
    l->rank--;
    for (int32_t k = axis; k < l->rank; k++) {
        l->extent[k] = l->extent[k + 1];
        l->stride[k] = l->stride[k + 1];
    }
    return slice;
}

static tn_array *upload(tn_scope *scope, const struct host_array *value)
{
    struct host_array copy = *value;
    return host_array_upload(scope, &copy, PLAIN);
}

// --- the loop --------------------------------------------------------------------------

// The results for slice `i`; for the unmapped values when `i` is -1. False: failed.
static bool loop_step(const struct batching *b, int64_t i, struct host_array *results)
{
    tn_array *in[MAX_OPERANDS], *out[MAX_RESULTS] = {NULL};
    tn_scope *scope = tn_scope_open(b->suite->runtime);
    bool works = true;
    for (uint32_t k = 0; k < b->num_inputs; k++) {
        struct host_array one = b->slice[k];
        if (i >= 0 && b->mapped >> k & 1) {
            tn_tensor from = slice_of(&b->batch[k], b->in_axes[k], i);
            one = host_array_new(from.layout.dtype, from.layout.rank, from.layout.extent);
            if (one.count)
                tn_copy_region(&one.tensor, &from);
            in[k] = upload(scope, &one);
            host_array_free(&one);
        } else {
            in[k] = upload(scope, &one);
        }
    }
    body(scope, in, b->num_inputs, out, num_results(b), (void *)b);
    uint32_t done = 0;
    while (works && done < num_results(b)) {
        works = host_array_read(scope, out[done], &results[done]);
        done += works;
    }
    if (!works) {
        check(b->suite, tn_scope_error(scope), "%s alone", b->primitive);
        while (done > 0)
            host_array_free(&results[--done]);
    }
    tn_scope_close(scope);
    return works;
}

// What the batch must be: the slices' results side by side.
static bool loop_all(struct batching *b, struct host_array *want)
{
    struct host_array one[MAX_RESULTS];
    if (!loop_step(b, -1, one))
        return false;
    for (uint32_t r = 0; r < num_results(b); r++) {
        int32_t places = one[r].tensor.layout.rank + 1;
        b->out_axes[r] = (int32_t)(random_bits(b->suite) % (uint64_t)places);
        if (b->derived >= 0 && b->mapped >> b->derived & 1)
            b->out_axes[r] = b->in_axes[b->derived]; // as a derivative of the whole has it
        want[r] = with_axis(&one[r], b->out_axes[r], b->size);
        host_array_free(&one[r]);
    }
    bool works = true;
    for (int64_t i = 0; i < b->size && works; i++) {
        works = loop_step(b, i, one);
        for (uint32_t r = 0; r < num_results(b) && works; r++) {
            tn_tensor to = slice_of(&want[r], b->out_axes[r], i);
            if (one[r].count)
                tn_copy_region(&to, &one[r].tensor);
            host_array_free(&one[r]);
        }
    }
    for (uint32_t r = 0; r < num_results(b) && !works; r++)
        host_array_free(&want[r]);
    return works;
}

// --- the batch -------------------------------------------------------------------------

static void make_batches(struct batching *b)
{
    for (uint32_t k = 0; k < b->num_inputs; k++) {
        int32_t places = b->slice[k].tensor.layout.rank + 1;
        b->in_axes[k] = -1;
        if (!(b->mapped >> k & 1))
            continue;
        b->in_axes[k] = (int32_t)(random_bits(b->suite) % (uint64_t)places);
        b->batch[k] = with_axis(&b->slice[k], b->in_axes[k], b->size);
        host_array_fill(b->suite, &b->batch[k], b->lo[k], b->hi[k]);
    }
}

// The derivative of the mapped graph, where the other is the map of derivatives.
static void derive_map(struct batching *b, tn_scope *scope, tn_array **in, tn_array **out)
{
    struct batching both = *b;
    tn_array *made[2 * MAX_RESULTS] = {NULL};
    both.derived = WITH_COTANGENTS;
    if (tn_vmap_call(scope, body, &both, in, b->in_axes, b->num_inputs, made, NULL,
                     2 * (uint64_t)b->num_outputs) == TN_OK)
        tn_vjp(scope, made, made + b->num_outputs, b->num_outputs, &in[b->derived], 1, out);
}

static const char *map_all(struct batching *b, const struct host_array *want,
                           bool derive_last)
{
    static char text[600];
    tn_array *in[MAX_OPERANDS], *out[MAX_RESULTS] = {NULL};
    struct host_array got;
    const char *failure = NULL;
    tn_scope *scope = tn_scope_open(b->suite->runtime);
    for (uint32_t k = 0; k < b->num_inputs; k++)
        in[k] = upload(scope, b->mapped >> k & 1 ? &b->batch[k] : &b->slice[k]);
    if (derive_last)
        derive_map(b, scope, in, out);
    else
        tn_vmap_call(scope, body, b, in, b->in_axes, b->num_inputs, out, b->out_axes,
                     num_results(b));
    for (uint32_t r = 0; r < num_results(b) && !failure; r++) {
        if (!host_array_read(scope, out[r], &got)) {
            snprintf(text, sizeof(text), "%s", tn_scope_error(scope));
            failure = text;
            continue;
        }
        failure = host_array_compare(&got, &want[r], bound, bound);
        host_array_free(&got);
    }
    tn_scope_close(scope);
    return failure;
}

static void check_batch(struct batching *b, const char *label)
{
    struct host_array want[MAX_RESULTS];
    make_batches(b);
    if (loop_all(b, want)) {
        char axes[64] = "";
        for (uint32_t k = 0; k < b->num_inputs; k++)
            snprintf(axes + strlen(axes), sizeof(axes) - strlen(axes), " %d",
                     b->in_axes[k]);
        const char *failure = map_all(b, want, false);
        if (b->derived < 0)
            check(b->suite, failure, "%s: %lld slices on axes%s to %d", label,
                  (long long)b->size, axes, b->out_axes[0]);
        else
            check(b->suite, failure, "%s: derivative of %lld slices by input %d, axes%s",
                  label, (long long)b->size, b->derived, axes);
        if (b->derived >= 0 && b->mapped >> b->derived & 1)
            check(b->suite, map_all(b, want, true),
                  "%s: derivative of a map of %lld slices by input %d, axes%s", label,
                  (long long)b->size, b->derived, axes);
        for (uint32_t r = 0; r < num_results(b); r++)
            host_array_free(&want[r]);
    }
    for (uint32_t k = 0; k < b->num_inputs; k++)
        if (b->mapped >> k & 1)
            host_array_free(&b->batch[k]);
}

static void check_batches(struct batching *b, const char *label)
{
    static const int64_t sizes[] = {3, 1, 0};
    for (b->mapped = 1; b->mapped < UINT32_C(1) << b->num_inputs; b->mapped++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            b->size = sizes[i];
            check_batch(b, label);
        }
}

// Whether what the slices give is all floats: then there are derivatives.
static bool gives_floats(const struct batching *b)
{
    tn_array *in[MAX_OPERANDS], *out[MAX_RESULTS] = {NULL};
    tn_scope *scope = tn_scope_open(b->suite->runtime);
    bool all = true;
    for (uint32_t k = 0; k < b->num_inputs; k++)
        in[k] = upload(scope, &b->slice[k]);
    body(scope, in, b->num_inputs, out, b->num_outputs, (void *)b);
    for (uint32_t r = 0; r < b->num_outputs; r++)
        all = all && out[r] && tn_dtype_in(tn_array_type(out[r])->dtype, TN_FLOAT_DTYPES);
    tn_scope_close(scope);
    return all;
}

// Derivatives with respect to each float, all inputs mapped, and each alone.
static void check_derivatives(struct batching *b, const tn_primitive *record,
                              const char *label)
{
    uint32_t all = (UINT32_C(1) << b->num_inputs) - 1;
    for (uint32_t k = 0; k < b->num_inputs && gives_floats(b); k++) {
        uint32_t slot = k < record->num_inputs ? k : record->num_inputs - 1;
        if (record->inputs[slot].flags & TN_INPUT_CONSTANT ||
            b->slice[k].tensor.layout.dtype != TN_F64)
            continue;
        b->derived = (int)k;
        b->size = 3;
        b->mapped = all;
        check_batch(b, label);
        for (uint32_t i = 0; i < b->num_inputs && b->num_inputs > 1; i++) {
            b->mapped = UINT32_C(1) << i;
            check_batch(b, label);
        }
        b->derived = -1;
    }
}

// --- which -----------------------------------------------------------------------------

// Beside those of the table in cases.c.
#define F TN_FLOAT_DTYPES
static const struct prim_case more_cases[] = {
    {"base.astype", "to i32", F, 1, {{2, {2, 3}, 0, -9, 9}}, {{"dtype", "i32"}}, 0, NULL},
    {"base.random_bits",
     "keys",
     F,
     1,
     {{1, {2}, TN_U32, 0, 4e9}},
     {{"shape", "[3, 5]"}},
     0,
     NULL},
    {"base.random_uniform",
     "keys",
     F,
     1,
     {{1, {2}, TN_U32, 0, 4e9}},
     {{"shape", "[7]"}, {"dtype", "f64"}},
     0,
     NULL},
    {"base.random_normal",
     "keys",
     F,
     1,
     {{1, {2}, TN_U32, 0, 4e9}},
     {{"shape", "[7]"}, {"dtype", "f64"}},
     0,
     NULL},
    {"base.mean", "wide", F, 1, {{2, {3, 4}, TN_I64, 3e18, 9e18}}, {{0}}, 0, NULL},
    {"base.mean",
     "wide rows",
     F,
     1,
     {{2, {3, 4}, TN_U64, 9e18, 18e18}},
     {{"axis", "[1]"}},
     0,
     NULL},
    {"base.argmax",
     "flattened, kept",
     F,
     1,
     {{2, {3, 4}}},
     {{"keepdims", "true"}},
     0,
     NULL},
    {"base.dynamic_slice",
     "u64",
     F,
     2,
     {{2, {4, 5}}, {1, {2}, TN_U64, 0, 6}},
     {{"sizes", "[2, 3]"}},
     0,
     NULL},
    {"base.dynamic_slice_update",
     "u64",
     F,
     3,
     {{2, {4, 5}}, {2, {2, 3}}, {1, {2}, TN_U64, 0, 6}},
     {{0}},
     0,
     NULL},
    {"base.take",
     "u64",
     F,
     2,
     {{2, {4, 5}}, {2, {2, 3}, TN_U64, 0, 6}},
     {{"axis", "1"}},
     0,
     NULL},
    {"base.scatter_add",
     "u64",
     F,
     3,
     {{2, {4, 5}}, {1, {3}, TN_U64, 0, 6}, {2, {4, 3}}},
     {{"axis", "1"}},
     0,
     NULL},
    {"base.matmul", "vector and matrix", F, 2, {{1, {4}}, {2, {4, 3}}}, {{0}}, 0, NULL},
    {"base.matmul",
     "matrices and vector",
     F,
     2,
     {{3, {2, 3, 4}}, {1, {4}}},
     {{0}},
     0,
     NULL},
    {"base.split",
     "sections",
     F,
     1,
     {{2, {4, 6}}},
     {{"sections", "3"}, {"axis", "1"}},
     0,
     NULL},
    {"nn.sgd",
     "momentum",
     F,
     3,
     {{2, {2, 3}}, {2, {2, 3}}, {2, {2, 3}}},
     {{"momentum", "0.5"}, {"weight_decay", "0.1"}},
     0,
     NULL},
    {"nn.adam",
     "a step",
     F,
     5,
     {{1, {3}}, {1, {3}}, {1, {3}}, {1, {3}, 0, 0.1, 1}, {0, {0}, 0, 1, 9}},
     {{0}},
     0,
     NULL},
};

static void free_slices(struct batching *b)
{
    for (uint32_t k = 0; k < b->num_inputs; k++)
        host_array_free(&b->slice[k]);
}

// The number of outputs of a case for which it depends on inputs and attributes.
static uint32_t count_outputs(const struct batching *b)
{
    tn_scope *scope = tn_scope_open(b->suite->runtime);
    const tn_array *in[MAX_OPERANDS];
    for (uint32_t k = 0; k < b->num_inputs; k++)
        in[k] = upload(scope, &b->slice[k]);
    uint64_t count = tn_op_outputs(scope, b->primitive, in, b->num_inputs, b->list);
    tn_scope_close(scope);
    return (uint32_t)count;
}

static void batch_case(struct suite *s, const struct prim_case *c)
{
    tn_attr items[MAX_ATTRS];
    const tn_primitive *record = tn_primitive_find(s->runtime, c->primitive);
    struct batching b = {.suite = s,
                         .primitive = c->primitive,
                         .list = case_attrs(c, items),
                         .num_inputs = c->num_inputs,
                         .num_outputs = record->num_outputs,
                         .derived = -1};
    case_inputs(s, c, TN_F64, b.slice);
    if (TN_HAS(record, count_outputs))
        b.num_outputs = count_outputs(&b);
    for (uint32_t k = 0; k < c->num_inputs; k++) {
        bool given = c->in[k].lo != 0 || c->in[k].hi != 0;
        b.lo[k] = given ? c->in[k].lo : -1;
        b.hi[k] = given ? c->in[k].hi : 1;
    }
    check_batches(&b, c->label);
    check_derivatives(&b, record, c->label);
    free_slices(&b);
}

// Of slices that broadcast against each other.
static void batch_elementwise(struct suite *s, const char *id, const tn_primitive *record)
{
    static const struct operand operands[] = {{2, {2, 3}}, {1, {3}}, {2, {2, 1}}};
    static const tn_dtype dtypes[] = {TN_F64, TN_I64};
    struct batching b = {
        .suite = s, .primitive = id, .num_inputs = record->num_inputs, .derived = -1};
    b.num_outputs = record->num_outputs;
    for (int d = 0; d < 2; d++) {
        tn_scope *scope = tn_scope_open(s->runtime);
        tn_array *in[MAX_OPERANDS];
        for (uint32_t k = 0; k < b.num_inputs; k++) {
            b.slice[k] = host_array_new(dtypes[d], operands[k].rank, operands[k].extent);
            b.lo[k] = d == 0 ? 0.1 : 1;
            b.hi[k] = d == 0 ? 0.9 : 5;
            host_array_fill(s, &b.slice[k], b.lo[k], b.hi[k]);
            in[k] = upload(scope, &b.slice[k]);
        }
        bool fits = tn_op(scope, id, (const tn_array *const *)in, b.num_inputs,
                          TN_NO_ATTRS) != NULL;
        tn_scope_close(scope);
        if (fits) {
            check_batches(&b, id);
            check_derivatives(&b, record, id);
        }
        free_slices(&b);
    }
}

// The cases of a table that are of primitive `id`.
static void batch_cases(struct suite *s, const char *id, const struct prim_case *cases,
                        size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (case_is_of(cases[k].primitive, id) && strcmp(cases[k].label, "long") != 0)
            batch_case(s, &cases[k]);
}

// Primitives of the packs that take inputs, one test each.
void batching_tests(struct suite *s)
{
    if (!s->is_cpu) {
        test_skip(s, "batching", "compared in f64 on the CPU: the rules are shared");
        return;
    }
    const char *const *ids = tn_primitive_names(s->runtime);
    for (uint32_t i = 0; ids && ids[i]; i++) {
        const tn_primitive *record = tn_primitive_find(s->runtime, ids[i]);
        bool ours = strncmp(ids[i], "base.", 5) == 0 || strncmp(ids[i], "nn.", 3) == 0;
        if (!ours || !record || record->num_inputs == 0 || record->effects ||
            takes_graphs(record) || !test_begin(s, "batching of %s", ids[i]))
            continue;
        batch_cases(s, ids[i], prim_cases, num_prim_cases);
        batch_cases(s, ids[i], operator_cases, num_operator_cases);
        batch_cases(s, ids[i], more_cases, sizeof(more_cases) / sizeof(more_cases[0]));
        if (record->expr && !record->infer)
            batch_elementwise(s, ids[i], record);
        test_end(s); // fails when no check was made
    }
}
