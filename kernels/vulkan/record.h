// SPDX-License-Identifier: MIT
// The record of a kernel, which stands behind its plan, and rules of operands that several
// records have. Each Vulkan plugin links all plans with modules of its own.
#ifndef KERNELS_VULKAN_RECORD_H
#define KERNELS_VULKAN_RECORD_H

#include "launch.h"
#include "modules.h" // made by pack/embed.py
#include "pack/embedded.h"

#define HALF_OR_F32 (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16))
static const tn_operand_rule contiguous_rules[] = {{0, TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule float_rules[] = {{TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS}};

extern const char own_family[]; // the plugin's kernel family

// Defines own_<identifier>, the record of primitive `id`: the plan, what the backend does
// with such steps besides (enum kernel_kind), rules of its operands, and further fields
// of a tn_kernel. The family's variants.txt names the identifier.
#define OWN_KERNEL(identifier, id, ...)                                                    \
    OWN_KERNEL_NAMED("vulkan", identifier, id, __VA_ARGS__)

// OWN_KERNEL for a primitive that has another record.
#define OWN_KERNEL_NAMED(name_, identifier, id, plan_function, kind_, rules, ...)          \
    static const struct own_kernel identifier##_payload = {                                \
        .face = {.struct_size = sizeof(tn_vulkan_kernel),                                  \
                 .modules = own_modules,                                                   \
                 .num_modules = NUM_MODULES,                                               \
                 .module_size = sizeof(tn_vulkan_module),                                  \
                 .plan = plan_function,                                                    \
                 .unpack = own_unpack},                                                    \
        .kind = kind_};                                                                    \
    extern const tn_kernel own_##identifier;                                               \
    const tn_kernel own_##identifier = {.struct_size = sizeof(tn_kernel),                  \
                                        .primitive = id,                                   \
                                        .family = own_family,                              \
                                        .name = name_,                                     \
                                        .priority = 500,                                   \
                                        TN_OPERANDS(rules),                                \
                                        .payload = &identifier##_payload,                  \
                                        __VA_ARGS__}

#endif // KERNELS_VULKAN_RECORD_H
