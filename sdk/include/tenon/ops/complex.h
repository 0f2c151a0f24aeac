// SPDX-License-Identifier: MIT
// For authors of reference kernels and backends: arithmetic and functions of complex
// numbers in double, plainly and slowly. <tenon/ops/program.h> defines the instructions of
// programs by them, for COMPLEX64 with one rounding of each part at the end.
//
//   // y = exp(x) / x, one element of a complex dtype.
//   tn_complex128 x = tn_get_complex(in, a);
//   tn_set_complex(out, b, tn_complex_divide(tn_complex_function(TN_EXPR_EXP, x), x));
//
// Functions, from the whole to the parts:
//
//   tn_complex_operation    one instruction of one or two operands
//     tn_complex_multiply, tn_complex_divide, tn_complex_power
//     tn_complex_function   one operand
//       tn_complex_library  what C has
//       tn_complex_expm1, tn_complex_log1p
//   tn_complex_part         a real number of a complex one
//   tn_complex_test         yes or no: finite? equal?
//
// What is defined for complex numbers is in the DTYPES column of TN_EXPR_OPS; what needs an
// order (min, max, <, floor, remainders, sign) is not, nor are bits and shifts. (Texts have
// sign(z), z / abs(z) and 0 of 0, which the core compiles to other instructions: their
// programs have no SIGN of complex numbers.)
//
// Derivatives are the core's, in PyTorch's convention: the cotangent of z = x + iy is dL/dx
// + i dL/dy, so that of a holomorphic f it is the cotangent of f(z) times conj(f'(z)).
//
// Accuracy. Sums round each part once. Of products and quotients an error is measured
// against the magnitude of the result: parts that cancel lose digits. The C library's
// functions are within a few units of the last place per part, those that are composed here
// of the magnitude.
//
// Branch cuts. As C11, annex G, and NumPy: sqrt, log and their kind along the negative real
// axis, where the sign of a zero imaginary part says from which side; asin, acos and atanh
// along the real axis beyond -1 and 1; asinh and atan along the imaginary axis beyond -i
// and i; acosh along the real axis below 1.
//
// Names. `a` and `b` are the operands in order, as in tn_expr_insn; `op` is a TN_EXPR_
// number.
//
// Threads. Any thread. All functions are pure, and none fails: what is undefined is NaN.
// Link with -lm.
#ifndef TENON_OPS_COMPLEX_H
#define TENON_OPS_COMPLEX_H

#include <tenon/expr.h>

// Instruction `op` of a complex operand, as the C library's function of the name
// (C11, 7.3), special cases of annex G included:
//
//   SQRT                 the root with a real part of at least 0; of -1: i
//   EXP, LOG             LOG has an imaginary part from -pi to pi, and of 0 is -inf
//   SIN, COS, TAN, SINH, COSH, TANH
//   ASIN, ACOS, ATAN, ASINH, ACOSH, ATANH   principal values
//
// NaNs for a number that is no such `op`. __extension__: complex numbers are C, but no C++.
static inline tn_complex128 tn_complex_library(uint32_t op, tn_complex128 a)
{
    __extension__ _Complex double z;
    double nan = __builtin_nan("");
    tn_complex128 result = {nan, nan};
    __builtin_memcpy(&z, &a, sizeof(z));
    switch (op) {
#define TN_PROGRAM_FUNCTION(name, function)                                                \
    case TN_EXPR_##name:                                                                   \
        z = __builtin_##function(z);                                                       \
        break
        TN_PROGRAM_FUNCTION(SQRT, csqrt);
        TN_PROGRAM_FUNCTION(EXP, cexp);
        TN_PROGRAM_FUNCTION(LOG, clog);
        TN_PROGRAM_FUNCTION(SIN, csin);
        TN_PROGRAM_FUNCTION(COS, ccos);
        TN_PROGRAM_FUNCTION(TAN, ctan);
        TN_PROGRAM_FUNCTION(ASIN, casin);
        TN_PROGRAM_FUNCTION(ACOS, cacos);
        TN_PROGRAM_FUNCTION(ATAN, catan);
        TN_PROGRAM_FUNCTION(SINH, csinh);
        TN_PROGRAM_FUNCTION(COSH, ccosh);
        TN_PROGRAM_FUNCTION(TANH, ctanh);
        TN_PROGRAM_FUNCTION(ASINH, casinh);
        TN_PROGRAM_FUNCTION(ACOSH, cacosh);
        TN_PROGRAM_FUNCTION(ATANH, catanh);
#undef TN_PROGRAM_FUNCTION
    default:
        return result;
    }
    __builtin_memcpy(&result, &z, sizeof(z));
    return result;
}

// (ac - bd) + (ad + bc) i, as NumPy: without the repairs of C11, G.5.1, so that infinity
// times i has a NaN where C finds an infinity. Not contracted: each product is rounded.
static inline tn_complex128 tn_complex_multiply(tn_complex128 a, tn_complex128 b)
{
    tn_complex128 product = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    return product;
}

