// SPDX-License-Identifier: MIT
// Convolutions and pooling: plans and records.
#ifndef KERNELS_VULKAN_CONV_RECORDS_H
#define KERNELS_VULKAN_CONV_RECORDS_H

#include "../rules.h"

// plan_conv.c
int32_t vk_conv_accepts(const tn_kernel_query *query);
tn_status vk_plan_conv2d(const tn_vulkan_plan *plan);
uint64_t vk_conv2d_scratch(const tn_kernel_query *query);
tn_status vk_plan_conv2d_input(const tn_vulkan_plan *plan);
tn_status vk_plan_conv2d_weight(const tn_vulkan_plan *plan);
uint64_t vk_conv2d_weight_scratch(const tn_kernel_query *query);

// plan_pool.c
tn_status vk_plan_max_pool2d(const tn_vulkan_plan *plan);

// The third is the bias, or the output where there is none.
static const tn_operand_rule conv_rules[] = {
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};

// As OWN_KERNELS of ../records.h.
#define CONV_KERNELS(X)                                                                    \
    X(conv2d, "nn.conv2d/1", vk_plan_conv2d, KERNEL_PRODUCT, conv_rules,                   \
      .accepts = vk_conv_accepts, .scratch_size = vk_conv2d_scratch)                       \
    X(conv2d_input, "nn.conv2d_input/1", vk_plan_conv2d_input, KERNEL_PRODUCT, conv_rules, \
      .accepts = vk_conv_accepts)                                                          \
    X(conv2d_weight, "nn.conv2d_weight/1", vk_plan_conv2d_weight, KERNEL_PRODUCT,          \
      conv_rules, .accepts = vk_conv_accepts, .scratch_size = vk_conv2d_weight_scratch)    \
    X(max_pool2d, "nn.max_pool2d/1", vk_plan_max_pool2d, KERNEL_OTHER, float_rules,        \
      .accepts = NULL)                                                                     \
    X(max_pool2d_grad, "nn.max_pool2d_grad/1", vk_plan_max_pool2d, KERNEL_OTHER,           \
      float_rules, .accepts = NULL)

#endif // KERNELS_VULKAN_CONV_RECORDS_H
