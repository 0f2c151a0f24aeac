// SPDX-License-Identifier: MIT
// Functions and tables of this folder that each variant has.
#ifndef KERNELS_CPU_RECURRENCE_VARIANTS_H
#define KERNELS_CPU_RECURRENCE_VARIANTS_H

#include "recurrence.h"
#include "cpu/variant.h"

extern const struct cpu_recurrence_kernels V(cpu_recurrence);
extern cpu_recurrence_row_fn V(cpu_recurrence_row);

#endif // KERNELS_CPU_RECURRENCE_VARIANTS_H