// Quotient a / b, within a few units of the last place of its magnitude.
//
// By Smith's method ("Algorithm 116: complex division", Communications of the ACM, 1962),
// which divides by the larger part of b first, so that squares do not overflow. By
// 0: each part of a divided by 0, as NumPy. b may have parts of any two magnitudes, and
// what underflows then is small beside the other part; only 1 / b of a tiny b may overflow.
static inline tn_complex128 tn_complex_divide(tn_complex128 a, tn_complex128 b)
{
    double x = __builtin_fabs(b.re), y = __builtin_fabs(b.im), ratio, scale;
    tn_complex128 result = {a.re / x, a.im / x};
    if (x == 0 && y == 0)
        return result;
    if (x >= y) {
        ratio = b.im / b.re;
        scale = 1 / (b.re + b.im * ratio);
        result.re = (a.re + a.im * ratio) * scale;
        result.im = (a.im - a.re * ratio) * scale;
    } else {
        ratio = b.re / b.im;
        scale = 1 / (b.re * ratio + b.im);
        result.re = (a.re * ratio + a.im) * scale;
        result.im = (a.im * ratio - a.re) * scale;
    }
    return result;
}

// EXPM1, exp(a) - 1 as numpy.expm1, without loss of digits near 0, where exp(a) is near 1:
//
//   exp(x + iy) - 1 = expm1(x) cos(y) - 2 sin(y / 2)^2 + i exp(x) sin(y)
//
// since exp(x) cos(y) - 1 is expm1(x) cos(y) + cos(y) - 1, and 1 - cos(y) = 2 sin(y / 2)^2.
// Where x is not finite: exp(a) - 1, as in the array API: infinity + 0i gives itself,
// -infinity beside any y gives -1, infinity beside an infinite y or a NaN gives infinity +
// NaN i, NaN + 0i gives itself. NumPy's formula multiplies 0 by infinity there: its first
// result is infinity + NaN i, its second NaN where y is not finite.
static inline tn_complex128 tn_complex_expm1(tn_complex128 a)
{
    tn_complex128 power = tn_complex_library(TN_EXPR_EXP, a);
    power.re -= 1;
    if (!__builtin_isfinite(a.re))
        return power;
    double half = __builtin_sin(a.im / 2);
    tn_complex128 result = {__builtin_expm1(a.re) * __builtin_cos(a.im) - 2 * half * half,
                            __builtin_exp(a.re) * __builtin_sin(a.im)};
    return result;
}

// TANH, as the C library's, but of an infinite real part: 1 or -1, with a zero of the sign
// of the imaginary part, as in the array API (in C and NumPy: of the sign of its sine).
// Beside an infinite real part the imaginary part, even a NaN, has no other effect.
static inline tn_complex128 tn_complex_tanh(tn_complex128 a)
{
    tn_complex128 limit = {__builtin_copysign(1, a.re), __builtin_copysign(0, a.im)};
    return __builtin_isinf(a.re) ? limit : tn_complex_library(TN_EXPR_TANH, a);
}

// LOG1P, log(1 + a), without loss of digits near 0. The real part is half the logarithm of
//
//   |1 + x + iy|^2 = 1 + x (2 + x) + y^2
//
// where that is near 1, and the logarithm of the modulus, which does not overflow,
// elsewhere. The imaginary part is the angle of 1 + a, from -pi to pi. Of -1: minus
// infinity.
static inline tn_complex128 tn_complex_log1p(tn_complex128 a)
{
    double excess = a.re * (2 + a.re) + a.im * a.im;
    double re = __builtin_fabs(excess) < 0.5
                    ? __builtin_log1p(excess) / 2
                    : __builtin_log(__builtin_hypot(1 + a.re, a.im));
    tn_complex128 result = {re, __builtin_atan2(a.im, 1 + a.re)};
    return result;
}

// POW, as numpy.power:
//
//   b = 0                       1, also of a = 0
//   a = 0                       0 when the real part of b is above 0, and else NaNs
//   b real, whole, at most 100  by repeated squaring: exact for small whole numbers, and
//                               1 / a^-b when b is below 0
//   else                        exp(b log(a)), the principal value
//
// The error of the last line grows with |b log(a)|, as that of real powers does. -8 to the
// power of 1/3 is 1 + 1.73 i here, not -2.
static inline tn_complex128 tn_complex_power(tn_complex128 a, tn_complex128 b)
{
    double nan = __builtin_nan(""), n = __builtin_fabs(b.re);
    tn_complex128 one = {1, 0}, zero = {0, 0}, undefined = {nan, nan}, result = one;
    if (a.re == 0 && a.im == 0 && (b.re != 0 || b.im != 0))
        return b.re > 0 ? zero : undefined;
    if (b.im == 0 && n <= 100 && n == __builtin_trunc(n)) {
        for (uint32_t left = (uint32_t)n; left; left >>= 1, a = tn_complex_multiply(a, a))
            if (left & 1)
                result = tn_complex_multiply(result, a);
        return b.re < 0 ? tn_complex_divide(one, result) : result;
    }
    return tn_complex_library(TN_EXPR_EXP,
                              tn_complex_multiply(b, tn_complex_library(TN_EXPR_LOG, a)));
}

