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

// X(identifier, ...) for each kernel
#define CPU_KERNELS(X)                                                                     \
    X(sum)                                                                                 \
    X(mean)                                                                                \
    X(prod)                                                                                \
    X(max)                                                                                 \
    X(min)                                                                                 \
    X(argmax)                                                                              \
    X(argmin)                                                                              \
    X(matmul)                                                                              \
    X(matmul_integer)                                                                      \
    X(conv2d)                                                                              \
    X(conv2d_input)                                                                        \
    X(conv2d_weight)                                                                       \
    X(max_pool2d)                                                                          \
    X(max_pool2d_grad)                                                                     \
    X(take)                                                                                \
    X(scatter_add)                                                                         \
    X(scatter_set)                                                                         \
    X(scatter_max)                                                                         \
    X(scatter_min)                                                                         \
    X(cumsum)                                                                              \
    X(cumprod)                                                                             \
    X(cummax)                                                                              \
    X(cummin)                                                                              \
    X(sort)                                                                                \
    X(argsort)                                                                             \
    X(take_along_axis)                                                                     \
    X(put_along_axis)                                                                      \
    X(topk)                                                                                \
    X(scaled_dot_product_attention)                                                        \
    X(attention_grad)                                                                      \
    X(cached_attention)                                                                    \
    X(dft)                                                                                 \
    X(dft_of_real)                                                                         \
    X(dft_to_real)                                                                         \
    X(quant_packed)                                                                        \
    X(quant_decoded)                                                                       \
    X(quant_experts)                                                                       \
    X(quant_take)                                                                          \
    X(quant_dequantize)                                                                    \
    X(quant_pack)
#define CPU_DECLARE(identifier, ...) extern const tn_kernel identifier##_kernel;
CPU_KERNELS(CPU_DECLARE)
#undef CPU_DECLARE

#endif // CPU_BLAS_KERNELS_H
