// SPDX-License-Identifier: MIT
// For those who write backends: runs a program of <tenon/expr.h> on ordinary memory, one
// element at a time. It is what each operation means, written plainly, and slow: the first
// version of a backend, and what a faster one is compared with.
//
// Floats are computed in double and rounded once to the instruction's dtype. For + - * /
// and sqrt that equals computing in f32; for the other functions it is the more exact.
//
// Threads. Pure functions; tn_program_run writes the outputs.
#ifndef TENON_OPS_PROGRAM_H
#define TENON_OPS_PROGRAM_H

#include <tenon/expr.h>
#include <tenon/ops/reference.h>

// A value as programs hold it: `f` for float dtypes, `i` for signed ones, `u` for the
// others.
typedef union tn_scalar_value {
    double f;
    int64_t i;
    uint64_t u;
} tn_scalar_value;

// Whether values of this dtype are held in `f`.
static inline int32_t tn_is_float(tn_dtype dtype)
{
    return tn_dtype_in(dtype, TN_FLOAT_DTYPES);
}

// Whether values of this dtype are held in `i`.
static inline int32_t tn_is_signed(tn_dtype dtype)
{
    return tn_dtype_in(dtype, TN_SIGNED_DTYPES);
}

// Stores to and loads from a place of this dtype: rounds and wraps.
static inline tn_scalar_value tn_value_fit(tn_dtype dtype, tn_scalar_value value)
{
    uint64_t place = 0;
    tn_tensor tensor;
    tensor.data = &place;
    tensor.layout.dtype = dtype;
    if (tn_is_float(dtype)) {
        tn_set_f64(&tensor, 0, value.f);
        value.f = tn_get_f64(&tensor, 0);
    } else {
        tn_set_i64(&tensor, 0, value.i);
        value.i = tn_get_i64(&tensor, 0);
    }
    return value;
}

// CAST: converts a value as <tenon/expr.h> says.
static inline tn_scalar_value tn_value_cast(tn_dtype from, tn_dtype to, tn_scalar_value v)
{
    if (tn_is_float(from) && !tn_is_float(to)) {
        v.i = tn_integer_of_f64(to, v.f);
    } else if (!tn_is_float(from) && tn_is_float(to)) {
        // Straight to f32: by way of double an integer of 64 bits would be rounded twice.
        if (to == TN_F64)
            v.f = tn_is_signed(from) ? (double)v.i : (double)v.u;
        else
            v.f = tn_is_signed(from) ? (double)(float)v.i : (double)(float)v.u;
    }
    return tn_value_fit(to, v);
}

// One of the functions of one operand of <tenon/expr.h> on floats.
static inline double tn_float_function(uint32_t op, double a)
{
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
    case TN_EXPR_NEG:
        return -a;
    case TN_EXPR_SIGN:
        return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a; // of -0.0: 0.0
    case TN_EXPR_RSQRT:
        return 1 / __builtin_sqrt(a);
    default:
        return __builtin_nan("");
    }
}

// One of the binary operations of <tenon/expr.h> on floats.
static inline double tn_float_operation(uint32_t op, double a, double b)
{
    double rest;
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
        rest = __builtin_fmod(a, b);
        return rest == 0               ? __builtin_copysign(0, b)
               : (rest < 0) != (b < 0) ? rest + b
                                       : rest;
    case TN_EXPR_POW:
        return __builtin_pow(a, b);
    case TN_EXPR_ATAN2:
        return __builtin_atan2(a, b);
    case TN_EXPR_MIN:
        return __builtin_isnan(a) ? a : __builtin_isnan(b) ? b : a < b ? a : b;
    case TN_EXPR_MAX:
        return __builtin_isnan(a) ? a : __builtin_isnan(b) ? b : a > b ? a : b;
    default:
        return tn_float_function(op, a);
    }
}

// Rounded towards minus infinity; by zero: 0.
static inline uint64_t tn_integer_divide(int32_t has_sign, uint64_t a, uint64_t b,
                                         int32_t want_rest)
{
    if (b == 0)
        return 0;
    if (!has_sign)
        return want_rest ? a % b : a / b;
    if (b == UINT64_MAX) // -1: the only quotient that overflows
        return want_rest ? 0 : 0 - a;
    int64_t x = (int64_t)a, y = (int64_t)b, rest = x % y;
    int32_t adjust = rest != 0 && (rest < 0) != (y < 0);
    return (uint64_t)(want_rest ? (adjust ? rest + y : rest) : x / y - adjust);
}

