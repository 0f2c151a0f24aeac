// SPDX-License-Identifier: MIT
// What each operation of a program means, on one element: the oracle of every backend.
//
// Floats are computed in double and rounded once to the instruction's dtype. For + - * /
// and sqrt that equals computing in f32 directly (a double has more than 2 * 24 + 2 bits);
// for the other functions it is the more exact of the two.
#include <math.h>
#include "tree.h"

static uint64_t wrap(tn_dtype dtype, uint64_t v)
{
    switch (dtype) {
    case TN_BOOL:
        return v != 0;
    case TN_I8:
        return (uint64_t)(int64_t)(int8_t)v;
    case TN_I16:
        return (uint64_t)(int64_t)(int16_t)v;
    case TN_I32:
        return (uint64_t)(int64_t)(int32_t)v;
    case TN_U8:
        return (uint8_t)v;
    case TN_U16:
        return (uint16_t)v;
    case TN_U32:
        return (uint32_t)v;
    default:
        return v;
    }
}

static double rounded(tn_dtype dtype, double v)
{
    switch (dtype) {
    case TN_F16:
        return (double)half_to_float(float_to_half((float)v));
    case TN_BF16:
        return (double)bfloat_to_float(float_to_bfloat((float)v));
    case TN_F32:
        return (double)(float)v;
    default:
        return v;
    }
}

static bool is_signed(tn_dtype dtype)
{
    return dtype_table[dtype].kind == KIND_SIGNED;
}

// Out of range is unspecified for users; here it saturates, and NaN gives 0.
static uint64_t double_to_integer(tn_dtype to, double v)
{
    if (to == TN_BOOL)
        return v != 0; // NaN is true, as in NumPy
    if (isnan(v))
        return 0;
    if (!is_signed(to) && v >= 0x1p63)
        return wrap(to, v >= 0x1p64 ? UINT64_MAX : (uint64_t)v);
    if (v >= 0x1p63)
        return wrap(to, INT64_MAX);
    return wrap(to, (uint64_t)(v < -0x1p63 ? INT64_MIN : (int64_t)v));
}

uint64_t scalar_cast(tn_dtype from, tn_dtype to, uint64_t bits)
{
    if (dtype_is_float(from)) {
        double v = bits_to_double(bits);
        return dtype_is_float(to) ? double_to_bits(rounded(to, v))
                                  : double_to_integer(to, v);
    }
    if (!dtype_is_float(to))
        return wrap(to, bits);
    // Straight to f32: by way of double an integer of 64 bits would be rounded twice.
    if (to == TN_F64)
        return double_to_bits(is_signed(from) ? (double)(int64_t)bits : (double)bits);
    float v = is_signed(from) ? (float)(int64_t)bits : (float)bits;
    return double_to_bits(rounded(to, (double)v));
}

static double remainder_floor(double a, double b)
{
    double m = fmod(a, b);
    if (m == 0)
        return copysign(0, b);
    return (m < 0) != (b < 0) ? m + b : m;
}

static double math1(int op, double a)
{
    switch (op) {
    case TN_EXPR_NEG:
        return -a;
    case TN_EXPR_ABS:
        return fabs(a);
    case TN_EXPR_SIGN:
        return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a;
    case TN_EXPR_RSQRT:
        return 1 / sqrt(a);
#define MATH(name, function)                                                               \
    case TN_EXPR_##name:                                                                   \
        return function(a);
        MATH(FLOOR, floor)
        MATH(CEIL, ceil)
        MATH(TRUNC, trunc)
        MATH(ROUND, nearbyint)
        MATH(SQRT, sqrt)
        MATH(EXP, exp)
        MATH(EXP2, exp2)
        MATH(EXPM1, expm1)
        MATH(LOG, log)
        MATH(LOG2, log2)
        MATH(LOG10, log10)
        MATH(LOG1P, log1p)
        MATH(SIN, sin)
        MATH(COS, cos)
        MATH(TAN, tan)
        MATH(ASIN, asin)
        MATH(ACOS, acos)
        MATH(ATAN, atan)
        MATH(SINH, sinh)
        MATH(COSH, cosh)
        MATH(TANH, tanh)
        MATH(ASINH, asinh)
        MATH(ACOSH, acosh)
        MATH(ATANH, atanh)
        MATH(ERF, erf)
#undef MATH
    default:
        return (double)NAN;
    }
}

static double math2(int op, double a, double b)
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
        return remainder_floor(a, b);
    case TN_EXPR_POW:
        return pow(a, b);
    case TN_EXPR_ATAN2:
        return atan2(a, b);
    case TN_EXPR_MIN:
        return isnan(a) ? a : isnan(b) ? b : a < b ? a : b;
    case TN_EXPR_MAX:
        return isnan(a) ? a : isnan(b) ? b : a > b ? a : b;
    default:
        return (double)NAN;
    }
}

static uint64_t divide_floor(bool has_sign, uint64_t a, uint64_t b, bool want_rest)
{
    if (b == 0)
        return 0;
    if (!has_sign)
        return want_rest ? a % b : a / b;
    int64_t x = (int64_t)a, y = (int64_t)b;
    if (y == -1) // the only quotient that overflows
        return want_rest ? 0 : 0 - a;
    int64_t quotient = x / y, rest = x % y;
    bool adjust = rest != 0 && (rest < 0) != (y < 0);
    return want_rest ? (uint64_t)(adjust ? rest + y : rest)
                     : (uint64_t)(adjust ? quotient - 1 : quotient);
}

