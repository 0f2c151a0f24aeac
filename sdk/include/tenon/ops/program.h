// SPDX-License-Identifier: MIT
// For authors of backends: runs a program of <tenon/expr.h> on ordinary memory, one element
// at a time. It defines every instruction, plainly and slowly: the core folds constants by
// it, and tests compare kernels with it. A new backend starts with it:
//
//   // A step with a program; bytes_of() gives the memory that is bound to a slot.
//   tn_tensor inputs[TN_EXPR_MAX_INPUTS], outputs[TN_EXPR_MAX_OUTPUTS];
//   for (uint32_t i = 0; i < step->num_inputs; i++) {
//       const tn_value *v = tn_step_input(step, i);
//       inputs[i] = (tn_tensor){bytes_of(v->slot) + v->offset, v->layout};
//   }
//   ... // the outputs likewise
//   tn_program_run(step->program, step->params, inputs, outputs);
//
// A faster one is compared with it, instruction by instruction:
//
//   tn_scalar_value a = {.f = x}, none = {.u = 0};
//   double want = tn_operation(TN_EXPR_EXP, TN_F32, TN_F32, a, none, none).f;
//
// A program is plain data, so tests of a backend write their own and need no core:
//
//   static const tn_expr_insn insns[] = {
//       {.op = TN_EXPR_LOAD, .dtype = TN_F32, .a = 0},        // x
//       {.op = TN_EXPR_CONST, .dtype = TN_F32, .a = 0},       // 0
//       {.op = TN_EXPR_MAX, .dtype = TN_F32, .a = 0, .b = 1}, // max(x, 0)
//   };
//   static const uint64_t constants[] = {0}; // the bits of 0.0 as a double
//   static const uint32_t last = 2;
//   static const tn_dtype f32 = TN_F32;
//   const tn_expr_program relu = {
//       .struct_size = sizeof(relu), .insns = insns, .num_insns = 3,
//       .constants = constants, .num_constants = 1,
//       .input_dtypes = &f32, .num_inputs = 1,
//       .output_dtypes = &f32, .outputs = &last, .num_outputs = 1,
//   };
//   float x[4] = {-1, 0, 1, 2}, y[4];
//   tn_layout layout = {.dtype = TN_F32, .rank = 1, .extent = {4}, .stride = {1}};
//   tn_tensor in = {x, layout}, out = {y, layout};
//   tn_program_run(&relu, NULL, &in, &out); // y is 0, 0, 1, 2
//
// Functions, from the whole to the parts; a faster backend replaces them from the outside
// in:
//
//   tn_program_run             all elements
//     tn_program_step          one instruction of one element
//       tn_operation           one instruction on the values of its operands
//         tn_value_cast        CAST
//         tn_compare           EQ, NE, LT, LE, GT, GE
//         tn_float_operation   floats; tn_float_function: those of one operand
//         tn_complex_operation complex numbers; tn_complex_function: of one operand
//         tn_integer_operation integers and bool
//         tn_value_fit         rounds or wraps the result to its dtype
//
// Tolerance. Every backend gives these results on bool and integers, and on floats for
// conversions and the classes SIGN, ROUND, ARITHMETIC, COMPARE, TEST and SELECT. It may
// differ
//   in FUNCTION, CIRCULAR  by a few units in the last place (tests allow 8 and 16)
//   in POW                 by some tens of units, since y log(x) magnifies errors of log
//   in DIVIDE, ROOT        not on a CPU; on a GPU by 2.5 units of F32, as Vulkan allows
//   of complex numbers     by some units of the last place of the result's magnitude,
//                          per part; in the signs of zeros, in NaNs and infinities
//   in MIN, MAX            by the sign of a zero: which of 0.0 and -0.0 is open
//   in NaNs                by sign and payload
//   on a GPU               by the sign of a zero from functions, and by taking operands
//                          below 2^-126 (subnormal in F32) for 0 in arithmetic
//
// Values. Between instructions a value is a tn_scalar_value that is an element of
// the instruction's dtype already: tn_value_fit() has rounded or wrapped it. Functions
// below whose comment does not say so return a value before that step.
//
// Formats of storage (F16, BF16, floats of 8 bits) appear in memory only: tn_value_load()
// widens an element to F32, and tn_value_store() rounds a value to the element. So a
// backend that keeps values in registers of F32 rounds where this header does.
//
// Complex numbers. A device that lists no complex dtype is never given an instruction of
// one, and needs none of <tenon/ops/complex.h>. Instructions of class PART take a complex
// number and give a float, JOIN the reverse; all others of a complex dtype go to
// tn_complex_operation(), and tests and comparisons to tn_complex_test().
//
// Exactness. Floats are computed in double and rounded once to the instruction's dtype. For
// + - * / and SQRT in F32, rounding to double and then to F32 gives the result of F32
// arithmetic, since 53 >= 2 * 24 + 2 (Figueroa, "When is double rounding innocuous?",
// SIGNUM Newsletter, 1995). The other functions are as exact as the C library's in double:
// within an ulp or so in F64, and nearly always correctly rounded in F32.
//
// Assumes the default rounding mode, no -ffast-math, and a compiler that evaluates double
// expressions in double (FLT_EVAL_METHOD 0). Link with -lm: the __builtin_ functions are
// calls of the C library, named so that this header needs no <math.h>.
//
// Threads. Any thread. All functions are pure but tn_program_run, which writes the elements
// of the outputs. None fails or checks its arguments: the core has checked programs and
// layouts.
#ifndef TENON_OPS_PROGRAM_H
#define TENON_OPS_PROGRAM_H

