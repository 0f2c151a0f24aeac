// SPDX-License-Identifier: MIT
// Kernels of expression programs, linked from precompiled parts.
#ifndef VULKAN_AOT_LINK_PROGRAM_H
#define VULKAN_AOT_LINK_PROGRAM_H

#include "../dispatch/plan_program.h"

// For vk_flavour.plan_program.
tn_status link_plan_program(struct vk_plan *plan, const tn_step *step);

// For vk_flavour.program_code.
tn_status link_program(tn_device *device, void *context, struct vk_code *out);

#endif // VULKAN_AOT_LINK_PROGRAM_H