// base ** exponent, wrapping; a negative exponent gives 1 / base, cut to 0, 1 or -1.
static inline uint64_t tn_integer_power(int32_t has_sign, uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;
    if (has_sign && (int64_t)exponent < 0)
        return base == 1 ? 1 : base != UINT64_MAX ? 0 : exponent & 1 ? UINT64_MAX : 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

// A shift to the left or, with the sign kept, to the right; by the dtype's width or more:
// what shifting bit by bit would give.
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

// One of the binary operations of <tenon/expr.h> on integers and bool, wrapping.
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

// One of the comparisons of <tenon/expr.h>: 0 or 1.
static inline uint64_t tn_compare(uint32_t op, tn_dtype dtype, tn_scalar_value a,
                                  tn_scalar_value b)
{
    int32_t less = tn_is_float(dtype)    ? a.f < b.f
                   : tn_is_signed(dtype) ? a.i < b.i
                                         : a.u < b.u;
    int32_t equal = tn_is_float(dtype) ? a.f == b.f : a.u == b.u;
    int32_t greater = tn_is_float(dtype) ? a.f > b.f : !less && !equal;
    return (uint64_t)(op == TN_EXPR_EQ   ? equal
                      : op == TN_EXPR_NE ? !equal
                      : op == TN_EXPR_LT ? less
                      : op == TN_EXPR_LE ? less || equal
                      : op == TN_EXPR_GT ? greater
                                         : greater || equal);
}

// The result of one operation: `dtype` is its own, `from` that of its first operand.
static inline tn_scalar_value tn_operation(uint32_t op, tn_dtype dtype, tn_dtype from,
                                           tn_scalar_value a, tn_scalar_value b,
                                           tn_scalar_value c)
{
    tn_scalar_value result;
    if (op == TN_EXPR_SELECT)
        return a.u ? b : c;
    if (op == TN_EXPR_CAST)
        return tn_value_cast(from, dtype, a);
    if (op >= TN_EXPR_EQ && op <= TN_EXPR_GE)
        result.u = tn_compare(op, from, a, b);
    else if (op == TN_EXPR_ISNAN)
        result.u = __builtin_isnan(a.f) != 0;
    else if (op == TN_EXPR_ISINF)
        result.u = __builtin_isinf(a.f) != 0;
    else if (op == TN_EXPR_ISFINITE)
        result.u = __builtin_isfinite(a.f) != 0;
    else if (tn_is_float(dtype))
        result.f = tn_float_operation(op, a.f, b.f);
    else
        result.u = tn_integer_operation(op, dtype, a.u, b.u);
    return tn_value_fit(dtype, result);
}

// Instruction `i`, whose operands are in `values`.
static inline tn_scalar_value tn_program_step(const tn_expr_program *program, uint32_t i,
                                              const uint64_t *params,
                                              const tn_scalar_value *values)
{
    static const uint8_t operands[] = {
#define TN_PROGRAM_OPERANDS(name, text, count) count,
        TN_EXPR_OPS(TN_PROGRAM_OPERANDS)
#undef TN_PROGRAM_OPERANDS
    };
    const tn_expr_insn *insn = &program->insns[i];
    tn_scalar_value v;
    v.u = 0;
    if (insn->op == TN_EXPR_CONST)
        v.u = program->constants[insn->a];
    else if (insn->op == TN_EXPR_PARAM)
        v.u = params[insn->a];
    if (operands[insn->op] == 0)
        return tn_value_fit(insn->dtype, v);
    return tn_operation(insn->op, insn->dtype, program->insns[insn->a].dtype,
                        values[insn->a], operands[insn->op] > 1 ? values[insn->b] : v,
                        operands[insn->op] > 2 ? values[insn->c] : v);
}

// Runs `program` for every element of output 0. All tensors have its rank and extents.
static inline void tn_program_run(const tn_expr_program *program, const uint64_t *params,
                                  const tn_tensor *inputs, const tn_tensor *outputs)
{
    const tn_layout *shape = &outputs[0].layout;
    int64_t at[TN_MAX_RANK] = {0}, element = 0;
    tn_scalar_value values[TN_EXPR_MAX_INSNS];
    if (tn_layout_count(shape) == 0)
        return;
    do {
        for (uint32_t i = 0; i < program->num_insns; i++) {
            const tn_expr_insn *insn = &program->insns[i];
            if (insn->op == TN_EXPR_INDEX) {
                values[i].i = element;
            } else if (insn->op == TN_EXPR_LOAD) {
                const tn_tensor *in = &inputs[insn->a];
                if (tn_is_float(in->layout.dtype))
                    values[i].f = tn_get_f64(in, tn_offset_at(&in->layout, at));
                else
                    values[i].i = tn_get_i64(in, tn_offset_at(&in->layout, at));
            } else {
                values[i] = tn_program_step(program, i, params, values);
            }
        }
        for (uint32_t i = 0; i < program->num_outputs; i++) {
            const tn_tensor *out = &outputs[i];
            tn_dtype dtype = program->insns[program->outputs[i]].dtype;
            tn_scalar_value v =
                tn_value_cast(dtype, out->layout.dtype, values[program->outputs[i]]);
            if (tn_is_float(out->layout.dtype))
                tn_set_f64(out, tn_offset_at(&out->layout, at), v.f);
            else
                tn_set_i64(out, tn_offset_at(&out->layout, at), v.i);
        }
        element++;
    } while (tn_index_next(shape->rank, shape->extent, at));
}

#endif // TENON_OPS_PROGRAM_H