#include <tenon/expr.h>
#include <tenon/ops/complex.h>
#include <tenon/ops/erfinv.h>
#include <tenon/ops/reference.h>

// The value of one instruction for one element. The dtype says which member holds it. An
// integer narrower than 64 bits is extended, with its sign or with zeros. The real part of
// a complex number is where the value of a float is.
typedef union tn_scalar_value {
    double f;        // float dtypes (tn_is_float); of F16, BF16 and F32 the exact value
    int64_t i;       // signed integers (tn_is_signed)
    uint64_t u;      // unsigned integers; bool as 0 or 1
    tn_complex128 c; // complex dtypes (tn_is_complex): each part as of F32 or F64
} tn_scalar_value;

// `value` as an element of `dtype`, of which it already has the kind: floats are rounded to
// nearest even, integers keep their low bits, bool becomes 0 or 1. Computed by storing to
// memory of that dtype and loading again, so it is tn_set_f64() and tn_set_i64() of
// <tenon/ops/reference.h> that define it.
static inline tn_scalar_value tn_value_fit(tn_dtype dtype, tn_scalar_value value)
{
    tn_complex128 bits = {0, 0};
    tn_tensor tensor;
    tensor.data = &bits;
    tensor.layout.dtype = dtype;
    if (tn_is_complex(dtype)) {
        tn_set_complex(&tensor, 0, value.c);
        value.c = tn_get_complex(&tensor, 0);
    } else if (tn_is_float(tn_dtype_computed(dtype))) {
        tn_set_f64(&tensor, 0, value.f);
        value.f = tn_get_f64(&tensor, 0);
    } else {
        tn_set_i64(&tensor, 0, value.i);
        value.i = tn_get_i64(&tensor, 0);
    }
    return value;
}

