// SPDX-License-Identifier: MIT
// Code made at run time, with the disk cache before the compiler.
#ifndef VULKAN_JIT_JIT_H
#define VULKAN_JIT_JIT_H

#include "device.h"
#include "plan_program.h"

// One of our kernels, from its embedded text.
tn_status jit_variant(tn_device *device, const char *name, struct vk_code *out);

// Anybody's GLSL.
tn_status jit_compile(tn_device *device, const char *name, const char *text, uint64_t size,
                      struct vk_code *out);

// An elementwise program: GLSL is generated for its class.
tn_status jit_plan_program(struct vk_plan *plan, const tn_step *step);

#endif // VULKAN_JIT_JIT_H
