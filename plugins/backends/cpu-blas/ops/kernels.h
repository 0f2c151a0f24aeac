// SPDX-License-Identifier: MIT
// The plugin's cpu.c/1 kernels, and helpers that they share.
//
// Threads. Several launches may run at once: each has its state on the stack and in its
// scratch memory, and may use call->parallel_for.
#ifndef CPU_BLAS_KERNELS_H
#define CPU_BLAS_KERNELS_H

#include <stdbool.h>
#include <tenon/checked.h>
#include <tenon/kernel.h>
#include <tenon/ops/base_attrs.h>
#include "cpu/cpu.h"
#include "cpu/quant/quant.h"

// The variant for the processor features that the call names.
static inline const struct cpu_kernels *kernel_variant(const tn_cpu_call *call)
{
    return cpu_pick((call->cpu_features & TN_CPU_AVX2 ? CPU_HAS_AVX2 : 0) |
                    (call->cpu_features & TN_CPU_AVX512 ? CPU_HAS_AVX512 : 0));
}

static inline const struct cpu_quant_kernels *quant_variant(const tn_cpu_call *call)
{
    return cpu_quant_pick((call->cpu_features & TN_CPU_AVX2 ? CPU_HAS_AVX2 : 0) |
                          (call->cpu_features & TN_CPU_AVX512 ? CPU_HAS_AVX512 : 0) |
                          (call->cpu_features & TN_CPU_VNNI ? CPU_HAS_VNNI : 0) |
                          (call->cpu_features & TN_CPU_AMX ? CPU_HAS_AMX : 0));
}

static inline const struct cpu_panels_variant *panels_variant(const tn_cpu_call *call)
{
    return cpu_panels_pick((call->cpu_features & TN_CPU_AVX2 ? CPU_HAS_AVX2 : 0) |
                           (call->cpu_features & TN_CPU_AVX512 ? CPU_HAS_AVX512 : 0) |
                           (call->cpu_features & TN_CPU_AMX ? CPU_HAS_AMX : 0));
}

static inline const struct cpu_tiles_amx *tiles_amx_variant(const tn_cpu_call *call)
{
    return cpu_tiles_amx_pick(call->cpu_features & TN_CPU_AMX ? CPU_HAS_AMX : 0);
}

// Products with halves on tiles; NULL: the processor has none.
static inline const struct cpu_halves_kernels *halves_variant(const tn_cpu_call *call)
{
    return call->cpu_features & TN_CPU_AMX ? cpu_halves_tiles() : NULL;
}

// The address of an operand's first element.
static inline void *first_element(const tn_tensor *tensor)
{
    return (char *)tensor->data +
           tensor->layout.offset * (int64_t)cpu_dtype_size(tensor->layout.dtype);
}

static inline int64_t count_elements(const tn_layout *layout)
{
    int64_t count = 1;
    for (int32_t i = 0; i < layout->rank; i++)
        count *= layout->extent[i];
    return count;
}

