// SPDX-License-Identifier: MIT
// The records of all families: the backend's own kernels. Each Vulkan plugin has them with
// its own modules: define OWN_FAMILY, OWN_MODULES (a table, and by NUM_MODULES its length)
// and OWN_UNPACK (tn_vulkan_kernel.unpack), include this header once, and use
// OWN_KERNELS_OPS.
#ifndef KERNELS_VULKAN_RECORDS_H
#define KERNELS_VULKAN_RECORDS_H

#include "attention/records.h"
#include "conv/records.h"
#include "index/records.h"
#include "matmul/records.h"
#include "move/records.h"
#include "quant/records.h"
#include "reduce/records.h"
#include "rows/records.h"
#include "sort/records.h"

// X(identifier, primitive, plan, kind, rules, further fields)
#define OWN_KERNELS(X)                                                                     \
    ATTENTION_KERNELS(X)                                                                   \
    CONV_KERNELS(X)                                                                        \
    INDEX_KERNELS(X)                                                                       \
    MATMUL_KERNELS(X)                                                                      \
    MOVE_KERNELS(X)                                                                        \
    QUANT_KERNELS(X)                                                                       \
    REDUCE_KERNELS(X)                                                                      \
    ROWS_KERNELS(X)                                                                        \
    SORT_KERNELS(X)

#define OWN_RECORD(identifier, id, plan_function, kind_, rules, ...)                       \
    static const struct own_kernel identifier##_payload = {                                \
        .face = {.struct_size = sizeof(tn_vulkan_kernel),                                  \
                 .modules = OWN_MODULES,                                                   \
                 .num_modules = NUM_MODULES,                                               \
                 .module_size = sizeof(tn_vulkan_module),                                  \
                 .plan = plan_function,                                                    \
                 .unpack = OWN_UNPACK},                                                    \
        .kind = kind_};                                                                    \
    static const tn_kernel identifier##_kernel = {.struct_size = sizeof(tn_kernel),        \
                                                  .primitive = id,                         \
                                                  .family = OWN_FAMILY,                    \
                                                  .name = "vulkan",                        \
                                                  .priority = 500,                         \
                                                  TN_OPERANDS(rules),                      \
                                                  .payload = &identifier##_payload,        \
                                                  __VA_ARGS__};
OWN_KERNELS(OWN_RECORD)
TN_REDUCTIONS(REDUCTION_RECORD)
#undef OWN_RECORD

static const tn_kernel *const own_kernels[] = {
#define ENTRY(identifier, ...) &identifier##_kernel,
    OWN_KERNELS(ENTRY) TN_REDUCTIONS(ENTRY)
#undef ENTRY
};

#define OWN_KERNELS_OPS                                                                    \
    {                                                                                      \
        .struct_size = sizeof(tn_ops), .kernels = own_kernels,                             \
        .num_kernels = sizeof(own_kernels) / sizeof(own_kernels[0])                        \
    }

#endif // KERNELS_VULKAN_RECORDS_H
