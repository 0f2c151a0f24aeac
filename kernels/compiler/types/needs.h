// SPDX-License-Identifier: MIT
// What a shader needs of the device, as a table; and what its #extension lines allow.
#ifndef KERNELS_COMPILER_NEEDS_H
#define KERNELS_COMPILER_NEEDS_H

#include "../ir/ir.h"
#include "../preprocess/extension.h"

struct translator;
struct preprocessed;

// clang-format off

// X(name, capability, extension of SPIR-V, version of SPIR-V that has it without)
#define NEEDS(X)                                                                           \
    X(FLOAT16, 9, "", 0)                                                                   \
    X(FLOAT64, 10, "", 0)                                                                  \
    X(INT64, 11, "", 0)                                                                    \
    X(INT64_ATOMICS, 12, "", 0)                                                            \
    X(INT16, 22, "", 0)                                                                    \
    X(INT8, 39, "", 0)                                                                     \
    X(GROUP, 61, "", 0)                                                                    \
    X(GROUP_VOTE, 62, "", 0)                                                               \
    X(GROUP_ARITHMETIC, 63, "", 0)                                                         \
    X(GROUP_BALLOT, 64, "", 0)                                                             \
    X(GROUP_SHUFFLE, 65, "", 0)                                                            \
    X(GROUP_SHUFFLE_RELATIVE, 66, "", 0)                                                   \
    X(GROUP_CLUSTERED, 67, "", 0)                                                          \
    X(GROUP_QUAD, 68, "", 0)                                                               \
    X(BUFFER_16, 4433, "SPV_KHR_16bit_storage", 0x00010300)                                \
    X(UNIFORM_16, 4434, "SPV_KHR_16bit_storage", 0x00010300)                               \
    X(PUSH_16, 4435, "SPV_KHR_16bit_storage", 0x00010300)                                  \
    X(BUFFER_8, 4448, "SPV_KHR_8bit_storage", 0x00010500)                                  \
    X(UNIFORM_8, 4449, "SPV_KHR_8bit_storage", 0x00010500)                                 \
    X(PUSH_8, 4450, "SPV_KHR_8bit_storage", 0x00010500)                                    \
    X(BFLOAT16, 5116, "SPV_KHR_bfloat16", 0x00020000)                                      \
    X(BFLOAT16_DOT, 5117, "SPV_KHR_bfloat16", 0x00020000)                                  \
    X(BFLOAT16_MATRIX, 5118, "SPV_KHR_bfloat16", 0x00020000)                               \
    X(VULKAN_MODEL, 5345, "SPV_KHR_vulkan_memory_model", 0x00010500)                       \
    X(VULKAN_DEVICE_SCOPE, 5346, "SPV_KHR_vulkan_memory_model", 0x00010500)                \
    X(PHYSICAL, 5347, "SPV_KHR_physical_storage_buffer", 0x00010500)                       \
    X(MATRIX_REDUCTIONS, 5430, "SPV_NV_cooperative_matrix2", 0x00020000)                   \
    X(MATRIX_CONVERSIONS, 5431, "SPV_NV_cooperative_matrix2", 0x00020000)                  \
    X(MATRIX_PER_ELEMENT, 5432, "SPV_NV_cooperative_matrix2", 0x00020000)                  \
    X(MATRIX_TENSORS, 5433, "SPV_NV_cooperative_matrix2", 0x00020000)                      \
    X(MATRIX_BLOCK_LOADS, 5434, "SPV_NV_cooperative_matrix2", 0x00020000)                  \
    X(TENSOR_ADDRESSING, 5439, "SPV_NV_tensor_addressing", 0x00020000)                     \
    X(ATOMIC_MINMAX_32, 5612, "SPV_EXT_shader_atomic_float_min_max", 0x00020000)           \
    X(ATOMIC_MINMAX_64, 5613, "SPV_EXT_shader_atomic_float_min_max", 0x00020000)           \
    X(ATOMIC_MINMAX_16, 5616, "SPV_EXT_shader_atomic_float_min_max", 0x00020000)           \
    X(DOT_ALL, 6016, "SPV_KHR_integer_dot_product", 0x00010600)                            \
    X(DOT_4X8, 6017, "SPV_KHR_integer_dot_product", 0x00010600)                            \
    X(DOT_PACKED, 6018, "SPV_KHR_integer_dot_product", 0x00010600)                         \
    X(DOT, 6019, "SPV_KHR_integer_dot_product", 0x00010600)                                \
    X(MATRIX, 6022, "SPV_KHR_cooperative_matrix", 0x00020000)                              \
    X(ATOMIC_ADD_32, 6033, "SPV_EXT_shader_atomic_float_add", 0x00020000)                  \
    X(ATOMIC_ADD_64, 6034, "SPV_EXT_shader_atomic_float_add", 0x00020000)                  \
    X(ATOMIC_ADD_16, 6095, "SPV_EXT_shader_atomic_float16_add", 0x00020000)

#define NEED_INDEX(name, capability, extension, version) NEED_INDEX_##name,
enum need_index { NEEDS(NEED_INDEX) NUM_NEEDS };
#undef NEED_INDEX
#define NEED(name) ((uint64_t)1 << NEED_INDEX_##name)

// clang-format on

_Static_assert(NUM_NEEDS <= 64, "they are a set of bits");

// Declares the capabilities and extensions of SPIR-V.
void needs_declare(struct translator *t, uint64_t needs);

// Reads the #extension lines.
void extensions_read(struct translator *t, const struct preprocessed *source);
// GLSL's name of the first extension of a set.
const char *extension_text(uint64_t extensions);
// Fails where none of the set is on: "WHAT needs #extension ...".
void extension_check(struct translator *t, uint64_t any_of, const struct place *at,
                     const char *what);

#endif // KERNELS_COMPILER_NEEDS_H
