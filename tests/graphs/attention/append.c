// SPDX-License-Identifier: MIT
// Attention of one query behind updates of its caches, on the Vulkan backend
// TENON_TEST_BACKEND: one launch writes the rows and reads the caches, or two do where a
// row of the table says so. Caches are compared exactly, the output with loops over f64. As
// kernels for GPUs (TENON_VULKAN_AS_GPU).
#include <stdlib.h>
#include <tenon/launches.h>
#include <tenon/ops/reference.h>
#include "../support/common.h"

TestSuite(append, .init = setup_backend, .fini = teardown);

// What is otherwise than in a decoder's step.
enum extra { NOTHING, NO_PROGRAM, QUERY_IS_READ, CACHE_IS_READ, CACHE_IS_KEPT };

static const struct row {
    tn_dtype dtype;
    int64_t heads, groups, keys, depth, width, queries, start, length, window, causal;
    double soft_cap;
    bool start_is_i64, is_joined;
    enum extra extra;
} rows[] = {
    {TN_F32, 4, 2, 64, 32, 32, 1, 5, 6, 0, 1, 0, 0, 1, NOTHING},
    {TN_F16, 9, 3, 1024, 64, 64, 1, 512, 513, 0, 1, 0, 0, 1, NOTHING},
    {TN_F16, 9, 3, 1024, 64, 64, 1, 0, 1, 0, 1, 0, 0, 1, NOTHING},
    {TN_F16, 9, 3, 1024, 64, 64, 1, 1023, 1024, 0, 1, 0, 0, 1, NOTHING},
    {TN_F16, 8, 1, 8192, 256, 256, 1, 5, 6, 0, 1, 0, 0, 1, NOTHING}, // rows of one group
    {TN_F32, 32, 1, 300, 64, 64, 1, 299, 300, 0, 1, 0, 0, 1, NOTHING},
    {TN_F32, 5, 1, 100, 48, 80, 1, 40, 77, 0, 0, 0, 0, 1, NOTHING}, // and keys behind it
    {TN_F16, 2, 2, 70, 128, 64, 1, 69, 70, 16, 1, 0, 0, 1, NOTHING},
    {TN_F16, 2, 2, 70, 256, 256, 1, 30, 31, 0, 1, 30, 0, 1, NOTHING},
    {TN_F32, 2, 2, 70, 32, 32, 1, 30, 20, 0, 1, 0, 0, 1, NOTHING}, // not seen
    {TN_F32, 2, 2, 70, 32, 32, 1, 30, 60, 8, 1, 0, 0, 1, NOTHING}, // outside the window
    {TN_F32, 2, 2, 70, 32, 32, 1, 30, -1, 0, 0, 0, 0, 1, NOTHING}, // no lengths
    {TN_F32, 2, 2, 70, 32, 32, 1, -1, 70, 0, 1, 0, 0, 1, NOTHING}, // from the end
    {TN_F32, 2, 2, 70, 32, 32, 1, -70, 70, 0, 1, 0, 0, 1, NOTHING},
    {TN_F32, 2, 2, 70, 32, 32, 1, -71, 70, 0, 1, 0, 0, 1, NOTHING}, // clamped
    {TN_F32, 2, 2, 70, 32, 32, 1, INT32_MIN, 70, 0, 1, 0, 0, 1, NOTHING},
    {TN_F32, 2, 2, 70, 32, 32, 1, 70, 70, 0, 1, 0, 0, 1, NOTHING},
    {TN_F32, 2, 2, 70, 32, 32, 1, INT32_MAX, 70, 0, 1, 0, 0, 1, NOTHING},
    {TN_F16, 4, 4, 96, 32, 32, 1, 33, 34, 0, 1, 0, 0, 1, NO_PROGRAM},
    {TN_F16, 4, 4, 96, 32, 32, 1, 33, 34, 0, 1, 0, 0, 1, QUERY_IS_READ},
    {TN_F16, 4, 4, 96, 32, 32, 1, 33, 34, 0, 1, 0, 0, 1, CACHE_IS_READ},
    {TN_F16, 4, 4, 96, 32, 32, 1, 33, 34, 0, 1, 0, 0, 0, CACHE_IS_KEPT},
    {TN_F32, 4, 2, 64, 32, 32, 2, 5, 7, 0, 1, 0, 0, 0, NOTHING},
    {TN_F32, 4, 2, 64, 32, 32, 1, 5, 6, 0, 1, 0, 1, 0, NOTHING},
    {TN_F32, 2, 2, 64, 512, 512, 1, 5, 6, 0, 1, 0, 0, 0, NOTHING}, // not few enough
    {TN_F32, 2, 2, 64, 30, 30, 1, 5, 6, 0, 1, 0, 0, 0, NOTHING},   // no whole lines
};

