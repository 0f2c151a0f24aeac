// SPDX-License-Identifier: MIT
// Attention, its derivative, and caches of keys and values: plans and records.
#ifndef KERNELS_VULKAN_ATTENTION_RECORDS_H
#define KERNELS_VULKAN_ATTENTION_RECORDS_H

#include "../rules.h"

// plan_attention.c
tn_status vk_plan_attention(const tn_vulkan_plan *plan);
int32_t vk_attention_accepts(const tn_kernel_query *query);
uint64_t vk_attention_scratch(const tn_kernel_query *query);

// plan_cache.c
tn_status vk_plan_cached_attention(const tn_vulkan_plan *plan);
int32_t vk_cached_attention_accepts(const tn_kernel_query *query);
uint64_t vk_cached_attention_scratch(const tn_kernel_query *query);
tn_status vk_plan_cache_update(const tn_vulkan_plan *plan);
int32_t vk_cache_update_accepts(const tn_kernel_query *query);

// plan_attention_grad.c
tn_status vk_plan_attention_grad(const tn_vulkan_plan *plan);
int32_t vk_attention_grad_accepts(const tn_kernel_query *query);
uint64_t vk_attention_grad_scratch(const tn_kernel_query *query);

static const tn_operand_rule attention_rules[] = {
    {HALF_OR_F32, TN_NEEDS_ANY},                         // q
    {HALF_OR_F32, TN_NEEDS_ANY},                         // k
    {HALF_OR_F32, TN_NEEDS_ANY},                         // v
    {HALF_OR_F32 | TN_DTYPE_BIT(TN_BOOL), TN_NEEDS_ANY}, // mask
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},                   // lengths
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
static const tn_operand_rule cached_attention_rules[] = {
    {HALF_OR_F32, TN_NEEDS_ANY},                       // q
    {HALF_OR_F32 | TN_DTYPE_BIT(TN_U8), TN_NEEDS_ANY}, // k
    {HALF_OR_F32 | TN_DTYPE_BIT(TN_U8), TN_NEEDS_ANY}, // v
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},                 // lengths
    {TN_DTYPE_BIT(TN_I32), TN_NEEDS_ANY},              // slots
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
static const tn_operand_rule cache_update_rules[] = {
    {TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_U8),
     TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_ANY, TN_OPERAND_FUSES},
    {TN_DTYPE_BIT(TN_I32), TN_NEEDS_CONTIGUOUS}, // positions
    {TN_DTYPE_BIT(TN_I32), TN_NEEDS_CONTIGUOUS}, // slots
    {TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_U8),
     TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule attention_grad_rules[] = {
    {HALF_OR_F32, TN_NEEDS_ANY},                         // q
    {HALF_OR_F32, TN_NEEDS_ANY},                         // k
    {HALF_OR_F32, TN_NEEDS_ANY},                         // v
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS},                  // out
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS},                  // gradient
    {HALF_OR_F32 | TN_DTYPE_BIT(TN_BOOL), TN_NEEDS_ANY}, // mask
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},                   // lengths
    {HALF_OR_F32, TN_NEEDS_CONTIGUOUS}};

// As OWN_KERNELS of ../records.h.
#define ATTENTION_KERNELS(X)                                                               \
    X(attention, "nn.scaled_dot_product_attention/1", vk_plan_attention, KERNEL_ATTENTION, \
      attention_rules, .accepts = vk_attention_accepts,                                    \
      .scratch_size = vk_attention_scratch)                                                \
    X(attention_grad, "nn.attention_grad/1", vk_plan_attention_grad, KERNEL_OTHER,         \
      attention_grad_rules, .accepts = vk_attention_grad_accepts,                          \
      .scratch_size = vk_attention_grad_scratch)                                           \
    X(cached_attention, "quant.cached_attention/1", vk_plan_cached_attention,              \
      KERNEL_CACHED_ATTENTION, cached_attention_rules,                                     \
      .accepts = vk_cached_attention_accepts, .scratch_size = vk_cached_attention_scratch) \
    X(cache_update, "quant.cache_update/1", vk_plan_cache_update, KERNEL_CACHE_UPDATE,     \
      cache_update_rules, .accepts = vk_cache_update_accepts)

#endif // KERNELS_VULKAN_ATTENTION_RECORDS_H
