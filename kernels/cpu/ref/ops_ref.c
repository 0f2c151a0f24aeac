// SPDX-License-Identifier: MIT
// Definitions. Integers are computed in 64 bits and wrapped when they are stored; floats in
// f64, which for one sum, product, quotient or root of f32 gives the f32 result exactly.
#include "ops_ref.h"

#include <math.h>
#include <string.h>

static bool is_float(int32_t dtype)
{
    return dtype >= CPU_F16;
}

static bool is_unsigned(int32_t dtype)
{
    return dtype >= CPU_U8 && dtype <= CPU_U64;
}

// --- elements as numbers ---------------------------------------------------------------

static double half_value(uint16_t bits, int fraction_bits)
{
    int exponent_bits = 15 - fraction_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    int fraction = bits & ((1 << fraction_bits) - 1);
    double value;
    if (exponent == (1 << exponent_bits) - 1)
        value = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - bias - fraction_bits);
    else
        value = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    return bits & 0x8000 ? -value : value;
}

// The half that is nearest to x, the even one of two: found by bisection, since halves of
// one sign are ordered as their bits are.
static uint16_t nearest_half(float x, int fraction_bits)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    uint16_t infinity = (uint16_t)(((1 << (15 - fraction_bits)) - 1) << fraction_bits);
    double y = fabs((double)x);
    if (isnan(x))
        return (uint16_t)(sign | infinity | 1u << (fraction_bits - 1));
    uint16_t low = 0, high = infinity;
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (half_value(middle, fraction_bits) <= y)
            low = middle;
        else
            high = middle;
    }
    // What infinity would be, were the exponent one bit longer.
    double below = half_value(low, fraction_bits);
    double above =
        high == infinity
            ? 2 * half_value((uint16_t)(infinity - (1 << fraction_bits)), fraction_bits)
            : half_value(high, fraction_bits);
    double middle = (below + above) / 2;
    bool up = y > middle || (y == middle && (low & 1)) || y >= above;
    return (uint16_t)(sign | (up ? high : low));
}

static double get_float(int32_t dtype, const void *in)
{
    uint16_t half;
    float f;
    double d;
    switch (dtype) {
    case CPU_F64:
        memcpy(&d, in, sizeof(d));
        return d;
    case CPU_F32:
        memcpy(&f, in, sizeof(f));
        return (double)f;
    default:
        memcpy(&half, in, sizeof(half));
        return half_value(half, dtype == CPU_F16 ? 10 : 7);
    }
}

static void put_float(int32_t dtype, void *out, double value)
{
    float f = (float)value;
    uint16_t half;
    switch (dtype) {
    case CPU_F64:
        memcpy(out, &value, sizeof(value));
        break;
    case CPU_F32:
        memcpy(out, &f, sizeof(f));
        break;
    default:
        half = nearest_half(f, dtype == CPU_F16 ? 10 : 7);
        memcpy(out, &half, sizeof(half));
    }
}

// The 64 bits of an integer, its sign extended.
static int64_t get_int(int32_t dtype, const void *in)
{
    uint32_t size = cpu_dtype_size(dtype);
    uint64_t bits = 0;
    memcpy(&bits, in, size); // little-endian
    if (size < 8 && !is_unsigned(dtype) && dtype != CPU_BOOL && bits >> (size * 8 - 1))
        bits |= ~UINT64_C(0) << (size * 8);
    return (int64_t)bits;
}

static void put_int(int32_t dtype, void *out, int64_t value)
{
    if (dtype == CPU_BOOL)
        value = value != 0;
    memcpy(out, &value, cpu_dtype_size(dtype));
}

// The nearest integer of the type, once cut towards zero; NaN is 0.
static int64_t saturated(int32_t to, double x)
{
    double whole = trunc(x), values = ldexp(1, 8 * (int)cpu_dtype_size(to));
    double least = is_unsigned(to) ? 0 : -values / 2;
    if (isnan(x))
        return 0;
    if (whole < least)
        whole = least;
    if (whole < least + values)
        return whole < 0x1p63 ? (int64_t)whole : (int64_t)(uint64_t)whole;
    uint64_t all = UINT64_MAX >> (64 - 8 * cpu_dtype_size(to));
    return (int64_t)(is_unsigned(to) ? all : all >> 1);
}

void cpu_ref_cast(int32_t from, int32_t to, void *out, const void *in)
{
    if (is_float(from)) {
        double x = get_float(from, in);
        if (is_float(to))
            put_float(to, out, x);
        else
            put_int(to, out, to == CPU_BOOL ? x != 0 : saturated(to, x));
        return;
    }
    int64_t x = get_int(from, in);
    if (!is_float(to))
        put_int(to, out, x);
    else if (to == CPU_F32) { // one rounding
        float f = from == CPU_U64 ? (float)(uint64_t)x : (float)x;
        memcpy(out, &f, sizeof(f));
    } else
        put_float(to, out, from == CPU_U64 ? (double)(uint64_t)x : (double)x);
}

