// SPDX-License-Identifier: MIT
// Operations on f64.
#include <math.h>
#include "variant.h"
#include "math_f64.h"

#define T double
#define N f64
#define M(function) function

// Reduced by the C library.
MAP1(sin_f64, T, T, M(sin)(x))
MAP1(cos_f64, T, T, M(cos)(x))

#include "map_float.inc.h"
