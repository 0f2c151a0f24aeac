// SPDX-License-Identifier: MIT
// nn.cross_entropy/1.
#include "../record.h"

#include <stdio.h>

// A row of at least this length is computed by a workgroup, a shorter one by an invocation.
#define WIDE_ROW 64

// Many logits are faster as a row program, though it is a launch more (on an H200
// 65536x2048: 290 us, 512 by this kernel, 65536x128 43, 218; 1024x1000 28, 24).
#define MANY_LOGITS 1500000

static int32_t cross_entropy_accepts(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0];
    return x->extent[x->rank - 1] < WIDE_ROW || layout_count(x) < MANY_LOGITS;
}

static tn_status cross_entropy_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    const tn_layout *x = &tn_step_input(step, 0)->layout,
                    *labels = &tn_step_input(step, 1)->layout;
    char name[VARIANT_NAME];
    snprintf(name, sizeof(name), "cross_entropy_%s_%s", dtype_glsl(x->dtype),
             dtype_glsl(labels->dtype));
    struct kernel_launch launch = {.name = name};
    uint64_t rows = layout_count(labels), length = (uint64_t)x->extent[x->rank - 1];
    bool is_wide = length >= WIDE_ROW;
    if (rows == 0)
        return TN_OK;
    kernel_bind(&launch, tn_vulkan_input(0));
    kernel_bind(&launch, tn_vulkan_input(1));
    kernel_bind(&launch, tn_vulkan_output(0));
    kernel_spec(&launch, is_wide);
    launch.groups = is_wide ? rows : ceil_div(rows, 256);
    kernel_push(&launch, rows);
    kernel_push(&launch, length);
    kernel_push(&launch, (uint64_t)x->offset);
    kernel_push(&launch, (uint64_t)tn_step_output(step, 0)->layout.offset);
    kernel_push(&launch, (uint64_t)labels->offset);
    return kernel_launch(plan, &launch);
}

// --- records ---------------------------------------------------------------------------

static const tn_operand_rule loss_rules[] = {{TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
                                             {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
                                             {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS}};
OWN_KERNEL(cross_entropy, "nn.cross_entropy/1", cross_entropy_plan, KERNEL_OTHER,
           loss_rules, .accepts = cross_entropy_accepts);
