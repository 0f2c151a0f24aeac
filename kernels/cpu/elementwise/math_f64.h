// SPDX-License-Identifier: MIT
// Functions of f64, without branches, so that the compiler vectorises loops over them.
//
// They are made of fused multiply-adds: where the processor has none, map_f64.c calls the C
// library. Polynomials are minimax ones, found by Remez's exchange algorithm in 50 digits;
// the error of each is given beside it. Sums whose rounding would cost too much are kept in
// two parts. Largest errors found among 20 million numbers each, in ulp, against long
// double: exp 1.07, exp2 1.14, expm1 1.19, log 0.78, log2 0.70, log10 0.64, log1p 0.79, sin
// 0.78, cos 0.79, tan 0.97, asin 1.12, acos 1.09, atan 1.39, atan2 1.33, atanh 0.78, sinh
// 1.27, cosh 1.03, tanh 1.00, erf 1.16, erfinv 1.40, sigmoid 1.46, pow 0.97.
//
// Variants give the same bits: fma() is written wherever a product and a sum are rounded
// once, and the compiler contracts nothing.
#ifndef KERNELS_CPU_MATH_F64_H
#define KERNELS_CPU_MATH_F64_H

#include <math.h>
#include "math_wide.h"
#include "cpu/variant.h"

// A function that must be part of its caller's loop, however long it is.
#define INLINE static inline __attribute__((always_inline))

// ln 2 in two parts: the product of the first one and an exponent is exact.
#define LN2_HIGH 0x1.62e42fee00000p-1
#define LN2_LOW 0x1.a39ef35793c76p-33

// Below this magnitude x is the nearest f64 to expm1(x), log1p(x), sinh(x) and tanh(x).
#define TINY 0x1p-54

// A number as the sum of two parts, which is more precise than one f64.
struct f64_pair {
    double high, low;
};

// The same number, normalised: `high` is the nearest f64.
INLINE struct f64_pair normal_pair(struct f64_pair a)
{
    double high = a.high + a.low;
    return (struct f64_pair){high, a.high - high + a.low};
}

// a / b of normal pairs: a reciprocal, and one step that corrects the quotient.
INLINE double divide_pairs(struct f64_pair a, struct f64_pair b)
{
    double inverse = 1 / b.high, q = a.high * inverse;
    double rest = fma(-q, b.high, a.high) + fma(-q, b.low, a.low);
    return fma(rest, inverse, q);
}

// c + a, exact but for the rounding of a.low, where a.high and c are within 2^53 of each
// other.
INLINE struct f64_pair add_to_pair(double c, struct f64_pair a)
{
    double high = c + a.high;
    return (struct f64_pair){high, a.high - (high - c) + a.low};
}

// --- exponentials ----------------------------------------------------------------------

// (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2, error 1.9e-17 of (exp(r) - 1).
INLINE double exp_rest(double r)
{
    double q = 0x1.af75f437384e7p-26;
    q = fma(q, r, 0x1.28a1e18260d52p-22);
    q = fma(q, r, 0x1.71ddea8d0b891p-19);
    q = fma(q, r, 0x1.a019a7805ed12p-16);
    q = fma(q, r, 0x1.a01a01b591550p-13);
    q = fma(q, r, 0x1.6c16c17ecd6bbp-10);
    q = fma(q, r, 0x1.111111110e7c8p-7);
    q = fma(q, r, 0x1.5555555552322p-5);
    q = fma(q, r, 0x1.555555555555cp-3);
    return fma(q, r, 0x1.0000000000005p-1);
}

// p 2^n, where p is between 0.7 and 1.42 and n is shifted - WIDE_ROUNDER, at least -1082: n
// is added to the exponent bits of p. A result that may be subnormal is computed 2^64 times
// as large, and rounded by a product.
INLINE double f64_scaled(double p, double shifted)
{
    bool is_small = shifted < WIDE_ROUNDER - 1020;
    uint64_t exponent = bits_of_f64(shifted) + (is_small ? UINT64_C(64) : 0);
    double result = f64_of_bits(bits_of_f64(p) + (exponent << 52));
    return result * (is_small ? 0x1p-64 : 1.0);
}

// exp(r) 2^n, with n as for f64_scaled().
INLINE double f64_exp_scaled(double r, double shifted)
{
    return f64_scaled(1 + fma(exp_rest(r), r * r, r), shifted);
}

