// SPDX-License-Identifier: MIT
// Reductions: primitives, decompositions and derivatives.
#include "reduce.h"

static const tn_attr_field reduce_fields[] = {
    TN_INTS_FIELD(tn_reduce_attrs, axis, "axes to reduce, one or several; not given: all"),
    TN_BOOL_FIELD(tn_reduce_attrs, keepdims, 0, "keep reduced axes with extent 1"),
};
static const tn_attr_field total_fields[] = {
    TN_INTS_FIELD(tn_reduce_attrs, axis, "axes to reduce, one or several; not given: all"),
    TN_BOOL_FIELD(tn_reduce_attrs, keepdims, 0, "keep reduced axes with extent 1"),
    RESULT_DTYPE(reduce_dtype_attrs),
};
static const tn_attr_field argmax_fields[] = {
    TN_I64_FIELD(tn_argmax_attrs, axis, TN_NO_AXIS,
                 "axis to search; not given: x flattened in row-major order"),
    TN_BOOL_FIELD(tn_argmax_attrs, keepdims, 0, "keep reduced axes with extent 1"),
};
static const tn_attr_field sum_to_fields[] = {
    TN_REQUIRED_FIELD(tn_shape_attrs, shape, TN_ATTR_INTS,
                      "extents of the result, which broadcast to x's"),
};

// --- graph building ---------------------------------------------------------------------

static tn_array *reduce_op(const tn_build *build, const char *primitive, const tn_array *x,
                           const tn_ints *axes, int64_t keepdims)
{
    tn_attr_list list = axes->given ? tn_attrs("keepdims", keepdims, "axis", axes)
                                    : tn_attrs("keepdims", keepdims);
    return build->op(build, primitive, TN_IN(x), list);
}

// Broadcasts `out`, x reduced over `axes`, back to x's extents.
static tn_array *reduce_rules_spread(const tn_build *build, const tn_array *out,
                                     const tn_array *x, const tn_ints *axes)
{
    tn_ints shape = tn_extents(build, x), kept = shape;
    uint32_t set = tn_axis_set(axes, (int32_t)shape.count);
    for (uint32_t i = 0; i < shape.count; i++)
        if (set >> i & 1)
            kept.value[i] = 1;
    tn_array *column = with_shape(build, "base.reshape/1", out, kept);
    return with_shape(build, "base.broadcast_to/1", column, shape);
}

// The number of elements of x that are reduced to one element. May be 0.
static double reduced_count(const tn_build *build, const tn_array *x, const tn_ints *axes)
{
    tn_ints shape = tn_extents(build, x);
    uint32_t set = tn_axis_set(axes, (int32_t)shape.count);
    double count = 1;
    for (uint32_t i = 0; i < shape.count; i++)
        if (set >> i & 1)
            count *= (double)shape.value[i];
    return count;
}

static int32_t is_inexact(tn_dtype dtype)
{
    return tn_is_float(dtype) || tn_is_complex(dtype);
}

// The float or complex dtype in which elements of `dtype` are accumulated.
static tn_dtype reduce_rules_wide(tn_dtype dtype)
{
    return is_inexact(dtype) ? tn_dtype_computed(dtype) : TN_F64;
}

// x in the dtype of accumulation; *out_dtype is the dtype of the final result.
static tn_array *reduce_rules_widen(const tn_build *build, tn_array *x, tn_dtype *out_dtype)
{
    const tn_type *type = build->type(x);
    tn_dtype dtype = type ? type->dtype : TN_F32;
    *out_dtype = is_inexact(dtype) ? dtype : TN_F64;
    return reduce_rules_wide(dtype) == dtype ? x : cast(build, x, reduce_rules_wide(dtype));
}

static tn_array *reduce_rules_narrow(const tn_build *build, tn_array *x, tn_dtype dtype)
{
    const tn_type *type = build->type(x);
    return type && type->dtype != dtype ? cast(build, x, dtype) : x;
}

// --- sum --------------------------------------------------------------------------------

static tn_status sum_vjp(const tn_build *build, const tn_rule *rule,
                         tn_array *const *cotangents, const uint64_t *wanted,
                         tn_array **gradients)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    (void)wanted;
    gradients[0] = reduce_rules_spread(build, cotangents[0], rule->inputs[0], &attrs->axis);
    return built(gradients[0]);
}

static tn_status sum_jvp(const tn_build *build, const tn_rule *rule,
                         tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    out_tangents[0] =
        reduce_op(build, "base.sum/1", tangents[0], &attrs->axis, attrs->keepdims);
    return built(out_tangents[0]);
}

