// SPDX-License-Identifier: MIT
// The inverse of the error function of f32 in vectors, made of fused multiply-adds;
// variants without them use v_ERFINV() of math_f32.h.
//
// erfinv(x) = |x| P(w), w = -log(1 - x^2): by a polynomial in w - 2.5 up to w = 5, and from
// there on by a polynomial in sqrt(w), as P is nearly sqrt(w). Polynomials are minimax
// ones, found by Remez's exchange algorithm in 60 digits; the error of each is beside it.
#ifndef KERNELS_CPU_MATH_ERFINV_F32_H
#define KERNELS_CPU_MATH_ERFINV_F32_H

#include "math_f32.h"

// |x| (base + rest) with the sign of x, where `rest` is small beside `base`: the product of
// |x| and `base` has two parts.
static inline float erfinv_product(float x, float a, float base, float rest)
{
    float product = a * base, rounding = fma_f32(a, base, -product);
    return copysignf(product + fma_f32(a, rest, rounding), x);
}

// log(1 - a^2), without the special cases of a logarithm; *low gets its rounding error.
static inline float erfinv_log_f32(float a, float *low)
{
    struct f32_parts at = f32_log_split_normal(fma_f32(-a, a, 1));
    float whole = at.exponent * LN2_HIGH, high = whole + at.f;
    float rest = at.f - (high - whole) + fma_f32(at.exponent, LN2_LOW, f32_log_rest(at.f));
    float log = high + rest;
    *low = high - log + rest;
    return log;
}

// P(0) in two parts, the first of which has few bits, and an approximation of P's slope.
#define P_0 0x1.c5ap-1f
#define P_0_REST 0x1.f891b4p-13f
#define SLOPE 0.24f

// By P(0) + w R(w), up to w = 5; R's error is 1.8e-9.
static inline float erfinv_near_f32(float x)
{
    float a = fabsf(x), low, w = -erfinv_log_f32(a, &low), s = w - 2.5f;
    float z = s * s, even = 0x1.6eed22p-33f, odd = 0x1.641e34p-35f;
    even = fma_f32(even, z, -0x1.926136p-27f);
    odd = fma_f32(odd, z, 0x1.8618cap-25f);
    even = fma_f32(even, z, 0x1.8d1e7ep-22f);
    odd = fma_f32(odd, z, -0x1.23d92ap-18f);
    even = fma_f32(even, z, 0x1.897b0ep-18f);
    odd = fma_f32(odd, z, 0x1.aafba8p-13f);
    even = fma_f32(even, z, -0x1.cdd17cp-10f);
    odd = fma_f32(odd, z, 0x1.dbe326p-13f);
    even = fma_f32(even, z, 0x1.f7f51cp-3f);
    float q = fma_f32(odd, s, even);
    float product = w * q, high = P_0 + product, less = product - (high - P_0) + P_0_REST;
    less += fma_f32(w, q, -product) - low * SLOPE;
    return erfinv_product(x, a, high, less);
}

// By a polynomial in sqrt(w), from w = 5 on; its error is 5.9e-9.
static inline float erfinv_far_f32(float x)
{
    float a = fabsf(x), low, log = erfinv_log_f32(a < 1 ? a : 0, &low);
    float t = sqrtf(-log), u = t - 3.1f, lost = (fma_f32(t, t, log) + low) * (-0.5f / t);
    float q = 0x1.0e3c92p-13f;
    q = fma_f32(q, u, -0x1.a8f348p-13f);
    q = fma_f32(q, u, -0x1.2ad392p-12f);
    q = fma_f32(q, u, 0x1.65812ep-10f);
    q = fma_f32(q, u, -0x1.64c3bcp-9f);
    q = fma_f32(q, u, 0x1.0d4f22p-8f);
    q = fma_f32(q, u, -0x1.753fdep-8f);
    q = fma_f32(q, u, 0x1.e8fa1ap-8f);
    q = fma_f32(q, u, 0x1.b7e2f6p-9f);
    q = fma_f32(q, u, -0x1.558aa4p-3f);
    float edge = copysignf(a == 1 ? INFINITY : NAN, x);
    return a < 1 ? erfinv_product(x, a, t, q + lost) : edge;
}

#endif // KERNELS_CPU_MATH_ERFINV_F32_H
