// SPDX-License-Identifier: MIT
// Operators decided by singular values: pinv, the pseudo-inverse, and matrix_rank. A
// Hermitian matrix has the magnitudes of its eigenvalues in their place.
//
// The derivative of pinv holds where the rank is constant: Golub and Pereyra, "The
// differentiation of pseudo-inverses and nonlinear least squares problems whose variables
// separate", 1973.
#include "pack.h"

typedef struct {
    double rtol, tol; // NaN: not given
    int64_t hermitian;
} rank_attrs;

#define RTOL                                                                               \
    "singular values up to so much of the greatest count as 0; not given: max(m, n) eps"
#define HERMITIAN "the matrices are Hermitian: eigenvalues, which are faster, serve"

// The share of the greatest singular value up to which values count as 0.
static double rank_tolerance(const rank_attrs *attrs, const tn_type *type)
{
    int64_t rows = type->extent[type->rank - 2], columns = type->extent[type->rank - 1];
    double eps = tn_dtype_real(type->dtype) == TN_F32 ? 0x1p-23 : 0x1p-52;
    return isnan(attrs->rtol) ? (double)(rows > columns ? rows : columns) * eps
                              : attrs->rtol;
}

static tn_status rank_check(const tn_host *host, const rank_attrs *attrs,
                            const tn_type *type)
{
    tn_status status =
        attrs->hermitian ? check_square(host, "a", type) : check_matrices(host, "a", type);
    if (status == TN_OK && (attrs->rtol < 0 || attrs->tol < 0))
        status = host->fail(host, TN_ERR_ARGUMENT, "%s is %g, expected at least 0",
                            attrs->rtol < 0 ? "rtol" : "tol",
                            attrs->rtol < 0 ? attrs->rtol : attrs->tol);
    return status;
}

// The greatest magnitude of s, which is not empty, along the last axis.
static tn_array *rank_greatest(const tn_build *build, tn_array *s)
{
    tn_array *magnitudes = build->expr(build, "s -> abs(s)", TN_IN(s), TN_NO_ATTRS);
    return build->op(build, "base.max/1", TN_IN(magnitudes),
                     tn_attrs("axis", TN_INTS(-1), "keepdims", (int64_t)1));
}

static bool has_no_singular_values(const tn_type *type)
{
    return type->extent[type->rank - 2] == 0 || type->extent[type->rank - 1] == 0;
}

// --- matrix_rank ------------------------------------------------------------------------

static const tn_attr_field matrix_rank_fields[] = {
    TN_F64_FIELD(rank_attrs, rtol, NAN, RTOL),
    TN_F64_FIELD(rank_attrs, tol, NAN, "instead: up to this they count as 0"),
    TN_BOOL_FIELD(rank_attrs, hermitian, 0, HERMITIAN),
};

DECOMPOSE(matrix_rank)
{
    const rank_attrs *attrs = rule->attrs;
    tn_array *a = rule->inputs[0], *s;
    const tn_type *type = build->type(a);
    tn_status status = rank_check(build->host, attrs, type);
    if (status == TN_OK && !isnan(attrs->rtol) && !isnan(attrs->tol))
        status = build->host->fail(build->host, TN_ERR_ARGUMENT,
                                   "got rtol and tol, expected one of them");
    if (status)
        return status;
    if (has_no_singular_values(type)) {
        tn_ints shape = tn_extents(build, a);
        shape.count -= 2;
        outputs[0] =
            build->op(build, "base.zeros/1", NULL, 0,
                      tn_attrs("shape", (const tn_ints *)&shape, "dtype", (int64_t)TN_I64));
        return built(outputs[0]);
    }
    s = build->op(build, attrs->hermitian ? "linalg.eigvalsh/1" : "linalg.svdvals/1",
                  TN_IN(a), TN_NO_ATTRS);
    tn_array *counts = isnan(attrs->tol)
                           ? build->expr(build, "s, most -> i64(abs(s) > rtol * most)",
                                         TN_IN(s, rank_greatest(build, s)),
                                         tn_attrs("rtol", rank_tolerance(attrs, type)))
                           : build->expr(build, "s -> i64(abs(s) > tol)", TN_IN(s),
                                         tn_attrs("tol", attrs->tol));
    outputs[0] =
        build->op(build, "base.sum/1", TN_IN(counts), tn_attrs("axis", TN_INTS(-1)));
    return built(outputs[0]);
}

COMPOSITE(matrix_rank, "How many singular values are not nearly 0.", TN_INPUTS(linalg_a),
          .attrs = TN_ATTR_TABLE(rank_attrs, matrix_rank_fields));

// --- pinv -------------------------------------------------------------------------------

static const tn_attr_field pinv_fields[] = {
    TN_F64_FIELD(rank_attrs, rtol, NAN, RTOL),
    TN_BOOL_FIELD(rank_attrs, hermitian, 0, HERMITIAN),
};

