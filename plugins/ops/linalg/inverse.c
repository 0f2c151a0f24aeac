// SPDX-License-Identifier: MIT
// Inverses of triangles, and of matrices whose Cholesky factor is known.
#include "pack.h"

// The inverse of a triangular matrix, the given triangle of `a`.
static tn_array *inverse_of_triangle(const tn_build *build, tn_array *a, int64_t upper)
{
    const tn_type *type = build->type(a);
    if (!type || type->rank < 2) { // solve_triangular reports the failure
        tn_array *none = a;
        return triangular_solution(build, a, none, &(const tn_solve_triangular_attrs){0});
    }
    const tn_solve_triangular_attrs attrs = {.lower = !upper};
    return triangular_solution(
        build, a, identity(build, type->extent[type->rank - 1], type->dtype), &attrs);
}

DECOMPOSE(tri_inv)
{
    const tn_cholesky_attrs *attrs = rule->attrs;
    outputs[0] = inverse_of_triangle(build, rule->inputs[0], attrs->upper);
    return built(outputs[0]);
}

// l^-H l^-1, and u^-1 u^-H.
DECOMPOSE(cholesky_inv)
{
    const tn_cholesky_attrs *attrs = rule->attrs;
    tn_array *x = inverse_of_triangle(build, rule->inputs[0], attrs->upper);
    outputs[0] = attrs->upper ? product(build, x, adjoint(build, x))
                              : product(build, adjoint(build, x), x);
    return built(outputs[0]);
}

static const tn_attr_field fields[] = {
    TN_BOOL_FIELD(tn_cholesky_attrs, upper, 0, "whether a is upper triangular"),
};
COMPOSITE(tri_inv, "The inverse of triangular matrices.", TN_INPUTS(linalg_a),
          .attrs = TN_ATTR_TABLE(tn_cholesky_attrs, fields));
COMPOSITE(cholesky_inv, "The inverse of the matrix whose Cholesky factor is a.",
          TN_INPUTS(linalg_a), .attrs = TN_ATTR_TABLE(tn_cholesky_attrs, fields));
