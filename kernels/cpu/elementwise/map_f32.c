// SPDX-License-Identifier: MIT
// Operations on f32: the macros that map_float.inc.h needs, and the functions that are fast
// for common operands only.
#include <math.h>
#include <tenon/ops/program.h>
#include "map_loops.h"
#include "variants.h"
#include "math_f32.h"
#include "math_erfinv_f32.h"
#include "math_wide.h"

#define T float
#define WORD int32_t
#define N f32
#define JOIN VC(join_complex64)
#define M(function) function##f
#define CALL1(name, x) v_##name(x)
#define CALL2(name, x, y) v_##name(x, y)

#include "map_rare.inc.h"

MAP1_RARE(SIN_f32, fabsf(x) <= (T)WIDE_ANGLE, v_SIN(x), sinf(x))
MAP1_RARE(COS_f32, fabsf(x) <= (T)WIDE_ANGLE, v_COS(x), cosf(x))
MAP1_RARE(TAN_f32, fabsf(x) <= (T)WIDE_ANGLE, wide_tan((double)x), tanf(x))
MAP2_RARE(MOD_f32, mod_is_common((double)x, (double)y), wide_mod((double)x, (double)y),
          (T)tn_float_remainder((double)x, (double)y))
MAP2_RARE(FLOOR_DIV_f32, floor_divide_is_common((double)x, (double)y),
          wide_floor_divide((double)x, (double)y), CALL_DEFINED(FLOOR_DIV, TN_F32, x, y))
MAP2_RARE(POW_f32, pow_is_common((double)x, (double)y), wide_pow((double)x, (double)y),
          x == 1 || y == 0 ? 1 : powf(x, y)) // 1 even if the other is a signalling NaN
#if HAS_FMA
MAP1_GROUPS(ERFINV_f32, fabsf(x) <= 0.9966f, erfinv_near_f32(x), erfinv_far_f32(x))
#define LOOP_OF_ERFINV OWN_LOOP
#endif

#include "map_float.inc.h"
