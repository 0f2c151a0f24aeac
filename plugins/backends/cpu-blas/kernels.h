// SPDX-License-Identifier: MIT
// The kernels that this backend brings, and what they share.
//
// Threads. A launch may use call->parallel_for; everything else is local to it.
#ifndef CPU_BLAS_KERNELS_H
#define CPU_BLAS_KERNELS_H

#include <stdbool.h>
#include <tenon/checked.h>
#include <tenon/kernel.h>
#include "cpu.h"

// The variant for what the call says of the processor.
static inline const struct cpu_kernels *kernel_variant(const tn_cpu_call *call)
{
    return cpu_pick((call->cpu_features & TN_CPU_AVX2 ? CPU_HAS_AVX2 : 0) |
                    (call->cpu_features & TN_CPU_AVX512 ? CPU_HAS_AVX512 : 0));
}

// The first element of an operand.
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

static inline bool is_row_major(const tn_layout *layout)
{
    int64_t expected = 1;
    for (int32_t i = layout->rank - 1; i >= 0; i--) {
        if (layout->extent[i] != 1 && layout->stride[i] != expected)
            return false;
        expected *= layout->extent[i];
    }
    return true;
}

extern const tn_kernel matmul_kernel, matmul_integer_kernel, sum_kernel, mean_kernel,
    max_kernel, min_kernel, argmax_kernel, logsumexp_kernel, softmax_kernel,
    log_softmax_kernel, cross_entropy_kernel, conv2d_kernel, conv2d_input_kernel,
    conv2d_weight_kernel, max_pool2d_kernel, max_pool2d_grad_kernel, take_kernel,
    scatter_add_kernel;

#endif // CPU_BLAS_KERNELS_H
