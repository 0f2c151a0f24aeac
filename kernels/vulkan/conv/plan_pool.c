// SPDX-License-Identifier: MIT
// nn.max_pool2d/1 and nn.max_pool2d_grad/1, nn.mean_pool2d/1 and its transpose.
#include "../record.h"

#include <stdio.h>
#include <tenon/ops/nn_attrs.h>

static int64_t pool_plan_pair(const tn_ints *given, uint32_t i, int64_t absent)
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
    int64_t window[2] = {pool_plan_pair(&attrs->window, 0, 1),
                         pool_plan_pair(&attrs->window, 1, 1)};
    for (uint32_t i = 0; i < 2; i++)
        kernel_push(&launch, (uint64_t)window[i]);
    for (uint32_t i = 0; i < 2; i++)
        kernel_push(&launch, (uint64_t)pool_plan_pair(&attrs->stride, i, window[i]));
    for (uint32_t i = 0; i < 2; i++)
        kernel_push(&launch, (uint64_t)pool_plan_pair(&attrs->padding, i, 0));
    return kernel_launch(plan, &launch);
}

// Inputs: images, or of the transpose (input) what is shared out.
static tn_status means_plan(const tn_vulkan_plan *plan, const char *form, bool is_input)
{
    const tn_step *step = plan->step;
    const tn_mean_pool2d_attrs *attrs = step->attrs;
    const tn_layout *from = &tn_step_input(step, 0)->layout,
                    *out = &tn_step_output(step, 0)->layout;
    const tn_layout *images = is_input ? out : from, *windows = is_input ? from : out;
    const tn_ints *lists[] = {&attrs->window, &attrs->stride, &attrs->before,
                              &attrs->after};
    uint64_t n = layout_count(out);
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "pool_%s_%s", form, dtype_glsl(from->dtype));
    struct kernel_launch launch = {.name = name, .groups = ceil_div(n, 256)};
    if (n == 0)
        return TN_OK;
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_push(&launch, n);
    kernel_push(&launch, (uint64_t)from->offset);
    kernel_push(&launch, 0);
    kernel_push(&launch, (uint64_t)out->offset);
    for (int axis = 1; axis < 4; axis++)
        kernel_push(&launch, (uint64_t)images->extent[axis]);
    kernel_push(&launch, (uint64_t)windows->extent[1]);
    kernel_push(&launch, (uint64_t)windows->extent[2]);
    for (int list = 0; list < 4; list++)
        for (uint32_t i = 0; i < 2; i++)
            kernel_push(&launch, (uint64_t)pool_plan_pair(lists[list], i, 0));
    kernel_push(&launch, (uint64_t)attrs->count_padding);
    kernel_push(&launch, (uint64_t)attrs->divisor);
    return kernel_launch(plan, &launch);
}

static tn_status mean_pool2d_plan(const tn_vulkan_plan *plan)
{
    return means_plan(plan, "mean", false);
}

static tn_status mean_pool2d_input_plan(const tn_vulkan_plan *plan)
{
    return means_plan(plan, "share", true);
}

// --- records ---------------------------------------------------------------------------

OWN_KERNEL(max_pool2d, "nn.max_pool2d/1", max_pool2d_plan, KERNEL_OTHER, float_rules);
OWN_KERNEL(max_pool2d_grad, "nn.max_pool2d_grad/1", max_pool2d_plan, KERNEL_OTHER,
           float_rules);
OWN_KERNEL(mean_pool2d, "nn.mean_pool2d/1", mean_pool2d_plan, KERNEL_OTHER, float_rules);
OWN_KERNEL(mean_pool2d_input, "nn.mean_pool2d_input/1", mean_pool2d_input_plan,
           KERNEL_OTHER, float_rules);
