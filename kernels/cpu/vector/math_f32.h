// SPDX-License-Identifier: MIT
// Functions of f32, without branches, so that the compiler vectorises loops over them.
// Polynomials were fitted at Chebyshev nodes, unless a comment says otherwise. Largest
// errors found over all exponents, in ulp: exp 0.96, exp2 0.96, log 0.83, tanh 2.41,
// erf 1.35, erfinv 0.88. The other functions are computed in f64 (math_wide.h), within 0.51
// ulp; sin, cos and tan beyond 1e6 are the C library's.
//
// Nothing here contracts a product and a sum into one rounding: each variant gives the same
// bits.
#ifndef KERNELS_CPU_MATH_F32_H
#define KERNELS_CPU_MATH_F32_H

#include <math.h>
#include <tenon/ops/program.h>
#include "math_wide.h"
#include "variant.h"

// Adding and then subtracting this number rounds to the nearest integer, which is then in
// the low bits of the sum: the ulp of numbers near 2^23 is 1.
#define ROUNDER 12582912.0f // 1.5 * 2^23

// ln 2 in two parts (Cody and Waite): LN2_HIGH has so few bits that its product with an
// exponent is exact.
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

// (1 + tail) * 2^n, in two steps of half the exponent, since 2^n itself may overflow or be
// subnormal where the result is not.
static inline float scaled(float tail, int32_t n)
{
    int32_t half = n >> 1;
    return (1 + tail) * two_to(half) * two_to(n - half);
}

// 2^n is added to the bits of 1 + tail, which is between 0.7 and 1.42. Where the result may
// be subnormal, it is 2^64 times as large at first, and rounded by a product.
static inline float v_EXP(float x)
{
    float y = x < -104.0f ? -104.0f : x; // where the result is 0 already
    float shifted = y * 1.44269504f + ROUNDER, n = shifted - ROUNDER;
    float r = y - n * LN2_HIGH - n * LN2_LOW;
    uint32_t exponent = bits_of_f32(shifted) - bits_of_f32(ROUNDER);
    int32_t is_small = (int32_t)exponent < -125;
    exponent += is_small ? 64u : 0u;
    float result = f32_of_bits(bits_of_f32(1 + exp_tail(r)) + (exponent << 23));
    result *= is_small ? 0x1p-64f : 1.0f;
    return x <= 88.7228317f ? result : x + INFINITY; // NaN: itself
}

static inline float v_EXP2(float x)
{
    x = x > 129.0f ? 129.0f : x;
    x = x < -151.0f ? -151.0f : x;
    float shifted = x + ROUNDER, n = shifted - ROUNDER;
    int32_t exponent = (int32_t)(bits_of_f32(shifted) - bits_of_f32(ROUNDER));
    exponent = x == x ? exponent : 0;
    return scaled(exp_tail((x - n) * 0.693147181f), exponent);
}

// exp(x) - 1 for |x| <= 44, where 2^n is far from overflow.
static inline float expm1_near(float x)
{
    float shifted = x * 1.44269504f + ROUNDER, n = shifted - ROUNDER;
    float r = x - n * LN2_HIGH - n * LN2_LOW;
    int32_t exponent = (int32_t)(bits_of_f32(shifted) - bits_of_f32(ROUNDER));
    float scale = two_to(exponent);
    return (scale - 1) + scale * exp_tail(r);
}

static inline float v_TANH(float x)
{
    float twice = fabsf(x) * 2;
    twice = twice > 20.0f ? 20.0f : twice; // 1 - tanh(10) is below half an ulp
    twice = x == x ? twice : 0;
    float t = expm1_near(twice);
    float result = copysignf(t / (t + 2), x);
    return x == x ? result : x;
}

static inline float v_LOG(float x)
{
    // Subnormals are scaled by 2^23 first, to be normal.
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

// Below 1 a polynomial of x^2, error 1.3e-9; from there on 1 - exp(q), where the polynomial
// q approximates log(erfc(x)), error 1.1e-9. Both are found by Remez's exchange algorithm.
static inline float v_ERF(float x)
{
    float a = fabsf(x), z = x * x;
    float p = 7.85386073e-5f;
    p = p * z - 8.01019371e-4f;
    p = p * z + 5.18832775e-3f;
    p = p * z - 2.68538110e-2f;
    p = p * z + 0.112835854f;
    p = p * z - 0.376126260f;
    p = p * z + 0.128379166f;
    float near = x + x * p;
    float b = a < 4.0f ? a : 4.0f; // 1 - erf(4) is below half an ulp
    float q = 1.86378966e-4f;
    q = q * b - 2.94765620e-3f;
    q = q * b + 2.18380559e-2f;
    q = q * b - 0.103106737f;
    q = q * b - 0.638144851f;
    q = q * b - 1.12708914f;
    q = q * b - 3.41525243e-4f;
    float far = copysignf(expm1_near(q), x);
    far = x == x ? far : x;
    return a < 1.0f ? near : far;
}

// A function that is computed in f64 and rounded once.
#define V_WIDE(NAME, name)                                                                 \
    static inline float v_##NAME(float x)                                                  \
    {                                                                                      \
        return (float)wide_##name((double)x);                                              \
    }
V_WIDE(EXPM1, expm1)
V_WIDE(LOG2, log2)
V_WIDE(LOG10, log10)
V_WIDE(LOG1P, log1p)
V_WIDE(ASIN, asin)
V_WIDE(ACOS, acos)
V_WIDE(ATAN, atan)
V_WIDE(SINH, sinh)
V_WIDE(COSH, cosh)
V_WIDE(ASINH, asinh)
V_WIDE(ACOSH, acosh)
V_WIDE(ATANH, atanh)

// The definition's ratio (<tenon/ops/program.h>) without its step of Halley's method, which
// f32 does not need. (1 - a) (1 + a) is exact in f64; beyond 1 it is negative, and its
// logarithm a NaN.
static inline float v_ERFINV(float x)
{
    double a = fabs((double)x), w = wide_log2((1 - a) * (1 + a)) * -WIDE_LN2;
    double y = a * tn_erfinv_ratio(w);
    y = a == 1 ? (double)INFINITY : y;
    return copysignf((float)y, x);
}

static inline float v_ATAN2(float y, float x)
{
    return (float)wide_atan2((double)y, (double)x);
}

#endif // KERNELS_CPU_MATH_F32_H
