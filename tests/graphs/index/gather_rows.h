// SPDX-License-Identifier: MIT
// Graphs that gather what they reduce the rows of, or one element a row.
#ifndef TESTS_GRAPHS_GATHER_ROWS_H
#define TESTS_GRAPHS_GATHER_ROWS_H

#include "gather.h"

static inline tn_array *un1(const struct maker *m, const char *op, tn_array *x)
{
    return kept(m, un(m->s, op, x));
}

static inline tn_array *reduced(const struct maker *m, const char *op, tn_array *x)
{
    return kept(m, tn_op(m->s, op, TN_IN(x),
                         tn_attrs("axis", TN_INTS(-1), "keepdims", (int64_t)1)));
}

// Words, positions and kinds, summed and normed; the sum is wanted, too.
static inline int embed_norm(const struct maker *m, tn_array *out[MOST_RESULTS],
                             int64_t width)
{
    embed(m, out, width);
    out[1] = kept(
        m, tn_op(m->s, "layer_norm",
                 TN_IN(out[0], data(m, TN_SHAPE(width), 4), data(m, TN_SHAPE(width), 5)),
                 TN_NO_ATTRS));
    return 2;
}

static inline int norm_8(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    return embed_norm(m, out, 8);
}

static inline int norm_5(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    return embed_norm(m, out, 5);
}

// Longer than what an invocation keeps: each phase gathers again.
static inline int norm_2400(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    return embed_norm(m, out, 2400);
}

static inline int norm_2402(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    return embed_norm(m, out, 2402);
}

// Each element has an index of its own.
static inline int softmax_along(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(5, 6), 1), *i = indices(m, TN_SHAPE(5, 8), 6, 2);
    x = kept(m, tn_op(m->s, "take_along_axis", TN_IN(x, i), tn_attrs("axis", 1)));
    out[0] = un1(m, "softmax", x);
    return 1;
}

// The same columns of each row, which are turned: rows have gaps, and places of their own.
static inline int softmax_columns(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = un1(m, "transpose", data(m, TN_SHAPE(6, 5), 1));
    out[0] = un1(m, "softmax", take(m, x, indices(m, TN_SHAPE(7), 6, 2), 1));
    return 1;
}

static inline int sum_of_turned(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = un1(m, "transpose", data(m, TN_SHAPE(8, 6), 1));
    x = take(m, x, indices(m, TN_SHAPE(7), 6, 2), 0);
    out[0] = reduced(m, "sum", bin2(m, "multiply", x, data(m, TN_SHAPE(8), 2)));
    return 1;
}

static inline int two_axes(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = take(m, data(m, TN_SHAPE(5, 4, 6), 1), indices(m, TN_SHAPE(7), 5, 2), 0);
    x = bin2(m, "multiply", x, data(m, TN_SHAPE(7, 4, 6), 2));
    out[0] = kept(m, tn_op(m->s, "max", TN_IN(x), tn_attrs("axis", TN_INTS(1, 2))));
    return 1;
}

// A row's index is what the row was reduced to.
static inline int index_of_row(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *i = reduced(m, "max", indices(m, TN_SHAPE(9, 8), 6, 2));
    tn_array *scale = take(m, data(m, TN_SHAPE(6), 1), i, 0);
    out[0] = bin2(m, "multiply", scale, data(m, TN_SHAPE(9, 8), 2));
    return 1;
}

// Two indices a row, or of one axis: the arithmetic of both is the row's.
static inline int softmax_corners(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(6, 5, 8), 1);
    tn_array *y = indices(m, TN_SHAPE(3, 4), 6, 1), *z = indices(m, TN_SHAPE(4), 5, 2);
    tn_array *a = kept(m, tn_op(m->s, "gather", TN_IN(x, y, z), TN_NO_ATTRS));
    tn_array *b = take(m, data(m, TN_SHAPE(9, 8), 3), y, 0);
    out[0] = un1(m, "softmax", bin2(m, "subtract", a, b));
    return 1;
}

// Indices with gaps, which few rows of a row program may not have on Vulkan: their
// arithmetic stays a step.
static inline int softmax_gaps(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(5, 6, 4), 1);
    tn_array *y = indices(m, TN_SHAPE(14), 6, 1), *z = indices(m, TN_SHAPE(7), 4, 2);
    y = kept(m,
             tn_op(m->s, "slice", TN_IN(y),
                   tn_attrs("start", TN_INTS(0), "stop", TN_INTS(14), "step", TN_INTS(2))));
    x = kept(m, tn_op(m->s, "gather", TN_IN(x, y, z), tn_attrs("axes", TN_INTS(1, 2))));
    out[0] = un1(m, "softmax", x);
    return 1;
}

// One gathered element a row, beside what all of the row gives.
static inline int label_of_row(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(9, 8), 1), *i = indices(m, TN_SHAPE(9, 1), 8, 2);
    tn_array *own =
        kept(m, tn_op(m->s, "take_along_axis", TN_IN(x, i), tn_attrs("axis", 1)));
    tn_array *most = reduced(m, "max", bin2(m, "multiply", x, data(m, TN_SHAPE(8), 3)));
    out[0] = bin2(m, "subtract", own, most);
    return 1;
}

#endif // TESTS_GRAPHS_GATHER_ROWS_H