// --- floats ----------------------------------------------------------------------------

static double float_mod(double x, double y)
{
    double r = fmod(x, y);
    if (r == 0)
        return copysign(0, y);
    return (r < 0) != (y < 0) ? r + y : r;
}

static bool float_op(int32_t op, double x, double y, double *out)
{
    switch (op) {
#define ONE(name, value)                                                                   \
    case CPU_OP_##name:                                                                    \
        *out = value;                                                                      \
        return true
        ONE(NEG, -x);
        ONE(ABS, fabs(x));
        ONE(SIGN, isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0);
        ONE(FLOOR, floor(x));
        ONE(CEIL, ceil(x));
        ONE(TRUNC, trunc(x));
        ONE(ROUND, rint(x));
        ONE(SQRT, sqrt(x));
        ONE(RSQRT, 1 / sqrt(x));
        ONE(EXP, exp(x));
        ONE(EXP2, exp2(x));
        ONE(EXPM1, expm1(x));
        ONE(LOG, log(x));
        ONE(LOG2, log2(x));
        ONE(LOG10, log10(x));
        ONE(LOG1P, log1p(x));
        ONE(SIN, sin(x));
        ONE(COS, cos(x));
        ONE(TAN, tan(x));
        ONE(ASIN, asin(x));
        ONE(ACOS, acos(x));
        ONE(ATAN, atan(x));
        ONE(SINH, sinh(x));
        ONE(COSH, cosh(x));
        ONE(TANH, tanh(x));
        ONE(ASINH, asinh(x));
        ONE(ACOSH, acosh(x));
        ONE(ATANH, atanh(x));
        ONE(ERF, erf(x));
        ONE(ADD, x + y);
        ONE(SUB, x - y);
        ONE(MUL, x * y);
        ONE(DIV, x / y);
        ONE(MOD, float_mod(x, y));
        ONE(POW, pow(x, y));
        ONE(ATAN2, atan2(x, y));
        ONE(MIN, isnan(x) ? x : isnan(y) ? y : x < y ? x : y);
        ONE(MAX, isnan(x) ? x : isnan(y) ? y : x > y ? x : y);
#undef ONE
    default:
        return false;
    }
}

static bool float_test(int32_t op, double x, double y, bool *out)
{
    switch (op) {
#define ONE(name, value)                                                                   \
    case CPU_OP_##name:                                                                    \
        *out = value;                                                                      \
        return true
        ONE(ISNAN, isnan(x));
        ONE(ISINF, isinf(x));
        ONE(ISFINITE, isfinite(x));
        ONE(EQ, x == y);
        ONE(NE, x != y);
        ONE(LT, x < y);
        ONE(LE, x <= y);
        ONE(GT, x > y);
        ONE(GE, x >= y);
#undef ONE
    default:
        return false;
    }
}

// --- integers --------------------------------------------------------------------------

static int64_t int_divide(int64_t x, int64_t y, bool is_unsigned_type)
{
    if (y == 0)
        return 0;
    if (is_unsigned_type)
        return (int64_t)((uint64_t)x / (uint64_t)y);
    if (y == -1)
        return (int64_t)(0 - (uint64_t)x);
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static int64_t int_modulo(int64_t x, int64_t y, bool is_unsigned_type)
{
    if (y == 0)
        return 0;
    if (is_unsigned_type)
        return (int64_t)((uint64_t)x % (uint64_t)y);
    if (y == -1)
        return 0;
    return x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0);
}

static int64_t int_power(int64_t x, int64_t y, bool is_unsigned_type)
{
    uint64_t result = 1, base = (uint64_t)x;
    if (!is_unsigned_type && y < 0)
        return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    for (uint64_t n = (uint64_t)y; n > 0; n >>= 1) {
        if (n & 1)
            result *= base;
        base *= base;
    }
    return (int64_t)result;
}

static int64_t int_shift(int32_t op, int64_t x, int64_t y, int64_t width,
                         bool unsigned_type)
{
    bool out = y < 0 || y >= width;
    if (op == CPU_OP_SHL)
        return out ? 0 : (int64_t)((uint64_t)x << y);
    if (unsigned_type)
        return out ? 0 : (int64_t)((uint64_t)x >> y);
    return out ? (x < 0 ? -1 : 0) : x >> y;
}

