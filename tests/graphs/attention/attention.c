// SPDX-License-Identifier: MIT
// nn.scaled_dot_product_attention on the backend TENON_TEST_BACKEND, against loops over
// f64: shapes around the edges of tiles, each attribute, halves, layouts of caches; and how
// many launches it takes.
#include <stdlib.h>
#include <tenon/ops/reference.h>
#include "../support/common.h"

#include "../../sanitized.h"
#include "attention_rows.h"

// --- operands --------------------------------------------------------------------------

struct operand {
    tn_tensor tensor;
    int64_t count;
};

static double draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (1 << 23) - 1; // in [-1, 1)
}

static struct operand make(tn_dtype dtype, int32_t rank, const int64_t *extent)
{
    struct operand x = {.tensor.layout = {.dtype = dtype, .rank = rank}, .count = 1};
    for (int32_t i = rank - 1; i >= 0; i--) {
        x.tensor.layout.extent[i] = extent[i];
        x.tensor.layout.stride[i] = x.count;
        x.count *= extent[i];
    }
    cr_assert(x.count <= MOST);
    x.tensor.data = calloc((size_t)x.count + 1, (size_t)tn_dtype_bytes(dtype));
    return x;
}
#define MAKE(dtype, ...) make(dtype, 4, (const int64_t[]){__VA_ARGS__})

static struct operand drawn(struct operand x, uint64_t *state)
{
    for (int64_t i = 0; i < x.count; i++)
        tn_set_f64(&x.tensor, i, draw(state));
    return x;
}

static double at(const struct operand *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t index[] = {b, h, i, j};
    int64_t offset = 0;
    for (int32_t axis = 0; axis < 4; axis++)
        if (x->tensor.layout.extent[axis] != 1)
            offset += index[axis] * x->tensor.layout.stride[axis];
    return tn_get_f64(&x->tensor, offset);
}

static struct operand make_mask(const struct row *r, tn_dtype dtype, uint64_t *state)
{
    bool is_added = r->mask == ADDED || r->mask == ADDED_BY_QUERY;
    int64_t b = r->mask == SEEN || r->mask == ADDED ? BATCHES : 1;
    int64_t h = r->mask == SEEN || r->mask == SEEN_BY_HEAD ? r->heads : 1;
    int64_t q = r->mask == SEEN_BY_KEY ? 1 : r->queries;
    int64_t k = r->mask == ADDED_BY_QUERY ? 1 : r->keys;
    struct operand x = MAKE(is_added ? dtype : TN_BOOL, b, h, q, k);
    for (int64_t i = 0; i < x.count; i++) {
        double value = draw(state);
        // Also minus infinity, which hides a key.
        tn_set_f64(&x.tensor, i,
                   is_added ? (value > 0.8 ? -INFINITY : value)
                            : r->mask != NOTHING_SEEN && value > -0.3);
    }
    return x;
}

// An array with the same elements, in memory as `layout` says; a view of it is what is
// read.
static tn_array *upload(tn_scope *s, const struct operand *x, enum layouts layout)
{
    static const tn_ints heads_last = {.count = 4, .given = 1, .value = {0, 2, 1, 3}},
                         flipped = {.count = 4, .given = 1, .value = {0, 1, 3, 2}},
                         behind = {.count = 4, .given = 1, .value = {0, 0, 0, 1}};
    const tn_layout *l = &x->tensor.layout;
    const tn_ints *axes = layout == CACHE ? &heads_last : &flipped;
    int64_t extent[4], index[4] = {0};
    bool moves = layout == CACHE || layout == COLUMNS;
    for (int32_t i = 0; i < 4; i++)
        extent[i] = l->extent[moves ? axes->value[i] : i] +
                    (layout == ODD_OFFSET ? behind.value[i] : 0);
    struct operand stored = make(l->dtype, 4, extent);
    do {
        int64_t to = 0;
        for (int32_t i = 0; i < 4; i++)
            to += stored.tensor.layout.stride[i] *
                  (index[moves ? axes->value[i] : i] +
                   (layout == ODD_OFFSET ? behind.value[i] : 0));
        tn_set_f64(&stored.tensor, to, tn_get_f64(&x->tensor, tn_offset_at(l, index)));
    } while (tn_index_next(4, l->extent, index));
    tn_array *array =
        tn_from_data(s, l->dtype, TN_SHAPE(extent[0], extent[1], extent[2], extent[3]),
                     stored.tensor.data);
    free(stored.tensor.data);
    if (layout == ODD_OFFSET)
        return tn_op(s, "base.slice", TN_IN(array), tn_attrs("start", &behind));
    return moves ? tn_op(s, "base.transpose", TN_IN(array), tn_attrs("axes", axes)) : array;
}