const tn_primitive base_sum = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.sum/1",
    .doc = "The sum over axes. Narrow integers and bool are summed in 64 bits.",
    .role = TN_ROLE_SUM,
    TN_INPUTS(base_number_x),
    .attrs = TN_ATTR_TABLE(reduce_dtype_attrs, total_fields),
    .infer = sum_infer,
    .reference = sum_reference,
    .vjp = sum_vjp,
    .jvp = sum_jvp,
    .vmap = sum_vmap,
};

// --- prod -------------------------------------------------------------------------------

// x as [others, n]: reduced axes last, merged into one of n elements. Gives the order of
// x's axes and the extents in that order, which undo this.
static tn_array *gather_axes(const tn_build *build, tn_array *x, const tn_ints *axes,
                             tn_ints *out_order, tn_ints *out_shape)
{
    tn_ints shape = tn_extents(build, x), order = {.given = 1}, moved = {.given = 1};
    uint32_t set = tn_axis_set(axes, (int32_t)shape.count);
    int64_t flat[2] = {1, 1};
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t i = 0; i < shape.count; i++)
            if ((set >> i & 1) == side) {
                order.value[order.count++] = i;
                moved.value[moved.count++] = shape.value[i];
                flat[side] *= shape.value[i];
            }
    *out_order = order;
    *out_shape = moved;
    tn_array *transposed =
        build->op(build, "base.transpose/1", TN_IN(x), tn_attrs("axes", &order));
    return with_shape(build, "base.reshape/1", transposed, ints_of(2, flat));
}

// x [others, n] shifted by `step` along the last axis and filled with ones.
static tn_array *reduce_rules_shifted(const tn_build *build, tn_array *x, int64_t step)
{
    tn_ints shape = tn_extents(build, x);
    int64_t n = shape.value[1], size = step < 0 ? -step : step;
    tn_ints low = ints_of(2, (int64_t[]){0, step < 0 ? size : 0});
    tn_ints high = ints_of(2, (int64_t[]){shape.value[0], step < 0 ? n : n - size});
    tn_ints before = ints_of(2, (int64_t[]){0, step < 0 ? 0 : size});
    tn_ints after = ints_of(2, (int64_t[]){0, step < 0 ? size : 0});
    tn_array *part =
        build->op(build, "base.slice/1", TN_IN(x), tn_attrs("start", &low, "stop", &high));
    return build->op(build, "base.pad_constant/1", TN_IN(part),
                     tn_attrs("before", &before, "after", &after, "value", 1.0));
}

// Exclusive scan along the last axis: for each element the product of the elements before
// it (sign 1) or behind it (-1). Doubles the step, so it takes log2(n) products.
static tn_array *running_product(const tn_build *build, tn_array *x, int64_t sign)
{
    int64_t n = tn_extents(build, x).value[1];
    tn_array *all = reduce_rules_shifted(build, x, sign);
    for (int64_t step = 1; all && step < n - 1; step *= 2)
        all = build->expr(build, "x, y -> x * y",
                          TN_IN(all, reduce_rules_shifted(build, all, sign * step)),
                          TN_NO_ATTRS);
    return all;
}

// For each element the product of all others, which is the derivative of prod. Without a
// division, so that zeros are exact, in second derivatives as well.
static tn_array *others_product(const tn_build *build, const tn_rule *rule)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    tn_dtype dtype;
    tn_array *x = reduce_rules_widen(build, rule->inputs[0], &dtype);
    tn_ints order, shape, back = {.given = 1}, extents = tn_extents(build, x);
    for (uint32_t i = 0; i < extents.count; i++)
        if (extents.value[i] == 0)
            return x;
    tn_array *flat = gather_axes(build, x, &attrs->axis, &order, &shape);
    tn_array *product = build->expr(
        build, "x, y -> x * y",
        TN_IN(running_product(build, flat, 1), running_product(build, flat, -1)),
        TN_NO_ATTRS);
    back.count = order.count;
    for (uint32_t i = 0; i < order.count; i++)
        back.value[order.value[i]] = i;
    return build->op(build, "base.transpose/1",
                     TN_IN(with_shape(build, "base.reshape/1", product, shape)),
                     tn_attrs("axes", &back));
}

