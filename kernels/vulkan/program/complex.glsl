// SPDX-License-Identifier: MIT
// The instructions of compiled expressions on complex numbers, op_NAME_c(a, b) of vec2 and dvec2
// (real part, imaginary part), with the meaning that <tenon/ops/complex.h> gives them. Needs
// scalar.glsl and functions.glsl; compiled with NEED_COMPLEX_NUMBERS, and NEED_NAME as there.
//
// Bounds, in units in the last place of the result's magnitude, checked by the tests: functions 6;
// exp2 6 + |imaginary part|; pow 12 + 2 |b log a|, and 4 |b| more where b is whole. Branch cuts are
// taken by the signs of zeros. exp, log and sqrt of infinities and NaNs are those of C11, annex G;
// other functions of them may be NaN in more cases.

// --- arithmetic ---------------------------------------------------------------------------

#define op_NEG_c(a) (-(a))
#define op_ADD_c(a, b) ((a) + (b))
#define op_SUB_c(a, b) ((a) - (b))
#define op_EQ_c(a, b) ((a) == (b))
#define op_NE_c(a, b) (!((a) == (b)))
#define op_REAL_c(a) ((a).x)
#define op_IMAG_c(a) ((a).y)
#define op_ISNAN_c(a) (is_nan((a).x) || is_nan((a).y))
#define op_ISINF_c(a) (is_inf((a).x) || is_inf((a).y))
#define op_ISFINITE_c(a) (is_finite((a).x) && is_finite((a).y))

#ifdef NEED_COMPLEX_NUMBERS
#include "complex_functions.glsl"
#ifdef NEED_F64_FUNCTIONS
#include "complex_functions_f64.glsl"
#endif
#endif