struct operands {
    struct operand q, k, v, mask;
};

static int64_t length_of(const struct row *r, int64_t batch)
{
    return r->lengths[r->num_lengths == 1 ? 0 : batch];
}

// Keys that there are not are no numbers: they are not read.
static void spoil(const struct row *r, const struct operand *x, int64_t width)
{
    int64_t count = 0;
    for (int64_t b = 0; b < BATCHES; b++)
        for (int64_t h = 0; h < r->groups; h++)
            for (int64_t k = 0; k < r->keys; k++)
                for (int64_t i = 0; i < width; i++, count++)
                    if (r->num_lengths > 0 && k >= length_of(r, b))
                        tn_set_f64(&x->tensor, count, NAN);
}

static struct operands make_operands(const struct row *r, tn_dtype dtype)
{
    uint64_t state = (uint64_t)(r->keys * 64 + r->depth);
    struct operands o = {
        .q = drawn(MAKE(dtype, BATCHES, r->heads, r->queries, r->depth), &state),
        .k = drawn(MAKE(dtype, BATCHES, r->groups, r->keys, r->depth), &state),
        .v = drawn(MAKE(dtype, BATCHES, r->groups, r->keys, r->width), &state)};
    if (r->mask)
        o.mask = make_mask(r, dtype, &state);
    spoil(r, &o.k, r->depth);
    spoil(r, &o.v, r->width);
    return o;
}

static void free_operands(const struct operands *o)
{
    free(o->q.tensor.data);
    free(o->k.tensor.data);
    free(o->v.tensor.data);
    free(o->mask.tensor.data);
}

// --- what is expected ------------------------------------------------------------------

static double attr(const struct row *r, const char *name, double otherwise)
{
    for (int i = 0; i + 1 < 4 && r->attrs[i]; i += 2)
        if (strcmp(r->attrs[i], name) == 0)
            return strcmp(r->attrs[i + 1], "true") == 0 ? 1 : strtod(r->attrs[i + 1], NULL);
    return otherwise;
}

static bool sees(const struct row *r, int64_t b, int64_t i, int64_t k)
{
    double place = (double)i, window = attr(r, "window", 0);
    if (r->num_lengths > 0) {
        place += (double)length_of(r, b) - (double)r->queries;
        if (k >= length_of(r, b))
            return false;
    }
    return (attr(r, "is_causal", 0) == 0 || (double)k <= place) &&
           (window == 0 || place - (double)k < window);
}

static double score(const struct row *r, const struct operands *o, int64_t b, int64_t h,
                    int64_t i, int64_t k)
{
    double sum = 0, cap = attr(r, "soft_cap", 0);
    if (!sees(r, b, i, k))
        return -INFINITY;
    for (int64_t d = 0; d < r->depth; d++)
        sum += at(&o->q, b, h, i, d) * at(&o->k, b, h / (r->heads / r->groups), k, d);
    sum *= attr(r, "scale", 1 / sqrt((double)r->depth));
    if (cap > 0)
        sum = cap * tanh(sum / cap);
    if (r->mask && o->mask.tensor.layout.dtype == TN_BOOL)
        return at(&o->mask, b, h, i, k) != 0 ? sum : -INFINITY;
    return r->mask ? sum + at(&o->mask, b, h, i, k) : sum;
}

// The weights of a query: zeros where it sees no key.
static void weigh(const struct row *r, const struct operands *o, int64_t b, int64_t h,
                  int64_t i, double *weights)
{
    double sum = 0, most = -INFINITY;
    for (int64_t k = 0; k < r->keys; k++) {
        weights[k] = score(r, o, b, h, i, k);
        most = fmax(most, weights[k]);
    }
    for (int64_t k = 0; k < r->keys; k++) {
        weights[k] = weights[k] > -INFINITY ? exp(weights[k] - most) : 0;
        sum += weights[k];
    }
    for (int64_t k = 0; k < r->keys && sum > 0; k++)
        weights[k] /= sum;
}

