// SPDX-License-Identifier: MIT
// Elements at indices: gathered, scattered: plans and records.
//
// What is scattered passes through no program: an H200 took 0.73 ms instead of 0.31 for
// 200,000 messages of 64, since the program stands in branches that few lanes take.
#ifndef KERNELS_VULKAN_INDEX_RECORDS_H
#define KERNELS_VULKAN_INDEX_RECORDS_H

#include "../launch.h"

tn_status vk_plan_take(const tn_vulkan_plan *plan);
tn_status vk_plan_scatter(const tn_vulkan_plan *plan);
int32_t vk_scatter_add_accepts(const tn_kernel_query *query);
uint64_t vk_scatter_scratch(const tn_kernel_query *query);

static const tn_operand_rule add_rules[] = {
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_CONTIGUOUS}};
// Of scatters that replace or compare.
static const tn_operand_rule put_rules[] = {{0, TN_NEEDS_CONTIGUOUS},
                                            {0, TN_NEEDS_CONTIGUOUS},
                                            {0, TN_NEEDS_CONTIGUOUS},
                                            {0, TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule take_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_ALL_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};

// As OWN_KERNELS of ../records.h.
#define INDEX_KERNELS(X)                                                                   \
    X(take, "base.take/1", vk_plan_take, KERNEL_OTHER, take_rules, .accepts = NULL)        \
    X(scatter_add, "base.scatter_add/1", vk_plan_scatter, KERNEL_OTHER, add_rules,         \
      .accepts = vk_scatter_add_accepts, .scratch_size = vk_scatter_scratch)               \
    X(scatter_set, "base.scatter_set/1", vk_plan_scatter, KERNEL_OTHER, put_rules,         \
      .scratch_size = vk_scatter_scratch)                                                  \
    X(scatter_max, "base.scatter_max/1", vk_plan_scatter, KERNEL_OTHER, put_rules,         \
      .scratch_size = vk_scatter_scratch)                                                  \
    X(scatter_min, "base.scatter_min/1", vk_plan_scatter, KERNEL_OTHER, put_rules,         \
      .scratch_size = vk_scatter_scratch)

#endif // KERNELS_VULKAN_INDEX_RECORDS_H
