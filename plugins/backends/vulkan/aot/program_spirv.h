// SPDX-License-Identifier: MIT
// Generates the SPIR-V of an expression program, without a compiler.
#ifndef VULKAN_AOT_PROGRAM_SPIRV_H
#define VULKAN_AOT_PROGRAM_SPIRV_H

#include "../program/program.h"
#include "spirv.h"

// Writes the kernel into a module that was begun; returns its entry point. The kernel is
// the same as that of program_write_glsl(). For a class with is_function: its
// function; it has parameters, and no driver gets the module.
uint32_t program_write_spirv(struct spirv_module *module, const tn_expr_program *program,
                             const struct program_class *class);

#endif // VULKAN_AOT_PROGRAM_SPIRV_H
