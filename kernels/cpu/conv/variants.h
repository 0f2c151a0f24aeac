// SPDX-License-Identifier: MIT
// Functions and tables of this folder that each variant has.
#ifndef KERNELS_CPU_CONV_VARIANTS_H
#define KERNELS_CPU_CONV_VARIANTS_H

#include "depthwise.h"
#include "pool.h"
#include "tiles.h"
#include "vectors.h"
#include "cpu/variant.h"

extern const struct cpu_conv_kernels V(cpu_conv);
extern const struct cpu_tiles_kernels V(cpu_tiles);
extern const struct cpu_windows_kernels V(cpu_windows);
extern const struct cpu_depthwise_kernels V(cpu_depthwise_f32), V(cpu_depthwise_f64);

#endif // KERNELS_CPU_CONV_VARIANTS_H
