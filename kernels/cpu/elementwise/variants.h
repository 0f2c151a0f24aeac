// SPDX-License-Identifier: MIT
// Functions and tables of this folder that each variant has.
#ifndef KERNELS_CPU_ELEMENTWISE_VARIANTS_H
#define KERNELS_CPU_ELEMENTWISE_VARIANTS_H

#include "functions.h"
#include "map.h"
#include "cpu/variant.h"

extern const struct cpu_function_kernels V(cpu_functions);
extern cpu_map_fn V(cpu_lgamma_f64);
extern cpu_map_fn *const V(cpu_casts)[TN_NUM_DTYPES][TN_NUM_DTYPES];

// X(name, dtype) for each integer and float dtype that is computed in.
#define CPU_REAL_DTYPES(X)                                                                 \
    X(i8, TN_I8)                                                                           \
    X(i16, TN_I16)                                                                         \
    X(i32, TN_I32)                                                                         \
    X(i64, TN_I64)                                                                         \
    X(u8, TN_U8)                                                                           \
    X(u16, TN_U16)                                                                         \
    X(u32, TN_U32)                                                                         \
    X(u64, TN_U64)                                                                         \
    X(f32, TN_F32)                                                                         \
    X(f64, TN_F64)
// Tables of functions by operation.
#define CPU_MAP(name, dtype) extern cpu_map_fn *const V(cpu_map_##name)[CPU_NUM_OPS];
CPU_REAL_DTYPES(CPU_MAP)
CPU_MAP(bool, TN_BOOL)
extern cpu_map_fn *const VC(cpu_map_complex64)[CPU_NUM_OPS];
extern cpu_map_fn *const VC(cpu_map_complex128)[CPU_NUM_OPS];

// The conversions between these, bool and complex dtypes, and complex numbers of two parts.
#define CPU_COMPLEX_CASTS(name, dtype)                                                     \
    extern cpu_map_fn VC(complex64_to_##name), VC(complex128_to_##name),                   \
        VC(name##_to_complex64), VC(name##_to_complex128);
CPU_REAL_DTYPES(CPU_COMPLEX_CASTS)
CPU_COMPLEX_CASTS(bool, TN_BOOL)
extern cpu_map_fn VC(complex64_to_complex64), VC(complex64_to_complex128),
    VC(complex128_to_complex64), VC(complex128_to_complex128), VC(join_complex64),
    VC(join_complex128);

#endif // KERNELS_CPU_ELEMENTWISE_VARIANTS_H
