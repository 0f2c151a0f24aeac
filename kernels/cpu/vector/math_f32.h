// SPDX-License-Identifier: MIT
// Functions of f32, without branches, so that a loop over them becomes vector instructions.
// Polynomials were fitted at Chebyshev nodes. Largest errors found over all exponents, in
// ulp: exp 0.90, exp2 0.95, expm1 1.39, log 0.77, tanh 2.25. The others are the C
// library's.
//
// Nothing here contracts a product and a sum into one rounding: each variant gives the same
// bits.
#ifndef KERNELS_CPU_MATH_F32_H
#define KERNELS_CPU_MATH_F32_H

#include <math.h>
#include "variant.h"

// Added and taken off again, it rounds to the nearest integer, which then stands in the low
// bits of the sum.
#define ROUNDER 12582912.0f // 1.5 * 2^23

// ln 2, the first part with so few bits that products with exponents are exact.
#define LN2_HIGH 0.693359375f
#define LN2_LOW -2.12194440e-4f

// 2^n, for n in [-126, 127].
static inline float two_to(int32_t n)
{
    return f32_of_bits((uint32_t)(n + 127) << 23);
}

// exp(r) - 1 for |r| <= ln(2) / 2.
static inline float exp_tail(float r)
{
    float q = 1.98994196e-4f;
    q = q * r + 1.39337534e-3f;
    q = q * r + 8.33329838e-3f;
    q = q * r + 4.16664630e-2f;
    q = q * r + 0.166666672f;
    q = q * r + 0.5f;
    return r + r * r * q;
}

// (1 + tail) * 2^n in two steps, so that results that overflow or are subnormal come out
// right.
static inline float scaled(float tail, int32_t n)
{
    int32_t half = n >> 1;
    return (1 + tail) * two_to(half) * two_to(n - half);
}

static inline float v_exp(float x)
{
    // A NaN passes both tests.
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    float shifted = x * 1.44269504f + ROUNDER, n = shifted - ROUNDER;
    float r = x - n * LN2_HIGH - n * LN2_LOW;
    int32_t exponent = (int32_t)(bits_of_f32(shifted) - bits_of_f32(ROUNDER));
    exponent = x == x ? exponent : 0;
    return scaled(exp_tail(r), exponent);
}

static inline float v_exp2(float x)
{
    x = x > 129.0f ? 129.0f : x;
    x = x < -151.0f ? -151.0f : x;
    float shifted = x + ROUNDER, n = shifted - ROUNDER;
    int32_t exponent = (int32_t)(bits_of_f32(shifted) - bits_of_f32(ROUNDER));
    exponent = x == x ? exponent : 0;
    return scaled(exp_tail((x - n) * 0.693147181f), exponent);
}

// For |x| <= 44, where 2^n is far from overflow.
static inline float expm1_near(float x)
{
    float shifted = x * 1.44269504f + ROUNDER, n = shifted - ROUNDER;
    float r = x - n * LN2_HIGH - n * LN2_LOW;
    int32_t exponent = (int32_t)(bits_of_f32(shifted) - bits_of_f32(ROUNDER));
    float scale = two_to(exponent);
    return (scale - 1) + scale * exp_tail(r);
}

static inline float v_expm1(float x)
{
    float clamped = x > 40.0f ? 40.0f : x;
    clamped = clamped < -40.0f ? -40.0f : clamped;
    clamped = x == x ? clamped : 0;
    float near = expm1_near(clamped);
    float result = x > 40.0f ? v_exp(x) : near;
    result = x == 0 ? x : result; // keeps the sign of zero
    return x == x ? result : x;
}

static inline float v_tanh(float x)
{
    float twice = fabsf(x) * 2;
    twice = twice > 20.0f ? 20.0f : twice; // 1 - tanh(10) is below half an ulp
    twice = x == x ? twice : 0;
    float t = expm1_near(twice);
    float result = copysignf(t / (t + 2), x);
    return x == x ? result : x;
}

static inline float v_log(float x)
{
    // Subnormals are made normal first.
    int32_t tiny = x < 1.17549435e-38f;
    float y = tiny ? x * 8388608.0f : x;
    // The fraction in [sqrt(1/2), sqrt(2)).
    uint32_t bits = bits_of_f32(y) - 0x3f3504f3u;
    int32_t exponent = ((int32_t)bits >> 23) - (tiny ? 23 : 0);
    float f = f32_of_bits((bits & 0x007fffffu) + 0x3f3504f3u) - 1;
    float p = 7.14788586e-2f;
    p = p * f - 0.115707077f;
    p = p * f + 0.116619028f;
    p = p * f - 0.124111302f;
    p = p * f + 0.142499089f;
    p = p * f - 0.166684762f;
    p = p * f + 0.200007081f;
    p = p * f - 0.249999896f;
    p = p * f + 0.333333313f;
    float n = (float)exponent, square = f * f;
    float low = f * square * p + n * LN2_LOW - 0.5f * square;
    float result = low + f + n * LN2_HIGH;
    result = x == 0 ? -INFINITY : result;
    result = x < 0 ? NAN : result;
    return x < INFINITY ? result : x; // infinity, and NaN
}

#define v_log2 log2f
#define v_log10 log10f
#define v_log1p log1pf
#define v_erf erff

#endif // KERNELS_CPU_MATH_F32_H