// The kernels and the files that define them, which meson.build reads here:
// X(identifier, "file") for <identifier>_kernel.
#define CPU_KERNELS(X)                                                                     \
    CPU_REDUCTIONS(X)                                                                      \
    X(mean, "ops/kernels_reduce.c")                                                        \
    X(argmax, "ops/kernels_argmax.c")                                                      \
    X(argmin, "ops/kernels_argmax.c")                                                      \
    X(layer_norm_grad, "ops/kernels_norm.c")                                               \
    X(group_norm, "ops/kernels_group_norm.c")                                              \
    X(matmul_panels, "blas/kernels_matmul.c")                                              \
    X(matmul, "blas/kernels_matmul.c")                                                     \
    X(matmul_integer, "blas/kernels_matmul.c")                                             \
    X(conv2d, "blas/kernels_conv.c")                                                       \
    X(conv2d_input, "blas/kernels_conv.c")                                                 \
    X(conv2d_weight, "blas/kernels_conv.c")                                                \
    X(conv2d_tiles, "blas/kernels_tiles.c")                                                \
    X(conv2d_input_tiles, "blas/kernels_tiles.c")                                          \
    X(conv2d_weight_tiles, "blas/kernels_tiles_weight.c")                                  \
    X(conv2d_depthwise, "blas/kernels_depthwise.c")                                        \
    X(conv2d_input_depthwise, "blas/kernels_depthwise.c")                                  \
    X(conv2d_weight_depthwise, "blas/kernels_depthwise.c")                                 \
    X(max_pool2d, "ops/kernels_pool.c")                                                    \
    X(max_pool2d_grad, "ops/kernels_pool.c")                                               \
    X(mean_pool2d, "ops/kernels_mean_pool.c")                                              \
    X(mean_pool2d_input, "ops/kernels_mean_pool.c")                                        \
    X(resample2d, "ops/kernels_resample.c")                                                \
    X(resample2d_input, "ops/kernels_resample.c")                                          \
    X(recurrence, "ops/kernels_recurrence.c")                                              \
    X(recurrence_grad, "ops/kernels_recurrence.c")                                         \
    X(cbrt, "ops/kernels_functions.c")                                                     \
    X(gamma, "ops/kernels_functions.c")                                                    \
    X(lgamma, "ops/kernels_functions.c")                                                   \
    X(convolve, "ops/kernels_convolve.c")                                                  \
    X(eye, "ops/kernels_eye.c")                                                            \
    X(nonzero, "ops/kernels_nonzero.c")                                                    \
    X(take, "ops/kernels_index.c")                                                         \
    X(bag_sum, "ops/kernels_index.c")                                                      \
    X(bincount, "ops/kernels_bincount.c")                                                  \
    X(scatter_add, "ops/kernels_index.c")                                                  \
    X(scatter_set, "ops/kernels_index.c")                                                  \
    X(scatter_max, "ops/kernels_index.c")                                                  \
    X(scatter_min, "ops/kernels_index.c")                                                  \
    X(cumsum, "ops/kernels_cumulative.c")                                                  \
    X(cumprod, "ops/kernels_cumulative.c")                                                 \
    X(cummax, "ops/kernels_cumulative.c")                                                  \
    X(cummin, "ops/kernels_cumulative.c")                                                  \
    X(sort, "ops/kernels_sort.c")                                                          \
    X(argsort, "ops/kernels_sort.c")                                                       \
    X(take_along_axis, "ops/kernels_along.c")                                              \
    X(put_along_axis, "ops/kernels_along.c")                                               \
    X(topk, "ops/kernels_sort.c")                                                          \
    X(partition, "ops/kernels_sort.c")                                                     \
    X(argpartition, "ops/kernels_sort.c")                                                  \
    X(scaled_dot_product_attention, "blas/kernels_attention.c")                            \
    X(attention_with_sinks, "blas/kernels_attention.c")                                    \
    X(attention_with_sinks_grad, "blas/kernels_attention_grad.c")                          \
    X(attention_grad, "blas/kernels_attention_grad.c")                                     \
    X(cached_attention, "blas/kernels_attention.c")                                        \
    X(dft, "ops/kernels_fft.c")                                                            \
    X(dft_of_real, "ops/kernels_fft.c")                                                    \
    X(dft_to_real, "ops/kernels_fft.c")                                                    \
    X(base_random_bits, "ops/kernels_random.c")                                            \
    X(base_random_uniform, "ops/kernels_random.c")                                         \
    X(base_random_normal, "ops/kernels_random.c")                                          \
    X(random_bits, "ops/kernels_random.c")                                                 \
    X(random_floats, "ops/kernels_random.c")                                               \
    X(random_normal, "ops/kernels_random.c")                                               \
    X(quant_packed, "blas/kernels_quant.c")                                                \
    X(quant_decoded, "blas/kernels_quant.c")                                               \
    X(quant_halves, "blas/kernels_halves.c")                                               \
    X(quant_experts, "blas/kernels_experts.c")                                             \
    X(quant_take, "blas/kernels_quant.c")                                                  \
    X(quant_dequantize, "blas/kernels_quant.c")                                            \
    X(quant_pack, "blas/kernels_quant.c")                                                  \
    X(groupwise_matmul, "groupwise/kernels_groupwise.c")                                   \
    X(groupwise_gather_matmul, "groupwise/kernels_groupwise.c")                            \
    X(groupwise_dequantize, "groupwise/kernels_groupwise.c")
#define CPU_DECLARE(identifier, ...) extern const tn_kernel identifier##_kernel;
CPU_KERNELS(CPU_DECLARE)
#undef CPU_DECLARE

#endif // CPU_BLAS_KERNELS_H
