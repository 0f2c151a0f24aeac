// SPDX-License-Identifier: MIT
// all_reduce and reduce_scatter.
//
// Derivatives are those of the sum of all members' losses: another member's gradient for an
// element here comes back by the transposed collective.
#include "pack.h"

const char *const dist_reductions[] = {"sum",     "product", "minimum",
                                       "maximum", "mean",    NULL};

static const tn_attr_field all_reduce_fields[] = {
    REDUCTION_FIELD(tn_dist_reduce_attrs),
    GROUP_FIELD(tn_dist_reduce_attrs),
};
static const tn_attr_field reduce_scatter_fields[] = {
    REDUCTION_FIELD(tn_dist_reduce_attrs),
    GROUP_FIELD(tn_dist_reduce_attrs),
    SIZE_FIELD(tn_dist_reduce_attrs),
};

static const char *dist_reduce_reduction_name(int64_t reduction)
{
    return dist_reductions[reduction];
}

// Follows the table in <tenon/collective.h>.
tn_status dist_check_reduction(const tn_infer *infer, tn_dtype dtype)
{
    const tn_dist_reduce_attrs *attrs = infer->attrs;
    uint32_t kind = tn_dtype_kind(dtype);
    bool is_order = attrs->reduction == TN_COLLECTIVE_MINIMUM ||
                    attrs->reduction == TN_COLLECTIVE_MAXIMUM;
    bool is_mean = attrs->reduction == TN_COLLECTIVE_MEAN;
    bool has = kind == TN_KIND_BOOL      ? is_order
               : kind == TN_KIND_COMPLEX ? !is_order
               : kind == TN_KIND_FLOAT   ? true
                                         : kind != TN_KIND_FLOAT8 && !is_mean;
    return has ? TN_OK
               : infer->host->fail(infer->host, TN_ERR_ARGUMENT, "%s has no %s here",
                                   tn_dtype_name(dtype),
                                   dist_reduce_reduction_name(attrs->reduction));
}

static tn_status all_reduce_infer(const tn_infer *infer, tn_type *types)
{
    tn_status status = dist_check_reduction(infer, infer->types[0].dtype);
    if (status == TN_OK)
        types[0] = infer->types[0];
    return status;
}

static tn_status reduce_scatter_infer(const tn_infer *infer, tn_type *types)
{
    const tn_dist_reduce_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    if (attrs->size < 1)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "size is %" PRId64 ", expected at least 1", attrs->size);
    if (x->rank < 1 || x->extent[0] % attrs->size)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "axis 0 has %" PRId64
                                 " elements, expected a multiple of size, %" PRId64,
                                 x->rank < 1 ? 1 : x->extent[0], attrs->size);
    tn_status status = dist_check_reduction(infer, infer->types[0].dtype);
    if (status != TN_OK)
        return status;
    types[0] = *x;
    types[0].extent[0] /= attrs->size;
    return TN_OK;
}

static tn_status all_reduce_run(const tn_run *run)
{
    const tn_dist_reduce_attrs *attrs = run->attrs;
    return dist_run(run, attrs->group, 0,
                    &(tn_collective_call){.kind = TN_COLLECTIVE_ALL_REDUCE,
                                          .reduction = (int32_t)attrs->reduction});
}

static tn_status reduce_scatter_run(const tn_run *run)
{
    const tn_dist_reduce_attrs *attrs = run->attrs;
    return dist_run(run, attrs->group, attrs->size,
                    &(tn_collective_call){.kind = TN_COLLECTIVE_REDUCE_SCATTER,
                                          .reduction = (int32_t)attrs->reduction});
}

// --- rules of all_reduce ----------------------------------------------------------------

tn_array *dist_reduced(const tn_build *build, tn_array *x, const char *reduction,
                       const char *group)
{
    return x ? build->op(build, "dist.all_reduce", TN_IN(x),
                         tn_attrs("reduction", reduction, "group", group_name(group)))
             : NULL;
}

static bool is_linear(const tn_dist_reduce_attrs *attrs)
{
    return attrs->reduction == TN_COLLECTIVE_SUM || attrs->reduction == TN_COLLECTIVE_MEAN;
}

// The reduction of cotangents, and of tangents times derivatives: sum or mean.
static const char *linear_reduction(const tn_dist_reduce_attrs *attrs)
{
    return is_linear(attrs) ? dist_reductions[attrs->reduction] : "sum";
}

// The derivative of an extreme y by each element of x: 1 / (number of members whose element
// equals y), or 0.
static tn_array *extreme_derivative(const tn_build *build, tn_array *x, tn_array *y,
                                    const char *group)
{
    tn_array *hit = build->expr(build, "x, y -> where(x == y, 1, where(x == y, x, 0))",
                                TN_IN(x, y), TN_NO_ATTRS);
    tn_array *hits = dist_reduced(build, hit, "sum", group);
    return build->expr(build, "hit, hits -> hit / hits", TN_IN(hit, hits), TN_NO_ATTRS);
}

// The derivative of a product by each element of x: the product of all other members'
// elements, exact also where some are 0; second derivatives are not exact there.
static tn_array *product_derivative(const tn_build *build, tn_array *x, const char *group)
{
    tn_array *zero = build->expr(build, "x -> where(x == 0, 1, where(x == 0, x, 0))",
                                 TN_IN(x), TN_NO_ATTRS),
             *factor =
                 build->expr(build, "x -> where(x == 0, 1, x)", TN_IN(x), TN_NO_ATTRS);
    tn_array *zeros = dist_reduced(build, zero, "sum", group),
             *product = dist_reduced(build, factor, "product", group);
    return build->expr(build,
                       "zero, zeros, factor, product -> "
                       "where(zeros == zero, product / factor, 0)",
                       TN_IN(zero, zeros, factor, product), TN_NO_ATTRS);
}