// n + WIDE_ROUNDER for the n nearest to x / ln(2), |x| <= 750.
INLINE double exp_shifted(double x)
{
    return fma(x, 0x1.71547652b82fep+0, WIDE_ROUNDER);
}

INLINE double v_EXP(double x)
{
    bool is_zero = x < -746; // then computes exp(0): products that underflow are slow
    double y = is_zero ? 0 : x, shifted = exp_shifted(y), n = shifted - WIDE_ROUNDER;
    double r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, y)), result = f64_exp_scaled(r, shifted);
    result = is_zero ? 0 : result;
    return x <= 0x1.62e42fefa39efp+9 ? result : x + (double)INFINITY; // NaN stays NaN
}

// e / (1 + e), with the rounding errors of sum and quotient added, and r in two parts.
INLINE double v_SIGMOID(double x)
{
    double y = x < -746 ? -746 : x > 64 ? 64 : x;
    double shifted = exp_shifted(y), n = shifted - WIDE_ROUNDER;
    double near = fma(n, -LN2_HIGH, y), r = fma(n, -LN2_LOW, near);
    double r_low = fma(n, -LN2_LOW, near - r);
    double e = f64_scaled(1 + (r + fma(exp_rest(r), r * r, r_low)), shifted);
    struct f64_pair over = {e, 0};
    y = divide_pairs(over, add_to_pair(1, over));
    return x == x ? y : x;
}

INLINE double v_EXP2(double x)
{
    double y = x < -1080 ? -1080 : x, shifted = y + WIDE_ROUNDER;
    double r = (y - (shifted - WIDE_ROUNDER)) * 0x1.62e42fefa39efp-1;
    double result = f64_exp_scaled(r, shifted);
    return x < 1024 ? result : x + (double)INFINITY; // NaN stays NaN
}

// (exp(x) - 1) / 4 for x between -60 and MOST_EXPONENT; cosh(MOST_EXPONENT) is infinite.
#define MOST_EXPONENT 710.6
INLINE struct f64_pair quarter_expm1(double x)
{
    double shifted = exp_shifted(x), n = shifted - WIDE_ROUNDER;
    double y = fma(n, -LN2_HIGH, x), r = fma(n, -LN2_LOW, y);
    double r_low = fma(n, -LN2_LOW, y - r);
    double scale = f64_of_bits((bits_of_f64(shifted) + 1021) << 52); // 2^n / 4
    double whole = scale - 0.25, high = fma(scale, r, whole);
    double low = fma(scale, r, whole - high);
    return normal_pair(
        (struct f64_pair){high, fma(scale, fma(exp_rest(r), r * r, r_low), low)});
}

INLINE double v_EXPM1(double x)
{
    double y = x > MOST_EXPONENT ? MOST_EXPONENT : x;
    struct f64_pair t = quarter_expm1(y < -60 ? -60 : y);
    y = 4 * t.high;
    y = fabs(x) < TINY ? x : y;
    return x == x ? y : x;
}

// t / (t + 2) with t = exp(2 |x|) - 1. 1 - tanh(22) is below half an ulp.
INLINE double v_TANH(double x)
{
    double a = fabs(x), twice = a < 22 ? a + a : 44;
    struct f64_pair t = quarter_expm1(twice);
    double y = divide_pairs(t, add_to_pair(0.5, t));
    y = a < TINY ? a : y;
    return x == x ? copysign(y, x) : x;
}

// (t + t / (t + 1)) / 2 with t = exp(|x|) - 1.
INLINE double v_SINH(double x)
{
    double a = fabs(x);
    struct f64_pair t = quarter_expm1(a < MOST_EXPONENT ? a : MOST_EXPONENT);
    double y = 0.5 * divide_pairs(t, add_to_pair(0.25, t)) + 2 * t.low;
    y = 2 * t.high + y;
    y = a < TINY ? a : y;
    return x == x ? copysign(y, x) : x;
}

INLINE double v_COSH(double x)
{
    double a = fabs(x);
    struct f64_pair e =
        add_to_pair(0.25, quarter_expm1(a < MOST_EXPONENT ? a : MOST_EXPONENT));
    double y = 2 * e.high + (2 * e.low + 0.125 / e.high);
    return x == x ? y : x;
}

// --- logarithms ------------------------------------------------------------------------