enum { IN_K, IN_V, IN_Q, IN_NEW_K, IN_NEW_V, IN_START, IN_LENGTH, NUM_IN };
enum { OUT_K, OUT_V, OUT, OUT_EXTRA, NUM_OUT };

// --- the graph -------------------------------------------------------------------------

static tn_array *as(tn_scope *s, const struct row *r, tn_array *x)
{
    return r->dtype == TN_F32
               ? x
               : tn_op(s, "astype", TN_IN(x), tn_attrs("dtype", tn_dtype_name(r->dtype)));
}

static tn_array *halved(tn_scope *s, const struct row *r, tn_array *x)
{
    return as(s, r, tn_expr(s, "x -> x * 0.5 + 0.25", TN_IN(x), TN_NO_ATTRS));
}

static tn_status step(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                      uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    const struct row *r = user;
    tn_array *q = r->extra == NO_PROGRAM ? in[IN_Q] : halved(s, r, in[IN_Q]);
    out[OUT_K] =
        tn_op(s, "dynamic_slice_update",
              TN_IN(in[IN_K], halved(s, r, in[IN_NEW_K]), in[IN_START]), TN_NO_ATTRS);
    out[OUT_V] = tn_op(s, "dynamic_slice_update",
                       TN_IN(in[IN_V], as(s, r, in[IN_NEW_V]), in[IN_START]), TN_NO_ATTRS);
    tn_array *seen = tn_op(
        s, "nn.scaled_dot_product_attention",
        TN_IN(q, out[OUT_K], out[OUT_V], NULL, r->length < 0 ? NULL : in[IN_LENGTH]),
        tn_attrs("is_causal", r->causal, "window", r->window, "soft_cap", r->soft_cap));
    out[OUT] = tn_op(s, "astype", TN_IN(seen), tn_attrs("dtype", "f32"));
    tn_array *read = r->extra == QUERY_IS_READ   ? q
                     : r->extra == CACHE_IS_READ ? out[OUT_K]
                                                 : in[IN_NEW_K];
    out[OUT_EXTRA] =
        un(s, "sum", tn_op(s, "astype", TN_IN(read), tn_attrs("dtype", "f32")));
    return tn_scope_status(s);
}

// --- values ----------------------------------------------------------------------------

// Multiples of 1 / 64 in [-1, 1): what is computed of them before the attention is exact.
static void draw(uint64_t *state, int64_t count, double *out)
{
    for (int64_t i = 0; i < count; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        out[i] = (double)(*state >> 57) / 64 - 1;
    }
}

static tn_array *upload(tn_scope *s, tn_dtype dtype, const int64_t extent[4],
                        const double *values)
{
    int64_t count = extent[0] * extent[1] * extent[2] * extent[3];
    tn_tensor x = {.layout = {.dtype = dtype},
                   .data = calloc((size_t)count, (size_t)tn_dtype_bytes(dtype))};
    for (int64_t i = 0; i < count; i++)
        tn_set_f64(&x, i, values[i]);
    tn_array *array = tn_from_data(
        s, dtype, TN_SHAPE(extent[0], extent[1], extent[2], extent[3]), x.data);
    free(x.data);
    return array;
}

static void download(tn_scope *s, tn_array *x, tn_dtype dtype, int64_t count, double *out)
{
    size_t bytes = (size_t)count * (size_t)tn_dtype_bytes(dtype);
    tn_tensor data = {.layout = {.dtype = dtype}, .data = malloc(bytes)};
    must(s, tn_read(s, x, data.data, bytes));
    for (int64_t i = 0; i < count; i++)
        out[i] = tn_get_f64(&data, i);
    free(data.data);
}

