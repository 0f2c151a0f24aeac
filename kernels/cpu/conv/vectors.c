// SPDX-License-Identifier: MIT
// Sums of products over windows of vectors of f32 and f64.
#include "vectors.h"

#include "variants.h"

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define TILE 8
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define TILE 6
#else
#define VECTOR_BYTES 16
#define TILE 6
#endif
#define PART (TILE * 64)

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

#define REAL float
#define WIDTH (VECTOR_BYTES / 4)
#define NAME(word) word##_f32
#include "vectors.inc.h"
#undef REAL
#undef WIDTH
#undef NAME

#define REAL double
#define WIDTH (VECTOR_BYTES / 8)
#define NAME(word) word##_f64
#include "vectors.inc.h"

const struct cpu_windows_kernels V(cpu_windows) = {
    .lanes_f32 = VECTOR_BYTES / 4,
    .lanes_f64 = VECTOR_BYTES / 8,
    .sum_f32 = sum_f32,
    .sum_f64 = sum_f64,
};
