// SPDX-License-Identifier: MIT
// What graphs of siblings are built of.
#ifndef TESTS_GRAPHS_SIBLINGS_H
#define TESTS_GRAPHS_SIBLINGS_H

#include "samples.h"

static inline tn_array *over(const struct maker *m, const char *op, tn_array *x,
                             int64_t axis)
{
    return kept(m, tn_op(m->s, op, TN_IN(x), tn_attrs("axis", axis)));
}

static inline tn_array *square(const struct maker *m, tn_array *x)
{
    return bin2(m, "multiply", x, x);
}

static inline tn_array *product(const struct maker *m, tn_array *x, int64_t columns,
                                int start)
{
    int64_t terms = tn_array_type(x)->extent[tn_array_type(x)->rank - 1];
    return bin2(m, "matmul", x, data(m, TN_SHAPE(terms, columns), start));
}

static inline tn_array *turned(const struct maker *m, tn_array *x)
{
    return kept(m, tn_op(m->s, "transpose", TN_IN(x), tn_attrs("axes", TN_INTS(1, 0))));
}

#endif // TESTS_GRAPHS_SIBLINGS_H
