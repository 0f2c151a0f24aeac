// SPDX-License-Identifier: MIT
// The kernels of quant.quantized_matmul, for kernels that run several products
// (kernels_quant.c).
#ifndef CPU_BLAS_QUANT_MATMUL_H
#define CPU_BLAS_QUANT_MATMUL_H

#include <tenon/kernel.h>

tn_status quant_matmul(const tn_cpu_call *call);
uint64_t quant_matmul_scratch(const tn_kernel_query *query);
int32_t quant_matmul_accepts(const tn_kernel_query *query);

#endif // CPU_BLAS_QUANT_MATMUL_H