// x = 2^exponent (1 + f), with 1 + f in [sqrt(1/2), sqrt(2)). x is positive and finite.
struct f64_parts {
    double exponent, f;
};
INLINE struct f64_parts log_split_normal(double x, double bias)
{
    const uint64_t root = UINT64_C(0x3fe6a09e667f3bcd), one = UINT64_C(0x3ff) << 52;
    uint64_t bits = bits_of_f64(x) + (one - root);
    uint64_t fraction = (bits & ((UINT64_C(1) << 52) - 1)) + root;
    uint64_t exponent = bits >> 52 | UINT64_C(0x433) << 52; // bits of 2^52 + exponent
    return (struct f64_parts){f64_of_bits(exponent) - bias, f64_of_bits(fraction) - 1};
}
INLINE struct f64_parts log_split(double x)
{
    bool is_tiny = x < 0x1p-1022; // subnormals are scaled, to be normal
    return log_split_normal(is_tiny ? x * 0x1p54 : x,
                            is_tiny ? 0x1p52 + 1023 + 54 : 0x1p52 + 1023);
}

// log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + R(s^2)), where s = f / (2 + f) and R's error is
// 1.6e-18 of the logarithm.
INLINE struct f64_pair log_near(double f)
{
    double s = f / (2 + f), z = s * s, half = 0.5 * f;
    double p = 0x1.2e36fcf8b7165p-3;
    p = fma(p, z, 0x1.39b79d757c34cp-3);
    p = fma(p, z, 0x1.74655472ea040p-3);
    p = fma(p, z, 0x1.c71c56ed1fd5dp-3);
    p = fma(p, z, 0x1.2492493b36fe1p-2);
    p = fma(p, z, 0x1.9999999988a16p-2);
    p = fma(p, z, 0x1.5555555555572p-1);
    double high = fma(-half, f, f), low = fma(-half, f, f - high);
    return (struct f64_pair){high, fma(s, fma(p, z, half * f), low)};
}

INLINE double v_LOG(double x)
{
    struct f64_parts at = log_split(x);
    struct f64_pair near = log_near(at.f);
    double low = fma(at.exponent, LN2_LOW, near.low) + near.high;
    return log_edges(x, fma(at.exponent, LN2_HIGH, low));
}

// The logarithm to another base, in which log(2) is `two` and log(e) is `e`.
INLINE double log_to_base(double x, struct f64_pair two, struct f64_pair e)
{
    struct f64_parts at = log_split(x);
    struct f64_pair near = log_near(at.f);
    double whole = at.exponent * two.high, p = near.high * e.high;
    double low = fma(near.high, e.low, fma(near.high, e.high, -p));
    low = fma(near.low, e.high, fma(at.exponent, two.low, low));
    double high = whole + p;
    return log_edges(x, high + (whole - high + p + low));
}

INLINE double v_LOG2(double x)
{
    return log_to_base(x, (struct f64_pair){1, 0},
                       (struct f64_pair){0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56});
}

INLINE double v_LOG10(double x)
{
    return log_to_base(x, (struct f64_pair){0x1.3441350800000p-2, 0x1.f79fef311f12bp-34},
                       (struct f64_pair){0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57});
}

// log(1 + x + more), where `more` is small beside 1 + x: log(u) + lost / u, where u is 1 +
// x rounded. The reciprocal of u is made of a magic number, within 2 %, and a step of
// Newton's method. With exponent 0, f is x.
INLINE double log1p_pair(double x, double more)
{
    double u = 1 + x, part = u - 1, lost = (1 - (u - part)) + (x - part);
    struct f64_parts at = log_split(u);
    bool is_near = at.exponent == 0;
    struct f64_pair near = log_near(is_near ? x : at.f);
    double v = u < 0x1p60 ? u : 0x1p60;
    double inverse = f64_of_bits(UINT64_C(0x7fde623822fc16e6) - bits_of_f64(v));
    inverse *= fma(-v, inverse, 2.0);
    double low = fma(at.exponent, LN2_LOW, near.low);
    low = fma((is_near ? 0 : lost) + more, inverse, low) + near.high;
    return log_edges(u, fma(at.exponent, LN2_HIGH, low));
}

INLINE double v_LOG1P(double x)
{
    double y = log1p_pair(x, 0);
    y = fabs(x) < TINY ? x : y;
    return x == x ? y : x;
}

