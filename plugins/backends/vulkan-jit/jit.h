// SPDX-License-Identifier: MIT
// Compiles GLSL to SPIR-V at run time, or finds the result in the disk cache.
#ifndef VULKAN_JIT_JIT_H
#define VULKAN_JIT_JIT_H

#include "device.h"
#include "plan_program.h"

// A kernel of this backend, from its embedded text.
tn_status jit_variant(tn_device *device, const char *name, struct vk_code *out);

// The GLSL of an op pack's kernel.
tn_status jit_compile(tn_device *device, const char *name, const char *text, uint64_t size,
                      struct vk_code *out);

// Plans an expression program: generates GLSL for its class.
tn_status jit_plan_program(struct vk_plan *plan, const tn_step *step);

#endif // VULKAN_JIT_JIT_H
