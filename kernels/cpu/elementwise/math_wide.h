// SPDX-License-Identifier: MIT
// Functions of f32 that are computed in f64 and rounded once, without branches, so that the
// compiler vectorises loops over them.
//
// Each function takes an f32 as a double and returns a double with at least 31 good bits,
// so that the result is within 0.51 ulp in f32. Polynomials are minimax ones for relative
// error, found by Remez's exchange algorithm in 40 digits; the error of each is given
// beside it. f64 has so many more bits and exponents than f32 that no sum needs
// compensation and nothing overflows.
//
// Products and sums are not contracted into fused multiply-adds, so each variant gives the
// same bits. Values are selected by masks: without SSE 4.1 there is no comparison of 64-bit
// integers.
#ifndef KERNELS_CPU_MATH_WIDE_H
#define KERNELS_CPU_MATH_WIDE_H

#include <math.h>
#include "cpu/variant.h"

// Adding and then subtracting this number rounds to the nearest integer, which is then in
// the low bits of the sum: the ulp of numbers near 2^52 is 1.
#define WIDE_ROUNDER 6755399441055744.0 // 1.5 * 2^52

#define WIDE_LN2 0.6931471805599453
#define WIDE_LOG2_E 1.4426950408889634
#define WIDE_LOG10_2 0.3010299956639812
#define WIDE_LOG10_E 0.4342944819032518
#define WIDE_PI 3.141592653589793
#define WIDE_SIGN UINT64_C(0x8000000000000000)

// `a` if `choice` is odd, otherwise b.
static inline double odd_even(uint64_t choice, double a, double b)
{
    uint64_t mask = 0 - (choice & 1);
    return f64_of_bits((bits_of_f64(a) & mask) | (bits_of_f64(b) & ~mask));
}

// --- exponentials ----------------------------------------------------------------------

// 2^n for n in [-1022, 1023], given as shifted = n + WIDE_ROUNDER, whose low bits are n.
static inline double wide_two_to(double shifted)
{
    return f64_of_bits((bits_of_f64(shifted) + 1023) << 52);
}

// 2^x, clamped to |x| <= 1000. Error 4.0e-11.
static inline double wide_exp2(double x)
{
    x = x > 1000 ? 1000 : x;
    x = x < -1000 ? -1000 : x;
    double shifted = x + WIDE_ROUNDER, r = x - (shifted - WIDE_ROUNDER);
    double p = 1.5201903899169115e-05;
    p = p * r + 0.00015469317588687507;
    p = p * r + 0.0013333922846270735;
    p = p * r + 0.0096180271717355;
    p = p * r + 0.05550410352842092;
    p = p * r + 0.24022651198764725;
    p = p * r + 0.6931471807287074;
    p = p * r + 0.9999999999616187;
    return p * wide_two_to(shifted);
}

// sinh, cosh and exp of one x. With x = n ln(2) + r they are sums of the even and the odd
// part of exp(r), cosh(r) and sinh(r), times 2^n and 2^-n, in which no digits cancel.
// Errors: even part 3.9e-11, odd part 4.5e-12.
struct hyperbolic {
    double sinh, cosh, exp;
};
static inline struct hyperbolic wide_hyperbolic(double x)
{
    x = x > 200 ? 200 : x;
    x = x < -200 ? -200 : x;
    double shifted = x * WIDE_LOG2_E + WIDE_ROUNDER;
    double r = x - (shifted - WIDE_ROUNDER) * WIDE_LN2, z = r * r;
    double even = 0.0013948351794275428;
    even = even * z + 0.04166622250512711;
    even = even * z + 0.5000000105755593;
    even = even * z + 0.9999999999611312;
    double odd = 0.0001990742708587144;
    odd = odd * z + 0.008333283822056238;
    odd = odd * z + 0.16666666784771583;
    odd = (odd * z + 0.9999999999956938) * r;
    double up = 0.5 * wide_two_to(shifted);
    double down = 0.5 * wide_two_to(WIDE_ROUNDER - (shifted - WIDE_ROUNDER));
    double plus = up + down, minus = up - down;
    return (struct hyperbolic){even * minus + odd * plus, even * plus + odd * minus,
                               2 * up * (even + odd)};
}

static inline double wide_sinh(double x)
{
    double y = wide_hyperbolic(x).sinh;
    return x == 0 ? x : y; // keeps the sign of zero
}

static inline double wide_cosh(double x)
{
    return wide_hyperbolic(x).cosh;
}

// expm1(x) = 2 sinh(x / 2) exp(x / 2), without cancellation near 0.
static inline double wide_expm1(double x)
{
    struct hyperbolic half = wide_hyperbolic(0.5 * x);
    double y = 2 * half.sinh * half.exp;
    return x == 0 ? x : y;
}

// --- logarithms ------------------------------------------------------------------------