static tn_status prod_vjp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *cotangents, const uint64_t *wanted,
                          tn_array **gradients)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    (void)wanted;
    tn_array *g = reduce_rules_spread(build, cotangents[0], rule->inputs[0], &attrs->axis);
    gradients[0] = build->expr(build, "g, p -> g * conj(p)",
                               TN_IN(g, others_product(build, rule)), TN_NO_ATTRS);
    return built(gradients[0]);
}

static tn_status prod_jvp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->outputs[0]);
    tn_array *part =
        build->expr(build, "t, p -> t * p", TN_IN(tangents[0], others_product(build, rule)),
                    TN_NO_ATTRS);
    tn_array *sum = reduce_op(build, "base.sum/1", part, &attrs->axis, attrs->keepdims);
    out_tangents[0] = reduce_rules_narrow(build, sum, type ? type->dtype : TN_F32);
    return built(out_tangents[0]);
}

const tn_primitive base_prod = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.prod/1",
    .doc = "The product over axes. Narrow integers and bool are multiplied in 64 bits.",
    .role = TN_ROLE_PROD,
    TN_INPUTS(base_number_x),
    .attrs = TN_ATTR_TABLE(reduce_dtype_attrs, total_fields),
    .infer = sum_infer,
    .reference = prod_reference,
    .vjp = prod_vjp,
    .jvp = prod_jvp,
    .vmap = prod_vmap,
};

// --- mean -------------------------------------------------------------------------------

static tn_array *mean_of(const tn_build *build, const tn_rule *rule, tn_array *x)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    tn_dtype dtype;
    tn_array *sum = reduce_op(build, "base.sum/1", reduce_rules_widen(build, x, &dtype),
                              &attrs->axis, attrs->keepdims);
    double count = reduced_count(build, x, &attrs->axis);
    tn_array *mean = build->expr(build, "x -> x / n", TN_IN(sum), tn_attrs("n", count));
    return reduce_rules_narrow(build, mean, dtype);
}

static tn_status mean_decompose(const tn_build *build, const tn_rule *rule,
                                tn_array **outputs)
{
    outputs[0] = mean_of(build, rule, rule->inputs[0]);
    return built(outputs[0]);
}

static tn_status mean_vjp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *cotangents, const uint64_t *wanted,
                          tn_array **gradients)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    (void)wanted;
    double count = reduced_count(build, rule->inputs[0], &attrs->axis);
    tn_array *share =
        build->expr(build, "g -> g / n", TN_IN(cotangents[0]), tn_attrs("n", count));
    gradients[0] = reduce_rules_spread(build, share, rule->inputs[0], &attrs->axis);
    return built(gradients[0]);
}

static tn_status mean_jvp(const tn_build *build, const tn_rule *rule,
                          tn_array *const *tangents, tn_array **out_tangents)
{
    out_tangents[0] = mean_of(build, rule, tangents[0]);
    return built(out_tangents[0]);
}

const tn_primitive base_mean = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.mean/1",
    .doc = "The mean over axes, in f64 for integers.",
    .role = TN_ROLE_MEAN,
    TN_INPUTS(base_number_x),
    .attrs = TN_ATTR_TABLE(reduce_dtype_attrs, total_fields),
    .infer = mean_infer,
    .decompose = mean_decompose,
    .vjp = mean_vjp,
    .jvp = mean_jvp,
    .vmap = mean_vmap,
};

// --- max and min -----------------------------------------------------------------------

// 1 / k at each of the k elements that equal the extreme, else 0: equal elements share the
// gradient.
static tn_array *reduce_rules_extremum_share(const tn_build *build, const tn_rule *rule)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    tn_array *out =
        reduce_rules_spread(build, rule->outputs[0], rule->inputs[0], &attrs->axis);
    tn_array *hit =
        build->expr(build, "x, y -> f32(x == y)", TN_IN(rule->inputs[0], out), TN_NO_ATTRS);
    if (type && type->dtype == TN_F64)
        hit = cast(build, hit, TN_F64);
    tn_array *count = reduce_op(build, "base.sum/1", hit, &attrs->axis, 1);
    return build->expr(build, "h, n -> h / n", TN_IN(hit, count), TN_NO_ATTRS);
}

static tn_status extremum_vjp(const tn_build *build, const tn_rule *rule,
                              tn_array *const *cotangents, const uint64_t *wanted,
                              tn_array **gradients)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    (void)wanted;
    tn_array *g = reduce_rules_spread(build, cotangents[0], rule->inputs[0], &attrs->axis);
    gradients[0] =
        build->expr(build, "g, s -> g * s",
                    TN_IN(g, reduce_rules_extremum_share(build, rule)), TN_NO_ATTRS);
    return built(gradients[0]);
}

