// SPDX-License-Identifier: MIT
// Functions of f32, without branches, so that the compiler vectorises loops over them.
// Polynomials were fitted at Chebyshev nodes, unless a comment says otherwise. Largest
// errors found over all exponents, in ulp, and where there is no instruction for a fused
// multiply-add: exp 0.88 and 0.96, exp2 0.89 and 0.97, log 0.87 and 0.87, tanh 1.49, erf
// 0.97 and 1.35, erfinv 0.88, sigmoid 1.50 and 1.46. With the instruction log2 1.00, log10
// 0.94, log1p 0.95, sin 1.20, cos 1.20, erfinv 1.33 (math_erfinv_f32.h). Other functions,
// and these six without the instruction, are computed in f64 (math_wide.h), within 0.51
// ulp; sin, cos and tan beyond 1e6 are the C library's.
//
// The compiler contracts no product and sum into one rounding: the code calls fma_f32() for
// that, so that all variants for processors with the instruction give the same bits.
#ifndef KERNELS_CPU_MATH_F32_H
#define KERNELS_CPU_MATH_F32_H

#include <math.h>
#include <tenon/ops/program.h>
#include "math_wide.h"
#include "cpu/variant.h"

// Adding and then subtracting this number rounds to the nearest integer, which is then in
// the low bits of the sum: the ulp of numbers near 2^23 is 1.
#define ROUNDER 12582912.0f // 1.5 * 2^23

// ln 2 in two parts (Cody and Waite): LN2_HIGH has so few bits that its product with an
// exponent is exact.
#define LN2_HIGH 0.693359375f
#define LN2_LOW -2.12194440e-4f

// a b + c, rounded once where the processor has an instruction for it.
static inline float fma_f32(float a, float b, float c)
{
    return HAS_FMA ? __builtin_fmaf(a, b, c) : a * b + c;
}

// n and r with x = n ln 2 + r, |r| <= ln(2) / 2, for |x| <= 200. *shifted: n + ROUNDER.
static inline float reduced(float x, float *shifted)
{
    *shifted = fma_f32(x, 1.44269504f, ROUNDER);
    float n = *shifted - ROUNDER;
    return fma_f32(n, -LN2_LOW, fma_f32(n, -LN2_HIGH, x));
}

// exp(r) - 1 for |r| <= ln(2) / 2, error 4.4e-10 of it.
static inline float exp_tail(float r)
{
    float q = 1.97625239e-4f;
    q = fma_f32(q, r, 1.39323296e-3f);
    q = fma_f32(q, r, 8.33354518e-3f);
    q = fma_f32(q, r, 4.16664928e-2f);
    q = fma_f32(q, r, 0.166666657f);
    q = fma_f32(q, r, 0.5f);
    return fma_f32(q, r * r, r);
}

// exp(r) for |r| <= ln(2) / 2.
static inline float exp_near(float r)
{
    if (!HAS_FMA) // the sum of a product would lose a bit
        return 1 + exp_tail(r);
    float p = 1.38206338e-3f; // error 3.2e-9 of the result
    p = fma_f32(p, r, 8.36867373e-3f);
    p = fma_f32(p, r, 4.16682661e-2f);
    p = fma_f32(p, r, 0.166665211f);
    p = fma_f32(p, r, 0.49999994f);
    p = fma_f32(p, r, 1);
    return fma_f32(p, r, 1);
}

// p 2^n, where p is between 0.7 and 1.42 and n comes from reduced() and is at least -151: n
// is added to the exponent bits of p. A result that may be subnormal is computed 2^64 times
// as large, and rounded by a product.
static inline float exp_scaled(float p, float shifted)
{
    bool is_small = shifted < ROUNDER - 125;
    uint32_t exponent = bits_of_f32(shifted) + (is_small ? 64u : 0u);
    float result =
        f32_of_bits(bits_of_f32(p) + (exponent << 23)); // ROUNDER's bits are shifted out
    return result * (is_small ? 0x1p-64f : 1.0f);
}

static inline float v_EXP(float x)
{
    bool is_zero = x < -104.0f; // then computes exp(0): products that underflow are slow
    float shifted, r = reduced(is_zero ? 0 : x, &shifted);
    float result = exp_scaled(exp_near(r), shifted);
    result = is_zero ? 0 : result;
    return x <= 88.7228317f ? result : x + INFINITY; // NaN stays NaN
}