// log1p(2 a / (1 - a)) / 2, with the rounding error of the quotient kept.
INLINE double v_ATANH(double x)
{
    double a = fabs(x), under = 1 - a, low = (1 - under) - a, inverse = 1 / under;
    double t = 2 * a * inverse, rest = fma(-t, under, 2 * a) - t * low;
    double y = 0.5 * log1p_pair(t, rest * inverse);
    y = a == 1 ? (double)INFINITY : y;
    return copysign(a < TINY ? a : y, x); // beyond 1 the logarithm is NaN
}

// --- powers ----------------------------------------------------------------------------

// a * b, exact but for the rounding of a.low * b.
INLINE struct f64_pair times_pair(struct f64_pair a, double b)
{
    double high = a.high * b;
    return (struct f64_pair){high, fma(a.low, b, fma(a.high, b, -high))};
}

// log2(x) of a positive finite x, within 2^-64 of it. For m in [sqrt(1/2), sqrt(2)) and s =
// (m - 1) / (m + 1), log2(m) is 2 / ln(2) (s + s^3 (1/3 + q(s^2))), with q's error 9.4e-19
// of s^2. All values but q are pairs.
INLINE struct f64_pair log2_pair(double x)
{
    const struct f64_pair third = {0x1.5555555555555p-2, 0x1.5555555555555p-56},
                          twice = {0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55};
    struct f64_parts at = log_split(x);
    struct f64_pair under = {2 + at.f, 0};
    under.low = at.f - (under.high - 2);
    double inverse = 1 / under.high, s = at.f * inverse;
    double rest = fma(-s, under.low, fma(-s, under.high, at.f)), s_low = rest * inverse;
    struct f64_pair z = times_pair((struct f64_pair){s, 2 * s_low}, s);
    double q = 0x1.e032e4d8436a1p-5;
    q = fma(q, z.high, 0x1.df7c5bc7c7563p-5);
    q = fma(q, z.high, 0x1.1118c9ee5b8a4p-4);
    q = fma(q, z.high, 0x1.3b1395c881220p-4);
    q = fma(q, z.high, 0x1.745d177aad02ap-4);
    q = fma(q, z.high, 0x1.c71c71c6ea871p-4);
    q = fma(q, z.high, 0x1.2492492492522p-3);
    q = fma(q, z.high, 0x1.999999999999ap-3) * z.high;
    double t = third.high + q, t_low = q - (t - third.high) + third.low;
    struct f64_pair w = times_pair(z, t);
    w.low = fma(z.high, t_low, w.low);
    struct f64_pair cube = times_pair(w, s);
    cube.low = fma(w.high, s_low, cube.low) + s_low;
    struct f64_pair log = times_pair(add_to_pair(s, cube), twice.high);
    log.low = fma(s + cube.high, twice.low, log.low);
    return add_to_pair(at.exponent, log);
}

// Whether v_POW() takes x and y: x is neither zero nor infinite, and positive if y is no
// integer; |y| is below 2^51.
INLINE bool pow_f64_is_common(double x, double y)
{
    double a = fabs(x), whole = y + WIDE_ROUNDER - WIDE_ROUNDER;
    return (a > 0) & (a < (double)INFINITY) & (fabs(y) < 0x1p51) & ((x > 0) | (whole == y));
}

// exp2(p) of a product p in two parts, and the sign of an odd power.
INLINE double v_POW(double x, double y)
{
    struct f64_pair p = times_pair(log2_pair(fabs(x)), y);
    double least = p.high < -1080 ? -1080 : p.high, high = least > 1025 ? 1025 : least;
    double low = high == p.high ? p.low : 0, shifted = high + WIDE_ROUNDER;
    double near = high - (shifted - WIDE_ROUNDER), r = near + low;
    low = near - r + low;
    double e = r * 0x1.62e42fefa39efp-1;
    double e_low = fma(r, 0x1.62e42fefa39efp-1, -e);
    e_low = fma(r, 0x1.abc9e3b39803fp-56, fma(low, 0x1.62e42fefa39efp-1, e_low));
    // exponents of 1024 and more: the result overflows
    bool is_large = shifted >= WIDE_ROUNDER + 1024;
    double result = f64_scaled(1 + (e + fma(exp_rest(e), e * e, e_low)),
                               is_large ? shifted - 2 : shifted);
    result *= is_large ? 4.0 : 1.0;
    uint64_t odd = bits_of_f64(y + WIDE_ROUNDER) << 63;
    return f64_of_bits(bits_of_f64(result) | (bits_of_f64(x) & odd));
}

