// SPDX-License-Identifier: MIT
// Elementwise programs as kernels, linked of parts that were compiled beforehand.
#ifndef VULKAN_LINK_PROGRAM_H
#define VULKAN_LINK_PROGRAM_H

#include "plan_program.h"

tn_status link_plan_program(struct vk_plan *plan, const tn_step *step);

#endif // VULKAN_LINK_PROGRAM_H
