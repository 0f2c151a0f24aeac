// SPDX-License-Identifier: MIT
// Functions and tables of this folder that each variant has.
#ifndef KERNELS_CPU_REDUCE_VARIANTS_H
#define KERNELS_CPU_REDUCE_VARIANTS_H

#include "reduce.h"
#include "cpu/variant.h"

extern const struct cpu_reduce_kernels V(cpu_reductions);
extern const struct cpu_argmax_kernels V(cpu_argmax);
extern cpu_layer_norm_grad_fn V(cpu_layer_norm_grad);

#endif // KERNELS_CPU_REDUCE_VARIANTS_H
