// SPDX-License-Identifier: MIT
// The records of the backend's own kernels. Each Vulkan plugin has them with its own
// modules: define OWN_FAMILY, OWN_MODULES (a table, and by NUM_MODULES its length) and
// OWN_UNPACK (tn_vulkan_kernel.unpack), include this header once, and use OWN_KERNELS_OPS.
//
// What is scattered passes through no program: an H200 took 0.73 ms instead of 0.31 for
// 200,000 messages of 64, since the program stands in branches that few lanes take.
#ifndef VULKAN_DISPATCH_OWN_KERNELS_H
#define VULKAN_DISPATCH_OWN_KERNELS_H

#include "kernels.h"

// What is only moved, by its size, may be of any dtype.
static const tn_operand_rule moved_rules[] = {{TN_ALL_DTYPES, TN_NEEDS_ANY}};
// With TN_OPERAND_FUSES: inputs of which each element is read about once, and outputs that
// are written by the kernel's last launch, once.
static const tn_operand_rule passing_rules[] = {{0, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
static const tn_operand_rule joined_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
// The third is the bias, or the output where there is none.
static const tn_operand_rule conv_rules[] = {
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
static const tn_operand_rule contiguous_rules[] = {{0, TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule matmul_rules[] = {
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_ANY},
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_ANY},
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
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
static const tn_operand_rule float_rules[] = {{TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS}};
static const tn_operand_rule take_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
    {TN_ALL_DTYPES, TN_NEEDS_CONTIGUOUS, TN_OPERAND_FUSES}};
static const tn_operand_rule dynamic_slice_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_ANY},
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},
    {TN_ALL_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
static const tn_operand_rule dynamic_update_rules[] = {
    {TN_ALL_DTYPES, TN_NEEDS_ANY},
    {TN_ALL_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES},
    {TN_INTEGER_DTYPES, TN_NEEDS_ANY},
    {TN_ALL_DTYPES, TN_NEEDS_ANY}};
static const tn_operand_rule loss_rules[] = {{TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS},
                                             {TN_INTEGER_DTYPES, TN_NEEDS_CONTIGUOUS},
                                             {TN_FLOAT_DTYPES, TN_NEEDS_CONTIGUOUS}};
#define HALF_OR_F32 (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16))
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

// X(identifier, primitive, plan, rules, further fields)
#define OWN_KERNELS(X)                                                                     \
    X(argmax, "base.argmax/1", vk_plan_reduce, passing_rules,                              \
      .scratch_size = vk_reduce_scratch)                                                   \
    X(matmul, "base.matmul/1", vk_plan_matmul, matmul_rules, .accepts = vk_matmul_accepts, \
      .scratch_size = vk_matmul_scratch)                                                   \
    X(take, "base.take/1", vk_plan_take, take_rules, .accepts = NULL)                      \
    X(scatter_add, "base.scatter_add/1", vk_plan_scatter, add_rules,                       \
      .accepts = vk_scatter_add_accepts, .scratch_size = vk_scatter_scratch)               \
    X(scatter_set, "base.scatter_set/1", vk_plan_scatter, put_rules,                       \
      .scratch_size = vk_scatter_scratch)                                                  \
    X(scatter_max, "base.scatter_max/1", vk_plan_scatter, put_rules,                       \
      .scratch_size = vk_scatter_scratch)                                                  \
    X(scatter_min, "base.scatter_min/1", vk_plan_scatter, put_rules,                       \
      .scratch_size = vk_scatter_scratch)                                                  \
    X(cumsum, "base.cumsum/1", vk_plan_cumulative, contiguous_rules,                       \
      .scratch_size = vk_cumulative_scratch)                                               \
    X(cumprod, "base.cumprod/1", vk_plan_cumulative, contiguous_rules,                     \
      .scratch_size = vk_cumulative_scratch)                                               \
    X(cummax, "base.cummax/1", vk_plan_cumulative, contiguous_rules,                       \
      .scratch_size = vk_cumulative_scratch)                                               \
    X(cummin, "base.cummin/1", vk_plan_cumulative, contiguous_rules,                       \
      .scratch_size = vk_cumulative_scratch)                                               \
    X(argsort, "base.argsort/1", vk_plan_argsort, contiguous_rules,                        \
      .scratch_size = vk_argsort_scratch)                                                  \
    X(concatenate, "base.concatenate/1", vk_plan_concatenate, joined_rules,                \
      .accepts = NULL)                                                                     \
    X(slice_update, "base.slice_update/1", vk_plan_slice_update, moved_rules,              \
      .accepts = NULL)                                                                     \
    X(dynamic_slice, "base.dynamic_slice/1", vk_plan_dynamic_slice, dynamic_slice_rules,   \
      .accepts = NULL)                                                                     \
    X(dynamic_slice_update, "base.dynamic_slice_update/1", vk_plan_dynamic_slice_update,   \
      dynamic_update_rules, .accepts = NULL)                                               \
    X(cross_entropy, "nn.cross_entropy/1", vk_plan_cross_entropy, loss_rules,              \
      .accepts = vk_cross_entropy_accepts)                                                 \
    X(attention, "nn.scaled_dot_product_attention/1", vk_plan_attention, attention_rules,  \
      .accepts = vk_attention_accepts, .scratch_size = vk_attention_scratch)               \
    X(cache_update, "quant.cache_update/1", vk_plan_cache_update, cache_update_rules,      \
      .accepts = vk_cache_update_accepts)                                                  \
    X(cached_attention, "quant.cached_attention/1", vk_plan_cached_attention,              \
      cached_attention_rules, .accepts = vk_cached_attention_accepts,                      \
      .scratch_size = vk_cached_attention_scratch)                                         \
    X(attention_grad, "nn.attention_grad/1", vk_plan_attention_grad, attention_grad_rules, \
      .accepts = vk_attention_grad_accepts, .scratch_size = vk_attention_grad_scratch)     \
    X(conv2d, "nn.conv2d/1", vk_plan_conv2d, conv_rules, .accepts = vk_conv_accepts,       \
      .scratch_size = vk_conv2d_scratch)                                                   \
    X(conv2d_input, "nn.conv2d_input/1", vk_plan_conv2d_input, conv_rules,                 \
      .accepts = vk_conv_accepts)                                                          \
    X(conv2d_weight, "nn.conv2d_weight/1", vk_plan_conv2d_weight, conv_rules,              \
      .accepts = vk_conv_accepts, .scratch_size = vk_conv2d_weight_scratch)                \
    X(max_pool2d, "nn.max_pool2d/1", vk_plan_max_pool2d, float_rules, .accepts = NULL)     \
    X(max_pool2d_grad, "nn.max_pool2d_grad/1", vk_plan_max_pool2d, float_rules,            \
      .accepts = NULL)                                                                     \
    X(dequantize, "quant.dequantize/1", vk_plan_dequantize, values_rules,                  \
      .accepts = vk_dequantize_accepts)                                                    \
    X(quantized_pack, "quant.pack/1", vk_plan_quantized_pack, bytes_rules,                 \
      .accepts = vk_quantized_pack_accepts)                                                \
    X(quantized_take, "quant.quantized_take/1", vk_plan_quantized_take,                    \
      quantized_take_rules, .accepts = vk_quantized_take_accepts)                          \
    X(experts_matmul, "quant.experts_matmul/1", vk_plan_experts_matmul,                    \
      experts_matmul_rules, .accepts = vk_experts_matmul_accepts)                          \
    X(normed_matmul, "quant.normed_matmul/1", vk_plan_normed_matmul, normed_matmul_rules,  \
      .accepts = vk_normed_matmul_accepts)                                                 \
    X(quantized_matmul, "quant.quantized_matmul/1", vk_plan_quantized_matmul,              \
      quantized_matmul_rules, .accepts = vk_quantized_matmul_accepts,                      \
      .scratch_size = vk_quantized_matmul_scratch)

#define RECORD(identifier, id, plan_function, rules, ...)                                  \
    static const tn_vulkan_kernel identifier##_payload = {                                 \
        .struct_size = sizeof(tn_vulkan_kernel),                                           \
        .modules = OWN_MODULES,                                                            \
        .num_modules = NUM_MODULES,                                                        \
        .module_size = sizeof(tn_vulkan_module),                                           \
        .plan = plan_function,                                                             \
        .unpack = OWN_UNPACK};                                                             \
    static const tn_kernel identifier##_kernel = {.struct_size = sizeof(tn_kernel),        \
                                                  .primitive = id,                         \
                                                  .family = OWN_FAMILY,                    \
                                                  .name = "vulkan",                        \
                                                  .priority = 500,                         \
                                                  TN_OPERANDS(rules),                      \
                                                  .payload = &identifier##_payload,        \
                                                  __VA_ARGS__};
OWN_KERNELS(RECORD)
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
#define REDUCTION(name, dtypes)                                                            \
    static const tn_operand_rule name##_rules[] = {                                        \
        {(TN_##dtypes##_DTYPES & TN_FIRST_DTYPES) | COMPLEX_##name, TN_NEEDS_ANY,          \
         TN_OPERAND_FUSES}};                                                               \
    RECORD(name, "base." #name "/1", vk_plan_reduce, name##_rules,                         \
           .accepts = ACCEPTS_##name, .scratch_size = vk_reduce_scratch)
TN_REDUCTIONS(REDUCTION)
#undef REDUCTION
#undef RECORD

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

#endif // VULKAN_DISPATCH_OWN_KERNELS_H
