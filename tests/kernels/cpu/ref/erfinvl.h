// SPDX-License-Identifier: MIT
// The inverse of the error function of long double.
#ifndef TESTS_KERNELS_CPU_REF_ERFINVL_H
#define TESTS_KERNELS_CPU_REF_ERFINVL_H

#include <math.h>
#include <tenon/ops/erfinv.h>

// By Halley's method, four steps of it, from the definition on.
static long double erfinvl(long double x)
{
    const long double half_root_pi = 0.886226925452758013649083741670572591L;
    long double a = fabsl(x), rest = 1 - a, y = tn_erfinv((double)a);
    for (int i = 0; i < 4 && a > 0 && a < 1; i++) {
        long double error = y < 1 ? erfl(y) - a : rest - erfcl(y);
        long double step = error * half_root_pi * expl(y * y);
        y -= step / (1 + y * step);
    }
    return copysignl(y, x);
}

#endif // TESTS_KERNELS_CPU_REF_ERFINVL_H