// x = 2^exponent * fraction, the fraction in [sqrt(1/2), sqrt(2)). x is normal.
struct parts {
    double exponent, fraction;
};
static inline struct parts wide_parts(double x)
{
    const uint64_t root = UINT64_C(0x3fe6a09e667f3bcd), one = UINT64_C(0x3ff) << 52;
    uint64_t bits = bits_of_f64(x) + (one - root);
    uint64_t fraction = (bits & ((UINT64_C(1) << 52) - 1)) + root;
    uint64_t exponent = bits >> 52 | UINT64_C(0x433) << 52; // bits of 2^52 + exponent
    return (struct parts){f64_of_bits(exponent) - (4503599627370496.0 + 1023),
                          f64_of_bits(fraction)};
}

// log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)): 2 atanh(f / (2 + f)). Error 4.8e-12.
static inline double wide_log_near(double f)
{
    double s = f / (2 + f), z = s * s;
    double p = 0.23582406598771066;
    p = p * z + 0.28537296209577484;
    p = p * z + 0.40000335364326506;
    p = p * z + 0.6666666564480687;
    return 2 * s + s * z * p;
}

// The result of a logarithm of x: y, or a special case if x is no positive finite number.
static inline double log_edges(double x, double y)
{
    y = x == 0 ? -(double)INFINITY : y;
    y = x < 0 ? (double)NAN : y;
    return x < (double)INFINITY ? y : x; // infinity, and NaN
}

static inline double wide_log2(double x)
{
    struct parts at = wide_parts(x);
    return log_edges(x, at.exponent + wide_log_near(at.fraction - 1) * WIDE_LOG2_E);
}

static inline double wide_log10(double x)
{
    struct parts at = wide_parts(x);
    double low = wide_log_near(at.fraction - 1) * WIDE_LOG10_E;
    return log_edges(x, at.exponent * WIDE_LOG10_2 + low);
}

static inline double wide_log1p(double x)
{
    struct parts at = wide_parts(1 + x);
    // With exponent 0, x itself is used: bits that 1 + x has lost matter there.
    double near = at.exponent * at.exponent;
    double low = wide_log_near(near > 0 ? at.fraction - 1 : x);
    double y = near > 0 ? at.exponent * WIDE_LN2 + low : low;
    y = log_edges(1 + x, y);
    return x == x ? y : x;
}

static inline double wide_asinh(double x)
{
    double a = fabs(x), square = a * a;
    double y = wide_log1p(a + square / (1 + sqrt(1 + square)));
    return copysign(a < (double)INFINITY ? y : a, x);
}

static inline double wide_acosh(double x)
{
    double t = x - 1, y = wide_log1p(t + sqrt(t * (t + 2)));
    return x < 1 ? (double)NAN : y;
}

static inline double wide_atanh(double x)
{
    double a = fabs(x);
    return copysign(0.5 * wide_log1p(2 * a / (1 - a)), x);
}

// --- powers ----------------------------------------------------------------------------

// x ** y as 2^(y log2(|x|)), with the sign of x where y is odd. For operands for which
// pow_is_common() holds: x is neither zero nor infinite, and positive if y is no integer.
// From 2^24 on all numbers of f32 are even integers.
static inline double wide_pow(double x, double y)
{
    struct parts at = wide_parts(fabs(x));
    double log = at.exponent + wide_log_near(at.fraction - 1) * WIDE_LOG2_E;
    uint64_t odd = bits_of_f64(y + WIDE_ROUNDER) << 63;
    return f64_of_bits(bits_of_f64(wide_exp2(y * log)) | (bits_of_f64(x) & odd));
}
static inline bool pow_is_common(double x, double y)
{
    double a = fabs(x), whole = y + WIDE_ROUNDER - WIDE_ROUNDER;
    return (a > 0) & (a < (double)INFINITY) & (fabs(y) < 16777216) &
           ((x > 0) | (whole == y));
}

// Whether MOD, which is NumPy's remainder with the sign of the divisor, can be computed in
// f64: y is finite, and the quotient below 2^29, so that its integer part times y is exact
// in f64, and so is the remainder.
static inline bool mod_is_common(double x, double y)
{
    return (fabs(x / y) < 536870912) & (fabs(y) < (double)INFINITY);
}

static inline double wide_mod(double x, double y)
{
    double n = x / y + WIDE_ROUNDER - WIDE_ROUNDER;
    double rest = x - n * y;
    double moved = rest * y < 0 ? rest + y : rest;
    return rest == 0 ? copysign(0, y) : moved;
}

// Whether FLOOR_DIV of f32 can be computed in f64: y is finite and the quotient below 2^21.
// Then a quotient that is no whole number is at least 2^-24 away from one, which is more
// than its rounding error in f64.
static inline bool floor_divide_is_common(double x, double y)
{
    return (fabs(x / y) < 2097152) & (fabs(y) < (double)INFINITY);
}

static inline double wide_floor_divide(double x, double y)
{
    double quotient = x / y, n = quotient + WIDE_ROUNDER - WIDE_ROUNDER;
    return copysign(n > quotient ? n - 1 : n, quotient);
}

// --- angles ----------------------------------------------------------------------------

