// SPDX-License-Identifier: MIT
// The kernels of the families as embed.py embeds them in a plugin: as text, or as SPIR-V.
//
// Threads. Any function may be called by any thread; glsl_texts_unload by one, when no
// other uses a text.
#ifndef KERNELS_VULKAN_PACK_EMBEDDED_H
#define KERNELS_VULKAN_PACK_EMBEDDED_H

#include <tenon/kernel.h>

// The kernels as text, made by `embed.py sources`, or as SPIR-V, made by `embed.py spirv`:
// NUM_MODULES of "modules.h", made by `embed.py list`, sorted by name. They have sizes, and
// no code: it is packed. Constant.
extern const tn_vulkan_module own_modules[];

// Writes the code of a module below NUM_MODULES, code_size bytes. For
// tn_vulkan_kernel.unpack. TN_ERR_MEMORY: there is no memory.
//
// All texts are unpacked at once, by the first call (0.3 ms), and kept: then a text takes
// microseconds. A module of SPIR-V is unpacked by each call (0.01 ms for 10 kB).
tn_status own_unpack(const tn_host *host, uint32_t module, void *out_code);

// The head of every kernel that is made from an expression: expression.glsl with its
// includes; and what follows it where there are complex numbers: complex.glsl with its
// includes. Borrowed until glsl_texts_unload. NULL: there is no memory.
const char *glsl_expression(void);
const char *glsl_complex(void);
// matmul_products.comp with its includes, which is compiled with a variant's macros and
// more; matmul_joint.comp, with those that its comment names. Likewise.
const char *glsl_products(void);
const char *glsl_joint(void);
// reduce_op.glsl and reduce_loop.glsl, of which kernels of several reductions are made.
// Likewise.
const char *glsl_reduce_op(void);
const char *glsl_reduce_loop(void);

// Frees the unpacked texts. The next call of a function above unpacks them anew.
void glsl_texts_unload(void);

#endif // KERNELS_VULKAN_PACK_EMBEDDED_H
