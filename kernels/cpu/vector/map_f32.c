// SPDX-License-Identifier: MIT
// Operations on f32.
#include <math.h>
#include "variant.h"
#include "math_f32.h"

#define T float
#define N f32
#define M(function) function##f

// Reduced by the C library.
MAP1(sin_f32, T, T, M(sin)(x))
MAP1(cos_f32, T, T, M(cos)(x))

#include "map_float.inc.h"