// CAST: `v`, of dtype `from`, converted to dtype `to`, as the table of conversions in
// <tenon/expr.h> says. The result fits `to`. Also the conversion from the dtype of a
// program's last instruction to that of an output in memory.
//
// `from` and `to` may be formats of storage, too: values of these are of the dtype in which
// they are computed, F32. Parts of complex numbers are converted as floats; a real number
// has an imaginary part of 0, which a conversion to a real dtype drops.
//
//   F32 300.7 to I8: 127    I32 300 to I8: 44    I8 -1 to U16: 65535
//   I32 2^24 + 1 to F32: 2^24    F64 1e300 to F32: infinity    F32 NaN to I32: 0
static inline tn_scalar_value tn_value_cast(tn_dtype from, tn_dtype to, tn_scalar_value v)
{
    tn_dtype a = tn_dtype_real(tn_dtype_computed(from));
    tn_dtype b = tn_dtype_real(tn_dtype_computed(to));
    double im = tn_is_complex(from) ? v.c.im : 0;
    if (to == TN_BOOL && im != 0)
        v.i = 1;
    else if (tn_is_float(a) && !tn_is_float(b))
        v.i = tn_integer_of_f64(to, v.f);
    else if (tn_is_float(a) && b != TN_F64) // to narrower formats by way of F32
        v.f = (double)(float)v.f;
    else if (!tn_is_float(a) && b == TN_F64)
        v.f = tn_is_signed(a) ? (double)v.i : (double)v.u;
    else if (!tn_is_float(a) && tn_is_float(b)) // not by way of double: rounds once
        v.f = tn_is_signed(a) ? (double)(float)v.i : (double)(float)v.u;
    if (tn_is_complex(to)) // the real part is v.f
        v.c.im = im;
    return tn_value_fit(to, v);
}

// Instruction `op` of one float operand: of the classes SIGN, ROUND, ROOT, CIRCULAR and
// FUNCTION. `dtype` is the instruction's: F32 or F64. NaN for a number that is no such
// `op`. A NaN operand gives NaN. The functions are those of C11, 7.12, with the special
// cases of annex F.10:
//
//   NEG, ABS            the sign bit alone (IEEE 754-2019, clause 5.5.1)
//   SIGN                -1, 0 or 1; 0.0 for -0.0; numpy.sign
//   FLOOR, CEIL, TRUNC  towards minus infinity, plus infinity, zero; exact
//   ROUND               to the nearest whole number, halves to even; numpy.rint
//   SQRT                correctly rounded; NaN below 0, -0.0 for -0.0
//   RSQRT               1 / sqrt(a): the root is rounded to `dtype` before the division
//   EXP, EXP2           too large is infinity, too small is 0
//   EXPM1, LOG1P        exp(a) - 1 and log(1 + a), without loss of digits near 0
//   LOG, LOG2, LOG10    minus infinity for 0, NaN below; LOG1P likewise, of 1 + a
//   SIN, COS, TAN       of radians; NaN for infinities. Large angles are reduced exactly
//   ASIN, ACOS          NaN beyond -1 .. 1; results in -pi/2 .. pi/2 and 0 .. pi
//   ATAN                in -pi/2 .. pi/2
//   SINH, COSH, TANH, ASINH  for all numbers
//   ACOSH               NaN below 1
//   ATANH               infinities at -1 and 1, NaN beyond
//   ERF                 2 / sqrt(pi) times the integral of exp(-t^2) over 0 .. a
//   ERFINV              tn_erfinv() of <tenon/ops/erfinv.h>
static inline double tn_float_function(uint32_t op, tn_dtype dtype, double a)
{
    tn_scalar_value root;
    switch (op) {
#define TN_PROGRAM_FUNCTION(name, function)                                                \
    case TN_EXPR_##name:                                                                   \
        return __builtin_##function(a)
        TN_PROGRAM_FUNCTION(ABS, fabs);
        TN_PROGRAM_FUNCTION(FLOOR, floor);
        TN_PROGRAM_FUNCTION(CEIL, ceil);
        TN_PROGRAM_FUNCTION(TRUNC, trunc);
        TN_PROGRAM_FUNCTION(ROUND, nearbyint);
        TN_PROGRAM_FUNCTION(SQRT, sqrt);
        TN_PROGRAM_FUNCTION(EXP, exp);
        TN_PROGRAM_FUNCTION(EXP2, exp2);
        TN_PROGRAM_FUNCTION(EXPM1, expm1);
        TN_PROGRAM_FUNCTION(LOG, log);
        TN_PROGRAM_FUNCTION(LOG2, log2);
        TN_PROGRAM_FUNCTION(LOG10, log10);
        TN_PROGRAM_FUNCTION(LOG1P, log1p);
        TN_PROGRAM_FUNCTION(SIN, sin);
        TN_PROGRAM_FUNCTION(COS, cos);
        TN_PROGRAM_FUNCTION(TAN, tan);
        TN_PROGRAM_FUNCTION(ASIN, asin);
        TN_PROGRAM_FUNCTION(ACOS, acos);
        TN_PROGRAM_FUNCTION(ATAN, atan);
        TN_PROGRAM_FUNCTION(SINH, sinh);
        TN_PROGRAM_FUNCTION(COSH, cosh);
        TN_PROGRAM_FUNCTION(TANH, tanh);
        TN_PROGRAM_FUNCTION(ASINH, asinh);
        TN_PROGRAM_FUNCTION(ACOSH, acosh);
        TN_PROGRAM_FUNCTION(ATANH, atanh);
        TN_PROGRAM_FUNCTION(ERF, erf);
#undef TN_PROGRAM_FUNCTION
    case TN_EXPR_ERFINV:
        return tn_erfinv(a);
    case TN_EXPR_NEG:
        return -a;
    case TN_EXPR_SIGN:
        return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a;
    case TN_EXPR_RSQRT:
        root.f = __builtin_sqrt(a);
        return 1 / tn_value_fit(dtype, root).f;
    default:
        return __builtin_nan("");
    }
}

