// SPDX-License-Identifier: MIT
// One shader, brought twice: as GLSL for backends that compile at run time, and as SPIR-V
// for those that do not. The build makes both arrays from axpby.comp.
#include "axpby.h"

#include <string.h>

#include "axpby_glsl.h"  // static const char axpby_glsl[]
#include "axpby_spirv.h" // static const uint32_t axpby_spirv[]

// The shader's push constants, in the order of its block.
static const tn_push_field push[] = {
    {.kind = TN_PUSH_COUNT},
    {.kind = TN_PUSH_OFFSET, .index = 0}, // operands count inputs first: x is 0, y is 1,
    {.kind = TN_PUSH_OFFSET, .index = 1},
    {.kind = TN_PUSH_OFFSET, .index = 2},   // and the output is 2
    {.kind = TN_PUSH_ATTR_F32, .index = 0}, // alpha
    {.kind = TN_PUSH_ATTR_F32, .index = 1}, // beta
};

// The shader reads x and y side by side, without strides, so it refuses broadcast inputs:
// they run as the expression. (An input that has the right extents but gaps is copied
// first: that is what TN_NEEDS_CONTIGUOUS says.)
static int32_t accepts(const tn_kernel_query *query)
{
    const tn_layout *out = &query->outputs[0];
    for (uint32_t i = 0; i < query->num_inputs; i++) {
        const tn_layout *in = &query->inputs[i];
        if (in->rank != out->rank ||
            memcmp(in->extent, out->extent, sizeof(in->extent)) != 0)
            return 0;
    }
    return 1;
}

#define AXPBY_VULKAN(family_, name_, code_, size_)                                         \
    {                                                                                      \
        .struct_size = sizeof(tn_kernel), .flags = TN_KERNEL_SAME_DTYPE,                   \
        .primitive = "acme.axpby/1", .family = family_, .name = name_, .priority = 500,    \
        .num_operands = 1,                                                                 \
        .operands = &(const tn_operand_rule){.dtypes = TN_DTYPE_BIT(TN_F32),               \
                                             .needs = TN_NEEDS_CONTIGUOUS},                \
        .accepts = accepts, .payload = &(const tn_vulkan_kernel)                           \
        {                                                                                  \
            .struct_size = sizeof(tn_vulkan_kernel), .code = code_, .code_size = size_,    \
            .push = push, .num_push = sizeof(push) / sizeof(push[0]),                      \
            .elements_per_group = 256,                                                     \
        }                                                                                  \
    }

const tn_kernel axpby_vulkan_glsl = AXPBY_VULKAN(TN_FAMILY_VULKAN_GLSL, "glsl", axpby_glsl,
                                                 sizeof(axpby_glsl) - 1); // without its NUL
const tn_kernel axpby_vulkan_spirv =
    AXPBY_VULKAN(TN_FAMILY_VULKAN_SPIRV, "spirv", axpby_spirv, sizeof(axpby_spirv));
