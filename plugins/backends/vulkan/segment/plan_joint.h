// SPDX-License-Identifier: MIT
// Products of a few rows whose results one program reads, such as silu(x @ a) * (x @ b):
// one launch computes them side by side and runs the program
// (kernels/vulkan/matmul/matmul_joint.comp). The results have no memory.
#ifndef VULKAN_SEGMENT_PLAN_JOINT_H
#define VULKAN_SEGMENT_PLAN_JOINT_H

#include "../dispatch/plan.h"

#define JOINT_MAX_STEPS 4

// Whether the step is a product with an epilogue that may read the results of other
// products, too.
bool joint_begins(const struct vk_plan *plan, const tn_step *step);

// Whether the last of the steps, a product without programs, computes what the program of
// the first one reads, and fits the launch. The steps before it fit. The caller ensures
// that no other step reads the result, and that the step may run at the first one's
// position.
bool joint_fits(const struct vk_plan *plan, const tn_step *const *steps, uint32_t count);

// Plans the launch of two steps or more.
tn_status joint_plan(struct vk_plan *plan, const tn_step *const *steps, uint32_t count);

#endif // VULKAN_SEGMENT_PLAN_JOINT_H