// d times the derivative of a reduction that is not linear; for a linear one, d itself.
static tn_array *chained(const tn_build *build, const char *product, tn_array *d,
                         tn_array *x, tn_array *y, const tn_dist_reduce_attrs *attrs)
{
    if (is_linear(attrs))
        return d;
    tn_array *p = attrs->reduction == TN_COLLECTIVE_PRODUCT
                      ? product_derivative(build, x, attrs->group)
                      : extreme_derivative(build, x, y, attrs->group);
    return build->expr(build, product, TN_IN(d, p), TN_NO_ATTRS);
}

static const char by_cotangent[] = "g, p -> g * conj(p)", by_tangent[] = "t, p -> t * p";

TN_VJP(all_reduce_vjp)
{
    const tn_dist_reduce_attrs *attrs = rule->attrs;
    tn_array *g = dist_reduced(build, cotangents[0], linear_reduction(attrs), attrs->group);
    gradients[0] =
        chained(build, by_cotangent, g, rule->inputs[0], rule->outputs[0], attrs);
    return built(gradients[0]);
}

TN_JVP(all_reduce_jvp)
{
    const tn_dist_reduce_attrs *attrs = rule->attrs;
    tn_array *t =
        chained(build, by_tangent, tangents[0], rule->inputs[0], rule->outputs[0], attrs);
    out_tangents[0] = dist_reduced(build, t, linear_reduction(attrs), attrs->group);
    return built(out_tangents[0]);
}

TN_VMAP(all_reduce_vmap)
{
    const tn_dist_reduce_attrs *attrs = rule->attrs;
    outputs[0] = dist_reduced(build, rule->inputs[0],
                              dist_reduce_reduction_name(attrs->reduction), attrs->group);
    out_axes[0] = axes[0];
    return built(outputs[0]);
}

// --- rules of reduce_scatter ------------------------------------------------------------

static tn_array *scatter_by(const tn_build *build, tn_array *x, const char *reduction,
                            const tn_dist_reduce_attrs *attrs)
{
    return build->op(build, "dist.reduce_scatter", TN_IN(x),
                     tn_attrs("reduction", reduction, "group", group_name(attrs->group),
                              "size", attrs->size));
}

// Gathers all members' blocks into the input's shape.
static tn_array *unscattered(const tn_build *build, tn_array *block,
                             const tn_dist_reduce_attrs *attrs)
{
    return build->op(build, "dist.all_gather", TN_IN(block),
                     tn_attrs("group", group_name(attrs->group), "size", attrs->size));
}

// The output of all_reduce, which only extremes need; else NULL.
static tn_array *unscattered_output(const tn_build *build, const tn_rule *rule)
{
    const tn_dist_reduce_attrs *attrs = rule->attrs;
    return attrs->reduction == TN_COLLECTIVE_MINIMUM ||
                   attrs->reduction == TN_COLLECTIVE_MAXIMUM
               ? unscattered(build, rule->outputs[0], attrs)
               : NULL;
}

TN_VJP(reduce_scatter_vjp)
{
    const tn_dist_reduce_attrs *attrs = rule->attrs;
    tn_array *g = unscattered(build, cotangents[0], attrs);
    if (attrs->reduction == TN_COLLECTIVE_MEAN)
        g = tn_scaled(build, g, 1.0 / (double)attrs->size);
    gradients[0] = chained(build, by_cotangent, g, rule->inputs[0],
                           unscattered_output(build, rule), attrs);
    return built(gradients[0]);
}

TN_JVP(reduce_scatter_jvp)
{
    const tn_dist_reduce_attrs *attrs = rule->attrs;
    tn_array *t = chained(build, by_tangent, tangents[0], rule->inputs[0],
                          unscattered_output(build, rule), attrs);
    out_tangents[0] = scatter_by(build, t, linear_reduction(attrs), attrs);
    return built(out_tangents[0]);
}

// The batch axis goes behind the scattered axis.
TN_VMAP(reduce_scatter_vmap)
{
    const tn_dist_reduce_attrs *attrs = rule->attrs;
    outputs[0] = scatter_by(build, tn_move_axis(build, rule->inputs[0], axes[0], 1),
                            dist_reductions[attrs->reduction], attrs);
    out_axes[0] = 1;
    return built(outputs[0]);
}

const tn_primitive dist_all_reduce = {
    DIST_EFFECT,
    .id = "dist.all_reduce/1",
    .doc = "The elements of all members of a group reduced; every member gets the same.",
    TN_INPUTS(dist_x),
    .attrs = TN_ATTR_TABLE(tn_dist_reduce_attrs, all_reduce_fields),
    .infer = all_reduce_infer,
    .run = all_reduce_run,
    .vjp = all_reduce_vjp,
    .jvp = all_reduce_jvp,
    .vmap = all_reduce_vmap,
};

const tn_primitive dist_reduce_scatter = {
    DIST_EFFECT,
    .id = "dist.reduce_scatter/1",
    .doc = "The elements of all members reduced, of which each gets a block of axis 0.",
    TN_INPUTS(dist_x),
    .attrs = TN_ATTR_TABLE(tn_dist_reduce_attrs, reduce_scatter_fields),
    .infer = reduce_scatter_infer,
    .run = reduce_scatter_run,
    .vjp = reduce_scatter_vjp,
    .jvp = reduce_scatter_jvp,
    .vmap = reduce_scatter_vmap,
};
