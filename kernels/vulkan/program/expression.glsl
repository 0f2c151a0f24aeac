// SPDX-License-Identifier: MIT
// The head of every kernel that is made from an expression.
#include "types.glsl"
#include "divide.glsl"
#include "scalar.glsl"
#include "functions.glsl"
#include "functions_f64.glsl"
#include "circular_f64.glsl"
#include "taken.glsl"