// --- angles ----------------------------------------------------------------------------

// The greatest angle that reduce_angle() takes. pi/2 is subtracted in three parts of 53
// bits: the first difference is exact, for it is below 1 and a multiple of 2^-53; the
// rounding of the second is kept.
#define MOST_ANGLE 1e9

struct f64_angle {
    struct f64_pair r; // |r| <= pi/4
    uint64_t quarters; // the multiple of pi/2, of which the low two bits count
};
INLINE struct f64_angle reduce_angle(double x)
{
    double shifted = fma(x, 0x1.45f306dc9c883p-1, WIDE_ROUNDER), n = shifted - WIDE_ROUNDER;
    double first = fma(n, -0x1.921fb54442d18p+0, x), part = n * 0x1.1a62633145c07p-54;
    double rounding = fma(n, 0x1.1a62633145c07p-54, -part);
    double high = first - part, low = first - high - part - rounding;
    low = fma(n, 0x1.f1976b7ed8fbcp-110, low);
    return (struct f64_angle){{high, low}, bits_of_f64(shifted)};
}

// Sine and cosine for |r| <= pi/4. Errors: 3.9e-18 and 8.3e-20.
INLINE struct f64_pair sin_near(struct f64_pair r)
{
    double z = r.high * r.high, p = 0x1.5d9ce2bd16b74p-33;
    p = fma(p, z, -0x1.ae5e8ca07b2b4p-26);
    p = fma(p, z, 0x1.71de35b005bb2p-19);
    p = fma(p, z, -0x1.a01a019c5e374p-13);
    p = fma(p, z, 0x1.111111110fb6dp-7);
    p = fma(p, z, -0x1.555555555554bp-3);
    double low = fma(-0.5 * z, r.low, r.low);
    return (struct f64_pair){r.high, fma(r.high * z, p, low)};
}
INLINE struct f64_pair cos_near(struct f64_pair r)
{
    double z = r.high * r.high, p = -0x1.8feeb56390aa6p-37;
    p = fma(p, z, 0x1.1eea70841bc01p-29);
    p = fma(p, z, -0x1.27e4f8dc9400ap-22);
    p = fma(p, z, 0x1.a01a019defbb3p-16);
    p = fma(p, z, -0x1.6c16c16c15f8cp-10);
    p = fma(p, z, 0x1.5555555555553p-5);
    double half = 0.5 * z, high = 1 - half, low = (1 - high) - half;
    return (struct f64_pair){high, fma(z * z, p, fma(-r.high, r.low, low))};
}

// The sine of x + quarters * pi/2.
INLINE double sin_from(double x, uint64_t quarters)
{
    struct f64_angle at = reduce_angle(x);
    quarters += at.quarters;
    struct f64_pair sine = sin_near(at.r), cosine = cos_near(at.r);
    double y = odd_even(quarters, cosine.high, sine.high) +
               odd_even(quarters, cosine.low, sine.low);
    y = f64_of_bits(bits_of_f64(y) ^ (quarters >> 1 << 63));
    return y;
}

INLINE double v_SIN(double x)
{
    double y = sin_from(x, 0);
    return x == 0 ? x : y; // keeps the sign of zero
}

INLINE double v_COS(double x)
{
    return sin_from(x, 1);
}

INLINE double v_TAN(double x)
{
    struct f64_angle at = reduce_angle(x);
    struct f64_pair sine = normal_pair(sin_near(at.r)),
                    cosine = normal_pair(cos_near(at.r));
    struct f64_pair over = {odd_even(at.quarters, -cosine.high, sine.high),
                            odd_even(at.quarters, -cosine.low, sine.low)};
    struct f64_pair under = {odd_even(at.quarters, sine.high, cosine.high),
                             odd_even(at.quarters, sine.low, cosine.low)};
    double y = divide_pairs(over, under);
    return x == 0 ? x : y;
}

// --- inverses --------------------------------------------------------------------------

#define HALF_PI 0x1.921fb54442d18p+0
#define HALF_PI_LOW 0x1.1a62633145c07p-54