// One row of the output.
static void attend(const struct row *r, const struct operands *o, int64_t b, int64_t h,
                   int64_t i, double *out)
{
    double *weights = malloc((size_t)r->keys * sizeof(*weights));
    weigh(r, o, b, h, i, weights);
    memset(out, 0, (size_t)r->width * sizeof(*out));
    for (int64_t k = 0; k < r->keys; k++)
        for (int64_t c = 0; c < r->width && weights[k] > 0; c++)
            out[c] += weights[k] * at(&o->v, b, h / (r->heads / r->groups), k, c);
    free(weights);
}

static void compare(const struct row *r, const struct operands *o, tn_dtype dtype,
                    const struct operand *got)
{
    // Of f32; and of halves half a unit in the last place of a number below 1.
    double most = 2e-5 + (dtype == TN_F16 ? 0x1p-12 : dtype == TN_BF16 ? 0x1p-9 : 0);
    if (r->on_matrices || r->may_round) // weights are rounded as well, to either side
        most *= 2;
    double *want = malloc((size_t)r->width * sizeof(*want));
    for (int64_t b = 0; b < BATCHES; b++)
        for (int64_t h = 0; h < r->heads; h++)
            for (int64_t i = 0; i < r->queries; i++) {
                attend(r, o, b, h, i, want);
                for (int64_t c = 0; c < r->width; c++) {
                    double x = at(got, b, h, i, c);
                    if (!(fabs(x - want[c]) <= most))
                        cr_fatal("row %td, %s: [%" PRId64 ", %" PRId64 ", %" PRId64
                                 ", %" PRId64 "] is %.9g, expected %.9g",
                                 r - rows, tn_dtype_name(dtype), b, h, i, c, x, want[c]);
                }
            }
    free(want);
}

// --- derivatives -----------------------------------------------------------------------

enum { Q, K, V, NUM_GRADIENTS };

struct gradients {
    double *of[NUM_GRADIENTS]; // in the order of the operand's elements
};

// What one query adds, of which `g` is the gradient of its output: of the scores s = scale
// q k', the weights p and values v that of s is p (g v' - sum(p g v')).
static void add_query(const struct row *r, const struct operands *o,
                      const struct operand *g, int64_t b, int64_t h, int64_t i,
                      double *scratch, const struct gradients *out)
{
    double *p = scratch, *dp = scratch + r->keys, sum = 0;
    double scale = attr(r, "scale", 1 / sqrt((double)r->depth)),
           cap = attr(r, "soft_cap", 0);
    int64_t group = h / (r->heads / r->groups);
    int64_t query = (b * r->heads + h) * r->queries + i;
    weigh(r, o, b, h, i, p);
    for (int64_t k = 0; k < r->keys; k++) {
        dp[k] = 0;
        for (int64_t c = 0; c < r->width && p[k] > 0; c++)
            dp[k] += at(g, b, h, i, c) * at(&o->v, b, group, k, c);
        sum += p[k] * dp[k];
    }
    for (int64_t k = 0; k < r->keys; k++) {
        double ds = p[k] * (dp[k] - sum) * scale, dot = 0;
        int64_t key = (b * r->groups + group) * r->keys + k;
        for (int64_t d = 0; d < r->depth && p[k] > 0; d++)
            dot += at(&o->q, b, h, i, d) * at(&o->k, b, group, k, d);
        ds *= cap > 0 ? 1 - pow(tanh(dot * scale / cap), 2) : 1;
        for (int64_t d = 0; d < r->depth && p[k] > 0; d++) {
            out->of[Q][query * r->depth + d] += ds * at(&o->k, b, group, k, d);
            out->of[K][key * r->depth + d] += ds * at(&o->q, b, h, i, d);
        }
        for (int64_t c = 0; c < r->width; c++)
            out->of[V][key * r->width + c] += p[k] * at(g, b, h, i, c);
    }
}

