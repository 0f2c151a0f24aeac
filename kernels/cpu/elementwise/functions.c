// SPDX-License-Identifier: MIT
// Loops of functions that have no instruction in expressions.
#include "functions.h"

#include "map_loops.h"
#include "math_cbrt.h"
#include "math_gamma.h"
#include "variants.h"

#define T float
#define WORD int32_t
#include "map_groups.inc.h"

MAP1(cbrt_f32, float, float, v_CBRT_f32(x))
MAP1(cbrt_f64, double, double, v_CBRT_f64(x))
MAP1_GROUPS(gamma_f32, (x >= 0) & (x < 8), (float)gamma_near((double)x),
            (float)gamma_any((double)x))

const struct cpu_function_kernels V(cpu_functions) = {
    .cbrt_f32 = cbrt_f32,
    .cbrt_f64 = cbrt_f64,
    .gamma_f32 = gamma_f32,
    .lgamma_f64 = V(cpu_lgamma_f64),
};