// pi/2 - (a + b), where b is small and a between 0 and 1.5.
INLINE double half_pi_minus(double a, double b)
{
    double high = HALF_PI - a, low = (HALF_PI - high) - a;
    return high + (low - (b - HALF_PI_LOW));
}

// (asin(s) - s) for z = s^2 <= 1/4, error 1.3e-18 of s.
INLINE double asin_rest(double s, double z)
{
    double p = 0x1.05812762ef92dp-5;
    p = fma(p, z, -0x1.44b23b3304974p-6);
    p = fma(p, z, 0x1.554fcd28e8925p-6);
    p = fma(p, z, 0x1.0bbb8f634bd6ep-8);
    p = fma(p, z, 0x1.5dc5453f2997bp-7);
    p = fma(p, z, 0x1.762de2a2f1482p-7);
    p = fma(p, z, 0x1.ca09884911357p-7);
    p = fma(p, z, 0x1.1c4aedee8a611p-6);
    p = fma(p, z, 0x1.6e8bcf817724ap-6);
    p = fma(p, z, 0x1.f1c71b2ee8626p-6);
    p = fma(p, z, 0x1.6db6db7045df3p-5);
    p = fma(p, z, 0x1.3333333330d94p-4);
    p = fma(p, z, 0x1.555555555555ep-3);
    return s * (z * p);
}

// Above 1/2 by the half angle, asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
INLINE double v_ASIN(double x)
{
    double a = fabs(x), half = 0.5 * (1 - a);
    bool is_far = a > 0.5;
    double s = is_far ? sqrt(half) : a, rest = asin_rest(s, is_far ? half : a * a);
    double far = half_pi_minus(2 * s, 2 * rest);
    return copysign(is_far ? far : a + rest, x); // beyond 1 the root is NaN
}

INLINE double v_ACOS(double x)
{
    double a = fabs(x), half = 0.5 * (1 - a);
    bool is_far = a > 0.5;
    double s = is_far ? sqrt(half) : a, rest = asin_rest(s, is_far ? half : a * a);
    double wide = 2 * HALF_PI - (2 * s + (2 * rest - 2 * HALF_PI_LOW));
    double far = x > 0 ? 2 * (s + rest) : wide;
    rest = copysign(rest, x);
    double near = HALF_PI - (x + (rest - HALF_PI_LOW));
    return is_far ? far : near; // near if x is NaN
}

// (atan(a) - a) for a <= 1, error 4.8e-18.
INLINE double atan_rest(double a)
{
    double z = a * a;
    double p = 0x1.d58bc8c34d160p-17;
    p = fma(p, z, -0x1.4f5d33172495dp-13);
    p = fma(p, z, 0x1.c6d5515ac670bp-11);
    p = fma(p, z, -0x1.87bd477a71c92p-9);
    p = fma(p, z, 0x1.e508c8d86746ap-8);
    p = fma(p, z, -0x1.d11c344418291p-7);
    p = fma(p, z, 0x1.6d659558329c0p-6);
    p = fma(p, z, -0x1.ee42ee51223c0p-6);
    p = fma(p, z, 0x1.2d904b9333337p-5);
    p = fma(p, z, -0x1.5a565124f43b6p-5);
    p = fma(p, z, 0x1.8320edf0281fcp-5);
    p = fma(p, z, -0x1.ae73d02ceb58ep-5);
    p = fma(p, z, 0x1.e1c0a51e2e9f7p-5);
    p = fma(p, z, -0x1.110ec1cd2f30bp-4);
    p = fma(p, z, 0x1.3b13752e88443p-4);
    p = fma(p, z, -0x1.745d1304543a3p-4);
    p = fma(p, z, 0x1.c71c7194c7e36p-4);
    p = fma(p, z, -0x1.24924923e46a8p-3);
    p = fma(p, z, 0x1.99999999975c3p-3);
    p = fma(p, z, -0x1.5555555555544p-2);
    return a * (z * p);
}

// Above 1 it is pi/2 - atan(1 / a).
INLINE double v_ATAN(double x)
{
    double a = fabs(x);
    bool is_far = a > 1;
    double b = a < 0x1p60 ? a : 0x1p60, inverse = 1 / b;
    double lost = inverse * fma(-inverse, b, 1.0); // error of `inverse`
    a = is_far ? inverse : a;
    double rest = atan_rest(a), slope = fma(-0.5, a * a, 1.0);
    double far = half_pi_minus(a, fma(lost, slope, rest));
    return copysign(is_far ? far : a + rest, x);
}

