// SPDX-License-Identifier: MIT
// Tells launches, as they are planned, to a program that asks for them.
#ifndef VULKAN_COMMON_LAUNCHES_H
#define VULKAN_COMMON_LAUNCHES_H

#include <tenon/launches.h>
#include "plan.h"

// Tells a dispatch that was added to the plan, with its operands and what it pushes.
// Somebody listens: instance->planned.
void vk_launches_tell(const struct vk_plan *plan, const struct vk_pipeline_desc *desc,
                      const struct vk_dispatch *dispatch);

#endif // VULKAN_COMMON_LAUNCHES_H
