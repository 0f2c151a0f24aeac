// SPDX-License-Identifier: MIT
// The extensions of GLSL that the compiler knows, as a table.
#ifndef KERNELS_COMPILER_EXTENSION_H
#define KERNELS_COMPILER_EXTENSION_H

#include <stdint.h>

// clang-format off

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

#define EXTENSION_INDEX(name, text, with) EXTENSION_INDEX_##name,
enum extension_index { EXTENSIONS(EXTENSION_INDEX) NUM_EXTENSIONS };
#undef EXTENSION_INDEX
#define EXTENSION_BIT(name) ((uint64_t)1 << EXTENSION_INDEX_##name)

// clang-format on

_Static_assert(NUM_EXTENSIONS <= 64, "they are a set of bits");

#endif // KERNELS_COMPILER_EXTENSION_H