static bool int_op(int32_t op, int32_t dtype, int64_t x, int64_t y, int64_t *out)
{
    bool u = is_unsigned(dtype), less = u ? (uint64_t)x < (uint64_t)y : x < y;
    int64_t width = 8 * (int64_t)cpu_dtype_size(dtype);
    switch (op) {
#define ONE(name, value)                                                                   \
    case CPU_OP_##name:                                                                    \
        *out = value;                                                                      \
        return true
        ONE(NEG, (int64_t)(0 - (uint64_t)x));
        ONE(INVERT, ~x);
        ONE(ABS, !u && x < 0 ? (int64_t)(0 - (uint64_t)x) : x);
        ONE(SIGN, u ? x != 0 : (x > 0) - (x < 0));
        ONE(ADD, (int64_t)((uint64_t)x + (uint64_t)y));
        ONE(SUB, (int64_t)((uint64_t)x - (uint64_t)y));
        ONE(MUL, (int64_t)((uint64_t)x * (uint64_t)y));
        ONE(DIV, int_divide(x, y, u));
        ONE(MOD, int_modulo(x, y, u));
        ONE(POW, int_power(x, y, u));
        ONE(MIN, less ? x : y);
        ONE(MAX, less ? y : x);
        ONE(AND, x & y);
        ONE(OR, x | y);
        ONE(XOR, x ^ y);
        ONE(SHL, int_shift(op, x, y, width, u));
        ONE(SHR, int_shift(op, x, y, width, u));
        ONE(EQ, x == y);
        ONE(NE, x != y);
        ONE(LT, less);
        ONE(LE, less || x == y);
        ONE(GT, !less && x != y);
        ONE(GE, !less);
#undef ONE
    default:
        return false;
    }
}

static bool bool_op(int32_t op, int64_t x, int64_t y, int64_t *out)
{
    bool arithmetic = (op >= CPU_OP_ADD && op <= CPU_OP_POW) || op == CPU_OP_NEG ||
                      op == CPU_OP_ABS || op == CPU_OP_SIGN || op == CPU_OP_SHL ||
                      op == CPU_OP_SHR;
    if (arithmetic)
        return false;
    if (op == CPU_OP_NOT || op == CPU_OP_INVERT) {
        *out = !x;
        return true;
    }
    return int_op(op, CPU_BOOL, x, y, out);
}

// --- together --------------------------------------------------------------------------

int32_t cpu_ref_result(int32_t op, int32_t dtype)
{
    bool test = (op >= CPU_OP_EQ && op <= CPU_OP_GE) ||
                (op >= CPU_OP_ISNAN && op <= CPU_OP_ISFINITE) || op == CPU_OP_NOT;
    return test ? CPU_BOOL : dtype;
}

static bool fused_op(int32_t op, int32_t dtype, void *out, const void *const *in)
{
    static const struct {
        int32_t op, first, second;
    } parts[] = {
        {CPU_OP_MUL_ADD, CPU_OP_MUL, CPU_OP_ADD},
        {CPU_OP_MUL_SUB, CPU_OP_MUL, CPU_OP_SUB},
        {CPU_OP_SUB_MUL, CPU_OP_MUL, CPU_OP_SUB},
        {CPU_OP_ADD_MUL, CPU_OP_ADD, CPU_OP_MUL},
        {CPU_OP_SUB_THEN_MUL, CPU_OP_SUB, CPU_OP_MUL},
        {CPU_OP_MUL_ADD_MUL, CPU_OP_MUL, CPU_OP_ADD},
    };
    uint64_t left = 0, right = 0;
    if (dtype != CPU_F32 && dtype != CPU_F64)
        return false;
    for (uint32_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].op != op)
            continue;
        cpu_ref_op(parts[i].first, dtype, &left, in);
        const void *pair[2] = {&left, in[2]};
        if (op == CPU_OP_MUL_ADD_MUL) {
            cpu_ref_op(CPU_OP_MUL, dtype, &right, in + 2);
            pair[1] = &right;
        } else if (op == CPU_OP_SUB_MUL) {
            pair[0] = in[2];
            pair[1] = &left;
        }
        return cpu_ref_op(parts[i].second, dtype, out, pair);
    }
    return false;
}

bool cpu_ref_op(int32_t op, int32_t dtype, void *out, const void *const *in)
{
    int64_t i, n = 0;
    double f;
    bool test;

    if (op >= CPU_OP_MUL_ADD)
        return fused_op(op, dtype, out, in);
    if (op == CPU_OP_SELECT) {
        memcpy(out, *(const uint8_t *)in[0] ? in[1] : in[2], cpu_dtype_size(dtype));
        return true;
    }
    bool two = op >= CPU_OP_ADD;
    if (is_float(dtype)) {
        double x = get_float(dtype, in[0]), y = two ? get_float(dtype, in[1]) : 0;
        if (float_test(op, x, y, &test)) {
            put_int(CPU_BOOL, out, test);
            return true;
        }
        if (!float_op(op, x, y, &f))
            return false;
        // 1 / sqrt rounds twice, as it is defined.
        if (op == CPU_OP_RSQRT && dtype == CPU_F32)
            f = 1 / (double)(float)sqrt(x);
        put_float(dtype, out, f);
        return true;
    }
    i = get_int(dtype, in[0]);
    n = two ? get_int(dtype, in[1]) : 0;
    if (!(dtype == CPU_BOOL ? bool_op(op, i, n, &i) : int_op(op, dtype, i, n, &i)))
        return false;
    put_int(cpu_ref_result(op, dtype), out, i);
    return true;
}
