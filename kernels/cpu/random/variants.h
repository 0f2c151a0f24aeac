// SPDX-License-Identifier: MIT
// Functions and tables of this folder that each variant has.
#ifndef KERNELS_CPU_RANDOM_VARIANTS_H
#define KERNELS_CPU_RANDOM_VARIANTS_H

#include "random.h"
#include "cpu/variant.h"

extern const struct cpu_random_kernels V(cpu_random);

#endif // KERNELS_CPU_RANDOM_VARIANTS_H
