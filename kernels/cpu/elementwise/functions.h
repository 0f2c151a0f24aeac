// SPDX-License-Identifier: MIT
// Functions whose expressions would take many passes over a block: one loop each.
#ifndef KERNELS_CPU_FUNCTIONS_H
#define KERNELS_CPU_FUNCTIONS_H

#include "map.h"

// Functions of one operand; `scalars` is ignored.
struct cpu_function_kernels {
    cpu_map_fn *cbrt_f32, *cbrt_f64, *gamma_f32, *lgamma_f64;
};

#endif // KERNELS_CPU_FUNCTIONS_H