static void compare_gradients(const struct row *r, const struct operands *o, tn_dtype dtype,
                              const struct operand *g,
                              const struct operand got[NUM_GRADIENTS])
{
    // Of f32, of which some hundred terms are added; of halves a unit in the last place of
    // the result, and of the output, which is read again.
    double most = dtype == TN_F64    ? 1e-12
                  : dtype == TN_F16  ? 0x1p-10
                  : dtype == TN_BF16 ? 0x1p-7
                                     : 5e-5;
    double *scratch = calloc((size_t)r->keys * 2, sizeof(*scratch));
    struct gradients want;
    for (int n = 0; n < NUM_GRADIENTS; n++)
        want.of[n] = calloc((size_t)got[n].count + 1, sizeof(double));
    for (int64_t b = 0; b < BATCHES; b++)
        for (int64_t h = 0; h < r->heads; h++)
            for (int64_t i = 0; i < r->queries; i++)
                add_query(r, o, g, b, h, i, scratch, &want);
    for (int n = 0; n < NUM_GRADIENTS; n++)
        for (int64_t i = 0; i < got[n].count; i++) {
            double x = tn_get_f64(&got[n].tensor, i), expected = want.of[n][i];
            if (!(fabs(x - expected) <= most * (1 + fabs(expected))))
                cr_fatal("row %td, %s: element %" PRId64 " of d%c is %.9g, expected %.9g",
                         r - rows, tn_dtype_name(dtype), i, "qkv"[n], x, expected);
        }
    for (int n = 0; n < NUM_GRADIENTS; n++)
        free(want.of[n]);
    free(scratch);
}

// --- tests -----------------------------------------------------------------------------

TestSuite(attention, .init = setup_backend, .fini = teardown);

// `in` gets the inputs.
static tn_array *apply(tn_scope *s, const struct row *r, const struct operands *o,
                       tn_array *in[5])
{
    in[Q] = upload(s, &o->q, r->layout == COLUMNS ? COLUMNS : PLAIN);
    in[K] = upload(s, &o->k, r->layout);
    in[V] = upload(s, &o->v, r->layout);
    in[3] = in[4] = NULL;
    tn_attr attrs[2];
    uint64_t num_attrs = 0;
    if (r->mask) {
        const int64_t *e = o->mask.tensor.layout.extent;
        in[3] = tn_from_data(s, o->mask.tensor.layout.dtype,
                             TN_SHAPE(e[0], e[1], e[2], e[3]), o->mask.tensor.data);
    }
    if (r->num_lengths > 0) {
        tn_array *wide = tn_from_data(s, TN_I64, TN_SHAPE(r->num_lengths), r->lengths);
        wide = tn_op(s, "base.astype", TN_IN(wide),
                     tn_attrs("dtype", tn_dtype_name(r->length_dtype)));
        if (r->num_lengths == 1)
            wide = tn_op(s, "base.reshape", TN_IN(wide), tn_attrs("shape", TN_INTS()));
        must(s, tn_eval(s, wide));
        in[4] = wide;
    }
    for (int i = 0; i + 1 < 4 && r->attrs[i]; i += 2)
        attrs[num_attrs++] =
            (tn_attr){.name = r->attrs[i], .kind = TN_ATTR_TEXT, .text = r->attrs[i + 1]};
    tn_array *out = NULL;
    tn_op_n(s, "nn.scaled_dot_product_attention", (const tn_array *const *)in, 5,
            TN_ATTR_LIST(attrs, num_attrs), &out, 1);
    return out;
}

static void run_row(const struct row *r, tn_dtype dtype)
{
    tn_scope *s = tn_scope_open(runtime);
    struct operands o = make_operands(r, dtype);
    tn_array *in[5], *out = apply(s, r, &o, in);
    struct operand got = MAKE(dtype, BATCHES, r->heads, r->queries, r->width);
    tn_stats before = stats_of(runtime);
    must(s, tn_eval(s, out));
    tn_stats after = stats_of(runtime);
    must(s, tn_read(s, out, got.tensor.data,
                    (uint64_t)got.count * (uint64_t)tn_dtype_bytes(dtype)));
    compare(r, &o, dtype, &got);
    // Nothing is copied first, and no score is written: the CPU alone wants elements of
    // rows side by side.
    if (r->layout != COLUMNS)
        cr_assert(after.steps - before.steps == 1, "row %td, %s: %" PRIu64 " steps",
                  r - rows, tn_dtype_name(dtype), after.steps - before.steps);
    free(got.tensor.data);
    free_operands(&o);
    tn_scope_close(s);
}

