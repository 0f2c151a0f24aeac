// SPDX-License-Identifier: MIT
// The records of all families, for a plugin's tn_ops: those that their variants.txt name
// (OWN_KERNELS), and a reduction for each row of TN_REDUCTIONS.
#ifndef KERNELS_VULKAN_RECORDS_H
#define KERNELS_VULKAN_RECORDS_H

#include <tenon/kernel.h>
#include <tenon/ops/base_attrs.h>
#include "modules.h"

#define DECLARE(identifier, ...) extern const tn_kernel own_##identifier;
OWN_KERNELS(DECLARE)
TN_REDUCTIONS(DECLARE)
#undef DECLARE

static const tn_kernel *const own_kernels[] = {
#define ENTRY(identifier, ...) &own_##identifier,
    OWN_KERNELS(ENTRY) TN_REDUCTIONS(ENTRY)
#undef ENTRY
};

#define OWN_KERNELS_OPS                                                                    \
    {                                                                                      \
        .struct_size = sizeof(tn_ops), .kernels = own_kernels,                             \
        .num_kernels = sizeof(own_kernels) / sizeof(own_kernels[0])                        \
    }

#endif // KERNELS_VULKAN_RECORDS_H