// The greatest angle that wide_reduce() takes. pi/2 is subtracted in three parts (Cody and
// Waite): the first two have 33 bits, so that their products with a multiple of up to 20
// bits are exact, and the sum of the parts is pi/2 but for 2^-100.
#define WIDE_ANGLE 1e6

struct angle {
    double r;          // |r| <= pi/4
    uint64_t quarters; // the multiple of pi/2, of which the low two bits count
};
static inline struct angle wide_reduce(double x)
{
    double shifted = x * 0.6366197723675814 + WIDE_ROUNDER, n = shifted - WIDE_ROUNDER;
    double r = x - n * 0x1.921fb54400000p+0 - n * 0x1.0b4611a600000p-34;
    return (struct angle){r - n * 0x1.3198a2e037073p-69, bits_of_f64(shifted)};
}

// Sine and cosine for |r| <= pi/4. Errors: 4.9e-12 and 5.4e-11.
static inline double wide_sin_near(double r)
{
    double z = r * r, p = 2.7183043047954116e-06;
    p = p * z - 0.0001983933409334368;
    p = p * z + 0.008333329383624249;
    p = p * z - 0.16666666641607467;
    return r * (1 + z * p); // keeps the sign of zero
}
static inline double wide_cos_near(double r)
{
    double z = r * r, p = 2.4390369895795324e-05;
    p = p * z - 0.0013886762959370994;
    p = p * z + 0.04166662329887239;
    p = p * z - 0.4999999972489384;
    return 1 + z * p;
}

// The sine of x + quarters * pi/2.
static inline double wide_sin_from(double x, uint64_t quarters)
{
    struct angle at = wide_reduce(x);
    quarters += at.quarters;
    double y = odd_even(quarters, wide_cos_near(at.r), wide_sin_near(at.r));
    return f64_of_bits(bits_of_f64(y) ^ ((quarters << 62) & WIDE_SIGN));
}

static inline double wide_sin(double x)
{
    return wide_sin_from(x, 0);
}

static inline double wide_cos(double x)
{
    return wide_sin_from(x, 1);
}

static inline double wide_tan(double x)
{
    struct angle at = wide_reduce(x);
    double sine = wide_sin_near(at.r), cosine = wide_cos_near(at.r);
    return odd_even(at.quarters, -cosine, sine) / odd_even(at.quarters, sine, cosine);
}

// --- inverses --------------------------------------------------------------------------

// asin(s) for |s| <= 1/2. Error 1.7e-11.
static inline double wide_asin_near(double s)
{
    double z = s * s, p = 0.034692748682264275;
    p = p * z + 0.007469310903239103;
    p = p * z + 0.024618302361849045;
    p = p * z + 0.03011026241697244;
    p = p * z + 0.04466016275108481;
    p = p * z + 0.07499948159262226;
    p = p * z + 0.166666671897866;
    return s + s * z * p;
}

// asin(x); above 1/2 by the half angle, asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
static inline double wide_asin(double x)
{
    double a = fabs(x);
    double y = wide_asin_near(a > 0.5 ? sqrt((1 - a) * 0.5) : a);
    return copysign(a > 0.5 ? WIDE_PI / 2 - 2 * y : y, x);
}

static inline double wide_acos(double x)
{
    double a = fabs(x);
    double y = wide_asin_near(a > 0.5 ? sqrt((1 - a) * 0.5) : a);
    double far = x > 0 ? 2 * y : WIDE_PI - 2 * y;
    double near = x > 0 ? WIDE_PI / 2 - y : WIDE_PI / 2 + y;
    return a > 0.5 ? far : near;
}

// atan(a) for a in [0, 1]. Error 3.6e-10.
static inline double wide_atan_near(double a)
{
    double z = a * a, p = 0.0011348892222812997;
    p = p * z - 0.007422694220532973;
    p = p * z + 0.02276046545757906;
    p = p * z - 0.044946597660163096;
    p = p * z + 0.06759583325931325;
    p = p * z - 0.08818853437821762;
    p = p * z + 0.11060245987985921;
    p = p * z - 0.1428013097768271;
    p = p * z + 0.19999692631390484;
    p = p * z - 0.3333332743411585;
    return a + a * z * p;
}

static inline double wide_atan(double x)
{
    double a = fabs(x);
    double y = wide_atan_near(a > 1 ? 1 / a : a);
    return copysign(a > 1 ? WIDE_PI / 2 - y : y, x);
}

static inline double wide_atan2(double y, double x)
{
    double a = fabs(x), b = fabs(y), most = a > b ? a : b, least = a > b ? b : a;
    double ratio = most > 0 ? least / most : 0;
    ratio = least == (double)INFINITY ? 1 : ratio;
    double angle = wide_atan_near(ratio);
    angle = b > a ? WIDE_PI / 2 - angle : angle;
    angle = copysign(1, x) < 0 ? WIDE_PI - angle : angle;
    angle = copysign(angle, y);
    return x == x && y == y ? angle : x + y;
}

#endif // KERNELS_CPU_MATH_WIDE_H