// Steps: attention, and its derivative.
static void run_gradients(const struct row *r, tn_dtype dtype)
{
    tn_scope *s = tn_scope_open(runtime);
    uint64_t state = 7;
    struct operands o = make_operands(r, dtype);
    struct operand g = drawn(MAKE(dtype, BATCHES, r->heads, r->queries, r->width), &state);
    struct operand got[] = {MAKE(dtype, BATCHES, r->heads, r->queries, r->depth),
                            MAKE(dtype, BATCHES, r->groups, r->keys, r->depth),
                            MAKE(dtype, BATCHES, r->groups, r->keys, r->width)};
    tn_array *in[5], *out = apply(s, r, &o, in), *cotangent = upload(s, &g, PLAIN);
    tn_array *gradients[NUM_GRADIENTS];
    must(s, tn_vjp(s, &out, &cotangent, 1, in, NUM_GRADIENTS, gradients));
    tn_stats before = stats_of(runtime);
    must(s, tn_eval_n(s, gradients, NUM_GRADIENTS));
    uint64_t steps = stats_of(runtime).steps - before.steps;
    for (int n = 0; n < NUM_GRADIENTS; n++)
        must(s, tn_read(s, gradients[n], got[n].tensor.data,
                        (uint64_t)got[n].count * (uint64_t)tn_dtype_bytes(dtype)));
    compare_gradients(r, &o, dtype, &g, got);
    if (r->layout != COLUMNS)
        cr_assert(steps == 2, "row %td, %s: %" PRIu64 " steps", r - rows,
                  tn_dtype_name(dtype), steps);
    for (int n = 0; n < NUM_GRADIENTS; n++)
        free(got[n].tensor.data);
    free(g.tensor.data);
    free_operands(&o);
    tn_scope_close(s);
}

static bool is_backend(const char *name)
{
    return strcmp(getenv("TENON_TEST_BACKEND"), name) == 0;
}

// Whether the device in use has matrix units for `dtype`.
static bool has_matrices(tn_dtype dtype)
{
    static const char *const wanted[] = {"bf16-matrices", "f16-matrices"};
    tn_device_summary devices[16] = {{.struct_size = sizeof(devices[0])}};
    uint64_t count = sizeof(devices) / sizeof(devices[0]);
    must(NULL, tn_devices(runtime, devices, &count));
    for (uint64_t i = 0; i < count && i < sizeof(devices) / sizeof(devices[0]); i++) {
        const char *at = devices[i].selected == 1
                             ? strstr(devices[i].features, wanted[dtype == TN_F16])
                             : NULL;
        // Not as the end of "bf16-matrices".
        while (at && at != devices[i].features && at[-1] == 'b')
            at = strstr(at + 1, wanted[dtype == TN_F16]);
        if (at)
            return true;
    }
    return false;
}

// The loops are slow under sanitizers: races are looked for in one row of four.
enum { STEP = LOOKS_FOR_RACES ? 4 : 1 };

Test(attention, every_row_agrees_with_plain_loops)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i += STEP)
        if (!rows[i].on_matrices && (i == 0 || !is_backend("vulkan-jit")))
            run_row(&rows[i], TN_F32);
}

Test(attention, halves_agree_with_plain_loops)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i += STEP)
        if (rows[i].on_matrices) {
            continue;
        } else if (is_backend("cpu-blas")) {
            if (!IS_SANITIZED || i % 2 == 0)
                run_row(&rows[i], TN_F16);
            if (!IS_SANITIZED || i % 2 == 1)
                run_row(&rows[i], TN_BF16);
        } else if (rows[i].half) {
            run_row(&rows[i], rows[i].half);
        }
}

Test(attention, matrix_units_agree_with_plain_loops)
{
    const tn_dtype halves[] = {TN_F16, TN_BF16};
    bool has_any = false;
    for (int n = 0; n < 2; n++) {
        bool has = has_matrices(halves[n]);
        for (size_t i = 0; has && i < sizeof(rows) / sizeof(rows[0]); i++)
            if (rows[i].on_matrices) {
                run_row(&rows[i], halves[n]);
                run_gradients(&rows[i], halves[n]);
            }
        has_any = has_any || has;
    }
    if (!has_any)
        cr_skip("the device has no matrix units");
}

