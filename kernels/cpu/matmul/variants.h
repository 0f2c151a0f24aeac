// SPDX-License-Identifier: MIT
// Functions and tables of this folder that each variant has.
#ifndef KERNELS_CPU_MATMUL_VARIANTS_H
#define KERNELS_CPU_MATMUL_VARIANTS_H

#include <tenon/types.h>
#include "few_rows.h"
#include "panels.h"
#include "product.h"
#include "cpu/variant.h"

extern cpu_product_fn *const V(cpu_products)[TN_NUM_DTYPES];
cpu_panels_fn V(cpu_panels), V(cpu_panels_f64);
cpu_pack_panels_fn V(cpu_pack_panels), V(cpu_pack_panels_f64);
bool V(cpu_panels_few)(const struct cpu_panels *p);
void V(cpu_few_by_rows)(const struct cpu_few_rows *p);
void V(cpu_few_by_columns)(const struct cpu_few_rows *p);

#endif // KERNELS_CPU_MATMUL_VARIANTS_H
