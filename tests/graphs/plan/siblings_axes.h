// SPDX-License-Identifier: MIT
// Graphs of reductions over the same axes of arrays that they share.
#ifndef TESTS_GRAPHS_SIBLINGS_AXES_H
#define TESTS_GRAPHS_SIBLINGS_AXES_H

#include "siblings.h"

static inline tn_array *all_of(const struct maker *m, const char *op, tn_array *x)
{
    return kept(m, tn_op(m->s, op, TN_IN(x), TN_NO_ATTRS));
}

static inline int columns(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(40, 48), 1);
    out[0] = over(m, "sum", x, 0);
    out[1] = over(m, "max", x, 0);
    out[2] = over(m, "argmax", x, 0);
    out[3] = over(m, "mean", square(m, x), 0);
    out[4] = over(m, "min", un1(m, "abs", x), 0);
    out[5] = over(m, "argmin", x, 0);
    out[6] = over(m, "prod", x, 0);
    return 7;
}

// In parts, with a second launch.
static inline int of_everything(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(150, 180), 1);
    out[0] = all_of(m, "sum", x);
    out[1] = all_of(m, "argmax", x);
    out[2] = all_of(m, "sum", square(m, x));
    out[3] = all_of(m, "max", un1(m, "abs", x));
    out[4] = all_of(m, "logsumexp", x);
    return 5;
}

static inline int of_integers(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(150, 180), 1);
    out[0] = all_of(m, "sum", x);
    out[1] = all_of(m, "mean", x);
    out[2] = all_of(m, "min", x);
    out[3] = all_of(m, "any", x);
    return 4;
}

// One axis of three, of an array with gaps, with and without the axis in the result.
static inline int of_a_view(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(7, 200, 3), 1);
    x = kept(m, tn_op(m->s, "transpose", TN_IN(x), tn_attrs("axes", TN_INTS(2, 1, 0))));
    x = kept(m, tn_op(m->s, "slice", TN_IN(x),
                      tn_attrs("start", TN_INTS(0, 1, 1), "stop", TN_INTS(3, 200, 7),
                               "step", TN_INTS(1, 1, 2))));
    out[0] = over(m, "max", x, 1);
    out[1] =
        kept(m, tn_op(m->s, "sum", TN_IN(x), tn_attrs("axis", (int64_t)1, "keepdims", 1)));
    out[2] = over(m, "argmax", x, 1);
    return 3;
}

// Two launches: squares of distances need the mean.
static inline int spread(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(20, 30), 1);
    out[0] = over(m, "mean", x, 0);
    out[1] = over(m, "var", x, 0);
    out[2] = over(m, "std", x, 0);
    out[3] = over(m, "min", x, 0);
    return 4;
}

// Each with work of its own behind it, which reads other arrays.
static inline int with_work_behind(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(20, 30), 1), *w = data(m, TN_SHAPE(30), 2);
    out[0] = bin2(m, "multiply", un1(m, "sqrt", over(m, "mean", square(m, x), 0)), w);
    out[1] = bin2(m, "add", over(m, "max", x, 0), w);
    out[2] = over(m, "min", x, 0);
    return 3;
}

// Programs of several arrays, some of which broadcast.
static inline int of_products(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(200, 6, 5), 1), *y = data(m, TN_SHAPE(200, 6, 5), 2);
    tn_array *w = data(m, TN_SHAPE(6, 1), 3);
    out[0] = over(m, "sum", bin2(m, "multiply", x, y), 0);
    out[1] = over(m, "sum", x, 0);
    out[2] = over(m, "max", y, 0);
    out[3] = over(m, "mean", bin2(m, "add", bin2(m, "multiply", y, w), x), 0);
    return 4;
}

// Squares are computed in each of their readers; both axes have a launch.
static inline int of_one_program(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(20, 6, 5), 1), *y = square(m, x);
    out[0] = over(m, "sum", y, 0);
    out[1] = over(m, "max", y, 0);
    out[2] = un1(m, "sqrt", over(m, "sum", y, 1));
    out[3] = over(m, "argmax", y, 1);
    return 4;
}

// The product is in memory for another reader, which no reduction is.
static inline int of_a_kept_program(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(20, 30), 1), *y = square(m, x);
    out[0] = over(m, "sum", y, 0);
    out[1] = over(m, "max", y, 0);
    out[2] = over(m, "cumsum", y, 0);
    return 3;
}

// More than a launch takes, and more arguments than are pushed.
static inline int many_columns(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(20, 30), 1);
    for (int i = 0; i < 14; i++)
        out[i] = over(m, "sum", bin2(m, "maximum", x, tn_float(m->s, i * 0.25)), 0);
    return 14;
}

static inline int not_siblings(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(20, 6, 5), 1), *y = data(m, TN_SHAPE(20, 6, 5), 2);
    out[0] = over(m, "max", x, 0);
    out[1] = over(m, "max", x, 1);
    out[2] = over(m, "max", y, 0);
    return 3;
}

static inline int of_the_first(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(20, 30), 1), *most = over(m, "max", x, 0);
    out[0] = over(m, "sum", bin2(m, "subtract", x, most), 0);
    out[1] = over(m, "min", x, 0);
    return 2;
}

// NaN is the greatest and the least, and the first one is found.
static inline int with_nan(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *x = data(m, TN_SHAPE(40, 48), 1);
    x = bin2(m, "divide", data(m, TN_SHAPE(40, 48), 5), x);
    out[0] = over(m, "max", x, 0);
    out[1] = over(m, "min", x, 0);
    out[2] = over(m, "argmax", x, 0);
    out[3] = over(m, "argmin", x, 0);
    out[4] = over(m, "sum", x, 0);
    return 5;
}

static inline int of_few(const struct maker *m, tn_array *out[MOST_RESULTS])
{
    tn_array *one = data(m, TN_SHAPE(1, 5), 1), *row = data(m, TN_SHAPE(5, 1), 2);
    tn_array *none = data(m, TN_SHAPE(0, 4), 3), *outputs = data(m, TN_SHAPE(4, 0), 4);
    tn_array *const arrays[] = {one, row, none, outputs};
    int count = 0;
    for (int i = 0; i < 4; i++) {
        out[count++] = over(m, "sum", arrays[i], 0);
        out[count++] = over(m, "prod", arrays[i], 0);
        if (i != 2)
            out[count++] = over(m, "argmax", arrays[i], 0);
    }
    return count;
}

#endif // TESTS_GRAPHS_SIBLINGS_AXES_H
