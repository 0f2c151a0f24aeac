// SPDX-License-Identifier: MIT
// Batching rules of reductions: the same primitive with the batch as one more leading axis.
#include "reduce.h"

tn_ints axes_in_batch(const tn_build *build, const tn_array *x, const tn_ints *axes)
{
    int32_t rank = (int32_t)tn_extents(build, x).count - 1;
    uint32_t set = tn_axis_set(axes, rank < 0 ? 0 : rank);
    tn_ints reduced = {.given = 1};
    for (int32_t i = 0; i < rank; i++)
        if (set >> i & 1)
            reduced.value[reduced.count++] = i + 1;
    return reduced;
}

static tn_status reduce_batch(const tn_build *build, const char *primitive,
                              const tn_rule *rule, int32_t axis, tn_array **outputs,
                              int32_t *out_axes)
{
    const tn_reduce_attrs *attrs = rule->attrs;
    tn_array *x = tn_move_axis(build, rule->inputs[0], axis, 0);
    const tn_ints reduced = axes_in_batch(build, x, &attrs->axis);
    outputs[0] = build->op(build, primitive, TN_IN(x),
                           tn_attrs("axis", &reduced, "keepdims", attrs->keepdims));
    out_axes[0] = 0;
    return built(outputs[0]);
}

#define REDUCE_VMAP(name, ...)                                                             \
    tn_status name##_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes, \
                          int64_t size, tn_array **outputs, int32_t *out_axes)             \
    {                                                                                      \
        (void)size;                                                                        \
        return reduce_batch(build, "base." #name "/1", rule, axes[0], outputs, out_axes);  \
    }
TN_REDUCTIONS(REDUCE_VMAP)
#undef REDUCE_VMAP

// argmax without an axis searches the flattened slice: one axis behind the batch.
tn_status argmax_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                      int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const tn_argmax_attrs *attrs = rule->attrs;
    tn_array *x = tn_move_axis(build, rule->inputs[0], axes[0], 0);
    tn_ints shape = tn_extents(build, x), slice = tn_extents(build, rule->outputs[0]);
    int64_t axis = 1, count = 1;
    for (uint32_t i = 1; i < shape.count; i++)
        count *= shape.value[i];
    if (attrs->axis == TN_NO_AXIS)
        x = with_shape(build, "base.reshape/1", x, ints_of(2, (int64_t[]){size, count}));
    else
        axis = 1 + tn_axis(attrs->axis, (int32_t)shape.count - 1);
    tn_array *found = build->op(build, "base.argmax/1", TN_IN(x), tn_attrs("axis", axis));
    outputs[0] = with_shape(build, "base.reshape/1", found, tn_ints_after(size, &slice));
    out_axes[0] = 0;
    return built(outputs[0]);
}