// Rows of which Vulkan's derivatives have few shaders: of up to 64 columns, and one of
// more.
static bool is_derived(const struct row *r)
{
    return (r->depth <= 64 && r->width <= 64) || (r->depth == 64 && r->width == 128);
}

Test(attention, derivatives_agree_with_plain_loops)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i += STEP) {
        const struct row *r = &rows[i];
        const tn_dtype dtypes[] = {TN_F32, TN_F64, r->half ? r->half : TN_BF16};
        if (r->on_matrices) {
            continue;
        } else if (is_backend("cpu-blas")) {
            for (size_t d = 0; d < 3; d++)
                if (!IS_SANITIZED || i % 3 == d)
                    run_gradients(r, dtypes[d]);
        } else if (is_backend("vulkan") && is_derived(r)) {
            run_gradients(r, TN_F32);
        } else if (is_backend("vulkan-jit") && r->half && r->layout && r->mask) {
            run_gradients(r, r->half);
        }
    }
}

// Attention of 1024 queries and keys, and its derivatives, mapped over heads or not, in
// less memory than one matrix of scores has.
static tn_status slice_body(tn_scope *s, tn_array *const *in, uint64_t num_in,
                            tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)user;
    tn_array *y = tn_op(s, "nn.scaled_dot_product_attention", TN_IN(in[0], in[1], in[1]),
                        tn_attrs("is_causal", "true"));
    y = un(s, "sum", bin(s, "multiply", y, y));
    return tn_vjp(s, &y, NULL, 1, in, num_out, out);
}

Test(attention, no_buffer_has_the_scores)
{
    enum { LENGTH = 1024, WIDTH = 8 };
    static float data[LENGTH * WIDTH];
    char variable[96];
    const char *backend = getenv("TENON_TEST_BACKEND");
    if (is_backend("vulkan-jit"))
        cr_skip("its kernels are those of vulkan");
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend);
    for (int mapped = is_backend("vulkan"); mapped < 2; mapped++) { // software is slow
        // Each thread has working memory of its own, and each runtime a peak.
        teardown();
        runtime = open_with((const char *const[]){variable, "TENON_THREADS=2", NULL});
        tn_scope *s = tn_scope_open(runtime);
        const int32_t axes[] = {0, -1};
        tn_array *in[2], *out[2];
        for (int i = 0; i < 2; i++) {
            for (int64_t j = 0; j < LENGTH * WIDTH; j++)
                data[j] = sinf((float)j * 0.37f + (float)i);
            in[i] = tn_from_data(s, TN_F32,
                                 mapped && i == 0 ? TN_SHAPE(1, LENGTH, WIDTH)
                                                  : TN_SHAPE(LENGTH, WIDTH),
                                 data);
        }
        must(s, mapped ? tn_vmap_call(s, slice_body, NULL, in, axes, 2, out, NULL, 2)
                       : slice_body(s, in, 2, out, 2, NULL));
        must(s, tn_eval_n(s, out, 2));
        uint64_t peak = stats_of(runtime).buffer_peak;
        cr_assert(peak < (uint64_t)LENGTH * LENGTH * sizeof(float), "%s: %" PRIu64 " bytes",
                  mapped ? "mapped" : "alone", peak);
        tn_scope_close(s);
    }
}

// A score that is no number is in the result, also where the keys are in parts, and only in
// rows that see it.
Test(attention, no_number_is_lost)
{
    static const struct row r = {
        1, 1, 2, 300, 16, 16, 0, 0, 1, {300}, TN_I64, {"is_causal", "true"}, 0};
    float out[BATCHES * 2 * 16];
    tn_scope *s = tn_scope_open(runtime);
    struct operands o = make_operands(&r, TN_F32);
    ((float *)o.k.tensor.data)[299 * 16] =
        NAN; // of the first batch, seen by the last query
    tn_array *in[5], *x = apply(s, &r, &o, in);
    must(s, tn_read(s, x, out, sizeof(out)));
    for (int i = 0; i < BATCHES * 2 * 16; i++)
        cr_assert(isnan(out[i]) == (i / 16 == 1), "element %d is %g", i, (double)out[i]);
    free_operands(&o);
    tn_scope_close(s);
}
