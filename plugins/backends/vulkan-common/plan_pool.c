// SPDX-License-Identifier: MIT
// nn.max_pool2d/1 and nn.max_pool2d_grad/1.
#include "kernels.h"

#include <stdio.h>

static int64_t pair(const tn_ints *given, uint32_t i, int64_t absent)
{
    if (!given->given || given->count == 0)
        return absent;
    return given->value[given->count > 1 ? i : 0];
}

// Inputs: x; for the gradient x, y and the gradient of y.
tn_status vk_plan_max_pool2d(struct vk_plan *plan, const tn_step *step)
{
    const tn_pool2d_attrs *attrs = step->attrs;
    bool is_grad = step->num_inputs == 3;
    const tn_layout *x = &tn_step_input(step, 0)->layout,
                    *out = &tn_step_output(step, 0)->layout;
    const tn_layout *y = is_grad ? &tn_step_input(step, 2)->layout : out;
    uint64_t n = layout_count(out);
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "pool_%s%s", is_grad ? "grad_" : "", dtype_glsl(x->dtype));
    struct vk_launch launch = {.pipeline = {.name = name}, .groups = ceil_div(n, 256)};
    if (n == 0)
        return TN_OK;
    launch_bind(&launch, plan_operand(tn_step_input(step, 0), VK_READS));
    if (is_grad)
        launch_bind(&launch, plan_operand(tn_step_input(step, 2), VK_READS));
    launch_bind(&launch, plan_operand(tn_step_output(step, 0), VK_WRITES));
    launch_push(&launch, n);
    launch_push(&launch, (uint64_t)x->offset);
    launch_push(&launch, is_grad ? (uint64_t)y->offset : 0);
    launch_push(&launch, (uint64_t)out->offset);
    for (int axis = 1; axis < 4; axis++)
        launch_push(&launch, (uint64_t)x->extent[axis]);
    launch_push(&launch, (uint64_t)y->extent[1]);
    launch_push(&launch, (uint64_t)y->extent[2]);
    int64_t window[2] = {pair(&attrs->window, 0, 1), pair(&attrs->window, 1, 1)};
    for (uint32_t i = 0; i < 2; i++)
        launch_push(&launch, (uint64_t)window[i]);
    for (uint32_t i = 0; i < 2; i++)
        launch_push(&launch, (uint64_t)pair(&attrs->stride, i, window[i]));
    for (uint32_t i = 0; i < 2; i++)
        launch_push(&launch, (uint64_t)pair(&attrs->padding, i, 0));
    return plan_launch(plan, &launch);
}
