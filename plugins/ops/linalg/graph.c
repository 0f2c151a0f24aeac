// SPDX-License-Identifier: MIT
// Pieces of graph that the rules are made of.
#include "pack.h"

tn_array *product(const tn_build *build, tn_array *a, tn_array *b)
{
    return build->op(build, "base.matmul/1", TN_IN(a, b), TN_NO_ATTRS);
}

tn_array *conjugate(const tn_build *build, tn_array *a)
{
    const tn_type *type = build->type(a);
    return type && tn_is_complex(type->dtype)
               ? build->op(build, "base.conjugate/1", TN_IN(a), TN_NO_ATTRS)
               : a;
}

tn_array *transposed(const tn_build *build, tn_array *a)
{
    const tn_type *type = build->type(a);
    return type ? tn_move_axis(build, a, type->rank - 1, type->rank - 2) : NULL;
}

tn_array *adjoint(const tn_build *build, tn_array *a)
{
    return conjugate(build, transposed(build, a));
}

tn_array *triangle(const tn_build *build, tn_array *a, bool upper, int64_t k)
{
    return build->op(build, upper ? "base.triu/1" : "base.tril/1", TN_IN(a),
                     tn_attrs("k", k));
}

tn_array *scaled(const tn_build *build, tn_array *a, double factor)
{
    return tn_scaled(build, a, factor);
}

tn_array *plus(const tn_build *build, tn_array *a, tn_array *b)
{
    return tn_add_terms(build, a, b);
}

tn_array *minus(const tn_build *build, tn_array *a, tn_array *b)
{
    return build->expr(build, "a, b -> a - b", TN_IN(a, b), TN_NO_ATTRS);
}

tn_array *hermitian_part(const tn_build *build, tn_array *a)
{
    return build->expr(build, "a, b -> (a + b) * 0.5", TN_IN(a, adjoint(build, a)),
                       TN_NO_ATTRS);
}

tn_array *half_triangle(const tn_build *build, tn_array *a)
{
    return build->expr(build, "a, b -> (a + b) * 0.5",
                       TN_IN(triangle(build, a, false, 0), triangle(build, a, false, -1)),
                       TN_NO_ATTRS);
}

// Elements [first, first + count) of `axis`: a view.
static tn_array *linalg_graph_part_of_axis(const tn_build *build, tn_array *x, int32_t axis,
                                           int64_t first, int64_t count)
{
    tn_ints start = {.count = (uint32_t)axis + 1, .given = 1}, stop = start;
    for (int32_t i = 0; i < axis; i++)
        start.value[i] = stop.value[i] = TN_SLICE_END;
    start.value[axis] = first;
    stop.value[axis] = first + count;
    return build->op(
        build, "base.slice/1", TN_IN(x),
        tn_attrs("start", (const tn_ints *)&start, "stop", (const tn_ints *)&stop));
}

tn_array *rows_of(const tn_build *build, tn_array *a, int64_t first, int64_t count)
{
    const tn_type *type = build->type(a);
    return type ? linalg_graph_part_of_axis(build, a, type->rank - 2, first, count) : NULL;
}

tn_array *columns_of(const tn_build *build, tn_array *a, int64_t first, int64_t count)
{
    const tn_type *type = build->type(a);
    return type ? linalg_graph_part_of_axis(build, a, type->rank - 1, first, count) : NULL;
}

tn_array *beside(const tn_build *build, tn_array *a, tn_array *b)
{
    return build->op(build, "base.concatenate/1", TN_IN(a, b),
                     tn_attrs("axis", INT64_C(-1)));
}

tn_array *above(const tn_build *build, tn_array *a, tn_array *b)
{
    return build->op(build, "base.concatenate/1", TN_IN(a, b),
                     tn_attrs("axis", INT64_C(-2)));
}

tn_array *identity(const tn_build *build, int64_t n, tn_dtype dtype)
{
    return build->op(build, "base.eye/1", NULL, 0,
                     tn_attrs("n", n, "dtype", (int64_t)dtype));
}

tn_array *elementwise(const tn_build *build, const char *expression, tn_array *a,
                      tn_array *b)
{
    return build->expr(build, expression, TN_IN(a, b), TN_NO_ATTRS);
}

