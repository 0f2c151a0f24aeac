// SPDX-License-Identifier: MIT
// Products of matrices: plans and records.
#ifndef KERNELS_VULKAN_MATMUL_RECORDS_H
#define KERNELS_VULKAN_MATMUL_RECORDS_H

#include "../launch.h"

tn_status vk_plan_matmul(const tn_vulkan_plan *plan);
int32_t vk_matmul_accepts(const tn_kernel_query *query);
uint64_t vk_matmul_scratch(const tn_kernel_query *query); // plan_matmul_split.c

static const tn_operand_rule matmul_rules[] = {
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_ANY},
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_ANY},
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES}};

// As OWN_KERNELS of ../records.h.
#define MATMUL_KERNELS(X)                                                                  \
    X(matmul, "base.matmul/1", vk_plan_matmul, KERNEL_MATMUL, matmul_rules,                \
      .accepts = vk_matmul_accepts, .scratch_size = vk_matmul_scratch)

#endif // KERNELS_VULKAN_MATMUL_RECORDS_H