// MOD of floats: a - b * floor(a / b), with the sign of b, as numpy.remainder and Python's
// %. Computed from fmod, which is exact (C11 F.10.7.1) and has the sign of a; one addition
// brings it to the side of b. A zero result has b's sign. NaN when b is 0 or a infinite;
// with an infinite b, a when the signs agree and else b.
static inline double tn_float_remainder(double a, double b)
{
    double rest = __builtin_fmod(a, b);
    if (rest == 0)
        return __builtin_copysign(0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

// FLOOR_DIV: a / b rounded towards minus infinity, as numpy.floor_divide to the bit, with
// each step rounded to `dtype`, F32 or F64. From the exact remainder, since a rounded
// quotient may be a whole number that a / b is below: 1.0 // 0.1 is 9. Exact below 2^21 in
// F32 and 2^50 in F64; from there on a few roundings are left. a / b when b is 0; NaN when
// a is infinite; with an infinite b, -1 when a is on the other side of 0, else a zero.
static inline double tn_float_floor_divide(tn_dtype dtype, double a, double b)
{
    if (b == 0)
        return a / b;                   // an infinity, or NaN
    double rest = __builtin_fmod(a, b); // exact; with the sign of a
    double whole = dtype == TN_F32 ? (double)(float)(a - rest) : a - rest;
    double quotient = dtype == TN_F32 ? (double)(float)(whole / b) : whole / b;
    if (rest != 0 && (rest < 0) != (b < 0))
        quotient = dtype == TN_F32 ? (double)(float)(quotient - 1) : quotient - 1;
    if (quotient == 0)
        return __builtin_copysign(0, a / b); // of the quotient's sign
    whole = __builtin_floor(quotient);       // quotient is near a whole number
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

// Instruction `op` of one or two float operands that gives a float; of one operand, b is
// not read. `dtype` as in tn_float_function().
//
//   ADD, SUB, MUL, DIV  IEEE 754-2019, clause 5.4.1: x / 0 is an infinity, 0 / 0 a NaN
//   MOD, FLOOR_DIV      tn_float_remainder(), tn_float_floor_divide()
//   POW                 C11 F.10.4.4: 1 when b is 0 or a is 1, even beside a NaN; NaN
//                       for a < 0 and a b that is no whole number; numpy.power
//   ATAN2               the angle of the point (b, a), in -pi .. pi: C11 F.10.1.4
//   MIN, MAX            a NaN when either is; of equal operands (0.0 and -0.0) the
//                       second: numpy.minimum and numpy.maximum
static inline double tn_float_operation(uint32_t op, tn_dtype dtype, double a, double b)
{
    switch (op) {
    case TN_EXPR_ADD:
        return a + b;
    case TN_EXPR_SUB:
        return a - b;
    case TN_EXPR_MUL:
        return a * b;
    case TN_EXPR_DIV:
        return a / b;
    case TN_EXPR_MOD:
        return tn_float_remainder(a, b);
    case TN_EXPR_FLOOR_DIV:
        return tn_float_floor_divide(dtype, a, b);
    case TN_EXPR_POW:
        return __builtin_pow(a, b);
    case TN_EXPR_ATAN2:
        return __builtin_atan2(a, b);
    case TN_EXPR_MIN:
        return __builtin_isnan(a) ? a : __builtin_isnan(b) ? b : a < b ? a : b;
    case TN_EXPR_MAX:
        return __builtin_isnan(a) ? a : __builtin_isnan(b) ? b : a > b ? a : b;
    default:
        return tn_float_function(op, dtype, a);
    }
}

// DIV of integers, or MOD when `want_rest` is not 0. The quotient is rounded towards minus
// infinity and the remainder has the sign of b, as in Python and in NumPy's floor_divide
// and remainder; C rounds towards zero, hence the adjustment. By zero both are 0. Operands
// and result are the bits of int64_t when `has_sign`, else of uint64_t.
//
//   7 / 2 = 3, 7 % 2 = 1    -7 / 2 = -4, -7 % 2 = 1    7 / -2 = -4, 7 % -2 = -1
//
// The one quotient that overflows, INT64_MIN / -1, wraps to INT64_MIN.
static inline uint64_t tn_integer_divide(int32_t has_sign, uint64_t a, uint64_t b,
                                         int32_t want_rest)
{
    if (b == 0)
        return 0;
    if (!has_sign)
        return want_rest ? a % b : a / b;
    if (b == UINT64_MAX) // -1, apart: INT64_MIN / -1 overflows, which traps on x86
        return want_rest ? 0 : 0 - a;
    int64_t x = (int64_t)a, y = (int64_t)b, rest = x % y;
    // C cuts towards zero, so a negative quotient that is not exact is one too high.
    int32_t adjust = rest != 0 && (rest < 0) != (y < 0);
    return (uint64_t)(want_rest ? (adjust ? rest + y : rest) : x / y - adjust);
}

// POW of integers: base ** exponent modulo 2^64, by squaring: at most 64 rounds. Narrower
// dtypes keep the low bits, which are the same modulo 2^width. 0 ** 0 is 1. A negative
// exponent gives 1 / base cut towards zero: 1 for 1, the parity's sign for -1, and 0 for
// every other base, 0 included; numpy.power refuses those. Bits as in tn_integer_divide().
static inline uint64_t tn_integer_power(int32_t has_sign, uint64_t base, uint64_t exponent)
{
    // base runs through base^1, base^2, base^4 ..., one for each bit of the exponent.
    uint64_t result = 1;
    if (has_sign && (int64_t)exponent < 0)
        return base == 1 ? 1 : base != UINT64_MAX ? 0 : exponent & 1 ? UINT64_MAX : 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

// SHL, or SHR for every other `op`, of `a` by `by` bits. SHR of a signed dtype keeps the
// sign. A shift by the dtype's width or more gives what shifting bit by bit would: 0, or -1
// for SHR of a negative number; numpy.left_shift and right_shift. C leaves such shifts
// undefined (C11 6.5.7). A negative `by` is a large number here, with the same result.
static inline uint64_t tn_integer_shift(uint32_t op, tn_dtype dtype, uint64_t a,
                                        uint64_t by)
{
    uint64_t width = 8 * (uint64_t)tn_dtype_bytes(dtype);
    if (op == TN_EXPR_SHL)
        return by < width ? a << by : 0;
    if (!tn_is_signed(dtype))
        return by < width ? a >> by : 0;
    return (uint64_t)((int64_t)a >> (by < width ? by : 63));
}

// Instruction `op` of one or two operands of an integer dtype or bool that gives that
// dtype; of one operand, b is not read. Computed in 64 bits, modulo 2^64, without signed
// overflow; the caller cuts the result to `dtype`. Bits as in tn_integer_divide().
//
//   NEG, ABS        wrap: -128 stays -128 in I8
//   NOT             1 for 0, else 0
//   INVERT          all bits; of bool, NOT
//   SIGN            -1, 0 or 1
//   ADD, SUB, MUL   modulo 2^width
//   DIV, MOD        tn_integer_divide()
//   POW             tn_integer_power()
//   MIN, MAX, AND, OR, XOR  as named
//   SHL, SHR        tn_integer_shift(), also for a number that is no such `op`
static inline uint64_t tn_integer_operation(uint32_t op, tn_dtype dtype, uint64_t a,
                                            uint64_t b)
{
    int32_t has_sign = tn_is_signed(dtype), negative = has_sign && (int64_t)a < 0;
    int32_t less = has_sign ? (int64_t)a < (int64_t)b : a < b;
    switch (op) {
    case TN_EXPR_NEG:
        return 0 - a;
    case TN_EXPR_NOT:
        return a == 0;
    case TN_EXPR_INVERT:
        return dtype == TN_BOOL ? a == 0 : ~a;
    case TN_EXPR_ABS:
        return negative ? 0 - a : a;
    case TN_EXPR_SIGN:
        return negative ? UINT64_MAX : a != 0;
    case TN_EXPR_ADD:
        return a + b;
    case TN_EXPR_SUB:
        return a - b;
    case TN_EXPR_MUL:
        return a * b;
    case TN_EXPR_DIV:
    case TN_EXPR_MOD:
        return tn_integer_divide(has_sign, a, b, op == TN_EXPR_MOD);
    case TN_EXPR_POW:
        return tn_integer_power(has_sign, a, b);
    case TN_EXPR_MIN:
        return less ? a : b;
    case TN_EXPR_MAX:
        return less ? b : a;
    case TN_EXPR_AND:
        return a & b;
    case TN_EXPR_OR:
        return a | b;
    case TN_EXPR_XOR:
        return a ^ b;
    default:
        return tn_integer_shift(op, dtype, a, b);
    }
}

// Instruction `op` of class COMPARE on operands of `dtype`: 1 when it holds, else 0. Floats
// as in IEEE 754-2019, clause 5.11: -0.0 equals 0.0, and beside a NaN only NE holds. Bool
// compares as 0 and 1.
static inline uint64_t tn_compare(uint32_t op, tn_dtype dtype, tn_scalar_value a,
                                  tn_scalar_value b)
{
    int32_t less = tn_is_float(dtype)    ? a.f < b.f
                   : tn_is_signed(dtype) ? a.i < b.i
                                         : a.u < b.u;
    int32_t equal = tn_is_float(dtype) ? a.f == b.f : a.u == b.u;
    // Not "neither less nor equal": beside a NaN a float is none of the three.
    int32_t greater = tn_is_float(dtype) ? a.f > b.f : !less && !equal;
    return (uint64_t)(op == TN_EXPR_EQ   ? equal
                      : op == TN_EXPR_NE ? !equal
                      : op == TN_EXPR_LT ? less
                      : op == TN_EXPR_LE ? less || equal
                      : op == TN_EXPR_GT ? greater
                                         : greater || equal);
}

// Instruction `op` on the values a, b, c of its operands: every instruction but the leaves
// (LOAD, CONST, PARAM, INDEX). `dtype` is that of the result and `from` that of the first
// operand; they differ for CAST, for the classes TEST and COMPARE, whose result is bool,
// and for PART and JOIN. Operands that the instruction does not have are ignored. The
// result fits `dtype`.
//
// SELECT: b where a, a bool, is not 0, else c. COMPLEX: a + b i, of floats. Class TEST: of
// a float as of a complex number whose imaginary part is 0; ISINF of either sign. COMPARE
// of complex numbers is tn_complex_test(), and of others tn_compare().
static inline tn_scalar_value tn_operation(uint32_t op, tn_dtype dtype, tn_dtype from,
                                           tn_scalar_value a, tn_scalar_value b,
                                           tn_scalar_value c)
{
    uint32_t kind = tn_expr_class(op);
    int32_t is_complex = tn_is_complex(from);
    tn_complex128 x = {a.f, is_complex ? a.c.im : 0};
    tn_scalar_value result;
    result.c = x;
    if (op == TN_EXPR_SELECT)
        return a.u ? b : c;
    if (op == TN_EXPR_CAST)
        return tn_value_cast(from, dtype, a);
    if (op == TN_EXPR_COMPLEX)
        result.c.im = b.f;
    else if (tn_is_complex(dtype))
        result.c = tn_complex_operation(op, a.c, b.c);
    else if (is_complex && kind == TN_EXPR_CLASS_PART)
        result.f = tn_complex_part(op, a.c);
    else if (is_complex || kind == TN_EXPR_CLASS_TEST)
        result.u = tn_complex_test(op, x, b.c);
    else if (kind == TN_EXPR_CLASS_COMPARE)
        result.u = tn_compare(op, from, a, b);
    else if (tn_is_float(dtype))
        result.f = tn_float_operation(op, dtype, a.f, b.f);
    else
        result.u = tn_integer_operation(op, dtype, a.u, b.u);
    return tn_value_fit(dtype, result);
}

// The value of instruction `i` of a program, which fits its dtype. values[0 .. i) are those
// of the instructions before it, for the same element. `params` are the step's, 8 bytes
// each; NULL when the program has none.
//
// LOAD, TAKE, INDEX and EXTENT depend on the element, and class REDUCE on the row: their
// caller supplies them, as tn_program_run() does, and here they give 0 or are not to be
// asked.
static inline tn_scalar_value tn_program_step(const tn_expr_program *program, uint32_t i,
                                              const uint64_t *params,
                                              const tn_scalar_value *values)
{
    const tn_expr_insn *insn = &program->insns[i];
    uint32_t operands = tn_expr_operands(insn->op);
    tn_scalar_value v;
    v.c.re = v.c.im = 0;
    if (insn->op == TN_EXPR_CONST)
        __builtin_memcpy(&v, &program->constants[insn->a], sizeof(uint64_t));
    else if (insn->op == TN_EXPR_PARAM)
        __builtin_memcpy(&v, &params[insn->a], sizeof(uint64_t));
    if (operands == 0)
        return tn_value_fit(insn->dtype, v);
    return tn_operation(insn->op, insn->dtype, program->insns[insn->a].dtype,
                        values[insn->a], operands > 1 ? values[insn->b] : v,
                        operands > 2 ? values[insn->c] : v);
}

// LOAD: element `offset` of an input as a value of the dtype in which programs compute it.
// A float of 16 or 8 bits is exact in F32; an integer is extended to 64 bits; of a complex
// number both parts are read. `offset` counts elements from `in->data`, as tn_offset_at()
// gives it. Reads that element alone.
static inline tn_scalar_value tn_value_load(const tn_tensor *in, int64_t offset)
{
    tn_scalar_value value;
    tn_dtype dtype = tn_dtype_computed(in->layout.dtype);
    value.c.re = value.c.im = 0; // what a float or an integer leaves out
    if (tn_is_complex(dtype))
        value.c = tn_get_complex(in, offset);
    else if (tn_is_float(dtype))
        value.f = tn_get_f64(in, offset);
    else
        value.i = tn_get_i64(in, offset);
    return value;
}

// TAKE: the number of the element that an index means among n, at least 1: `index` is a
// value of the integer dtype `dtype`. Negative indices count from the end, and one that is
// out of range is the nearest.
static inline int64_t tn_taken_index(tn_dtype dtype, tn_scalar_value index, int64_t n)
{
    if (!tn_is_signed(dtype))
        return index.u < (uint64_t)n ? (int64_t)index.u : n - 1;
    int64_t i = index.i < 0 ? index.i + n : index.i;
    return i < 0 ? 0 : i < n ? i : n - 1;
}

// How far the element that instruction `i`, a TAKE, reads lies behind that for index 0, in
// elements. `values` are those of the instructions before it.
static inline int64_t tn_taken_offset(const tn_expr_program *program, uint32_t i,
                                      const uint64_t *params, const tn_scalar_value *values)
{
    const tn_expr_insn *insn = &program->insns[i];
    return tn_taken_index(program->insns[insn->b].dtype, values[insn->b],
                          (int64_t)params[insn->c]) *
           (int64_t)params[insn->c + 1];
}

// Stores `value`, of an instruction of `dtype`, as element `offset` of an output: converted
// as CAST does to the dtype that the output has in memory, which may be a format of storage
// only. Writes that element alone.
static inline void tn_value_store(const tn_tensor *out, int64_t offset, tn_dtype dtype,
                                  tn_scalar_value value)
{
    value = tn_value_cast(dtype, out->layout.dtype, value);
    dtype = tn_dtype_computed(out->layout.dtype);
    if (tn_is_complex(dtype))
        tn_set_complex(out, offset, value.c);
    else if (tn_is_float(dtype))
        tn_set_f64(out, offset, value.f);
    else
        tn_set_i64(out, offset, value.i);
}

// Runs `program`, which is no row program (those are run by tn_program_run_rows() of
// <tenon/ops/program_rows.h>), for every element of output 0, in row-major order. `inputs`
// and `outputs` are program->num_inputs and num_outputs tensors, all of one rank and with
// equal extents; an input that broadcasts has strides of 0. Their dtypes are those of the
// program. An output may be the memory of an input with the same strides: an element is
// read before it is written.
//
// An output is converted from the dtype of its instruction to that of its tensor.
//
// Borrows its arguments. Uses 4 KiB of stack, allocates nothing, and takes time in
// proportion to elements times instructions. An empty output: nothing happens.
static inline void tn_program_run(const tn_expr_program *program, const uint64_t *params,
                                  const tn_tensor *inputs, const tn_tensor *outputs)
{
    const tn_layout *shape = &outputs[0].layout;
    int64_t at[TN_MAX_RANK] = {0}, element = 0; // the same element, as index and as number
    tn_scalar_value values[TN_EXPR_MAX_INSNS];
    if (tn_layout_count(shape) == 0)
        return;
    do {
        for (uint32_t i = 0; i < program->num_insns; i++) {
            const tn_expr_insn *insn = &program->insns[i];
            // The leaves that depend on the element; tn_program_step() does the others.
            if (insn->op == TN_EXPR_TAKE) {
                const tn_tensor *in = &inputs[insn->a];
                int64_t taken = tn_taken_offset(program, i, params, values);
                values[i] = tn_value_load(in, tn_offset_at(&in->layout, at) + taken);
            } else if (insn->op == TN_EXPR_INDEX) {
                values[i].i = element;
            } else if (insn->op == TN_EXPR_LOAD) {
                const tn_tensor *in = &inputs[insn->a];
                values[i] = tn_value_load(in, tn_offset_at(&in->layout, at));
            } else {
                values[i] = tn_program_step(program, i, params, values);
            }
        }
        for (uint32_t i = 0; i < program->num_outputs; i++) {
            const tn_tensor *out = &outputs[i];
            tn_value_store(out, tn_offset_at(&out->layout, at),
                           program->insns[program->outputs[i]].dtype,
                           values[program->outputs[i]]);
        }
        element++;
    } while (tn_index_next(shape->rank, shape->extent, at));
}

#endif // TENON_OPS_PROGRAM_H
