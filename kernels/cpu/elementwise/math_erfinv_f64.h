// SPDX-License-Identifier: MIT
// The inverse of the error function of f64 in vectors, made of fused multiply-adds. Largest
// error found: see math_f64.h.
//
// erfinv(x) = |x| P(w), w = -log(1 - x^2): by a polynomial in w - 2.5 up to w = 5, and from
// there on by polynomials in sqrt(w), as P is nearly sqrt(w). Polynomials are minimax ones,
// found by Remez's exchange algorithm in 60 digits; the error of each is given beside it.
#ifndef KERNELS_CPU_MATH_ERFINV_F64_H
#define KERNELS_CPU_MATH_ERFINV_F64_H

#include "math_f64.h"

// |x| (base + rest) with the sign of x, where `rest` is small beside `base`: the product of
// |x| and `base` has two parts.
INLINE double erfinv_product(double x, double a, double base, double rest)
{
    double product = a * base, rounding = fma(a, base, -product);
    return copysign(product + fma(a, rest, rounding), x);
}

// log(1 - a^2), without the special cases of a logarithm.
INLINE struct f64_pair erfinv_log_f64(double a)
{
    struct f64_parts at = log_split_normal(fma(-a, a, 1.0), 0x1p52 + 1023);
    struct f64_pair near = log_near(at.f);
    near.low = fma(at.exponent, LN2_LOW, near.low);
    return normal_pair(add_to_pair(at.exponent * LN2_HIGH, near));
}

// P(0) in two parts, the first of which has few bits, and an approximation of P's slope.
#define P_0 0x1.c5bf88p-1
#define P_0_REST 0x1.1b4ef6aa79c3bp-25
#define SLOPE 0.24

// By P(0) + w R(w), up to w = 5; R's error is 2.1e-18.
INLINE double erfinv_near_f64(double x)
{
    double a = fabs(x);
    struct f64_parts at = log_split_normal(fma(-a, a, 1.0), 0x1p52 + 1023);
    struct f64_pair near = log_near(at.f);
    double w =
        fma(at.exponent, -LN2_HIGH, fma(at.exponent, -LN2_LOW, -near.low) - near.high);
    double s = w - 2.5;
    double z = s * s, even = 0x1.9609b0c5bd28ep-62, odd = -0x1.47ad7abe76d20p-64;
    even = fma(even, z, -0x1.5555f2cad8042p-55);
    odd = fma(odd, z, 0x1.2c216ea0e58e5p-58);
    even = fma(even, z, 0x1.215b611b84b85p-49);
    odd = fma(odd, z, -0x1.99675f8042423p-55);
    even = fma(even, z, -0x1.fbd8aac62f11cp-45);
    odd = fma(odd, z, -0x1.1c8ec2500880bp-47);
    even = fma(even, z, -0x1.b7072712e82b3p-41);
    odd = fma(odd, z, 0x1.7ce0d0313a8dep-41);
    even = fma(even, z, 0x1.a74a078d1c056p-33);
    odd = fma(odd, z, -0x1.006edaa24cba2p-35);
    even = fma(even, z, -0x1.99c9704223038p-27);
    odd = fma(odd, z, 0x1.d47ab42636160p-32);
    even = fma(even, z, 0x1.8df9af66bef43p-22);
    odd = fma(odd, z, 0x1.735dc34de06a5p-25);
    even = fma(even, z, 0x1.89643bcf50485p-18);
    odd = fma(odd, z, -0x1.2378174db2a0cp-18);
    even = fma(even, z, -0x1.cdd16cffaf4cdp-10);
    odd = fma(odd, z, 0x1.aaf86340f919fp-13);
    even = fma(even, z, 0x1.f7f51afdae3fep-3);
    odd = fma(odd, z, 0x1.dbe4239db5671p-13);
    double q = fma(odd, s, even);
    double product = w * q, high = P_0 + product, low = product - (high - P_0) + P_0_REST;
    low += fma(w, q, -product);
    return erfinv_product(x, a, high, low);
}

// By polynomials in sqrt(w), from w = 5 on; errors: 1.4e-17 up to 3.75, 7.3e-18 beyond.
INLINE double erfinv_far_f64(double x)
{
    double a = fabs(x);
    struct f64_pair log = erfinv_log_f64(a < 1 ? a : 0);
    double t = sqrt(-log.high), lost = (fma(t, t, log.high) + log.low) * (-0.5 / t);
    bool is_lower = t < 3.75;
    double u = t - (is_lower ? 3.0 : 4.9), q = is_lower ? -0x1.2c7a07321bd7ep-26 : 0.0;
#define NEXT(lower, upper) q = fma(q, u, is_lower ? (lower) : (upper))
    NEXT(-0x1.f195f1f1bcf57p-26, 0x1.6c45f0e4801ffp-38);
    NEXT(0x1.9ceaa345f1c60p-23, -0x1.1666bc1459de9p-35);
    NEXT(-0x1.0dd1b82987048p-23, 0x1.252407837c79fp-34);
    NEXT(-0x1.65d551b714156p-21, 0x1.de3a390564955p-38);
    NEXT(0x1.10eacd3a7f66cp-19, -0x1.00d01d5e8dcc3p-31);
    NEXT(-0x1.b85001f5abf56p-20, 0x1.0d04f6f6a9d61p-29);
    NEXT(-0x1.9022904700122p-18, -0x1.8de72ec0a0580p-28);
    NEXT(0x1.6feec5ee7fd75p-16, 0x1.d9e5d924fc7b8p-27);
    NEXT(-0x1.7fada9f612a32p-16, -0x1.df6ac65509293p-26);
    NEXT(-0x1.85bb3ac22dda8p-15, 0x1.bf51a93b50da6p-25);
    NEXT(0x1.aeff81bf4d786p-13, -0x1.cb5bf3b84a567p-24);
    NEXT(-0x1.28e0a9023d991p-12, 0x1.486d695d3c9a4p-22);
    NEXT(-0x1.384305c0d5eb6p-13, -0x1.435ed7cd7c1efp-20);
    NEXT(0x1.84f3ed98e0cc8p-10, 0x1.631e2f9462b60p-18);
    NEXT(-0x1.d2754fdb468a4p-9, -0x1.7b7edbc8935d3p-16);
    NEXT(0x1.7495888e326dcp-8, 0x1.6b05fd5d8dad9p-14);
    NEXT(-0x1.f4f1c6f0a21e0p-8, -0x1.03833c58d1f1cp-12);
    NEXT(0x1.3582c8114cfd9p-7, -0x1.2347df91516cbp-14);
    NEXT(0x1.b729ea7089ac0p-10, 0x1.52368b9ef2223p-7);
    NEXT(-0x1.561042991519bp-3, -0x1.3580ec91455aap-3);
#undef NEXT
    double edge = copysign(a == 1 ? (double)INFINITY : (double)NAN, x);
    return a < 1 ? erfinv_product(x, a, t, q + lost) : edge;
}

#endif // KERNELS_CPU_MATH_ERFINV_F64_H
