// SPDX-License-Identifier: MIT
// What kernels made from expressions begin with.
#include "types.glsl"
#include "scalar.glsl"
#include "functions.glsl"
#include "functions_f64.glsl"
#include "circular_f64.glsl"