static inline float v_EXP2(float x)
{
    float y = x < -151.0f ? -151.0f : x;
    float shifted = y + ROUNDER, r = (y - (shifted - ROUNDER)) * 0.693147181f;
    float result = exp_scaled(exp_near(r), shifted);
    return x < 128.0f ? result : x + INFINITY; // NaN stays NaN
}

// exp(x) / (1 + exp(x)) = p / (p + 2^-n) for p = exp(r) with n and r of x; from 64 on it
// is 1. The rounding errors of sum and quotient are added. Below 2^-100 the quotient is
// computed 2^32 times as large, for which p in the sum is too small.
static inline float f32_sigmoid(float x)
{
    float y = x > 64 ? 64 : x; // NaN stays NaN
    y = y < -104.0f ? -104.0f : y;
    float shifted, r = reduced(y, &shifted), p = exp_near(r);
    bool is_small = shifted < ROUNDER - 100;
    uint32_t exponent = (is_small ? 127u - 32u : 127u) - bits_of_f32(shifted);
    float scale = f32_of_bits(exponent << 23); // ROUNDER's bits are shifted out
    float inverse = 1 / (p + scale), q = p * inverse;
    q = fma_f32(fma_f32(-q, p, fma_f32(-q, scale, p)), inverse, q);
    return q * (is_small ? 0x1p-32f : 1.0f);
}

static inline float v_SIGMOID(float x)
{
    if (HAS_FMA)
        return f32_sigmoid(x);
    double e = (double)v_EXP(x > 64 ? 64 : x); // NaN stays NaN
    return (float)(e / (1 + e));
}

// exp(x) - 1 for n and r of x, |x| <= 44, where 2^n is far from overflow.
static inline float expm1_of(float shifted, float r)
{
    float scale = f32_of_bits((bits_of_f32(shifted) + 127u) << 23);
    return fma_f32(scale, exp_tail(r), scale - 1);
}

static inline float expm1_near(float x)
{
    float shifted, r = reduced(x, &shifted);
    return expm1_of(shifted, r);
}

// t / (t + 2) with t = exp(2 |x|) - 1. Below 0.36 a polynomial of x^2, error 5.0e-8, found
// by Remez's exchange algorithm: there t + 2 would lose bits that the quotient needs.
static inline float v_TANH(float x)
{
    float a = fabsf(x), z = x * x;
    float p = fma_f32(z, -4.88999858e-2f, 0.132962301f);
    p = fma_f32(p, z, -0.333325535f);
    float near = fma_f32(a, p * z, a);
    float twice = a + a;
    twice = twice < 20.0f ? twice : 20.0f; // 1 - tanh(10) is below half an ulp
    float shifted, r = reduced(twice, &shifted);
    if (HAS_FMA) // one part of ln 2: n is small, or t so large that r hardly counts
        r = fma_f32(shifted - ROUNDER, -0.693147181f, twice);
    float t = expm1_of(shifted, r), far = t / (t + 2);
    return copysignf(a >= 0.36f ? far : near, x); // near if x is NaN
}

// x = 2^exponent (1 + f), with 1 + f in [sqrt(1/2), sqrt(2)). x is positive and finite.
struct f32_parts {
    float exponent, f;
};
static inline struct f32_parts f32_log_split_normal(float x)
{
    uint32_t bits = bits_of_f32(x) - 0x3f3504f3u;
    float fraction = f32_of_bits((bits & 0x007fffffu) + 0x3f3504f3u);
    return (struct f32_parts){(float)((int32_t)bits >> 23), fraction - 1};
}
static inline struct f32_parts f32_log_split(float x)
{
    // Subnormals are scaled by 2^23 first, to be normal.
    int32_t tiny = x < 1.17549435e-38f;
    struct f32_parts at = f32_log_split_normal(tiny ? x * 8388608.0f : x);
    return (struct f32_parts){at.exponent - (tiny ? 23 : 0), at.f};
}

// log(1 + f) - f, for the f of struct f32_parts.
static inline float f32_log_rest(float f)
{
    float p = 7.14788586e-2f, square = f * f;
    p = fma_f32(p, f, -0.115707077f);
    p = fma_f32(p, f, 0.116619028f);
    p = fma_f32(p, f, -0.124111302f);
    p = fma_f32(p, f, 0.142499089f);
    p = fma_f32(p, f, -0.166684762f);
    p = fma_f32(p, f, 0.200007081f);
    p = fma_f32(p, f, -0.249999896f);
    p = fma_f32(p, f, 0.333333313f);
    return fma_f32(f * square, p, -0.5f * square);
}

