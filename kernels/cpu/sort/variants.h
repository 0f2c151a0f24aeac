// SPDX-License-Identifier: MIT
// Functions and tables of this folder that each variant has.
#ifndef KERNELS_CPU_SORT_VARIANTS_H
#define KERNELS_CPU_SORT_VARIANTS_H

#include "quick.h"
#include "cpu/variant.h"

extern const struct cpu_quick_kernels V(cpu_quick);

#endif // KERNELS_CPU_SORT_VARIANTS_H
