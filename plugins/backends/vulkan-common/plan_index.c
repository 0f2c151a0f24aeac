// SPDX-License-Identifier: MIT
// base.take/1 and base.scatter_add/1.
#include "kernels.h"

#include <stdio.h>

struct gather {
    uint64_t length, inner, count; // along the axis; after it; of the indices
};

static struct gather describe(const tn_step *step)
{
    const tn_layout *x = &step->inputs[0].layout;
    const tn_take_attrs *attrs = step->attrs;
    int32_t axis = tn_axis(attrs->axis, x->rank);
    struct gather g = {.length = (uint64_t)x->extent[axis], .inner = 1};
    for (int32_t i = axis + 1; i < x->rank; i++)
        g.inner *= (uint64_t)x->extent[i];
    g.count = layout_count(&step->inputs[1].layout);
    return g;
}

static void push_start(struct vk_launch *launch, uint64_t n, const struct gather *g)
{
    launch_push(launch, n);
    launch_push(launch, g->length);
    launch_push(launch, g->count);
    launch_push(launch, g->inner);
    launch->groups = ceil_div(n, 256);
}

tn_status vk_plan_take(struct vk_plan *plan, const tn_step *step)
{
    struct gather g = describe(step);
    uint64_t n = layout_count(&step->outputs[0].layout);
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "take_%u_%s", dtype_bytes(step->inputs[0].layout.dtype),
             dtype_glsl(step->inputs[1].layout.dtype));
    struct vk_launch launch = {.pipeline = {.name = name}};
    if (n == 0)
        return TN_OK;
    launch_bind(&launch, plan_operand(&step->inputs[0], VK_READS));
    launch_bind(&launch, plan_operand(&step->inputs[1], VK_READS));
    launch_bind(&launch, plan_operand(&step->outputs[0], VK_WRITES));
    push_start(&launch, n, &g);
    launch_push(&launch, (uint64_t)step->inputs[0].layout.offset);
    launch_push(&launch, (uint64_t)step->inputs[1].layout.offset);
    launch_push(&launch, (uint64_t)step->outputs[0].layout.offset);
    return plan_launch(plan, &launch);
}

int32_t vk_scatter_add_accepts(const tn_kernel_query *query)
{
    const uint32_t narrow =
        TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16) | TN_DTYPE_BIT(TN_F32);
    const uint32_t indices = TN_DTYPE_BIT(TN_I32) | TN_DTYPE_BIT(TN_I64);
    uint32_t x = TN_DTYPE_BIT(query->inputs[0].dtype);
    // An index of nothing has no element to be bound.
    return x != TN_DTYPE_BIT(TN_BOOL) &&
           ((x & narrow) || (TN_DTYPE_BIT(query->inputs[1].dtype) & indices));
}

tn_status vk_plan_scatter_add(struct vk_plan *plan, const tn_step *step)
{
    struct gather g = describe(step);
    uint64_t n = layout_count(&step->outputs[0].layout);
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "scatter_add_%s_%s",
             dtype_glsl(step->inputs[0].layout.dtype),
             dtype_glsl(step->inputs[1].layout.dtype));
    struct vk_launch launch = {.pipeline = {.name = name}};
    if (n == 0)
        return TN_OK;
    for (uint32_t i = 0; i < 3; i++)
        launch_bind(&launch, plan_operand(&step->inputs[i], VK_READS));
    launch_bind(&launch, plan_operand(&step->outputs[0], VK_WRITES));
    push_start(&launch, n, &g);
    for (uint32_t i = 0; i < 3; i++)
        launch_push(&launch, (uint64_t)step->inputs[i].layout.offset);
    launch_push(&launch, (uint64_t)step->outputs[0].layout.offset);
    return plan_launch(plan, &launch);
}
