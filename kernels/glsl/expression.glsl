// SPDX-License-Identifier: MIT
// What kernels made from expressions begin with.
#include "types.glsl"
#include "scalar.glsl"
#include "functions.glsl"
