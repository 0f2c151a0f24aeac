// SPDX-License-Identifier: MIT
// Cube roots without a quotient. A reciprocal cube root y of a comes from a third of a's
// bits, within 3.4 %, and is made exact by steps of Householder's method: with c = 1 - a
// y^3, a^(-1/3) = y (1 + c/3 + 2 c^2 / 9 + 14 c^3 / 81 + ...). Then a y^2 is the root, to
// which a step of Newton's method adds what its rounding lost. Largest errors found: of f32
// 0.50 ulp over all numbers, of f64 0.51 over 2^32 of them.
//
// Without an instruction for a fused multiply-add f32 is computed in f64 and rounded once;
// f64 by a step of Halley's method from 23 bits of the root, whose square is exact.
#ifndef KERNELS_CPU_MATH_CBRT_H
#define KERNELS_CPU_MATH_CBRT_H

#include <math.h>
#include "cpu/variant.h"

// 4/3 of the bits of 1, less 0.0682 of the exponent's unit: of an f32, and of the upper
// half of an f64.
#define CBRT_MAGIC_32 1419898880.0f
#define CBRT_MAGIC_64 1430186154.0

// The next c's error is 0.144 c^4.
#define CBRT_STEP(T, y, c)                                                                 \
    ((y) + (y) * (c) * ((T)(1 / 3.0) + (c) * ((T)(2 / 9.0) + (c) * (T)(14 / 81.0))))

static inline float cbrt_guess_f32(float a)
{
    float third = (float)(int32_t)bits_of_f32(a) * (float)(1 / 3.0);
    return f32_of_bits((uint32_t)(int32_t)(CBRT_MAGIC_32 - third));
}

static inline float v_CBRT_f32(float x)
{
    float a = fabsf(x);
    bool is_small = a < 0x1p-64f; // the correction of rounding would be subnormal
    a = is_small ? a * 0x1p96f : a;
    float y = cbrt_guess_f32(a), root;
    if (HAS_FMA) {
        float c = __builtin_fmaf(-a * y, y * y, 1);
        y = CBRT_STEP(float, y, c);
        c = __builtin_fmaf(-a * y, y * y, 1);
        y = CBRT_STEP(float, y, c);
        float t = a * y * y, square = t * t, low = __builtin_fmaf(t, t, -square);
        float more = __builtin_fmaf(low, t, __builtin_fmaf(square, t, -a)); // t^3 - a
        root = __builtin_fmaf(more, y * y * (float)(-1 / 3.0), t);
    } else {
        double b = (double)a, z = (double)y, c = 1 - b * z * z * z;
        z = CBRT_STEP(double, z, c);
        c = 1 - b * z * z * z;
        z = CBRT_STEP(double, z, c);
        root = (float)(b * z * z);
    }
    root = copysignf(is_small ? root * 0x1p-32f : root, x);
    return ((x != 0) & (a < INFINITY)) ? root : x; // NaN: itself
}

// The cube root of `a` from its reciprocal cube root y.
static inline double cbrt_of_f64(double a, double y)
{
    double t = a * y * y;
    if (!HAS_FMA) {
        t = f64_of_bits(bits_of_f64(t) & ~((UINT64_C(1) << 30) - 1));
        double quotient = a / (t * t);
        return t + t * ((quotient - t) / (t + t + quotient));
    }
    double square = t * t, low = __builtin_fma(t, t, -square);
    double more = __builtin_fma(low, t, __builtin_fma(square, t, -a)); // t^3 - a
    return __builtin_fma(more, y * y * (-1 / 3.0), t);
}

static inline double v_CBRT_f64(double x)
{
    double a = fabs(x);
    bool is_small = a < 0x1p-800;
    a = is_small ? a * 0x1p300 : a;
    double third = (double)(int32_t)(bits_of_f64(a) >> 32) * (1 / 3.0);
    int32_t upper = (int32_t)(CBRT_MAGIC_64 - third);
    double y = f64_of_bits((uint64_t)(uint32_t)upper << 32);
    double c = HAS_FMA ? __builtin_fma(-a * y, y * y, 1) : 1 - a * y * y * y;
    y = CBRT_STEP(double, y, c);
    c = HAS_FMA ? __builtin_fma(-a * y, y * y, 1) : 1 - a * y * y * y;
    y = CBRT_STEP(double, y, c);
    double root = cbrt_of_f64(a, y);
    root = copysign(is_small ? root * 0x1p-100 : root, x);
    return ((x != 0) & (a < (double)INFINITY)) ? root : x; // NaN: itself
}

#endif // KERNELS_CPU_MATH_CBRT_H
