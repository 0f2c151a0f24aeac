// SPDX-License-Identifier: MIT
// Losses of rows: plans and records.
#ifndef KERNELS_VULKAN_ROWS_RECORDS_H
#define KERNELS_VULKAN_ROWS_RECORDS_H

#include "../rules.h"

int32_t vk_cross_entropy_accepts(const tn_kernel_query *query);
tn_status vk_plan_cross_entropy(const tn_vulkan_plan *plan);

static const tn_operand_rule loss_rules[] = {{TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
                                             {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
                                             {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS}};

// As OWN_KERNELS of ../records.h.
#define ROWS_KERNELS(X)                                                                    \
    X(cross_entropy, "nn.cross_entropy/1", vk_plan_cross_entropy, KERNEL_OTHER,            \
      loss_rules, .accepts = vk_cross_entropy_accepts)

#endif // KERNELS_VULKAN_ROWS_RECORDS_H
