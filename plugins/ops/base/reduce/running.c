// SPDX-License-Identifier: MIT
// Running results made of others: cumulative_sum and cumulative_prod of the array API,
// nancumsum, nancumprod, logcumsumexp.
#include "reduce.h"

typedef struct {
    int64_t axis, dtype, include_initial;
} running_attrs;

static const tn_attr_field running_fields[] = {
    TN_I64_FIELD(running_attrs, axis, TN_NO_AXIS,
                 "the axis; not given: of a vector its own"),
    RESULT_DTYPE(running_attrs),
    TN_BOOL_FIELD(running_attrs, include_initial, 0, "what no elements give comes first"),
};

static tn_status running_build(const tn_build *build, const tn_rule *rule,
                               const char *primitive, double initial, tn_array **outputs)
{
    const running_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    int32_t rank = build->type(x)->rank, axis;
    if (attrs->axis == TN_NO_AXIS && rank != 1)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "x has rank %d: axis is needed where it is not 1", rank);
    tn_status status =
        check_axis(build->host, attrs->axis == TN_NO_AXIS ? 0 : attrs->axis, rank, &axis);
    if (status)
        return status;
    x = build->op(build, primitive, TN_IN(x), tn_attrs("axis", (int64_t)axis));
    if (attrs->include_initial && build->type(x)) {
        tn_ints shape = tn_extents(build, x);
        shape.value[axis] = 1;
        tn_array *first = build->scalar(build, build->type(x)->dtype, initial);
        tn_array *parts[] = {with_shape(build, "base.broadcast_to/1", first, shape), x};
        x = joined(build, parts, 2, axis);
    }
    outputs[0] = x;
    return built(x);
}

DECOMPOSE(cumulative_sum)
{
    return running_build(build, rule, "base.cumsum/1", 0, outputs);
}

DECOMPOSE(cumulative_prod)
{
    return running_build(build, rule, "base.cumprod/1", 1, outputs);
}

COMPOSITE(cumulative_sum, "At each element the sum of those up to it.",
          TN_INPUTS(base_number_x), .attrs = TN_ATTR_TABLE(running_attrs, running_fields));
COMPOSITE(cumulative_prod, "At each element the product of those up to it.",
          TN_INPUTS(base_number_x), .attrs = TN_ATTR_TABLE(running_attrs, running_fields));

// --- without NaN ------------------------------------------------------------------------

static const tn_attr_field cumulative_fields[] = {
    TN_I64_FIELD(tn_cumulative_attrs, axis, TN_NO_AXIS, "the axis; not given: x flattened"),
    TN_BOOL_FIELD(tn_cumulative_attrs, reverse, 0, "from the end"),
};
static const tn_attr_field nan_running_fields[] = {
    TN_I64_FIELD(tn_cumulative_attrs, axis, TN_NO_AXIS, "the axis; not given: x flattened"),
    TN_BOOL_FIELD(tn_cumulative_attrs, reverse, 0, "from the end"),
    RESULT_DTYPE(cumulative_dtype_attrs),
};

static tn_status nan_running(const tn_build *build, const tn_rule *rule,
                             const char *primitive, double unit, tn_array **outputs)
{
    const tn_cumulative_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    tn_dtype dtype = build->type(x)->dtype;
    if (tn_is_float(dtype) || tn_is_complex(dtype))
        x = build->expr(build, "x, u -> isnan(x) ? u : x",
                        TN_IN(x, build->scalar(build, dtype, unit)), TN_NO_ATTRS);
    outputs[0] = build->op(build, primitive, TN_IN(x),
                           tn_attrs("axis", attrs->axis, "reverse", attrs->reverse));
    return built(outputs[0]);
}

DECOMPOSE(nancumsum)
{
    return nan_running(build, rule, "base.cumsum/1", 0, outputs);
}

DECOMPOSE(nancumprod)
{
    return nan_running(build, rule, "base.cumprod/1", 1, outputs);
}

COMPOSITE(nancumsum, "cumsum, where NaN counts as 0.", TN_INPUTS(base_number_x),
          .attrs = TN_ATTR_TABLE(cumulative_dtype_attrs, nan_running_fields));
COMPOSITE(nancumprod, "cumprod, where NaN counts as 1.", TN_INPUTS(base_number_x),
          .attrs = TN_ATTR_TABLE(cumulative_dtype_attrs, nan_running_fields));

// --- logcumsumexp -----------------------------------------------------------------------

// By doubling: after k steps each element has the sum of the 2^k elements up to it.
DECOMPOSE(logcumsumexp)
{
    const tn_cumulative_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    tn_dtype dtype = tn_is_float(type->dtype) ? type->dtype : TN_F64;
    int32_t axis = 0;
    tn_status status = TN_OK;
    if (attrs->axis == TN_NO_AXIS)
        x = flattened(build, x);
    else
        status = check_axis(build->host, attrs->axis, type->rank, &axis);
    if (status)
        return status;
    x = as_dtype(build, x, tn_dtype_computed(dtype));
    const tn_ints shape = tn_extents(build, x);
    int64_t n = shape.count ? shape.value[axis] : 0;
    for (int64_t step = 1; step < n; step *= 2) {
        tn_ints before = {shape.count, 1, {0}}, after = before;
        before.value[axis] = attrs->reverse ? 0 : step;
        after.value[axis] = attrs->reverse ? step : 0;
        tn_array *part =
            part_of_axis(build, x, axis, attrs->reverse ? step : 0, 1, n - step);
        tn_array *moved =
            build->op(build, "base.pad_constant/1", TN_IN(part),
                      tn_attrs("before", &before, "after", &after, "value", -INFINITY));
        x = build->op(build, "base.logaddexp/1", TN_IN(x, moved), TN_NO_ATTRS);
    }
    outputs[0] = as_dtype(build, x, dtype);
    return built(outputs[0]);
}

COMPOSITE(logcumsumexp, "At each element the logarithm of the sum of exp(x) up to it.",
          TN_INPUTS(base_x),
          .attrs = TN_ATTR_TABLE(tn_cumulative_attrs, cumulative_fields));