// Adds the angle of the lesser of |x| and |y| over the greater one to a multiple of pi/2,
// or subtracts it. The rounding error of the quotient is kept.
INLINE double v_ATAN2(double y, double x)
{
    double a = fabs(x), b = fabs(y), most = a > b ? a : b, least = a > b ? b : a;
    double over = most > 0 ? most : 1, q = least / over, rest = fma(-q, over, least) / over;
    bool is_whole = over < (double)INFINITY;
    double same = least == over ? 1 : 0;
    q = is_whole ? q : same; // the quotient of infinities
    rest = is_whole ? rest : 0;
    double low = atan_rest(q) + rest * fma(-0.5, q * q, 1.0);
    bool is_back = copysign(1, x)<0, is_up = b> a;
    double quarters = (is_up ? 1.0 : 0.0) + ((is_back & !is_up) ? 2.0 : 0.0);
    uint64_t minus = (uint64_t)(is_up != is_back) << 63;
    q = f64_of_bits(bits_of_f64(q) ^ minus);
    low = f64_of_bits(bits_of_f64(low) ^ minus);
    double base = quarters * HALF_PI, high = base + q;
    low += base - high + q + quarters * HALF_PI_LOW;
    double angle = copysign(high + low, y);
    return x == x && y == y ? angle : x + y;
}

// --- the error function ----------------------------------------------------------------

// Below 1 a polynomial of x^2, error 7.3e-18; from there on 1 - exp(q), where q is a
// polynomial of x - 1 that approximates log(erfc(x)), error 6.6e-18 of the result. 1 -
// erf(6) is below half an ulp.
INLINE double v_ERF(double x)
{
    double a = fabs(x), z = x * x, p = -0x1.abae491fac439p-31;
    p = fma(p, z, 0x1.d71b0f1c4ad65p-27);
    p = fma(p, z, -0x1.5c0726f07e275p-23);
    p = fma(p, z, 0x1.b97fd3d99b4b6p-20);
    p = fma(p, z, -0x1.f4ca4d6f3f463p-17);
    p = fma(p, z, 0x1.f9a2baa8fef71p-14);
    p = fma(p, z, -0x1.c02db03dd71f1p-11);
    p = fma(p, z, 0x1.565bccf92b2fap-8);
    p = fma(p, z, -0x1.b82ce311fa93ep-6);
    p = fma(p, z, 0x1.ce2f21a040d16p-4);
    p = fma(p, z, -0x1.812746b0379bdp-2);
    p = fma(p, z, 0x1.06eba8214db68p-3);
    double near = fma(x, p, x), y = (a < 6 ? a : 6) - 1, q = -0x1.5661e2443db8ep-38;
    q = fma(q, y, 0x1.066cb506c4ec4p-33);
    q = fma(q, y, -0x1.6a9ee80d6d361p-30);
    q = fma(q, y, 0x1.24b8fb81be62ap-27);
    q = fma(q, y, -0x1.1ed8ced6e78e6p-25);
    q = fma(q, y, 0x1.f25cbadf6bf14p-25);
    q = fma(q, y, 0x1.b7cf229e47067p-23);
    q = fma(q, y, -0x1.1e24737140465p-19);
    q = fma(q, y, 0x1.44846446f7ad2p-17);
    q = fma(q, y, -0x1.c852aa0c0c9dbp-16);
    q = fma(q, y, 0x1.b92dd9789242cp-16);
    q = fma(q, y, 0x1.f1b04a8f38189p-13);
    q = fma(q, y, -0x1.033f5a12fc692p-9);
    q = fma(q, y, 0x1.48c9d37fc20b6p-7);
    q = fma(q, y, -0x1.5477f099b6c88p-5);
    q = fma(q, y, -0x1.afabc11a2afd9p-1);
    q = fma(q, y, -0x1.51c9b0006c21ap+1);
    q = fma(q, y, -0x1.d97fbf27aa2a1p+0);
    double shifted = exp_shifted(q), n = shifted - WIDE_ROUNDER;
    double r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, q));
    double far = copysign(1 - f64_exp_scaled(r, shifted), x);
    return a >= 1 ? far : near; // near if x is NaN
}

#endif // KERNELS_CPU_MATH_F64_H
