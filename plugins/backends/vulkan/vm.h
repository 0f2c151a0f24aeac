// SPDX-License-Identifier: MIT
// Programs as words for the interpreter kernel, kernels/glsl/program.comp.
#ifndef VULKAN_VM_H
#define VULKAN_VM_H

#include "plan_program.h"

tn_status vm_plan_program(struct vk_plan *plan, const tn_step *step);

#endif // VULKAN_VM_H
