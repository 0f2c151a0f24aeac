// SPDX-License-Identifier: MIT
// Operations on f64.
#include <math.h>
#include "variant.h"
#include "math_f64.h"

#define T double
#define N f64
#define M(function) function

// NumPy's remainder: the sign of the divisor.
static inline T modulo(T x, T y)
{
    T remainder = fmod(x, y);
    if (remainder == 0)
        return copysign(0, y);
    return (remainder < 0) != (y < 0) ? remainder + y : remainder;
}

MAP1(sin_f64, T, T, sin(x))
MAP1(cos_f64, T, T, cos(x))
MAP1(tan_f64, T, T, tan(x))
MAP2S(mod_f64, T, T, modulo(x, y))
MAP2S(pow_f64, T, T, pow(x, y))

#include "map_float.inc.h"
