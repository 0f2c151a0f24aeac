// SPDX-License-Identifier: MIT
// Programs that only change the order of axes.
#ifndef VULKAN_COMMON_PLAN_TRANSPOSE_H
#define VULKAN_COMMON_PLAN_TRANSPOSE_H

#include "plan.h"

// Whether the step's program is such a copy, of a size that is worth it.
bool plan_is_transpose(const tn_step *step);

// Adds its one dispatch, when it is.
tn_status plan_transpose(struct vk_plan *plan, const tn_step *step);

#endif // VULKAN_COMMON_PLAN_TRANSPOSE_H
