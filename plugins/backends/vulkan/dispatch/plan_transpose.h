// SPDX-License-Identifier: MIT
// Programs that only permute axes.
#ifndef VULKAN_DISPATCH_PLAN_TRANSPOSE_H
#define VULKAN_DISPATCH_PLAN_TRANSPOSE_H

#include "plan.h"

// Whether the step's program is a copy that permutes axes, and large enough for tiles.
bool plan_is_transpose(const tn_step *step);

// Adds the dispatch of such a step.
tn_status plan_transpose(struct vk_plan *plan, const tn_step *step);

#endif // VULKAN_DISPATCH_PLAN_TRANSPOSE_H
