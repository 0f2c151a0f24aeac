// SPDX-License-Identifier: MIT
// Products of matrices that share a launch (kernels/vulkan/matmul/matmul_products.comp).
#ifndef VULKAN_SEGMENT_PLAN_PRODUCTS_H
#define VULKAN_SEGMENT_PLAN_PRODUCTS_H

#include "../dispatch/plan.h"

// Whether the step is a product by this backend's own kernel.
bool products_is_own(const struct vk_plan *plan, const tn_step *step);

// Whether both are the same elements of one memory.
bool products_same_value(const tn_value *a, const tn_value *b);

// Whether the steps are products by this backend's own kernel that fit one launch, and are
// faster so. The first count - 1 fit. With one step: whether it may be in a group.
bool products_fit(const struct vk_plan *plan, const tn_step *const *steps, uint32_t count);

// Plans the launch of two steps or more, which do not depend on each other.
tn_status products_plan(struct vk_plan *plan, const tn_step *const *steps, uint32_t count);

#endif // VULKAN_SEGMENT_PLAN_PRODUCTS_H
