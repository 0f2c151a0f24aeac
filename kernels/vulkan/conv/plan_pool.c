// SPDX-License-Identifier: MIT
// nn.max_pool2d/1 and nn.max_pool2d_grad/1.
#include "../record.h"

#include <stdio.h>
#include <tenon/ops/nn_attrs.h>

static int64_t pair(const tn_ints *given, uint32_t i, int64_t absent)
{
    if (!given->given || given->count == 0)
        return absent;
    return given->value[given->count > 1 ? i : 0];
}

// Inputs: x; for the gradient x, y and the gradient of y.
static tn_status max_pool2d_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_pool2d_attrs *attrs = step->attrs;
    bool is_grad = step->num_inputs == 3;
    const tn_layout *x = &tn_step_input(step, 0)->layout,
                    *out = &tn_step_output(step, 0)->layout;
    const tn_layout *y = is_grad ? &tn_step_input(step, 2)->layout : out;
    uint64_t n = layout_count(out);
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "pool_%s%s", is_grad ? "grad_" : "", dtype_glsl(x->dtype));
    struct kernel_launch launch = {.name = name, .groups = ceil_div(n, 256)};
    if (n == 0)
        return TN_OK;
    kernel_bind(&launch, tn_vulkan_input(0));
    if (is_grad)
        kernel_bind(&launch, tn_vulkan_input(2));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_push(&launch, n);
    kernel_push(&launch, (uint64_t)x->offset);
    kernel_push(&launch, is_grad ? (uint64_t)y->offset : 0);
    kernel_push(&launch, (uint64_t)out->offset);
    for (int axis = 1; axis < 4; axis++)
        kernel_push(&launch, (uint64_t)x->extent[axis]);
    kernel_push(&launch, (uint64_t)y->extent[1]);
    kernel_push(&launch, (uint64_t)y->extent[2]);
    int64_t window[2] = {pair(&attrs->window, 0, 1), pair(&attrs->window, 1, 1)};
    for (uint32_t i = 0; i < 2; i++)
        kernel_push(&launch, (uint64_t)window[i]);
    for (uint32_t i = 0; i < 2; i++)
        kernel_push(&launch, (uint64_t)pair(&attrs->stride, i, window[i]));
    for (uint32_t i = 0; i < 2; i++)
        kernel_push(&launch, (uint64_t)pair(&attrs->padding, i, 0));
    return kernel_launch(plan, &launch);
}

// --- records ---------------------------------------------------------------------------

OWN_KERNEL(max_pool2d, "nn.max_pool2d/1", max_pool2d_plan, KERNEL_OTHER, float_rules);
OWN_KERNEL(max_pool2d_grad, "nn.max_pool2d_grad/1", max_pool2d_plan, KERNEL_OTHER,
           float_rules);
