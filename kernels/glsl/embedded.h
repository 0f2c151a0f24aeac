// SPDX-License-Identifier: MIT
// The kernels of this folder as embed.py embeds them in a plugin: as text, or as SPIR-V.
// The tables are generated, and constant.
#ifndef KERNELS_GLSL_EMBEDDED_H
#define KERNELS_GLSL_EMBEDDED_H

#include <tenon/kernel.h>

// The kernels as text, made by `embed.py sources`, and as SPIR-V, made by `embed.py spirv`:
// NUM_MODULES of the header made beside, sorted by name.
extern const tn_vulkan_module glsl_modules[];
extern const tn_vulkan_module spirv_modules[];

// The head of every kernel that is made from an expression: expression.glsl with its
// includes.
extern const char glsl_expression[];
// What follows it where there are complex numbers: complex.glsl with its includes.
extern const char glsl_complex[];
// matmul_products.comp with its includes, which is compiled with a variant's macros and
// more.
extern const char glsl_products[];

#endif // KERNELS_GLSL_EMBEDDED_H
