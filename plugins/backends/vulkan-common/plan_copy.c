// SPDX-License-Identifier: MIT
// base.concatenate/1 and base.slice_update/1: copies from strided region to strided region.
#include "kernels.h"

#include <stdio.h>

// Copies `from` into those elements of `to` that `region` describes.
static tn_status copy_region(struct vk_plan *plan, const tn_value *from, const tn_value *to,
                             const tn_layout *region)
{
    uint64_t n = layout_count(region);
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "copy_%u", dtype_bytes(region->dtype));
    struct vk_launch launch = {.pipeline = {.name = name}, .groups = ceil_div(n, 256)};
    if (n == 0)
        return TN_OK;
    launch_spec(&launch, (uint32_t)region->rank);
    launch_bind(&launch, plan_operand(from, VK_READS));
    launch_bind(&launch, plan_operand(to, VK_WRITES));
    launch_push(&launch, n);
    launch_push(&launch, (uint64_t)from->layout.offset);
    launch_push(&launch, (uint64_t)region->offset);
    for (int32_t i = 0; i < TN_MAX_RANK; i++)
        launch_push(&launch, i < region->rank ? (uint64_t)region->extent[i] : 1);
    for (int32_t i = 0; i < TN_MAX_RANK; i++)
        launch_push(&launch, i < region->rank ? (uint64_t)from->layout.stride[i] : 0);
    for (int32_t i = 0; i < TN_MAX_RANK; i++)
        launch_push(&launch, i < region->rank ? (uint64_t)region->stride[i] : 0);
    return plan_launch(plan, &launch);
}

tn_status vk_plan_concatenate(struct vk_plan *plan, const tn_step *step)
{
    const tn_concatenate_attrs *attrs = step->attrs;
    const tn_value *out = &step->outputs[0];
    int32_t axis = tn_axis(attrs->axis, out->layout.rank);
    tn_layout region = out->layout;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < step->num_inputs && status == TN_OK; i++) {
        region.extent[axis] = step->inputs[i].layout.extent[axis];
        status = copy_region(plan, &step->inputs[i], out, &region);
        region.offset += region.extent[axis] * region.stride[axis];
    }
    return status;
}

// Where start:stop:step begins along an axis, as Python counts.
static int64_t slice_start(const tn_ints *start, uint32_t axis, int64_t extent,
                           int64_t step)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    if (axis >= start->count || start->value[axis] == TN_SLICE_END)
        return step > 0 ? 0 : extent - 1;
    int64_t at = start->value[axis] + (start->value[axis] < 0 ? extent : 0);
    return at < low ? low : at > high ? high : at;
}

tn_status vk_plan_slice_update(struct vk_plan *plan, const tn_step *step)
{
    const tn_slice_attrs *attrs = step->attrs;
    const tn_value *x = &step->inputs[0], *update = &step->inputs[1];
    const tn_value *out = &step->outputs[0];
    bool in_place = x->slot == out->slot && x->offset == out->offset &&
                    x->layout.offset == out->layout.offset;
    tn_status status = in_place ? TN_OK : copy_region(plan, x, out, &out->layout);
    if (status != TN_OK)
        return status;
    tn_layout region = out->layout;
    for (int32_t axis = 0; axis < region.rank; axis++) {
        uint32_t i = (uint32_t)axis;
        int64_t by = i < attrs->step.count && attrs->step.value[i] != TN_SLICE_END
                         ? attrs->step.value[i]
                         : 1;
        region.offset +=
            slice_start(&attrs->start, i, region.extent[axis], by) * region.stride[axis];
        region.stride[axis] *= by;
        region.extent[axis] = update->layout.extent[axis];
    }
    return copy_region(plan, update, out, &region);
}
