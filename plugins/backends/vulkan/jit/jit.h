// SPDX-License-Identifier: MIT
// Compiles GLSL to SPIR-V at run time, or finds the result in the disk cache.
#ifndef VULKAN_JIT_JIT_H
#define VULKAN_JIT_JIT_H

#include "../device/device.h"
#include "../dispatch/plan_program.h"

#include <tenon/glsl.h>

// The compiler as an interface of the plugin: glsl.c.
extern const tn_glsl jit_glsl;

// A module of family vulkan.glsl/1. `name` is for messages.
tn_status jit_compile_module(tn_device *device, const char *name,
                             const tn_vulkan_module *module, struct vk_code *out);

// Generated GLSL, without includes. `flags`: GLSL_..., as in struct glsl_source.
tn_status jit_compile_text(tn_device *device, const char *name, const struct text *text,
                           uint32_t flags, struct vk_code *out);

// Plans an expression program: generates GLSL for its class.
tn_status jit_plan_program(struct vk_plan *plan, const tn_step *step);

// Generates and compiles the GLSL for the class in `context`, a struct program_source.
tn_status jit_program(tn_device *device, void *context, struct vk_code *out);

#endif // VULKAN_JIT_JIT_H