static double *values(int64_t count)
{
    return calloc((size_t)count, sizeof(double));
}

// --- what is expected ------------------------------------------------------------------

static int64_t place_of(const struct row *r)
{
    int64_t last = r->keys - r->queries, at = r->start < 0 ? r->start + r->keys : r->start;
    return at < 0 ? 0 : at > last ? last : at;
}

static void update(const struct row *r, double *cache, const double *new, int64_t width,
                   double factor, double term)
{
    for (int64_t g = 0; g < r->groups; g++)
        for (int64_t i = 0; i < r->queries * width; i++)
            cache[(g * r->keys + place_of(r)) * width + i] =
                new[g * r->queries * width + i] * factor + term;
}

static void attend(const struct row *r, const double *q, const double *k, const double *v,
                   double *out)
{
    double factor = r->extra == NO_PROGRAM ? 1 : 0.5,
           term = r->extra == NO_PROGRAM ? 0 : 0.25, *scores = values(r->keys);
    for (int64_t row = 0; row < r->heads * r->queries; row++) {
        int64_t g = row / (r->heads / r->groups * r->queries);
        int64_t length = r->length < 0 ? r->keys : r->length;
        int64_t at = row % r->queries + (r->length < 0 ? 0 : length - r->queries);
        int64_t end = r->causal && at + 1 < length ? at + 1 : length;
        int64_t begin = r->window > 0 && at - r->window + 1 > 0 ? at - r->window + 1 : 0;
        double most = -INFINITY, sum = 0;
        for (int64_t i = begin; i < end; i++) {
            scores[i] = 0;
            for (int64_t d = 0; d < r->depth; d++)
                scores[i] += (q[row * r->depth + d] * factor + term) *
                             k[(g * r->keys + i) * r->depth + d];
            scores[i] /= sqrt((double)r->depth);
            if (r->soft_cap > 0)
                scores[i] = r->soft_cap * tanh(scores[i] / r->soft_cap);
            most = fmax(most, scores[i]);
        }
        for (int64_t i = begin; i < end; i++) {
            double weight = exp(scores[i] - most);
            sum += weight;
            for (int64_t d = 0; d < r->width; d++)
                out[row * r->width + d] += weight * v[(g * r->keys + i) * r->width + d];
        }
        for (int64_t d = 0; d < r->width; d++)
            out[row * r->width + d] /= sum;
    }
    free(scores);
}

static void compare(int number, const char *what, const double *got, const double *expected,
                    int64_t count, double error)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - expected[i]) <= error))
            cr_fatal("row %d: %s[%lld] is %.9g, expected %.9g", number, what, (long long)i,
                     got[i], expected[i]);
}

// --- the test --------------------------------------------------------------------------

static void note_launch(void *context, const tn_planned_launch *launch)
{
    if (strncmp(launch->name, "attention_append", 16) == 0)
        ++*(int *)context;
}

