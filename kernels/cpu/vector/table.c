// SPDX-License-Identifier: MIT
// One variant: its tables.
#include "variant.h"

#define TEXT_(variant) #variant
#define TEXT(variant) TEXT_(variant)

static cpu_map_fn *const *const maps[CPU_NUM_DTYPES] = {
    [CPU_BOOL] = V(cpu_map_bool), [CPU_I8] = V(cpu_map_i8),   [CPU_I16] = V(cpu_map_i16),
    [CPU_I32] = V(cpu_map_i32),   [CPU_I64] = V(cpu_map_i64), [CPU_U8] = V(cpu_map_u8),
    [CPU_U16] = V(cpu_map_u16),   [CPU_U32] = V(cpu_map_u32), [CPU_U64] = V(cpu_map_u64),
    [CPU_F32] = V(cpu_map_f32),   [CPU_F64] = V(cpu_map_f64),
};

extern const struct cpu_kernels V(cpu_kernels);
const struct cpu_kernels V(cpu_kernels) = {
    .name = TEXT(CPU_VARIANT),
    .needs = CPU_VARIANT_NEEDS,
    .map = maps,
    .cast = V(cpu_casts),
    .copy = V(cpu_copies),
    .transpose = V(cpu_transposes),
    .product = V(cpu_products),
    .reduce = &V(cpu_reductions),
    .nn = &V(cpu_nn),
};