tn_array *diagonal_matrix(const tn_build *build, tn_array *x)
{
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    int64_t n = type->extent[type->rank - 1];
    // Selects, as a product of 0 and infinity would be NaN.
    return build->op(build, "base.where/1",
                     TN_IN(identity(build, n, TN_BOOL), as_column(build, x),
                           build->scalar(build, type->dtype, 0)),
                     TN_NO_ATTRS);
}

tn_array *diagonal_of(const tn_build *build, tn_array *a)
{
    return build->op(build, "base.diagonal/1", TN_IN(a),
                     tn_attrs("axis1", INT64_C(-2), "axis2", INT64_C(-1)));
}

tn_array *real_part(const tn_build *build, tn_array *a)
{
    const tn_type *type = build->type(a);
    return type && tn_is_complex(type->dtype)
               ? build->expr(build, "a -> real(a)", TN_IN(a), TN_NO_ATTRS)
               : a;
}

tn_array *in_dtype(const tn_build *build, tn_array *x, const tn_type *type)
{
    const tn_type *own = build->type(x);
    return own && type && own->dtype != type->dtype
               ? build->op(build, "base.astype/1", TN_IN(x),
                           tn_attrs("dtype", (int64_t)type->dtype))
               : x;
}

tn_array *as_row(const tn_build *build, tn_array *x)
{
    return build->op(build, "base.expand_dims/1", TN_IN(x), tn_attrs("axis", TN_INTS(-2)));
}

tn_array *as_column(const tn_build *build, tn_array *x)
{
    return build->op(build, "base.expand_dims/1", TN_IN(x), tn_attrs("axis", TN_INTS(-1)));
}

tn_array *as_vector(const tn_build *build, tn_array *x)
{
    return build->op(build, "base.squeeze/1", TN_IN(x), tn_attrs("axis", TN_INTS(-1)));
}

tn_array *triangular_solution(const tn_build *build, tn_array *a, tn_array *b,
                              const tn_solve_triangular_attrs *attrs)
{
    return build->op(build, "linalg.solve_triangular/1", TN_IN(a, b),
                     tn_attrs("lower", attrs->lower, "transpose", attrs->transpose,
                              "unit_diagonal", attrs->unit_diagonal));
}

tn_status batched_matrices(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                           const char *primitive, tn_attr_list attrs, tn_array **outputs,
                           int32_t *out_axes)
{
    tn_array *a = tn_move_axis(build, rule->inputs[0], axes[0], 0);
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        out_axes[i] = 0;
    return build->op_n(build, primitive, TN_IN(a), attrs, outputs, rule->num_outputs);
}

// The rank of input i, with its batch axis.
static int32_t batched_rank(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                            uint32_t i)
{
    const tn_type *type = build->type(rule->inputs[i]);
    return type ? type->rank + (axes[i] < 0) : 0;
}

bool batched_system(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                    tn_array **out_a, tn_array **out_b)
{
    int32_t of_a = batched_rank(build, rule, axes, 0);
    int32_t of_b = batched_rank(build, rule, axes, 1);
    bool vector = of_b == 2;
    tn_array *b = rule->inputs[1];
    if (vector) { // the batch axis comes first, then the column's
        b = axes[1] < 0 ? as_column(build, b)
                        : as_column(build, tn_move_axis(build, b, axes[1], 0));
        of_b = 3;
    }
    int32_t rank = of_a > of_b ? of_a : of_b, axis = vector && axes[1] >= 0 ? 0 : axes[1];
    *out_a = axes[0] < 0 ? rule->inputs[0]
                         : tn_batch_first(build, rule->inputs[0], axes[0], rank);
    *out_b = axis < 0 ? b : tn_batch_first(build, b, axis, rank);
    return vector;
}

tn_array *value_differences(const tn_build *build, tn_array *w)
{
    const tn_type *type = build->type(w);
    if (!type)
        return NULL;
    tn_array *one = identity(build, type->extent[type->rank - 1], type->dtype);
    return build->expr(build, "r, c, e -> r - c + e",
                       TN_IN(as_row(build, w), as_column(build, w), one), TN_NO_ATTRS);
}

tn_array *without_diagonal(const tn_build *build, tn_array *a)
{
    return plus(build, triangle(build, a, false, -1), triangle(build, a, true, 1));
}