// The result of a logarithm of x: y, or a special case if x is no positive finite number.
static inline float f32_log_edges(float x, float y)
{
    y = x == 0 ? -INFINITY : y;
    y = x < 0 ? NAN : y;
    return x < INFINITY ? y : x; // infinity, and NaN
}

static inline float v_LOG(float x)
{
    struct f32_parts at = f32_log_split(x);
    float low = fma_f32(at.exponent, LN2_LOW, f32_log_rest(at.f));
    return f32_log_edges(x, fma_f32(at.exponent, LN2_HIGH, low + at.f));
}

// The logarithm to another base, in which log(2) is two + two_low and log(e) is e + e_low.
static inline float f32_log_to_base(float x, float two, float two_low, float e, float e_low)
{
    struct f32_parts at = f32_log_split(x);
    float rest = fma_f32(f32_log_rest(at.f), e, at.f * e_low);
    float y = fma_f32(at.exponent, two_low, fma_f32(at.f, e, rest));
    return f32_log_edges(x, fma_f32(at.exponent, two, y));
}

static inline float v_LOG2(float x)
{
    return HAS_FMA ? f32_log_to_base(x, 1, 0, 0x1.715476p+0f, 0x1.4ae0cp-26f)
                   : (float)wide_log2((double)x);
}

static inline float v_LOG10(float x)
{
    return HAS_FMA ? f32_log_to_base(x, 0x1.344p-2f, 0x1.3509f8p-18f, 0x1.bcb7b2p-2f,
                                     -0x1.5b235ep-27f)
                   : (float)wide_log10((double)x);
}

// log(u + lost), where u is 1 + x rounded: log(u) + lost / u. The reciprocal of u is made
// of a magic number, within 2 %, and a step of Newton's method. With exponent 0, f is x.
static inline float f32_log1p(float x)
{
    float u = 1 + x, part = u - 1, lost = (1 - (u - part)) + (x - part);
    struct f32_parts at = f32_log_split(u);
    bool is_near = at.exponent == 0;
    float f = is_near ? x : at.f, v = u < 0x1p40f ? u : 0x1p40f;
    float inverse = f32_of_bits(0x7ef311c7u - bits_of_f32(v));
    inverse *= fma_f32(-v, inverse, 2.0f);
    float low = fma_f32(at.exponent, LN2_LOW, f32_log_rest(f));
    low = is_near ? low : fma_f32(lost, inverse, low);
    float y = f32_log_edges(u, fma_f32(at.exponent, LN2_HIGH, low + f));
    y = fabsf(x) < 0x1p-25f ? x : y;
    return x == x ? y : x;
}

static inline float v_LOG1P(float x)
{
    return HAS_FMA ? f32_log1p(x) : (float)wide_log1p((double)x);
}

// The sine of x + quarters * pi/2 for |x| <= WIDE_ANGLE. pi/2 is subtracted in three parts:
// the first difference is exact, for it is below 1 and a multiple of 2^-24; the rounding of
// the second is kept. |r| <= 0.84, as the quotient is rounded. Errors of the polynomials:
// 6.5e-9 and 2.1e-10.
static inline float f32_sin_from(float x, uint32_t quarters)
{
    float shifted = fma_f32(x, 0x1.45f306p-1f, ROUNDER), n = shifted - ROUNDER;
    float first = fma_f32(n, -0x1.921fb6p+0f, x), part = n * 0x1.777a5cp-25f;
    float r = first + part, low = fma_f32(n, 0x1.777a5cp-25f, -part);
    low = fma_f32(n, 0x1.ee59dap-50f, first - r + part + low);
    quarters += bits_of_f32(shifted);
    float z = r * r, sine = fma_f32(-0x1.986672p-13f, z, 0x1.1104aap-7f);
    sine = fma_f32(sine, z, -0x1.55553ep-3f);
    sine = r + fma_f32(r * z, sine, low);
    float cosine = fma_f32(0x1.993834p-16f, z, -0x1.6c09c8p-10f);
    cosine = fma_f32(cosine, z, 0x1.555546p-5f);
    cosine = fma_f32(fma_f32(cosine, z, -0.5f), z, 1);
    float y = quarters & 1 ? cosine : sine;
    return f32_of_bits(bits_of_f32(y) ^ (quarters >> 1 << 31));
}

