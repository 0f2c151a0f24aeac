// SPDX-License-Identifier: MIT
// The gamma function of f32, computed in f64 and rounded once, within 0.6 ulp. Below 8 by
// recurrence to [1, 2] and a polynomial there, whose coefficients are those of
// GAMMA_NEAR_32 in pack base (elementwise/special.py), error 1e-8; from 8 on by Stirling's
// series; below 0 by reflection.
#ifndef KERNELS_CPU_MATH_GAMMA_H
#define KERNELS_CPU_MATH_GAMMA_H

#include "math_wide.h"

// gamma(y) for 0 <= y < 8: y = z + k with z in [1, 2); below 1 it is gamma(y + 1) / y.
static inline double gamma_near(double y)
{
    double k = y < 1 ? 0 : floor(y) - 1, z = y - k, p;
    double t = 2 * z - (y < 1 ? 1 : 3), g = 1.59627518e-05;
    g = t * g - 4.63863646e-05;
    g = t * g + 9.52393024e-05;
    g = t * g - 0.000283263442;
    g = t * g + 0.000918842261;
    g = t * g - 0.0024287589;
    g = t * g + 0.00903960312;
    g = t * g - 0.0134107276;
    g = t * g + 0.103703427;
    g = t * g + 0.0161691418;
    g = t * g + 0.886226925;
    p = k > 0 ? z : 1;
    p *= k > 1 ? z + 1 : 1;
    p *= k > 2 ? z + 2 : 1;
    p *= k > 3 ? z + 3 : 1;
    p *= k > 4 ? z + 4 : 1;
    p *= k > 5 ? z + 5 : 1;
    return g * p / (y < 1 ? y : 1);
}

// gamma(x) for any x. Magnitudes are clamped at 172, or -171, where the result in f32 is
// infinity, or 0, already.
static inline double gamma_any(double x)
{
    double y = x < 0 ? 1 - x : x, whole = rint(x), half = 0.5 * whole;
    y = y > 172 ? 172 : y; // NaN stays NaN
    double i = 1 / y, r = i * i, tail = i * (1 / 12.0 - r * (1 / 360.0 - r * (1 / 1260.0)));
    double power = (y - 0.5) * wide_log2(y) + (tail - y) * WIDE_LOG2_E;
    double far = 2.50662827463100050242 * wide_exp2(power);
    double right = y < 8 ? gamma_near(y) : far;
    double sine = wide_sin(3.14159265358979323846 * (x - whole));
    sine = half == floor(half) ? sine : -sine;
    double left = 3.14159265358979323846 / sine / right;
    left = x == whole ? (double)NAN : left; // -infinity too
    return x < 0 ? left : x < (double)INFINITY ? right : x;
}

#endif // KERNELS_CPU_MATH_GAMMA_H
