// SPDX-License-Identifier: MIT
// What the tests of rows share: expressions that reduce, with what they give as plain
// loops, and shapes. TENON_TEST_BACKEND says where they run; without it, on the backend
// that is chosen automatically.
#ifndef TESTS_GRAPHS_ROWS_H
#define TESTS_GRAPHS_ROWS_H

#include "../support/common.h"

enum { MOST = 1 << 17 };

static uint32_t seed = 1;

// From -1 to 1.
static inline double draw(void)
{
    seed = seed * 1664525 + 1013904223;
    return (double)(seed >> 8) * 0x1p-23 - 1;
}

static inline void open_runtime(void)
{
    static char variable[64];
    const char *backend = getenv("TENON_TEST_BACKEND");
    seed = 1;
    if (!backend) {
        runtime = open_with(NULL);
        return;
    }
    need_device(backend);
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s", backend);
    runtime = open_with((const char *const[]){variable, NULL});
}

static inline bool on_cpu(void)
{
    return !getenv("TENON_TEST_BACKEND");
}

// --- expressions -----------------------------------------------------------------------

// What an expression of x and w gives for one row of n elements. w broadcasts over rows.
typedef void row_oracle(const double *x, const double *w, double *out, int64_t n);

static inline double sum_of(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

static inline double greatest(const double *x, int64_t n)
{
    double most = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        most = isnan(x[i]) || x[i] > most ? x[i] : most;
    return most;
}

static inline void rms_norm(const double *x, const double *w, double *out, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] / sqrt(sum / (double)n + 1e-5) * w[i];
}

static inline void softmax(const double *x, const double *w, double *out, int64_t n)
{
    double most = greatest(x, n), sum = 0;
    (void)w;
    for (int64_t i = 0; i < n; i++)
        sum += out[i] = exp(x[i] - most);
    for (int64_t i = 0; i < n; i++)
        out[i] /= sum;
}

static inline void layer_norm(const double *x, const double *w, double *out, int64_t n)
{
    double mean = sum_of(x, n) / (double)n, var = 0;
    for (int64_t i = 0; i < n; i++)
        var += (x[i] - mean) * (x[i] - mean);
    for (int64_t i = 0; i < n; i++)
        out[i] = (x[i] - mean) / sqrt(var / (double)n + 1e-5) * w[i] + w[i];
}

static inline void spread_sum(const double *x, const double *w, double *out, int64_t n)
{
    double sum = sum_of(x, n);
    (void)w;
    for (int64_t i = 0; i < n; i++)
        out[i] = sum;
}

static inline void span(const double *x, const double *w, double *out, int64_t n)
{
    double low = INFINITY;
    for (int64_t i = 0; i < n; i++)
        low = x[i] < low ? x[i] : low;
    double width = greatest(x, n) - low + 1;
    for (int64_t i = 0; i < n; i++)
        out[i] = (x[i] - low) / width * w[i];
}

static inline void product(const double *x, const double *w, double *out, int64_t n)
{
    double all = 1;
    for (int64_t i = 0; i < n; i++)
        all *= 1 + x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        out[i] = all * w[i];
}

static inline void weight_share(const double *x, const double *w, double *out, int64_t n)
{
    double sum = sum_of(w, n) + 2 * (double)n;
    for (int64_t i = 0; i < n; i++)
        out[i] = w[i] * x[i] / sum;
}

static const struct {
    const char *text;
    row_oracle *oracle;
} expressions[] = {
    {"x, w -> x * rsqrt(mean(x * x) + 1e-5) * w", rms_norm},
    {"x, w -> e = exp(x - max(x)); e / sum(e) + 0 * w", softmax},
    {"x, w -> d = x - mean(x); d * rsqrt(mean(d * d) + 1e-5) * w + w", layer_norm},
    {"x, w -> sum(x) + 0 * w", spread_sum},
    {"x, w -> (x - min(x)) / (max(x) - min(x) + 1) * w", span},
    {"x, w -> n = sum(x == x ? 1.0 : 0.0); prod(1 + x / n) * w", product},
    {"x, w -> w * x / (sum(w) + 2 * sum(x == x ? 1.0 : 0.0))", weight_share},
};
enum { NUM_EXPRESSIONS = sizeof(expressions) / sizeof(expressions[0]) };

