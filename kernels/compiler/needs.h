// SPDX-License-Identifier: MIT
// What a shader needs of the device, and what its #extension lines allow, as tables.
#ifndef KERNELS_COMPILER_NEEDS_H
#define KERNELS_COMPILER_NEEDS_H

#include "ir.h"

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

// X(name, name in GLSL, and what it includes, as bits). Those of CORE_ are part of GLSL 4.50.
#define EXTENSIONS(X)                                                                      \
    X(STORAGE_16, "GL_EXT_shader_16bit_storage", 0)                                        \
    X(STORAGE_8, "GL_EXT_shader_8bit_storage", 0)                                          \
    X(INT8, "GL_EXT_shader_explicit_arithmetic_types_int8", 0)                             \
    X(INT16, "GL_EXT_shader_explicit_arithmetic_types_int16", 0)                           \
    X(INT32, "GL_EXT_shader_explicit_arithmetic_types_int32", 0)                           \
    X(INT64, "GL_EXT_shader_explicit_arithmetic_types_int64", 0)                           \
    X(FLOAT16, "GL_EXT_shader_explicit_arithmetic_types_float16", 0)                       \
    X(FLOAT32, "GL_EXT_shader_explicit_arithmetic_types_float32", 0)                       \
    X(FLOAT64, "GL_EXT_shader_explicit_arithmetic_types_float64", 0)                       \
    X(ARITHMETIC, "GL_EXT_shader_explicit_arithmetic_types",                               \
      EXTENSION_BIT(INT8) | EXTENSION_BIT(INT16) | EXTENSION_BIT(INT32) |                  \
      EXTENSION_BIT(INT64) | EXTENSION_BIT(FLOAT16) | EXTENSION_BIT(FLOAT32) |             \
      EXTENSION_BIT(FLOAT64))                                                              \
    X(ARB_INT64, "GL_ARB_gpu_shader_int64", EXTENSION_BIT(INT64))                          \
    X(CONTROL_FLOW, "GL_EXT_control_flow_attributes", 0)                                   \
    X(REFERENCE, "GL_EXT_buffer_reference", 0)                                             \
    X(REFERENCE_2, "GL_EXT_buffer_reference2", EXTENSION_BIT(REFERENCE))                   \
    X(SCALAR_LAYOUT, "GL_EXT_scalar_block_layout", 0)                                      \
    X(ATOMIC_FLOAT, "GL_EXT_shader_atomic_float", 0)                                       \
    X(ATOMIC_FLOAT_2, "GL_EXT_shader_atomic_float2", 0)                                    \
    X(ATOMIC_INT64, "GL_EXT_shader_atomic_int64", 0)                                       \
    X(GROUP_BASIC, "GL_KHR_shader_subgroup_basic", 0)                                      \
    X(GROUP_VOTE, "GL_KHR_shader_subgroup_vote", EXTENSION_BIT(GROUP_BASIC))               \
    X(GROUP_ARITHMETIC, "GL_KHR_shader_subgroup_arithmetic", EXTENSION_BIT(GROUP_BASIC))   \
    X(GROUP_BALLOT, "GL_KHR_shader_subgroup_ballot", EXTENSION_BIT(GROUP_BASIC))           \
    X(GROUP_SHUFFLE, "GL_KHR_shader_subgroup_shuffle", EXTENSION_BIT(GROUP_BASIC))         \
    X(GROUP_SHUFFLE_RELATIVE, "GL_KHR_shader_subgroup_shuffle_relative",                   \
      EXTENSION_BIT(GROUP_BASIC))                                                          \
    X(GROUP_CLUSTERED, "GL_KHR_shader_subgroup_clustered", EXTENSION_BIT(GROUP_BASIC))     \
    X(GROUP_QUAD, "GL_KHR_shader_subgroup_quad", EXTENSION_BIT(GROUP_BASIC))               \
    X(GROUP_INT8, "GL_EXT_shader_subgroup_extended_types_int8", 0)                         \
    X(GROUP_INT16, "GL_EXT_shader_subgroup_extended_types_int16", 0)                       \
    X(GROUP_INT64, "GL_EXT_shader_subgroup_extended_types_int64", 0)                       \
    X(GROUP_FLOAT16, "GL_EXT_shader_subgroup_extended_types_float16", 0)                   \
    X(MEMORY_SCOPE, "GL_KHR_memory_scope_semantics", 0)                                    \
    X(MATRIX, "GL_KHR_cooperative_matrix", EXTENSION_BIT(MEMORY_SCOPE))                    \
    X(MATRIX_2, "GL_NV_cooperative_matrix2",                                               \
      EXTENSION_BIT(MATRIX) | EXTENSION_BIT(MEMORY_SCOPE))                                 \
    X(BFLOAT16, "GL_EXT_bfloat16", 0)                                                      \
    X(DOT, "GL_EXT_integer_dot_product", 0)                                                \
    X(INCLUDE, "GL_GOOGLE_include_directive", 0)                                           \
    X(NULL_INITIALIZER, "GL_EXT_null_initializer", 0)                                      \
    X(LINE, "GL_GOOGLE_cpp_style_line_directive", 0)                                       \
    X(CORE_420, "GL_ARB_shading_language_420pack", 0)                                      \
    X(CORE_COMPUTE, "GL_ARB_compute_shader", 0)                                            \
    X(CORE_BUFFERS, "GL_ARB_shader_storage_buffer_object", 0)                              \
    X(CORE_LAYOUTS, "GL_ARB_enhanced_layouts", 0)                                          \
    X(CORE_SEPARATE, "GL_ARB_separate_shader_objects", 0)                                  \
    X(CORE_FLOAT64, "GL_ARB_gpu_shader_fp64", 0)

#define NEED_INDEX(name, capability, extension, version) NEED_INDEX_##name,
enum need_index { NEEDS(NEED_INDEX) NUM_NEEDS };
#undef NEED_INDEX
#define NEED(name) ((uint64_t)1 << NEED_INDEX_##name)

#define EXTENSION_INDEX(name, text, with) EXTENSION_INDEX_##name,
enum extension_index { EXTENSIONS(EXTENSION_INDEX) NUM_EXTENSIONS };
#undef EXTENSION_INDEX
#define EXTENSION_BIT(name) ((uint64_t)1 << EXTENSION_INDEX_##name)

// clang-format on

_Static_assert(NUM_NEEDS <= 64 && NUM_EXTENSIONS <= 64, "they are sets of bits");

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
