// SPDX-License-Identifier: MIT
// Small updates in place that begin at one index, and small programs beside them: one
// launch computes them (kernels/vulkan/move/updates.comp). So the keys, values and queries
// of a decoder's step, of which the first two go to caches, are one launch. So are those of
// several sequences, quant.cache_update/1.
#ifndef VULKAN_SEGMENT_PLAN_UPDATES_H
#define VULKAN_SEGMENT_PLAN_UPDATES_H

#include "../dispatch/plan.h"

#define UPDATES_MAX_STEPS 3

// Whether the steps fit one launch: the first one is an update by this backend's own
// kernel. The first count - 1 fit. With one step: whether it may be that update.
bool updates_fit(const struct vk_plan *plan, const tn_step *const *steps, uint32_t count);

// Plans the launch of two steps or more, which do not depend on each other.
tn_status updates_plan(struct vk_plan *plan, const tn_step *const *steps, uint32_t count);

#endif // VULKAN_SEGMENT_PLAN_UPDATES_H