// Instruction `op` of one complex operand that gives a complex number: of the classes SIGN,
// ROOT, FUNCTION and CIRCULAR, where they take complex numbers.
//
//   NEG            both parts negated
//   CONJ           the imaginary part negated
//   RSQRT          1 / sqrt(a)
//   EXP2           exp(log(2) a)
//   LOG2, LOG10    log(a), each part scaled
//   EXPM1, LOG1P, TANH   see above
//   the others     tn_complex_library()
static inline tn_complex128 tn_complex_function(uint32_t op, tn_complex128 a)
{
    tn_complex128 one = {1, 0}, result;
    double log2 = 0.69314718055994530942;
    double scale = op == TN_EXPR_LOG2 ? 1.4426950408889634074 : 0.43429448190325182765;
    switch (op) {
    case TN_EXPR_NEG:
    case TN_EXPR_CONJ:
        result.re = op == TN_EXPR_NEG ? -a.re : a.re;
        result.im = -a.im;
        return result;
    case TN_EXPR_RSQRT:
        return tn_complex_divide(one, tn_complex_library(TN_EXPR_SQRT, a));
    case TN_EXPR_EXP2:
        a.re *= log2;
        a.im *= log2;
        return tn_complex_library(TN_EXPR_EXP, a);
    case TN_EXPR_LOG2:
    case TN_EXPR_LOG10:
        result = tn_complex_library(TN_EXPR_LOG, a);
        result.re *= scale;
        result.im *= scale;
        return result;
    case TN_EXPR_EXPM1:
        return tn_complex_expm1(a);
    case TN_EXPR_LOG1P:
        return tn_complex_log1p(a);
    case TN_EXPR_TANH:
        return tn_complex_tanh(a);
    default:
        return tn_complex_library(op, a);
    }
}

// Instruction `op` of one or two complex operands that gives a complex number; of one
// operand, b is not read.
//
//   ADD, SUB       part by part
//   MUL, DIV, POW  see above
//   the others     tn_complex_function()
static inline tn_complex128 tn_complex_operation(uint32_t op, tn_complex128 a,
                                                 tn_complex128 b)
{
    tn_complex128 result = {a.re + b.re, a.im + b.im};
    switch (op) {
    case TN_EXPR_ADD:
        return result;
    case TN_EXPR_SUB:
        result.re = a.re - b.re;
        result.im = a.im - b.im;
        return result;
    case TN_EXPR_MUL:
        return tn_complex_multiply(a, b);
    case TN_EXPR_DIV:
        return tn_complex_divide(a, b);
    case TN_EXPR_POW:
        return tn_complex_power(a, b);
    default:
        return tn_complex_function(op, a);
    }
}

// Instruction `op`, of class PART, of a complex number: REAL, IMAG, or MODULUS, its
// distance from 0. The modulus does not overflow before the result does; of an infinite
// part it is infinity, even beside a NaN (C11, 7.12.7.3). NaN for a number that is no such
// `op`.
static inline double tn_complex_part(uint32_t op, tn_complex128 a)
{
    return op == TN_EXPR_REAL      ? a.re
           : op == TN_EXPR_IMAG    ? a.im
           : op == TN_EXPR_MODULUS ? __builtin_hypot(a.re, a.im)
                                   : __builtin_nan("");
}

// Instruction `op` of class TEST or COMPARE of complex numbers, 1 when it holds, else 0; a
// test does not read b.
//
//   ISNAN, ISINF  of one part at least; infinity + NaN i is both
//   ISFINITE      of both parts
//   EQ            both parts are equal; -0.0 equals 0.0, and beside a NaN nothing does
//   NE            not EQ, also for a number that is no such `op`
//
// Complex numbers have no order: LT, LE, GT and GE are not defined.
static inline uint64_t tn_complex_test(uint32_t op, tn_complex128 a, tn_complex128 b)
{
    switch (op) {
    case TN_EXPR_ISNAN:
        return __builtin_isnan(a.re) || __builtin_isnan(a.im);
    case TN_EXPR_ISINF:
        return __builtin_isinf(a.re) || __builtin_isinf(a.im);
    case TN_EXPR_ISFINITE:
        return __builtin_isfinite(a.re) && __builtin_isfinite(a.im);
    default:
        return (op == TN_EXPR_EQ) == (a.re == b.re && a.im == b.im);
    }
}

#endif // TENON_OPS_COMPLEX_H
