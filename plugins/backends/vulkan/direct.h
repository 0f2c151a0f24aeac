// SPDX-License-Identifier: MIT
// Kernels made beforehand for the commonest programs: one operation each.
#ifndef VULKAN_DIRECT_H
#define VULKAN_DIRECT_H

#include "plan_program.h"

// Adds the launch of a kernel that was made for this program and class; *out_found says
// whether there is one.
tn_status direct_plan_program(struct vk_plan *plan, const tn_step *step, bool *out_found);

#endif // VULKAN_DIRECT_H