static tn_status pinv_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *a = &infer->types[0];
    rank_attrs attrs = *(const rank_attrs *)infer->attrs;
    attrs.tol = NAN;
    tn_status status = rank_check(infer->host, &attrs, a);
    if (status)
        return status;
    types[0] = *a;
    types[0].extent[a->rank - 2] = a->extent[a->rank - 1];
    types[0].extent[a->rank - 1] = a->extent[a->rank - 2];
    return TN_OK;
}

DECOMPOSE(pinv)
{
    const rank_attrs *attrs = rule->attrs;
    tn_array *a = rule->inputs[0], *found[3] = {NULL};
    const tn_type *type = build->type(a);
    if (has_no_singular_values(type)) {
        outputs[0] = build->expr(build, "a -> a", TN_IN(transposed(build, a)), TN_NO_ATTRS);
        return built(outputs[0]);
    }
    // left * s * right^H, left and right without s being the same of a Hermitian one.
    tn_status status =
        attrs->hermitian
            ? build->op_n(build, "linalg.eigh/1", TN_IN(a), TN_NO_ATTRS, found, 2)
            : build->op_n(build, "linalg.svd/1", TN_IN(a),
                          tn_attrs("full_matrices", (int64_t)0), found, 3);
    if (status)
        return status;
    tn_array *s = found[attrs->hermitian ? 0 : 1];
    tn_array *left = attrs->hermitian ? found[1] : adjoint(build, found[2]);
    tn_array *right = attrs->hermitian ? found[1] : found[0];
    s = build->expr(build, "s, most -> abs(s) > rtol * most ? 1 / s : 0",
                    TN_IN(s, rank_greatest(build, s)),
                    tn_attrs("rtol", rank_tolerance(attrs, type)));
    left = build->expr(build, "v, s -> v * s", TN_IN(left, as_row(build, s)), TN_NO_ATTRS);
    outputs[0] = product(build, left, adjoint(build, right));
    return built(outputs[0]);
}

// I - x.
static tn_array *pinv_rest(const tn_build *build, tn_array *x)
{
    const tn_type *type = build->type(x);
    return type
               ? minus(build, identity(build, type->extent[type->rank - 1], type->dtype), x)
               : NULL;
}

// With p for a's pseudo-inverse:
//   dp = -p da p + p p^H da^H (I - a p) + (I - p a) da^H p^H p
TN_JVP(pinv_jvp)
{
    const rank_attrs *attrs = rule->attrs;
    tn_array *a = rule->inputs[0], *p = rule->outputs[0], *t = tangents[0];
    if (!t)
        return TN_OK;
    if (attrs->hermitian)
        t = hermitian_part(build, t);
    tn_array *ph = adjoint(build, p), *th = adjoint(build, t);
    tn_array *first = product(build, p, product(build, t, p));
    tn_array *second = product(build, product(build, p, ph),
                               product(build, th, pinv_rest(build, product(build, a, p))));
    tn_array *third =
        product(build, product(build, pinv_rest(build, product(build, p, a)), th),
                product(build, ph, p));
    out_tangents[0] = minus(build, plus(build, second, third), first);
    return TN_OK;
}

// With the gradient g of p:
//   -p^H g p^H + (I - a p) g^H p p^H + p^H p g^H (I - p a)
TN_VJP(pinv_vjp)
{
    const rank_attrs *attrs = rule->attrs;
    tn_array *a = rule->inputs[0], *p = rule->outputs[0], *g = cotangents[0];
    if (!g)
        return TN_OK;
    tn_array *ph = adjoint(build, p), *gh = adjoint(build, g);
    tn_array *first = product(build, ph, product(build, g, ph));
    tn_array *second =
        product(build, product(build, pinv_rest(build, product(build, a, p)), gh),
                product(build, p, ph));
    tn_array *third = product(build, product(build, ph, p),
                              product(build, gh, pinv_rest(build, product(build, p, a))));
    gradients[0] = minus(build, plus(build, second, third), first);
    if (attrs->hermitian)
        gradients[0] = hermitian_part(build, gradients[0]);
    return TN_OK;
}

TN_VMAP(pinv_vmap)
{
    const rank_attrs *attrs = rule->attrs;
    return batched_matrices(build, rule, axes, "linalg.pinv/1",
                            tn_attrs("rtol", attrs->rtol, "hermitian", attrs->hermitian),
                            outputs, out_axes);
}

const tn_primitive linalg_pinv = {.struct_size = sizeof(tn_primitive),
                                  .id = "linalg.pinv/1",
                                  .doc = "The Moore-Penrose pseudo-inverse.",
                                  TN_INPUTS(linalg_a),
                                  .attrs = TN_ATTR_TABLE(rank_attrs, pinv_fields),
                                  .infer = pinv_infer,
                                  .decompose = pinv_decompose,
                                  .vjp = pinv_vjp,
                                  .jvp = pinv_jvp,
                                  .vmap = pinv_vmap};
