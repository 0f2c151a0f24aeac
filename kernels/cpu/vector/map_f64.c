// SPDX-License-Identifier: MIT
// Operations on f64. Functions are those of <tenon/ops/program.h>, mostly the C library's.
#include <math.h>
#include <tenon/ops/program.h>
#include "variant.h"

#define T double
#define N f64
#define JOIN VC(join_complex128)
#define M(function) function
#define CALL1(name, x) tn_float_function(TN_EXPR_##name, TN_F64, x)
#define CALL2(name, x, y) tn_float_operation(TN_EXPR_##name, TN_F64, x, y)

MAP1(SIN_f64, T, T, CALL1(SIN, x))
MAP1(COS_f64, T, T, CALL1(COS, x))
MAP1(TAN_f64, T, T, CALL1(TAN, x))
MAP2S(MOD_f64, T, T, CALL2(MOD, x, y))
MAP2S(POW_f64, T, T, CALL2(POW, x, y))

#include "map_float.inc.h"
