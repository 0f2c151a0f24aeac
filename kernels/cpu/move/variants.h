// SPDX-License-Identifier: MIT
// Functions and tables of this folder that each variant has.
#ifndef KERNELS_CPU_MOVE_VARIANTS_H
#define KERNELS_CPU_MOVE_VARIANTS_H

#include "copy.h"
#include "cpu/variant.h"

extern cpu_copy_fn *const V(cpu_copies)[5];
extern cpu_transpose_fn *const V(cpu_transposes)[5];
extern cpu_spread_fn *const V(cpu_spreads)[5];
extern cpu_stream_fn V(cpu_stream);
void V(cpu_fence)(void);

#endif // KERNELS_CPU_MOVE_VARIANTS_H
