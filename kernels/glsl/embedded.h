// SPDX-License-Identifier: MIT
// The kernels of this folder as they are embedded by embed.py: as text, or as SPIR-V.
#ifndef KERNELS_GLSL_EMBEDDED_H
#define KERNELS_GLSL_EMBEDDED_H

#include <stddef.h>
#include <stdint.h>

// embed.py sources: sorted by name, ended by a zero.
struct glsl_variant {
    const char *name;
    const char *text;
    size_t size;         // bytes
    const char *defines; // "IN=f32 OP=sum"
};
extern const struct glsl_variant glsl_variants[];
extern const unsigned num_glsl_variants;

// What kernels made from expressions begin with.
extern const char glsl_expression[];

// embed.py spirv: sorted by name, ended by a zero.
struct spirv_variant {
    const char *name;
    const uint32_t *words;
    size_t size; // bytes
};
extern const struct spirv_variant spirv_variants[];
extern const unsigned num_spirv_variants;

#endif // KERNELS_GLSL_EMBEDDED_H