static inline float v_SIN(float x)
{
    float y = HAS_FMA ? f32_sin_from(x, 0) : (float)wide_sin((double)x);
    return x == 0 ? x : y; // keeps the sign of zero
}

static inline float v_COS(float x)
{
    return HAS_FMA ? f32_sin_from(x, 1) : (float)wide_cos((double)x);
}

// Below 1 a polynomial of x^2, error 1.3e-9; from there on 1 - exp(q), where the polynomial
// q approximates log(erfc(x)), error 1.1e-9. Both are found by Remez's exchange algorithm.
static inline float v_ERF(float x)
{
    float a = fabsf(x), z = x * x;
    float p = 7.85386073e-5f;
    p = fma_f32(p, z, -8.01019371e-4f);
    p = fma_f32(p, z, 5.18832775e-3f);
    p = fma_f32(p, z, -2.68538110e-2f);
    p = fma_f32(p, z, 0.112835854f);
    p = fma_f32(p, z, -0.376126260f);
    p = fma_f32(p, z, 0.128379166f);
    float near = fma_f32(x, p, x);
    float b = a < 4.0f ? a : 4.0f; // 1 - erf(4) is below half an ulp
    float q = 1.86378966e-4f;
    q = fma_f32(q, b, -2.94765620e-3f);
    q = fma_f32(q, b, 2.18380559e-2f);
    q = fma_f32(q, b, -0.103106737f);
    q = fma_f32(q, b, -0.638144851f);
    q = fma_f32(q, b, -1.12708914f);
    q = fma_f32(q, b, -3.41525243e-4f);
    float far = copysignf(expm1_near(q), x);
    far = x == x ? far : x;
    return a < 1.0f ? near : far;
}

// 1 + erf(x), x not NaN. Below 0 it is erfc(-x), since a sum with 1 would lose its bits.
// log2(erfc(|x|)) is |x| times a polynomial, error 2.3e-8 weighted by erfc; exp2(r) - 1 has
// error 2.0e-9. From 3.96 on erfc is 0, as is 1 + erf of f32 numbers. (Inlined, since loops
// with calls are not vectorised.)
static inline __attribute__((always_inline)) float one_plus_erf_f32(float x)
{
    float a = fabsf(x), b = a < 4.0f ? a : 4.0f, q = 4.94950336e-6f;
    q = fma_f32(q, b, -8.22691145e-5f);
    q = fma_f32(q, b, 5.4622622e-4f);
    q = fma_f32(q, b, -1.6069425e-3f);
    q = fma_f32(q, b, -7.37375987e-4f);
    q = fma_f32(q, b, 2.82892305e-2f);
    q = fma_f32(q, b, -0.148513004f);
    q = fma_f32(q, b, -0.918408573f);
    q = fma_f32(q, b, -1.62790918f) * b;
    float shifted = q + ROUNDER, r = q - (shifted - ROUNDER);
    float p = 1.5353362e-4f;
    p = fma_f32(p, r, 1.3398875e-3f);
    p = fma_f32(p, r, 9.61843692e-3f);
    p = fma_f32(p, r, 5.55033237e-2f);
    p = fma_f32(p, r, 0.240226477f);
    p = fma_f32(p, r, 0.693147182f);
    p = fma_f32(p, r, 1);
    float tail = f32_of_bits(bits_of_f32(p) + (bits_of_f32(shifted) << 23));
    tail = a < 3.96f ? tail : 0;
    return x < 0 ? tail : 2 - tail;
}

static inline float v_ONE_PLUS_ERF(float x)
{
    float y = one_plus_erf_f32(x);
    return x == x ? y : x;
}

// Defines a function that is computed in f64 and rounded once.
#define V_WIDE(NAME, name)                                                                 \
    static inline float v_##NAME(float x)                                                  \
    {                                                                                      \
        return (float)wide_##name((double)x);                                              \
    }
V_WIDE(EXPM1, expm1)
V_WIDE(ASIN, asin)
V_WIDE(ACOS, acos)
V_WIDE(ATAN, atan)
V_WIDE(SINH, sinh)
V_WIDE(COSH, cosh)
V_WIDE(ASINH, asinh)
V_WIDE(ACOSH, acosh)
V_WIDE(ATANH, atanh)

// The ratio that <tenon/ops/program.h> has, without its step of Halley's method, which f32
// does not need. (1 - a) (1 + a) is exact in f64; beyond 1 it is negative, and its
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
