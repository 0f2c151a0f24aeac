// SPDX-License-Identifier: MIT
// Reductions and running results: plans and records.
#ifndef KERNELS_VULKAN_REDUCE_RECORDS_H
#define KERNELS_VULKAN_REDUCE_RECORDS_H

#include <tenon/ops/base_attrs.h>
#include "../rules.h"

// plan_reduce.c
int32_t vk_logsumexp_accepts(const tn_kernel_query *query);
tn_status vk_plan_reduce(const tn_vulkan_plan *plan);
uint64_t vk_reduce_scratch(const tn_kernel_query *query);

// plan_cumulative.c
tn_status vk_plan_cumulative(const tn_vulkan_plan *plan);
uint64_t vk_cumulative_scratch(const tn_kernel_query *query);

// With TN_OPERAND_FUSES: inputs of which each element is read about once, and outputs that
// are written by the kernel's last launch, once.
static const tn_operand_rule passing_rules[] = {{0, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
// Reductions of complex numbers are those that need no order.
#define COMPLEX_sum TN_COMPLEX_DTYPES
#define COMPLEX_prod TN_COMPLEX_DTYPES
#define COMPLEX_mean TN_COMPLEX_DTYPES
#define COMPLEX_max 0
#define COMPLEX_min 0
#define COMPLEX_logsumexp 0
#define ACCEPTS_sum NULL
#define ACCEPTS_prod NULL
#define ACCEPTS_mean NULL
#define ACCEPTS_max NULL
#define ACCEPTS_min NULL
#define ACCEPTS_logsumexp vk_logsumexp_accepts
#define REDUCTION_RULES(name, dtypes)                                                      \
    static const tn_operand_rule name##_rules[] = {                                        \
        {(TN_##dtypes##_DTYPES & TN_FIRST_DTYPES) | COMPLEX_##name, TN_NEEDS_ANY,          \
         TN_OPERAND_FUSES}};
TN_REDUCTIONS(REDUCTION_RULES)
#undef REDUCTION_RULES

// One of TN_REDUCTIONS, by OWN_RECORD of ../records.h.
#define REDUCTION_RECORD(name, dtypes)                                                     \
    OWN_RECORD(name, "base." #name "/1", vk_plan_reduce, KERNEL_REDUCTION, name##_rules,   \
               .accepts = ACCEPTS_##name, .scratch_size = vk_reduce_scratch)

// As OWN_KERNELS of ../records.h.
#define REDUCE_KERNELS(X)                                                                  \
    X(argmax, "base.argmax/1", vk_plan_reduce, KERNEL_REDUCTION, passing_rules,            \
      .scratch_size = vk_reduce_scratch)                                                   \
    X(cumsum, "base.cumsum/1", vk_plan_cumulative, KERNEL_OTHER, contiguous_rules,         \
      .scratch_size = vk_cumulative_scratch)                                               \
    X(cumprod, "base.cumprod/1", vk_plan_cumulative, KERNEL_OTHER, contiguous_rules,       \
      .scratch_size = vk_cumulative_scratch)                                               \
    X(cummax, "base.cummax/1", vk_plan_cumulative, KERNEL_OTHER, contiguous_rules,         \
      .scratch_size = vk_cumulative_scratch)                                               \
    X(cummin, "base.cummin/1", vk_plan_cumulative, KERNEL_OTHER, contiguous_rules,         \
      .scratch_size = vk_cumulative_scratch)

#endif // KERNELS_VULKAN_REDUCE_RECORDS_H