// --- shapes ----------------------------------------------------------------------------

static const struct {
    tn_shape shape;
    int32_t axis;
} shapes[] = {
    {{2, 0, {3, 40}}, -1},    {{2, 0, {5, 7}}, -1},       {{2, 0, {5, 7}}, 0},
    {{2, 0, {5, 7}}, 1},      {{3, 0, {2, 9, 4}}, 1},     {{3, 0, {2, 3, 33}}, 2},
    {{3, 0, {3, 4, 5}}, -3},  {{1, 0, {100}}, 0},         {{2, 0, {4, 1}}, -1},
    {{2, 0, {1, 1}}, 0},      {{2, 0, {0, 5}}, -1},       {{2, 0, {5, 0}}, -1},
    {{2, 0, {70, 1025}}, -1}, {{2, 0, {3, 9000}}, -1},    {{2, 0, {2, 30000}}, -1},
    {{2, 0, {1, 70000}}, -1}, {{4, 0, {2, 3, 4, 50}}, 3}, {{2, 0, {400, 64}}, 0},
};
enum { NUM_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static inline int64_t count_of(const tn_shape *shape)
{
    int64_t count = 1;
    for (int32_t i = 0; i < shape->rank; i++)
        count *= shape->extent[i];
    return count;
}

// Elements of a row, and the distance between them.
static inline int64_t row_of(const tn_shape *shape, int32_t axis, int64_t *out_step)
{
    int32_t at = axis < 0 ? axis + shape->rank : axis;
    *out_step = 1;
    for (int32_t i = at + 1; i < shape->rank; i++)
        *out_step *= shape->extent[i];
    return shape->extent[at];
}

static inline void want_rows(row_oracle *oracle, const tn_shape *shape, int32_t axis,
                             const double *x, const double *w, double *want)
{
    static double row[MOST], out[MOST];
    int64_t step, n = row_of(shape, axis, &step);
    for (int64_t i = 0; n > 0 && i < count_of(shape) / n; i++) {
        int64_t first = i / step * step * n + i % step;
        for (int64_t k = 0; k < n; k++)
            row[k] = x[first + k * step];
        oracle(row, w, out, n);
        for (int64_t k = 0; k < n; k++)
            want[first + k * step] = out[k];
    }
}

// w, one element for each of a row, so that it broadcasts along the other axes.
static inline tn_shape weight_shape(const tn_shape *shape, int32_t axis)
{
    int32_t at = axis < 0 ? axis + shape->rank : axis;
    tn_shape w = {.rank = shape->rank - at, .extent = {shape->extent[at], 1, 1, 1}};
    return w;
}

static inline tn_array *array_of(tn_scope *s, tn_dtype dtype, const tn_shape *shape,
                                 const double *values)
{
    tn_array *x = tn_from_data(s, TN_F64, shape, values);
    return tn_op(s, "astype", TN_IN(x), tn_attrs("dtype", (int64_t)dtype));
}

static inline void read_doubles(tn_scope *s, tn_array *x, double *out, int64_t count)
{
    tn_array *wide = tn_op(s, "astype", TN_IN(x), tn_attrs("dtype", (int64_t)TN_F64));
    must(s, tn_read(s, wide, out, (uint64_t)count * sizeof(*out)));
}

static inline void fill(double *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = draw();
}

// Rounds to the dtype, as the arrays are.
static inline void read_back(tn_scope *s, tn_array *x, double *values, int64_t count)
{
    if (count > 0)
        read_doubles(s, x, values, count);
}

static double x[MOST], w[MOST], got[MOST], want[MOST];

static inline bool has_f64(void)
{
    return on_cpu();
}

#endif // TESTS_GRAPHS_ROWS_H
