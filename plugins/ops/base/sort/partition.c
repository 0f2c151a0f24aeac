// SPDX-License-Identifier: MIT
// partition, argpartition: puts one element where a sort does, and lesser ones before it.
// Each part keeps x's order, so that the result is the same on every device.
#include "../pack.h"

static const tn_attr_field partition_fields[] = {
    TN_REQUIRED_FIELD(tn_partition_attrs, kth, TN_ATTR_I64,
                      "the index whose element is the one that a sort puts there"),
    TN_I64_FIELD(tn_partition_attrs, axis, -1, "the axis"),
};

static tn_status partitioned_infer(const tn_infer *infer, tn_dtype dtype, tn_type *types)
{
    const tn_partition_attrs *attrs = infer->attrs;
    const tn_type *x = &infer->types[0];
    int32_t axis;
    tn_status status = check_axis(infer->host, attrs->axis, x->rank, &axis);
    if (status)
        return status;
    if (attrs->kth < -x->extent[axis] || attrs->kth >= x->extent[axis])
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "kth is %" PRId64 " and axis %d has extent %" PRId64,
                                 attrs->kth, axis, x->extent[axis]);
    types[0] = *x;
    types[0].dtype = dtype;
    return TN_OK;
}

static tn_status partition_infer(const tn_infer *infer, tn_type *types)
{
    return partitioned_infer(infer, infer->types[0].dtype, types);
}

static tn_status argpartition_infer(const tn_infer *infer, tn_type *types)
{
    return partitioned_infer(infer, TN_I64, types);
}

// Positions of a sort; those of each part are in ascending order.
DECOMPOSE(argpartition)
{
    const tn_partition_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    if (!x)
        return TN_ERR_ARGUMENT;
    int32_t axis = tn_axis(attrs->axis, x->rank);
    int64_t n = x->extent[axis], kth = attrs->kth < 0 ? attrs->kth + n : attrs->kth;
    tn_attr_list along = tn_attrs("axis", (int64_t)axis);
    tn_array *order = build->op(build, "base.argsort/1", TN_IN(rule->inputs[0]), along);
    tn_array *before = part_of_axis(build, order, axis, 0, 1, kth);
    tn_array *own = part_of_axis(build, order, axis, kth, 1, 1);
    tn_array *behind = part_of_axis(build, order, axis, kth + 1, 1, n - kth - 1);
    before = build->op(build, "base.sort/1", TN_IN(before), along);
    behind = build->op(build, "base.sort/1", TN_IN(behind), along);
    outputs[0] = joined(build, (tn_array *const[]){before, own, behind}, 3, axis);
    return built(outputs[0]);
}

DECOMPOSE(partition)
{
    const tn_partition_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    tn_array *positions = build->op(build, "base.argpartition/1", TN_IN(rule->inputs[0]),
                                    tn_attrs("kth", attrs->kth, "axis", attrs->axis));
    if (!x)
        return TN_ERR_ARGUMENT;
    outputs[0] = type_count(x) == 0 ? rule->inputs[0]
                                    : build->op(build, "base.take_along_axis/1",
                                                TN_IN(rule->inputs[0], positions),
                                                tn_attrs("axis", attrs->axis));
    return built(outputs[0]);
}

static tn_status partition_batch(const tn_build *build, const tn_rule *rule,
                                 const char *primitive, int32_t batch_axis,
                                 tn_array **outputs, int32_t *out_axes)
{
    const tn_partition_attrs *attrs = rule->attrs;
    int64_t axis = attrs->axis;
    tn_array *x = batch_along(build, rule->inputs[0], batch_axis, &axis);
    outputs[0] =
        build->op(build, primitive, TN_IN(x), tn_attrs("kth", attrs->kth, "axis", axis));
    out_axes[0] = 0;
    return built(outputs[0]);
}

tn_status partition_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                         int64_t size, tn_array **outputs, int32_t *out_axes)
{
    (void)size;
    return partition_batch(build, rule, "base.partition/1", axes[0], outputs, out_axes);
}

tn_status argpartition_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                            int64_t size, tn_array **outputs, int32_t *out_axes)
{
    (void)size;
    return partition_batch(build, rule, "base.argpartition/1", axes[0], outputs, out_axes);
}

DECOMPOSED(partition, tn_partition_attrs, partition_fields,
           "x with element kth as a sort has it, lesser ones before, parts in x's order.",
           TN_INPUTS(base_x), .vmap = partition_vmap);
DECOMPOSED(argpartition, tn_partition_attrs, partition_fields,
           "The indices in x of partition's elements.", TN_INPUTS(base_x),
           .vmap = argpartition_vmap);
