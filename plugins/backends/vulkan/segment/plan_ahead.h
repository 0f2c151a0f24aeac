// SPDX-License-Identifier: MIT
// Plans all steps of a segment, later ones ahead on threads (ahead.h).
#ifndef VULKAN_SEGMENT_PLAN_AHEAD_H
#define VULKAN_SEGMENT_PLAN_AHEAD_H

#include "../dispatch/plan.h"

// Plans one step.
typedef tn_status vk_plan_step(struct vk_plan *plan, const tn_step *step);

// Plans all steps of the segment into `plan`, in order, until one fails.
tn_status vk_ahead_plan(const tn_segment *segment, vk_plan_step *plan_step,
                        struct vk_plan *plan);

#endif // VULKAN_SEGMENT_PLAN_AHEAD_H