// Calls the step and reads its outputs; gives the joined launches that it was planned with.
static int run(const struct row *r, double *const *in, double *const *out,
               const int64_t counts[NUM_OUT])
{
    static const uint32_t donated[] = {IN_K, IN_V}; // keys alone are kept
    bool keeps = r->extra == CACHE_IS_KEPT;
    const tn_function_options options = {.struct_size = sizeof(options),
                                         .donated = donated + keeps,
                                         .num_donated = keeps ? 1 : 2};
    tn_dtype q_dtype = r->extra == NO_PROGRAM ? r->dtype : TN_F32;
    const int32_t length = (int32_t)r->length;
    const int32_t start[] = {0, 0, (int32_t)r->start, 0};
    const int64_t long_start[] = {0, 0, r->start, 0};
    char plugin[64];
    const void *table;
    const tn_host *host;
    tn_function *f = NULL;
    tn_array *made[NUM_OUT];
    int joined = 0;
    snprintf(plugin, sizeof(plugin), "org.tenon.%s", getenv("TENON_TEST_BACKEND"));
    must(NULL, tn_provider_load(runtime, TN_IFACE_LAUNCHES, plugin, &table, &host));
    const tn_launches *launches = table;
    must(NULL, tn_function_create(runtime, step, (void *)(uintptr_t)r, &options, &f));
    tn_scope *s = tn_scope_open(runtime);
    tn_array *given[] = {
        upload(s, r->dtype, (int64_t[]){1, r->groups, r->keys, r->depth}, in[IN_K]),
        upload(s, r->dtype, (int64_t[]){1, r->groups, r->keys, r->width}, in[IN_V]),
        upload(s, q_dtype, (int64_t[]){1, r->heads, r->queries, r->depth}, in[IN_Q]),
        upload(s, TN_F32, (int64_t[]){1, r->groups, r->queries, r->depth}, in[IN_NEW_K]),
        upload(s, TN_F32, (int64_t[]){1, r->groups, r->queries, r->width}, in[IN_NEW_V]),
        r->start_is_i64 ? tn_from_data(s, TN_I64, TN_SHAPE(4), long_start)
                        : tn_from_data(s, TN_I32, TN_SHAPE(4), start),
        tn_from_data(s, TN_I32, TN_SHAPE(1), &length)};
    must(s, launches->watch(host, note_launch, &joined));
    must(s, tn_function_call(f, s, given, NUM_IN, made, NUM_OUT));
    must(s, launches->watch(host, NULL, NULL));
    for (int i = 0; i < NUM_OUT; i++)
        download(s, made[i], i < OUT ? r->dtype : TN_F32, counts[i], out[i]);
    if (keeps) { // and keeps what it had
        double *kept = values(counts[OUT_K]);
        download(s, given[IN_K], r->dtype, counts[OUT_K], kept);
        compare((int)(r - rows), "kept", kept, in[IN_K], counts[OUT_K], 0);
        free(kept);
    }
    tn_scope_close(s);
    tn_function_destroy(f);
    return joined;
}

static void check_row(const struct row *r)
{
    int64_t counts[NUM_IN] = {
        r->groups * r->keys * r->depth, r->groups * r->keys * r->width,
        r->heads * r->queries * r->depth, r->groups * r->queries * r->depth,
        r->groups * r->queries * r->width};
    int64_t out_counts[NUM_OUT] = {counts[IN_K], counts[IN_V],
                                   r->heads * r->queries * r->width, 1};
    double *in[NUM_IN] = {NULL}, *out[NUM_OUT], *expected = values(out_counts[OUT]);
    uint64_t state = (uint64_t)(r - rows) + 1;
    int number = (int)(r - rows);
    for (int i = 0; i <= IN_NEW_V; i++)
        draw(&state, counts[i], in[i] = values(counts[i]));
    for (int i = 0; i < NUM_OUT; i++)
        out[i] = values(out_counts[i]);
    int joined = run(r, in, out, out_counts);
    cr_expect(eq(int, joined, r->is_joined), "row %d", number);
    update(r, in[IN_K], in[IN_NEW_K], r->depth, 0.5, 0.25);
    update(r, in[IN_V], in[IN_NEW_V], r->width, 1, 0);
    compare(number, "keys", out[OUT_K], in[IN_K], counts[IN_K], 0);
    compare(number, "values", out[OUT_V], in[IN_V], counts[IN_V], 0);
    attend(r, in[IN_Q], in[IN_K], in[IN_V], expected);
    compare(number, "output", out[OUT], expected, out_counts[OUT],
            r->dtype == TN_F32 ? 2e-6 : 1e-3);
    int read = r->extra == QUERY_IS_READ   ? IN_Q
               : r->extra == CACHE_IS_READ ? IN_K
                                           : IN_NEW_K;
    double sum = 0;
    for (int64_t i = 0; i < counts[read]; i++)
        sum += r->extra == QUERY_IS_READ ? in[read][i] * 0.5 + 0.25 : in[read][i];
    compare(number, "sum", out[OUT_EXTRA], &sum, 1, 1e-3);
    for (int i = 0; i < NUM_IN; i++)
        free(in[i]);
    for (int i = 0; i < NUM_OUT; i++)
        free(out[i]);
    free(expected);
}

Test(append, launches_write_rows_and_read_them)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_row(&rows[i]);
}