static tn_status extremum_jvp(const tn_build *build, const tn_rule *rule,
                              tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    tn_array *part = build->expr(
        build, "t, s -> t * s",
        TN_IN(tangents[0], reduce_rules_extremum_share(build, rule)), TN_NO_ATTRS);
    tn_array *sum = reduce_op(build, "base.sum/1", part, &attrs->axis, attrs->keepdims);
    out_tangents[0] = reduce_rules_narrow(build, sum, type ? type->dtype : TN_F32);
    return built(out_tangents[0]);
}

const tn_primitive base_max = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.max/1",
    .doc = "The greatest element over axes; NaN when there is one.",
    .role = TN_ROLE_MAX,
    TN_INPUTS(base_x),
    .attrs = TN_ATTR_TABLE(tn_reduce_attrs, reduce_fields),
    .infer = extremum_infer,
    .reference = max_reference,
    .vjp = extremum_vjp,
    .jvp = extremum_jvp,
    .vmap = max_vmap,
};

const tn_primitive base_min = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.min/1",
    .doc = "The least element over axes; NaN when there is one.",
    .role = TN_ROLE_MIN,
    TN_INPUTS(base_x),
    .attrs = TN_ATTR_TABLE(tn_reduce_attrs, reduce_fields),
    .infer = extremum_infer,
    .reference = min_reference,
    .vjp = extremum_vjp,
    .jvp = extremum_jvp,
    .vmap = min_vmap,
};

// --- argmax -----------------------------------------------------------------------------

const tn_primitive base_argmax = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.argmax/1",
    .doc =
        "The index of the greatest element, the first of equals; NaN counts as greatest.",
    TN_INPUTS(base_x),
    .attrs = TN_ATTR_TABLE(tn_argmax_attrs, argmax_fields),
    .infer = argmax_infer,
    .reference = argmax_reference,
    .vjp = zero_vjp,
    .jvp = zero_jvp,
    .vmap = argmax_vmap,
};

// --- logsumexp --------------------------------------------------------------------------

static tn_status logsumexp_decompose(const tn_build *build, const tn_rule *rule,
                                     tn_array **outputs)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    tn_dtype dtype;
    tn_array *x = reduce_rules_widen(build, rule->inputs[0], &dtype);
    if (reduced_count(build, x, &attrs->axis) == 0) { // the logarithm of an empty sum
        tn_array *sum = reduce_op(build, "base.sum/1", x, &attrs->axis, attrs->keepdims);
        outputs[0] = reduce_rules_narrow(
            build, build->expr(build, "x -> log(x)", TN_IN(sum), TN_NO_ATTRS), dtype);
        return built(outputs[0]);
    }
    tn_array *most = reduce_op(build, "base.max/1", x, &attrs->axis, 1);
    tn_array *shift =
        build->expr(build, "m -> select(isfinite(m), m, 0)", TN_IN(most), TN_NO_ATTRS);
    tn_array *powers =
        build->expr(build, "x, m -> exp(x - m)", TN_IN(x, shift), TN_NO_ATTRS);
    tn_array *sum = reduce_op(build, "base.sum/1", powers, &attrs->axis, 1);
    tn_array *out =
        build->expr(build, "s, m -> log(s) + m", TN_IN(sum, shift), TN_NO_ATTRS);
    tn_infer infer = {.struct_size = sizeof(infer),
                      .host = build->host,
                      .attrs = attrs,
                      .types = build->type(rule->inputs[0]),
                      .num_inputs = 1,
                      .num_outputs = 1};
    tn_type type;
    if (!out || logsumexp_infer(&infer, &type))
        return TN_ERR_ARGUMENT;
    out = with_shape(build, "base.reshape/1", out, ints_of(type.rank, type.extent));
    outputs[0] = reduce_rules_narrow(build, out, dtype);
    return built(outputs[0]);
}

// The derivative of logsumexp: softmax over the reduced axes, exp(x - out).
static tn_array *softmax_share(const tn_build *build, const tn_rule *rule)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    tn_array *out =
        reduce_rules_spread(build, rule->outputs[0], rule->inputs[0], &attrs->axis);
    return build->expr(build, "x, y -> exp(x - y)", TN_IN(rule->inputs[0], out),
                       TN_NO_ATTRS);
}

