// SPDX-License-Identifier: MIT
// The logarithm of the absolute value of the gamma function of f64, as base.lgamma's
// expression for f64 has it (elementwise/special.c in pack base), whose polynomial
// LOG_GAMMA_64 this is: within 12 ulp of the result and of 1. Where there is no fused
// multiply-add, the logarithm and the sine are the C library's.
#ifndef KERNELS_CPU_MATH_LGAMMA_H
#define KERNELS_CPU_MATH_LGAMMA_H

#include "math_f64.h"

#define LGAMMA_LOG(x) (HAS_FMA ? v_LOG(x) : log(x))

INLINE double lgamma_step(double t, double g, double c)
{
    return HAS_FMA ? fma(t, g, c) : t * g + c;
}

// lgamma(1 + u) / (u (u - 1)) for u = t + 1 in [0, 2].
INLINE double lgamma_quotient(double t)
{
    double g = -8.190037783551156e-10;
    g = lgamma_step(t, g, 1.5818126337371086e-09);
    g = lgamma_step(t, g, 2.4694237633377504e-09);
    g = lgamma_step(t, g, -4.358862409072515e-09);
    g = lgamma_step(t, g, -8.952022836709702e-09);
    g = lgamma_step(t, g, 1.6327287432845006e-08);
    g = lgamma_step(t, g, -7.860744687083056e-10);
    g = lgamma_step(t, g, 5.68873795385758e-09);
    g = lgamma_step(t, g, -5.2038665332275675e-08);
    g = lgamma_step(t, g, 1.0444285443279689e-07);
    g = lgamma_step(t, g, -1.861315818147291e-07);
    g = lgamma_step(t, g, 3.95720794275161e-07);
    g = lgamma_step(t, g, -8.554816957122729e-07);
    g = lgamma_step(t, g, 1.8114769634727658e-06);
    g = lgamma_step(t, g, -3.846514242663473e-06);
    g = lgamma_step(t, g, 8.221205092155423e-06);
    g = lgamma_step(t, g, -1.76618554743359e-05);
    g = lgamma_step(t, g, 3.81690832831345e-05);
    g = lgamma_step(t, g, -8.30950999467849e-05);
    g = lgamma_step(t, g, 0.00018255261441838105);
    g = lgamma_step(t, g, -0.0004057073999387517);
    g = lgamma_step(t, g, 0.0009153769241238952);
    g = lgamma_step(t, g, -0.0021081308338291313);
    g = lgamma_step(t, g, 0.004998641164623283);
    g = lgamma_step(t, g, -0.012384192193374355);
    g = lgamma_step(t, g, 0.032965000621156974);
    g = lgamma_step(t, g, -0.1003173016743539);
    g = lgamma_step(t, g, 0.42278433509846713);
    return g;
}

// lgamma(y) for 0 <= y < 8: from 3 on by recurrence from z = y - k below 3, below 1 from
// lgamma(y + 1).
INLINE double lgamma_near(double y)
{
    double k = y >= 3 ? floor(y) - 2 : 0, z = y - k, p = z;
    p *= k > 1 ? z + 1 : 1;
    p *= k > 2 ? z + 2 : 1;
    p *= k > 3 ? z + 3 : 1;
    p *= k > 4 ? z + 4 : 1;
    double u = y < 1 ? y : z - 1, t = u - 1, l = LGAMMA_LOG(p);
    double more = y < 1 ? -l : k > 0 ? l : 0;
    return u * t * lgamma_quotient(t) + more;
}

// lgamma(x) for any x: from 8 on by an asymptotic series, below 0 by reflection.
INLINE double lgamma_any(double x)
{
    double y = x < 0 ? 1 - x : x, i = 1 / y, r = i * i, tail = 3617 / 122400.0;
    tail = 1 / 156.0 - r * tail;
    tail = 691 / 360360.0 - r * tail;
    tail = 1 / 1188.0 - r * tail;
    tail = 1 / 1680.0 - r * tail;
    tail = 1 / 1260.0 - r * tail;
    tail = 1 / 360.0 - r * tail;
    tail = 1 / 12.0 - r * tail;
    double far = (y - 0.5) * (LGAMMA_LOG(y) - 1) + (0.41893853320467274 + i * tail);
    double right = y < 8 ? lgamma_near(y) : far;
    double turn = 3.14159265358979323846 * (x - rint(x));
    double sine = fabs(HAS_FMA ? v_SIN(turn) : sin(turn));
    double left = LGAMMA_LOG(3.14159265358979323846 / sine) - right;
    double result = x < 0 ? left : right;
    return fabs(x) == (double)INFINITY ? (double)INFINITY : result;
}

#endif // KERNELS_CPU_MATH_LGAMMA_H
