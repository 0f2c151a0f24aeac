// SPDX-License-Identifier: MIT
// Sorting: plans and records.
#ifndef KERNELS_VULKAN_SORT_RECORDS_H
#define KERNELS_VULKAN_SORT_RECORDS_H

#include "../rules.h"

tn_status vk_plan_argsort(const tn_vulkan_plan *plan);
uint64_t vk_argsort_scratch(const tn_kernel_query *query);

// As OWN_KERNELS of ../records.h.
#define SORT_KERNELS(X)                                                                    \
    X(argsort, "base.argsort/1", vk_plan_argsort, KERNEL_OTHER, contiguous_rules,          \
      .scratch_size = vk_argsort_scratch)

#endif // KERNELS_VULKAN_SORT_RECORDS_H