static tn_status logsumexp_vjp(const tn_build *build, const tn_rule *rule,
                               tn_array *const *cotangents, const uint64_t *wanted,
                               tn_array **gradients)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    (void)wanted;
    tn_array *g = reduce_rules_spread(build, cotangents[0], rule->inputs[0], &attrs->axis);
    gradients[0] = build->expr(build, "g, s -> g * s", TN_IN(g, softmax_share(build, rule)),
                               TN_NO_ATTRS);
    return built(gradients[0]);
}

static tn_status logsumexp_jvp(const tn_build *build, const tn_rule *rule,
                               tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    tn_array *part =
        build->expr(build, "t, s -> t * s", TN_IN(tangents[0], softmax_share(build, rule)),
                    TN_NO_ATTRS);
    out_tangents[0] = reduce_op(build, "base.sum/1", part, &attrs->axis, attrs->keepdims);
    return built(out_tangents[0]);
}

const tn_primitive base_logsumexp = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.logsumexp/1",
    .doc = "log(sum(exp(x))) over axes, without overflow.",
    TN_INPUTS(base_x),
    .attrs = TN_ATTR_TABLE(tn_reduce_attrs, reduce_fields),
    .infer = logsumexp_infer,
    .reference = logsumexp_reference,
    .decompose = logsumexp_decompose,
    .vjp = logsumexp_vjp,
    .jvp = logsumexp_jvp,
    .vmap = logsumexp_vmap,
};

// --- sum_to -----------------------------------------------------------------------------

static tn_status sum_to_infer(const tn_infer *infer, tn_type *types)
{
    const tn_ints *shape = &((const tn_shape_attrs *)infer->attrs)->shape;
    const tn_type *x = &infer->types[0];
    int32_t rank = (int32_t)shape->count, shift = x->rank - rank;
    char from[SHAPE_TEXT], to[SHAPE_TEXT];
    tn_status status = check_shape(infer->host, shape);
    if (status)
        return status;
    int fits = shift >= 0;
    for (int32_t i = 0; fits && i < rank; i++)
        fits = shape->value[i] == 1 || shape->value[i] == x->extent[i + shift];
    if (!fits)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "x has shape %s, to which shape %s does not broadcast",
                                 shape_text(x->rank, x->extent, from),
                                 shape_text(rank, shape->value, to));
    types[0] = (tn_type){.dtype = x->dtype, .rank = rank};
    memcpy(types[0].extent, shape->value, sizeof(int64_t) * (size_t)rank);
    return TN_OK;
}

static tn_array *sum_to(const tn_build *build, tn_array *x, const tn_ints *shape)
{
    const tn_type *type = build->type(x);
    if (!type)
        return NULL;
    int32_t shift = type->rank - (int32_t)shape->count;
    tn_ints axes = {.given = 1};
    for (int32_t i = 0; i < type->rank; i++)
        if (i < shift || (shape->value[i - shift] == 1 && type->extent[i] != 1))
            axes.value[axes.count++] = i;
    if (axes.count == 0)
        return build->expr(build, "x -> x", TN_IN(x), TN_NO_ATTRS);
    tn_array *sum = reduce_op(build, "base.sum/1", x, &axes, 0);
    return reduce_rules_narrow(build, with_shape(build, "base.reshape/1", sum, *shape),
                               type->dtype);
}

static tn_status sum_to_decompose(const tn_build *build, const tn_rule *rule,
                                  tn_array **outputs)
{
    outputs[0] = sum_to(build, rule->inputs[0], &((tn_shape_attrs *)rule->attrs)->shape);
    return built(outputs[0]);
}

static tn_status sum_to_vjp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *cotangents, const uint64_t *wanted,
                            tn_array **gradients)
{
    (void)wanted;
    gradients[0] = with_shape(build, "base.broadcast_to/1", cotangents[0],
                              tn_extents(build, rule->inputs[0]));
    return built(gradients[0]);
}

static tn_status sum_to_jvp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_shape_attrs *attrs = rule->attrs;
    out_tangents[0] = with_shape(build, "base.sum_to/1", tangents[0], attrs->shape);
    return built(out_tangents[0]);
}

const tn_primitive base_sum_to = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.sum_to/1",
    .doc = "The sum over what broadcast_to repeated: undoes a broadcast, in x's dtype.",
    .role = TN_ROLE_SUM_TO,
    TN_INPUTS(base_number_x),
    .attrs = TN_ATTR_TABLE(tn_shape_attrs, sum_to_fields),
    .infer = sum_to_infer,
    .decompose = sum_to_decompose,
    .vjp = sum_to_vjp,
    .jvp = sum_to_jvp,
};