static uint64_t power_integer(bool has_sign, uint64_t base, uint64_t exponent)
{
    if (has_sign && (int64_t)exponent < 0) {
        if (base == 1)
            return 1;
        return base == UINT64_MAX ? (exponent & 1 ? UINT64_MAX : 1) : 0;
    }
    uint64_t result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

static uint64_t shift(int op, tn_dtype dtype, uint64_t a, uint64_t by)
{
    uint64_t width = 8 * dtype_size(dtype);
    if (op == TN_EXPR_SHL)
        return by < width ? a << by : 0;
    if (!is_signed(dtype))
        return by < width ? a >> by : 0;
    return (uint64_t)((int64_t)a >> (by < width ? by : 63));
}

static uint64_t integer_op(int op, tn_dtype dtype, uint64_t a, uint64_t b)
{
    bool has_sign = is_signed(dtype);
    bool less = has_sign ? (int64_t)a < (int64_t)b : a < b;
    switch (op) {
    case TN_EXPR_NEG:
        return 0 - a;
    case TN_EXPR_NOT:
        return a == 0;
    case TN_EXPR_INVERT:
        return dtype == TN_BOOL ? a == 0 : ~a;
    case TN_EXPR_ABS:
        return has_sign && (int64_t)a < 0 ? 0 - a : a;
    case TN_EXPR_SIGN:
        return has_sign && (int64_t)a < 0 ? UINT64_MAX : a != 0;
    case TN_EXPR_ADD:
        return a + b;
    case TN_EXPR_SUB:
        return a - b;
    case TN_EXPR_MUL:
        return a * b;
    case TN_EXPR_DIV:
        return divide_floor(has_sign, a, b, false);
    case TN_EXPR_MOD:
        return divide_floor(has_sign, a, b, true);
    case TN_EXPR_POW:
        return power_integer(has_sign, a, b);
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
    case TN_EXPR_SHL:
    case TN_EXPR_SHR:
        return shift(op, dtype, a, b);
    default:
        return a;
    }
}

static bool compare(int op, tn_dtype dtype, uint64_t a, uint64_t b)
{
    bool less, equal, greater;
    if (dtype_is_float(dtype)) {
        double x = bits_to_double(a), y = bits_to_double(b);
        less = x<y, equal = x == y, greater = x> y;
    } else {
        less = is_signed(dtype) ? (int64_t)a < (int64_t)b : a < b;
        equal = a == b, greater = !less && !equal;
    }
    switch (op) {
    case TN_EXPR_EQ:
        return equal;
    case TN_EXPR_NE:
        return !equal;
    case TN_EXPR_LT:
        return less;
    case TN_EXPR_LE:
        return less || equal;
    case TN_EXPR_GT:
        return greater;
    default:
        return greater || equal;
    }
}

static bool test(int op, double a)
{
    return op == TN_EXPR_ISNAN ? isnan(a) : op == TN_EXPR_ISINF ? isinf(a) : isfinite(a);
}

uint64_t scalar_op(int op, tn_dtype dtype, tn_dtype from, uint64_t a, uint64_t b,
                   uint64_t c)
{
    if (op == TN_EXPR_CAST)
        return scalar_cast(from, dtype, a);
    if (op == TN_EXPR_SELECT)
        return a ? b : c;
    if (op_table[op].class == OP_COMPARE)
        return compare(op, from, a, b);
    if (op_table[op].class == OP_TEST)
        return test(op, bits_to_double(a));
    if (!dtype_is_float(dtype))
        return wrap(dtype, integer_op(op, dtype, a, b));
    double x = bits_to_double(a);
    double v = op_table[op].num_args == 1 ? math1(op, x) : math2(op, x, bits_to_double(b));
    return double_to_bits(rounded(dtype, v));
}

static uint64_t run_insn(const tn_expr_program *program, const tn_expr_insn *insn,
                         const uint64_t *values, const uint64_t *inputs,
                         const uint64_t *params, int64_t index)
{
    switch (insn->op) {
    case TN_EXPR_LOAD:
        return inputs[insn->a];
    case TN_EXPR_CONST:
        return program->constants[insn->a];
    case TN_EXPR_PARAM:
        return scalar_cast(dtype_is_float(insn->dtype) ? TN_F64 : TN_I64, insn->dtype,
                           params[insn->a]);
    case TN_EXPR_INDEX:
        return (uint64_t)index;
    }
    uint32_t num_args = op_table[insn->op].num_args;
    return scalar_op(insn->op, insn->dtype, program->insns[insn->a].dtype, values[insn->a],
                     num_args > 1 ? values[insn->b] : 0,
                     num_args > 2 ? values[insn->c] : 0);
}

void program_run_scalar(const tn_expr_program *program, const uint64_t *inputs,
                        const uint64_t *params, int64_t index, uint64_t *outputs)
{
    uint64_t values[TN_EXPR_MAX_INSNS];
    for (uint32_t i = 0; i < program->num_insns; i++)
        values[i] = run_insn(program, &program->insns[i], values, inputs, params, index);
    for (uint32_t i = 0; i < program->num_outputs; i++) {
        tn_dtype dtype = program->insns[program->outputs[i]].dtype;
        uint64_t value = values[program->outputs[i]];
        outputs[i] = dtype == program->output_dtypes[i]
                         ? value
                         : scalar_cast(dtype, program->output_dtypes[i], value);
    }
}
