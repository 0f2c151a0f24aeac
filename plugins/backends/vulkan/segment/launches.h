// SPDX-License-Identifier: MIT
// Tells launches, as they are planned, to a program that asks for them.
#ifndef VULKAN_SEGMENT_LAUNCHES_H
#define VULKAN_SEGMENT_LAUNCHES_H

#include <tenon/launches.h>
#include "../dispatch/plan.h"

// Tells the dispatch that was added to the plan last, with its operands and what it pushes,
// and has it measured if that is wanted. The application listens: instance->hears_launches.
tn_status vk_launches_tell_one(struct vk_plan *plan, uint32_t index, const tn_step *step);
tn_status vk_launches_tell(struct vk_plan *plan, const tn_segment *segment);

#endif // VULKAN_SEGMENT_LAUNCHES_H
