// SPDX-License-Identifier: MIT
// nn.softmax/1, nn.log_softmax/1 and nn.cross_entropy/1.
#include "kernels.h"

#include <stdio.h>

// A row of at least this length is computed by a workgroup, a shorter one by an invocation.
#define WIDE_ROW 64

static void finish(struct kernel_launch *launch, uint64_t rows, uint64_t length,
                   uint64_t inner, const tn_layout *in, const tn_layout *out,
                   int64_t label_offset)
{
    bool is_wide = length >= WIDE_ROW && inner == 1;
    kernel_spec(launch, is_wide);
    launch->groups = is_wide ? rows : ceil_div(rows, 256);
    kernel_push(launch, rows);
    kernel_push(launch, length);
    kernel_push(launch, inner);
    kernel_push(launch, (uint64_t)in->offset);
    kernel_push(launch, (uint64_t)out->offset);
    kernel_push(launch, (uint64_t)label_offset);
}

tn_status vk_plan_softmax(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_layout *x = &tn_step_input(step, 0)->layout;
    const tn_softmax_attrs *attrs = step->attrs;
    int32_t axis = tn_axis(attrs->axis, x->rank);
    uint64_t length = (uint64_t)x->extent[axis], inner = 1;
    for (int32_t i = axis + 1; i < x->rank; i++)
        inner *= (uint64_t)x->extent[i];
    if (layout_count(x) == 0)
        return TN_OK;
    char name[VARIANT_NAME];
    const char *op = step->kernel->primitive + strlen("nn.");
    snprintf(name, sizeof(name), "%.*s_%s", (int)strcspn(op, "/"), op,
             dtype_glsl(x->dtype));
    struct kernel_launch launch = {.name = name};
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_output(0));
    finish(&launch, layout_count(x) / length, length, inner, x,
           &tn_step_output(step, 0)->layout, 0);
    return kernel_launch(plan, &launch);
}

tn_status vk_plan_cross_entropy(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_layout *x = &tn_step_input(step, 0)->layout,
                    *labels = &tn_step_input(step, 1)->layout;
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "cross_entropy_%s_%s", dtype_glsl(x->dtype),
             dtype_glsl(labels->dtype));
    struct kernel_launch launch = {.name = name};
    if (layout_count(x) == 0)
        return TN_OK;
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_output(0));
    finish(&launch, layout_count(labels), (uint64_t)x->extent[x->rank - 1], 1, x,
           &tn_step_output(step, 0)->layout, labels->offset);
    return kernel_launch(plan, &launch);
}
