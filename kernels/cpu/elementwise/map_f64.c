// SPDX-License-Identifier: MIT
// Operations on f64. Functions are vector loops where the processor has fused
// multiply-adds. Other functions, and angles too large for the loops, are computed by
// <tenon/ops/program.h>, mostly with the C library.
#include <math.h>
#include <tenon/ops/program.h>
#include "map_loops.h"
#include "variants.h"
#include "math_erfinv_f64.h"
#include "math_f64.h"

#define T double
#define WORD int64_t
#define N f64
#define JOIN VC(join_complex128)
#define M(function) function
#define DEFINED1(name, x) tn_float_function(TN_EXPR_##name, TN_F64, x)
#define CALL1(name, x) (HAS_FMA ? v_##name(x) : DEFINED1(name, x))
#define CALL2(name, x, y) (HAS_FMA ? v_##name(x, y) : DEFINED2(name, x, y))
#define DEFINED2(name, x, y) tn_float_operation(TN_EXPR_##name, TN_F64, x, y)

#include "map_rare.inc.h"

#if !HAS_FMA
static inline double map_f64_sigmoid(double x)
{
    double e = exp(x);
    e = e > CPU_SIGMOID_MOST ? CPU_SIGMOID_MOST : e; // NaN stays NaN
    return e / (1 + e);
}
#define v_SIGMOID map_f64_sigmoid
#endif

static inline double one_plus_erf_f64(double x)
{
    return 1 + CALL1(ERF, x);
}
#define v_ONE_PLUS_ERF one_plus_erf_f64

// Functions without a vector loop.
#define V_DEFINED(name)                                                                    \
    static inline double v_##name(double x)                                                \
    {                                                                                      \
        return DEFINED1(name, x);                                                          \
    }
V_DEFINED(ASINH)
V_DEFINED(ACOSH)
#if HAS_FMA
MAP1_GROUPS(ERFINV_f64, fabs(x) <= 0.9966, erfinv_near_f64(x), erfinv_far_f64(x))
#define LOOP_OF_ERFINV OWN_LOOP
#else
V_DEFINED(ERFINV)
#endif

#define IS_COMMON(x) (HAS_FMA && fabs(x) <= MOST_ANGLE)
MAP1_RARE(SIN_f64, IS_COMMON(x), v_SIN(x), DEFINED1(SIN, x))
MAP1_RARE(COS_f64, IS_COMMON(x), v_COS(x), DEFINED1(COS, x))
MAP1_RARE(TAN_f64, IS_COMMON(x), v_TAN(x), DEFINED1(TAN, x))
MAP2S(MOD_f64, T, T, DEFINED2(MOD, x, y))

// FLOOR_DIV. The exact quotient may lie below the whole number n to which it is rounded;
// then n * y is above x. Below 2^26, n times either half of y's bits is exact, and so is
// the difference from x when n is near x / y.
static inline bool quotient_is_common(double x, double y)
{
    return (fabs(x / y) < 67108864) & (fabs(y) < (double)INFINITY);
}

static inline double floor_divide(double x, double y)
{
    double quotient = x / y, n = quotient + 0x1.8p52 - 0x1.8p52;
    n = n > quotient ? n - 1 : n;
    double high = f64_of_bits(bits_of_f64(y) & ~UINT64_C(0x7ffffff)), low = y - high;
    double rest = x - n * high - n * low;
    return copysign(rest * copysign(1, y) < 0 ? n - 1 : n, quotient);
}

MAP2_RARE(FLOOR_DIV_f64, quotient_is_common(x, y), floor_divide(x, y),
          CALL_DEFINED(FLOOR_DIV, TN_F64, x, y))
#if HAS_FMA
MAP2_RARE(POW_f64, pow_f64_is_common(x, y), v_POW(x, y), DEFINED2(POW, x, y))
#else
MAP2S(POW_f64, T, T, DEFINED2(POW, x, y))
#endif

#include "map_float.inc.h"
