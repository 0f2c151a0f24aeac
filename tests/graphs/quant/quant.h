// SPDX-License-Identifier: MIT
// Programs beside products with quantised weights, against the same in parts.
#ifndef TESTS_GRAPHS_QUANT_H
#define TESTS_GRAPHS_QUANT_H

#include <math.h>
#include <stdlib.h>
#include "../support/common.h"

// Rows of the halves of one array, gated, times n rows of blocks; behind it a bias, a
// nonlinearity and a residual. `w`: the blocks in `format`, with k elements each.
struct beside {
    const char *format;
    tn_array *w;
    int64_t rows, n, k;
    uint64_t steps; // of the whole
};

static inline tn_array *beside_numbers(tn_scope *s, int64_t rows, int64_t columns, int seed)
{
    int64_t count = rows * columns;
    float *values = malloc((size_t)count * sizeof(*values));
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)sin((double)(i * 7 + seed));
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(rows, columns), values);
    free(values);
    return x;
}

static inline tn_array *beside_half(tn_scope *s, tn_array *x, int64_t first, int64_t count)
{
    return tn_op(
        s, "base.slice", TN_IN(x),
        tn_attrs("start", TN_INTS(0, first), "stop", TN_INTS(INT64_MAX, first + count)));
}

// With `in_parts` each part is evaluated before the next one.
static inline void beside_run(const struct beside *b, bool in_parts, float *out)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *both = beside_numbers(s, b->rows, 2 * b->k, 1);
    tn_array *x =
        tn_expr(s, "g, u -> g / (1 + exp(-g)) * u",
                TN_IN(beside_half(s, both, 0, b->k), beside_half(s, both, b->k, b->k)),
                TN_NO_ATTRS);
    if (in_parts)
        must(s, tn_eval(s, x));
    tn_array *y =
        tn_op(s, "quant.quantized_matmul", TN_IN(x, b->w), tn_attrs("format", b->format));
    if (in_parts)
        must(s, tn_eval(s, y));
    tn_array *z = tn_expr(
        s, "y, b, r -> tanh(y + b) + r",
        TN_IN(y, beside_numbers(s, 1, b->n, 2), beside_numbers(s, b->rows, b->n, 3)),
        TN_NO_ATTRS);
    must(s, tn_read(s, z, out, (size_t)(b->rows * b->n) * sizeof(*out)));
    tn_scope_close(s);
}

static inline void check_beside(const struct beside *b)
{
    size_t count = (size_t)(b->rows * b->n);
    float *parts = malloc(count * sizeof(float)), *whole = malloc(count * sizeof(float));
    beside_run(b, true, parts);
    uint64_t before = stats_of(runtime).steps;
    beside_run(b, false, whole);
    cr_assert(eq(u64, stats_of(runtime).steps - before, b->steps), "%s, %d rows", b->format,
              (int)b->rows);
    for (size_t i = 0; i < count; i++)
        cr_assert(le(dbl, fabs((double)parts[i] - (double)whole[i]), 1e-5),
                  "%s, %d rows: element %zu is %g, in parts %g", b->format, (int)b->rows, i,
                  (double)whole[i], (double)parts[i]);
    free(parts);
    free(whole);
}

#endif // TESTS_GRAPHS_QUANT_H
