// SPDX-License-Identifier: MIT
// Included by the files of kernels. Each file is compiled once for each variant, with the
// variant's name in CPU_VARIANT, and holds plain loops that the compiler vectorises.
#ifndef KERNELS_CPU_VARIANT_H
#define KERNELS_CPU_VARIANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// V(name) is `name` with the variant's name behind it: symbols of several variants are
// linked into one library.
#define GLUE_(name, variant) name##_##variant
#define GLUE(name, variant) GLUE_(name, variant)
#define V(name) GLUE(name, CPU_VARIANT)
// VC(name) likewise for the functions of map_complex.c, which several variants may share:
// wider vectors gain little there.
#define VC(name) GLUE(name, CPU_COMPLEX_VARIANT)

// Tells the compiler that no iteration of the next loop reads what another iteration
// writes. It cannot see that by itself, since an output may begin where an input begins.
#ifdef __clang__
#define VECTORIZE _Pragma("clang loop vectorize(assume_safety)")
#else
#define VECTORIZE _Pragma("GCC ivdep")
#endif

// Whether the variant's processors have fused multiply-adds.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define HAS_FMA 1
#else
#define HAS_FMA 0
#endif

// The bits of a float, and the float of these bits.
static inline uint32_t bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}
static inline float f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}
static inline uint64_t bits_of_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}
static inline double f64_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

#endif // KERNELS_CPU_VARIANT_H
