// SPDX-License-Identifier: MIT
// The extensions of GLSL that the compiler knows: each is a macro as well. docs/glsl.md
// says what they bring; the words of an extension are refused where it is off.
#include "preprocess.h"

#include <string.h>

static const char *const extensions[] = {
    "GL_ARB_compute_shader",
    "GL_ARB_enhanced_layouts",
    "GL_ARB_gpu_shader_fp64",
    "GL_ARB_gpu_shader_int64",
    "GL_ARB_separate_shader_objects",
    "GL_ARB_shader_storage_buffer_object",
    "GL_ARB_shading_language_420pack",
    "GL_EXT_bfloat16",
    "GL_EXT_buffer_reference",
    "GL_EXT_buffer_reference2",
    "GL_EXT_buffer_reference_uvec2",
    "GL_EXT_control_flow_attributes",
    "GL_EXT_integer_dot_product",
    "GL_EXT_null_initializer",
    "GL_EXT_scalar_block_layout",
    "GL_EXT_shader_16bit_storage",
    "GL_EXT_shader_8bit_storage",
    "GL_EXT_shader_atomic_float",
    "GL_EXT_shader_atomic_float2",
    "GL_EXT_shader_atomic_int64",
    "GL_EXT_shader_explicit_arithmetic_types",
    "GL_EXT_shader_explicit_arithmetic_types_float16",
    "GL_EXT_shader_explicit_arithmetic_types_float32",
    "GL_EXT_shader_explicit_arithmetic_types_float64",
    "GL_EXT_shader_explicit_arithmetic_types_int16",
    "GL_EXT_shader_explicit_arithmetic_types_int32",
    "GL_EXT_shader_explicit_arithmetic_types_int64",
    "GL_EXT_shader_explicit_arithmetic_types_int8",
    "GL_EXT_shader_subgroup_extended_types_float16",
    "GL_EXT_shader_subgroup_extended_types_int16",
    "GL_EXT_shader_subgroup_extended_types_int64",
    "GL_EXT_shader_subgroup_extended_types_int8",
    "GL_EXT_subgroup_uniform_control_flow",
    "GL_GOOGLE_cpp_style_line_directive",
    "GL_GOOGLE_include_directive",
    "GL_KHR_cooperative_matrix",
    "GL_KHR_memory_scope_semantics",
    "GL_KHR_shader_subgroup_arithmetic",
    "GL_KHR_shader_subgroup_ballot",
    "GL_KHR_shader_subgroup_basic",
    "GL_KHR_shader_subgroup_clustered",
    "GL_KHR_shader_subgroup_quad",
    "GL_KHR_shader_subgroup_shuffle",
    "GL_KHR_shader_subgroup_shuffle_relative",
    "GL_KHR_shader_subgroup_vote",
    "GL_NV_cooperative_matrix2",
    NULL,
};

const char *const *glsl_extensions(void)
{
    return extensions;
}

bool preprocess_extension(const char *name)
{
    for (const char *const *known = extensions; *known; known++)
        if (strcmp(*known, name) == 0)
            return true;
    return false;
}
