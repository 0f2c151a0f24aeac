// SPDX-License-Identifier: MIT
// The kernels of this folder as embed.py embeds them in a plugin: as text, or as SPIR-V.
// The tables are generated, and constant.
#ifndef KERNELS_GLSL_EMBEDDED_H
#define KERNELS_GLSL_EMBEDDED_H

#include <stddef.h>
#include <stdint.h>

// The kernels as text, made by `embed.py sources`: sorted by name, ended by an entry of
// zeros.
struct glsl_variant {
    const char *name;
    const char *text;
    size_t size;         // bytes
    const char *defines; // "IN=f32 OP=sum"
};
extern const struct glsl_variant glsl_variants[];
extern const unsigned num_glsl_variants;

// The head of every kernel that is made from an expression: expression.glsl with its
// includes.
extern const char glsl_expression[];

// The kernels as SPIR-V, made by `embed.py spirv`: sorted by name, ended by an entry of
// zeros.
struct spirv_variant {
    const char *name;
    const uint32_t *words;
    size_t size; // bytes
};
extern const struct spirv_variant spirv_variants[];
extern const unsigned num_spirv_variants;

#endif // KERNELS_GLSL_EMBEDDED_H
