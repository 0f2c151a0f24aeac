// SPDX-License-Identifier: MIT
// The SPIR-V of an elementwise program, without a compiler.
#ifndef VULKAN_PROGRAM_SPIRV_H
#define VULKAN_PROGRAM_SPIRV_H

#include "program.h"
#include "spirv.h"

// Writes the kernel that program_write_glsl() writes as text, into a module that was begun;
// returns its entry point.
uint32_t program_write_spirv(struct spirv_module *module, const tn_expr_program *program,
                             const struct program_class *class);

#endif // VULKAN_PROGRAM_SPIRV_H
