// SPDX-License-Identifier: MIT
// What graphs with gathers are built of, for gather.c and gather_rows.h.
#ifndef TESTS_GRAPHS_GATHER_H
#define TESTS_GRAPHS_GATHER_H

#include "../support/common.h"

enum { MOST_RESULTS = 3, MOST_ELEMENTS = 1 << 16 };

// How a graph is built: with `alone`, each node is evaluated when it is made.
struct maker {
    tn_scope *s;
    tn_dtype dtype, indices;
    bool alone;
};

static inline tn_array *kept(const struct maker *m, tn_array *x)
{
    must(m->s, tn_scope_status(m->s));
    if (m->alone)
        must(m->s, tn_eval(m->s, x));
    return x;
}

static inline tn_array *bin2(const struct maker *m, const char *op, tn_array *x,
                             tn_array *y)
{
    return kept(m, bin(m->s, op, x, y));
}

static inline int64_t count_of(const tn_shape *shape)
{
    int64_t count = 1;
    for (int32_t i = 0; i < shape->rank; i++)
        count *= shape->extent[i];
    return count;
}

static inline tn_array *as(const struct maker *m, tn_array *x, tn_dtype dtype)
{
    x = tn_op(m->s, "astype", TN_IN(x), tn_attrs("dtype", tn_dtype_name(dtype)));
    must(m->s, tn_eval(m->s, x));
    return x;
}

// Small whole numbers of the maker's dtype: sums and products of a few are exact.
static inline tn_array *data(const struct maker *m, const tn_shape *shape, int start)
{
    static float values[MOST_ELEMENTS];
    for (int64_t i = 0; i < count_of(shape); i++)
        values[i] = (float)((i * 7 + start) % 23 - 11);
    return as(m, tn_from_data(m->s, TN_F32, shape, values), m->dtype);
}

// Indices from -n - 2 to n + 2 (of unsigned dtypes from 0 on), each several times.
static inline tn_array *indices(const struct maker *m, const tn_shape *shape, int n,
                                int start)
{
    static int64_t values[MOST_ELEMENTS];
    int below = tn_is_signed(m->indices) ? n + 2 : 0;
    for (int64_t i = 0; i < count_of(shape); i++)
        values[i] = (i * 5 + start) % (n + 3 + below) - below;
    return as(m, tn_from_data(m->s, TN_I64, shape, values), m->indices);
}

static inline tn_array *take(const struct maker *m, tn_array *x, tn_array *i, int64_t axis)
{
    return kept(m, tn_op(m->s, "take", TN_IN(x, i), tn_attrs("axis", axis)));
}

static inline tn_array *scatter(const struct maker *m, const char *op, tn_array *x,
                                tn_array *i, tn_array *updates)
{
    return kept(m, tn_op(m->s, op, TN_IN(x, i, updates), tn_attrs("axis", 0)));
}

static inline tn_array *reshaped(const struct maker *m, tn_array *x, tn_attr_list shape)
{
    return kept(m, tn_op(m->s, "reshape", TN_IN(x), shape));
}

// Rows of words, of positions and of kinds of text; `width` elements a row.
static inline int embed(const struct maker *m, tn_array *out[MOST_RESULTS], int64_t width)
{
    tn_array *at = indices(m, TN_SHAPE(3, 5), 9, 1);
    tn_array *word = take(m, data(m, TN_SHAPE(9, width), 1), at, 0);
    tn_array *place =
        take(m, data(m, TN_SHAPE(7, width), 2), indices(m, TN_SHAPE(3, 5), 7, 4), 0);
    tn_array *kind = take(m, data(m, TN_SHAPE(2, width), 3), at, 0);
    out[0] = bin2(m, "add", bin2(m, "add", word, place), kind);
    return 1;
}

#endif // TESTS_GRAPHS_GATHER_H
