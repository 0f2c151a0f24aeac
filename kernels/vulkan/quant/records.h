// SPDX-License-Identifier: MIT
// Quantised weights: plans and records.
#ifndef KERNELS_VULKAN_QUANT_RECORDS_H
#define KERNELS_VULKAN_QUANT_RECORDS_H

#include "../rules.h"

// plan_quant.c
int32_t vk_dequantize_accepts(const tn_kernel_query *query);
int32_t vk_quantized_take_accepts(const tn_kernel_query *query);
int32_t vk_quantized_matmul_accepts(const tn_kernel_query *query);
uint64_t vk_quantized_matmul_scratch(const tn_kernel_query *query);
int32_t vk_quantized_pack_accepts(const tn_kernel_query *query);
tn_status vk_plan_quantized_pack(const tn_vulkan_plan *plan);
tn_status vk_plan_dequantize(const tn_vulkan_plan *plan);
tn_status vk_plan_quantized_take(const tn_vulkan_plan *plan);
tn_status vk_plan_quantized_matmul(const tn_vulkan_plan *plan);
int32_t vk_normed_matmul_accepts(const tn_kernel_query *query);
tn_status vk_plan_normed_matmul(const tn_vulkan_plan *plan);

// plan_experts.c
int32_t vk_experts_matmul_accepts(const tn_kernel_query *query);
tn_status vk_plan_experts_matmul(const tn_vulkan_plan *plan);

// Of quantised weights; results are rows in memory.
static const tn_operand_rule values_rules[] = {
    {TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS},
    {HALF_OR_F32 | TN_DTYPE_BIT(TN_F64), TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule bytes_rules[] = {{TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS},
                                              {TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule quantized_take_rules[] = {
    {TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule experts_matmul_rules[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_U8) | HALF_OR_F32, TN_NEEDS_CONTIGUOUS},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule quantized_matmul_rules[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES},
    {TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
static const tn_operand_rule normed_matmul_rules[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};

// As OWN_KERNELS of ../records.h.
#define QUANT_KERNELS(X)                                                                   \
    X(dequantize, "quant.dequantize/1", vk_plan_dequantize, KERNEL_OTHER, values_rules,    \
      .accepts = vk_dequantize_accepts)                                                    \
    X(quantized_pack, "quant.pack/1", vk_plan_quantized_pack, KERNEL_OTHER, bytes_rules,   \
      .accepts = vk_quantized_pack_accepts)                                                \
    X(quantized_take, "quant.quantized_take/1", vk_plan_quantized_take, KERNEL_OTHER,      \
      quantized_take_rules, .accepts = vk_quantized_take_accepts)                          \
    X(quantized_matmul, "quant.quantized_matmul/1", vk_plan_quantized_matmul,              \
      KERNEL_PRODUCT, quantized_matmul_rules, .accepts = vk_quantized_matmul_accepts,      \
      .scratch_size = vk_quantized_matmul_scratch)                                         \
    X(normed_matmul, "quant.normed_matmul/1", vk_plan_normed_matmul, KERNEL_PRODUCT,       \
      normed_matmul_rules, .accepts = vk_normed_matmul_accepts)                            \
    X(experts_matmul, "quant.experts_matmul/1", vk_plan_experts_matmul, KERNEL_OTHER,      \
      experts_matmul_rules, .accepts = vk_experts_matmul_accepts)

#endif // KERNELS_VULKAN_QUANT_RECORDS_H
