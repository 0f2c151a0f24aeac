// SPDX-License-Identifier: MIT
// The instructions of compiled expressions as GLSL: op_NAME(a, b, c), with the meaning that
// <tenon/expr.h> gives them. Needs types.glsl.
//
// Define NEED_NAME for each instruction used beyond plain arithmetic ("needs.glsl": all), and
// NEED_I64 or NEED_F64 for the versions on these types (and NEED_F64_FUNCTIONS for exp, log,
// sin, ... of f64, see functions_f64.glsl): what is not needed is not compiled.
//
// Functions of f32 are written out here, because GLSL promises too little for its own (sin:
// an absolute error of 2^-11) and lacks erf, expm1 and log1p. Bounds, in units in the last
// place, checked by the tests: exp, log and their kin, sqrt, sin, cos, atan 4; tan, asin,
// acos, sinh, cosh, tanh, asinh, acosh, atanh, erf 8; pow 16 + |y log2 x| / 2.

// --- plain arithmetic ---------------------------------------------------------------------

#define op_NEG(a) (-(a))
#define op_INVERT(a) (~(a))
#define op_FLOOR(a) floor(a)
#define op_CEIL(a) ceil(a)
#define op_TRUNC(a) cut(a)
#define op_ROUND(a) round_even(a)
#define op_SQRT(a) sqrt(a)
#define op_RSQRT(a) inversesqrt(a)
#define op_ISNAN(a) is_nan(a)
#define op_ISINF(a) is_inf(a)
#define op_ISFINITE(a) is_finite(a)
#define op_ADD(a, b) ((a) + (b))
#define op_SUB(a, b) ((a) - (b))
#define op_MUL(a, b) ((a) * (b))
#define op_AND(a, b) ((a) & (b))
#define op_OR(a, b) ((a) | (b))
#define op_XOR(a, b) ((a) ^ (b))
#define op_EQ(a, b) ((a) == (b))
#define op_NE(a, b) (!((a) == (b)))
#define op_LT(a, b) ((a) < (b))
#define op_LE(a, b) ((a) <= (b))
#define op_GT(a, b) ((a) > (b))
#define op_GE(a, b) ((a) >= (b))
// Versions for bools, and for a bool as first operand.
#define op_SELECT_b(a, b, c) ((a) ? (b) : (c))
#define op_NOT_b(a) (!(a))
#define op_INVERT_b(a) (!(a))
#define op_EQ_b(a, b) ((a) == (b))
#define op_NE_b(a, b) ((a) != (b))
#define op_AND_b(a, b) ((a) && (b))
#define op_OR_b(a, b) ((a) || (b))
#define op_XOR_b(a, b) ((a) != (b))
#define op_MIN_b(a, b) ((a) && (b))
#define op_MAX_b(a, b) ((a) || (b))
#define op_LT_b(a, b) (!(a) && (b))
#define op_LE_b(a, b) (!(a) || (b))
#define op_GT_b(a, b) ((a) && !(b))
#define op_GE_b(a, b) ((a) || !(b))

// By the bits: drivers may compile isnan() to false.
bool is_nan(float x)
{
    return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
}
bool is_inf(float x)
{
    return (floatBitsToUint(x) & 0x7fffffffu) == 0x7f800000u;
}
bool is_finite(float x)
{
    return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u;
}
float infinity()
{
    return uintBitsToFloat(0x7f800000u);
}
float not_a_number()
{
    return uintBitsToFloat(0x7fc00000u);
}
// |a| with the sign of b.
float with_sign(float a, float b)
{
    return uintBitsToFloat((floatBitsToUint(a) & 0x7fffffffu) |
                           (floatBitsToUint(b) & 0x80000000u));
}
#ifdef NEED_F64
uint high_bits(double x)
{
    return unpackDouble2x32(x).y & 0x7fffffffu;
}
bool is_nan(double x)
{
    uvec2 bits = unpackDouble2x32(x);
    uint high = bits.y & 0x7fffffffu;
    return high > 0x7ff00000u || (high == 0x7ff00000u && bits.x != 0u);
}
bool is_inf(double x)
{
    uvec2 bits = unpackDouble2x32(x);
    return (bits.y & 0x7fffffffu) == 0x7ff00000u && bits.x == 0u;
}
bool is_finite(double x)
{
    return high_bits(x) < 0x7ff00000u;
}
double zero_with_sign(double x)
{
    return packDouble2x32(uvec2(0u, unpackDouble2x32(x).y & 0x80000000u));
}
// 2^n for n within -1022 .. 1023.
double power_of_two(int n)
{
    return packDouble2x32(uvec2(0u, uint(1023 + n) << 20));
}
#endif

float cut(float x)
{
    return trunc(x);
}
float round_even(float x)
{
    return roundEven(x);
}
#ifdef NEED_F64
// A GLSL trunc() that keeps the sign of zero: Mesa 22.3 gives 0.0 for -0.5.
double cut(double x)
{
    double y = trunc(x);
    return y == 0.0LF ? zero_with_sign(x) : y;
}
// Not by roundEven(): Mesa 22.3 rounds 3.5 to 3.
double round_even(double x)
{
    double low = floor(x);
    double rest = x - low;
    bool odd = low - 2.0LF * floor(0.5LF * low) != 0.0LF;
    double y = rest > 0.5LF || (rest == 0.5LF && odd) ? low + 1.0LF : low;
    return y == 0.0LF ? zero_with_sign(x) : y;
}
#endif

// --- conversions of floats to integers ----------------------------------------------------

// CAST of <tenon/expr.h>: to_dtype(x). Out of range it gives the nearest integer, for NaN 0. GLSL
// leaves conversions out of range undefined, so x is clamped first. `low` and `over`: the least
// integer, and the first power of 2 that is too large.
#define SATURATE(NAME, T, F, low, over, LEAST, GREATEST)                                   \
    T NAME(F x)                                                                            \
    {                                                                                      \
        bool lost = is_nan(x);                                                             \
        bool below = !lost && x <= F(low), above = !lost && x >= F(over);                  \
        T y = T(lost || below || above ? F(0) : x);                                        \
        return below ? LEAST : above ? GREATEST : y;                                       \
    }
#define SATURATE_ALL(F)                                                                    \
    SATURATE(to_i8, int, F, -128.0, 128.0, -128, 127)                                      \
    SATURATE(to_i16, int, F, -32768.0, 32768.0, -32768, 32767)                             \
    SATURATE(to_i32, int, F, -2147483648.0, 2147483648.0, int(0x80000000u), 0x7fffffff)    \
    SATURATE(to_u8, uint, F, 0.0, 256.0, 0u, 255u)                                         \
    SATURATE(to_u16, uint, F, 0.0, 65536.0, 0u, 65535u)                                    \
    SATURATE(to_u32, uint, F, 0.0, 4294967296.0, 0u, 0xffffffffu)
#define I64_LEAST int64_t(packUint2x32(uvec2(0u, 0x80000000u)))
#define I64_GREATEST int64_t(packUint2x32(uvec2(0xffffffffu, 0x7fffffffu)))
#define SATURATE_WIDE(F)                                                                   \
    SATURATE(to_i64, int64_t, F, -9223372036854775808.0, 9223372036854775808.0, I64_LEAST, \
             I64_GREATEST)                                                                 \
    SATURATE(to_u64, uint64_t, F, 0.0, 18446744073709551616.0, uint64_t(0),                \
             packUint2x32(uvec2(0xffffffffu)))
// int to int64_t, not by int64_t(x): Mesa 22.3 then compares the result with constants as if it
// were unsigned.
#ifdef NEED_I64
int64_t to_i64(int x)
{
    return int64_t(packUint2x32(uvec2(uint(x), uint(x >> 31))));
}
uint64_t to_u64(int x)
{
    return packUint2x32(uvec2(uint(x), uint(x >> 31)));
}
#endif
#ifdef NEED_CAST
bool to_bool(float x) // by the bits: a subnormal number is true on every device
{
    return (floatBitsToUint(x) << 1) != 0u;
}
#ifdef NEED_F64
bool to_bool(double x)
{
    return !(x == 0.0LF);
}
#endif
SATURATE_ALL(float)
#ifdef NEED_I64
SATURATE_WIDE(float)
#endif
#ifdef NEED_F64
SATURATE_ALL(double)
#ifdef NEED_I64
SATURATE_WIDE(double)
#endif
#endif
#endif

// --- signs, the smaller, the larger -------------------------------------------------------

#ifdef NEED_ABS
float op_ABS(float x)
{
    return abs(x);
}
int op_ABS(int x)
{
    return abs(x);
}
uint op_ABS(uint x)
{
    return x;
}
#ifdef NEED_I64
int64_t op_ABS(int64_t x)
{
    return x < 0 ? -x : x;
}
uint64_t op_ABS(uint64_t x)
{
    return x;
}
#endif
#ifdef NEED_F64
double op_ABS(double x)
{
    return abs(x);
}
#endif
#endif

// By the bits: sign(-0.0) may be either zero, and a device may take a subnormal number for 0.
#ifdef NEED_SIGN
float op_SIGN(float x)
{
    uint size = floatBitsToUint(x) & 0x7fffffffu;
    return size == 0u ? 0.0 : size > 0x7f800000u ? x : with_sign(1.0, x);
}
int op_SIGN(int x)
{
    return sign(x);
}
uint op_SIGN(uint x)
{
    return min(x, 1u);
}
#ifdef NEED_I64
int64_t op_SIGN(int64_t x)
{
    return x > 0 ? int64_t(1) : x < 0 ? int64_t(-1) : int64_t(0);
}
uint64_t op_SIGN(uint64_t x)
{
    return x > 0 ? uint64_t(1) : uint64_t(0);
}
#endif
#ifdef NEED_F64
double op_SIGN(double x)
{
    return x > 0.0LF ? 1.0LF : x < 0.0LF ? -1.0LF : abs(x); // NaN; of zeros 0.0
}
#endif
#endif

// A NaN operand is the result, by its bits: of a constant and NaN NVIDIA's compiler makes the
// instruction for the lesser number of `a < b ? a : b`.
#define MIN_MAX_FLOAT(T)                                                                   \
    T op_MIN(T a, T b)                                                                     \
    {                                                                                      \
        return is_nan(b) ? b : is_nan(a) || a < b ? a : b;                                 \
    }                                                                                      \
    T op_MAX(T a, T b)                                                                     \
    {                                                                                      \
        return is_nan(b) ? b : is_nan(a) || a > b ? a : b;                                 \
    }
#define MIN_MAX_INT(T)                                                                     \
    T op_MIN(T a, T b)                                                                     \
    {                                                                                      \
        return a < b ? a : b;                                                              \
    }                                                                                      \
    T op_MAX(T a, T b)                                                                     \
    {                                                                                      \
        return a > b ? a : b;                                                              \
    }
#if defined(NEED_MIN) || defined(NEED_MAX)
MIN_MAX_FLOAT(float)
MIN_MAX_INT(int)
MIN_MAX_INT(uint)
#ifdef NEED_I64
MIN_MAX_INT(int64_t)
MIN_MAX_INT(uint64_t)
#endif
#ifdef NEED_F64
MIN_MAX_FLOAT(double)
#endif
#endif

// --- integers -----------------------------------------------------------------------------

// DIV and MOD, towards minus infinity; by zero 0. GLSL leaves % of negative numbers undefined.
#define DIV_SIGNED(T)                                                                      \
    T op_DIV(T a, T b)                                                                     \
    {                                                                                      \
        if (b == T(0))                                                                     \
            return T(0);                                                                   \
        if (b == T(-1)) /* the one quotient that could overflow */                         \
            return -a;                                                                     \
        T q = a / b;                                                                       \
        T r = a - q * b;                                                                   \
        return r != T(0) && (r < T(0)) != (b < T(0)) ? q - T(1) : q;                       \
    }
#define DIV_UNSIGNED(T)                                                                    \
    T op_DIV(T a, T b)                                                                     \
    {                                                                                      \
        return b == T(0) ? T(0) : a / b;                                                   \
    }
#define MOD_SIGNED(T)                                                                      \
    T op_MOD(T a, T b)                                                                     \
    {                                                                                      \
        if (b == T(0) || b == T(-1))                                                       \
            return T(0);                                                                   \
        T r = a - a / b * b;                                                               \
        return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;                          \
    }
#define MOD_UNSIGNED(T)                                                                    \
    T op_MOD(T a, T b)                                                                     \
    {                                                                                      \
        return b == T(0) ? T(0) : a - a / b * b;                                           \
    }
#define POW_SIGNED(T)                                                                      \
    T op_POW(T a, T b)                                                                     \
    {                                                                                      \
        if (b < T(0))                                                                      \
            return a == T(1) ? T(1) : a != T(-1) ? T(0) : (b & T(1)) == T(0) ? T(1) : a;   \
        T result = T(1);                                                                   \
        for (; b > T(0); b >>= 1) {                                                        \
            if ((b & T(1)) != T(0))                                                        \
                result *= a;                                                               \
            a *= a;                                                                        \
        }                                                                                  \
        return result;                                                                     \
    }
#define POW_UNSIGNED(T)                                                                    \
    T op_POW(T a, T b)                                                                     \
    {                                                                                      \
        T result = T(1);                                                                   \
        for (; b > T(0); b >>= 1) {                                                        \
            if ((b & T(1)) != T(0))                                                        \
                result *= a;                                                               \
            a *= a;                                                                        \
        }                                                                                  \
        return result;                                                                     \
    }
// Shifts. By `width` bits or more the result is 0, or the sign; a negative count is large when read
// as U, and so counts as more. No GLSL shift is by more than GLSL defines.
#define SHIFT_LEFT(T, U)                                                                   \
    T op_SHL(T a, T b, int width)                                                          \
    {                                                                                      \
        bool over = U(b) >= U(width);                                                      \
        T y = a << (over ? 0u : uint(b));                                                  \
        return over ? T(0) : y;                                                            \
    }
#define SHIFTS_SIGNED(T, U)                                                                \
    SHIFT_LEFT(T, U)                                                                       \
    T op_SHR(T a, T b, int width)                                                          \
    {                                                                                      \
        return a >> (U(b) >= U(width) ? uint(width - 1) : uint(b));                        \
    }
#define SHIFTS_UNSIGNED(T)                                                                 \
    SHIFT_LEFT(T, T)                                                                       \
    T op_SHR(T a, T b, int width)                                                          \
    {                                                                                      \
        bool over = b >= T(width);                                                         \
        T y = a >> (over ? 0u : uint(b));                                                  \
        return over ? T(0) : y;                                                            \
    }
#ifdef NEED_DIV
float op_DIV(float a, float b)
{
    return a / b;
}
DIV_SIGNED(int)
DIV_UNSIGNED(uint)
#ifdef NEED_I64
DIV_SIGNED(int64_t)
DIV_UNSIGNED(uint64_t)
#endif
#ifdef NEED_F64
double op_DIV(double a, double b)
{
    return a / b;
}
#endif
#endif
#ifdef NEED_MOD
MOD_SIGNED(int)
MOD_UNSIGNED(uint)
#ifdef NEED_I64
MOD_SIGNED(int64_t)
MOD_UNSIGNED(uint64_t)
#endif
#endif
#ifdef NEED_POW
POW_SIGNED(int)
POW_UNSIGNED(uint)
#ifdef NEED_I64
POW_SIGNED(int64_t)
POW_UNSIGNED(uint64_t)
#endif
#endif
#if defined(NEED_SHL) || defined(NEED_SHR)
SHIFTS_SIGNED(int, uint)
SHIFTS_UNSIGNED(uint)
#ifdef NEED_I64
SHIFTS_SIGNED(int64_t, uint64_t)
SHIFTS_UNSIGNED(uint64_t)
#endif
#endif

#ifdef NEED_MOD
// The remainder for |a| >= |b| and b below 2^-102, where it may be subnormal and a device may take
// it for 0: computed in integers, in units of b's last place.
float mod_of_small(float a, float b)
{
    uint x = floatBitsToUint(a) & 0x7fffffffu, y = floatBitsToUint(b) & 0x7fffffffu;
    uint x_exponent = max(x >> 23, 1u), exponent = max(y >> 23, 1u);
    uint r = x - ((x_exponent - 1u) << 23), d = y - ((exponent - 1u) << 23); // with 2^23
    r %= d;
    for (uint i = exponent; i < x_exponent; i++)
        r = (r << 1) % d;
    if (r != 0u && (floatBitsToInt(a) < 0) != (floatBitsToInt(b) < 0))
        r = d - r;
    if (exponent == 1u)
        return with_sign(uintBitsToFloat(r), b);
    return with_sign(float(r) * uintBitsToFloat(exponent << 23) / 8388608.0, b);
}
// Each step subtracts from |r| the largest b * 2^k that is at most |r|. The two are within a factor
// of two, so the difference is exact (Sterbenz's lemma), and so is the remainder.
float op_MOD(float a, float b)
{
    uint size = floatBitsToUint(b) & 0x7fffffffu;
    if (is_nan(a) || is_nan(b) || is_inf(a) || size == 0u)
        return not_a_number();
    if (size < 25u << 23 && (floatBitsToUint(a) & 0x7fffffffu) >= size)
        return mod_of_small(a, b);
    bool minus = floatBitsToInt(a) < 0, differs = minus != (floatBitsToInt(b) < 0);
    float r = with_sign(a, 1.0), d = with_sign(b, 1.0);
    if (is_inf(b) && floatBitsToUint(r) != 0u)
        return differs ? b : a;
    // Positive floats are ordered as their bits are. 2^steps, which a float may not hold, is
    // applied as two factors.
    while (floatBitsToUint(r) >= size) {
        int steps = (floatBitsToInt(r) >> 23) - (floatBitsToInt(d) >> 23);
        precise float part = d * uintBitsToFloat(uint(127 + (steps >> 1)) << 23);
        part *= uintBitsToFloat(uint(127 + steps - (steps >> 1)) << 23);
        r -= part > r ? part * 0.5 : part;
    }
    if (floatBitsToUint(r) == 0u)
        return with_sign(0.0, b);
    r = minus ? -r : r;
    return differs ? r + b : r;
}
#endif
#if defined(NEED_F64) && (defined(NEED_MOD) || defined(NEED_FLOOR_DIV))
// The exponent of x > 0, with a bias of 1023: below 1 where x is subnormal.
int exponent_of(double x)
{
    int exponent = int(high_bits(x) >> 20);
    return exponent > 0 ? exponent : int(high_bits(x * 18014398509481984.0LF) >> 20) - 54;
}
// The rest of r >= 0 in units of d > 0, both finite: exact, as op_MOD(float) is.
double rest_of(double r, double d)
{
    int exponent = exponent_of(d);
    while (r >= d) {
        int steps = exponent_of(r) - exponent, third = steps / 3; // up to 2097 in all
        precise double part = d * power_of_two(third); // no compiler may join the factors
        part *= power_of_two(third);
        part *= power_of_two(steps - 2 * third);
        if (part == 0.0LF) // of a driver that takes subnormal numbers for zero
            return part;
        r -= part > r ? part * 0.5LF : part;
    }
    return r;
}
#endif
#ifdef NEED_MOD
#ifdef NEED_F64
double op_MOD(double a, double b)
{
    if (!is_finite(a) || is_nan(b) || b == 0.0LF)
        return 0.0LF / 0.0LF;
    if (is_inf(b) && a != 0.0LF)
        return (a < 0.0LF) == (b < 0.0LF) ? a : b;
    double r = rest_of(abs(a), abs(b));
    if (r == 0.0LF)
        return zero_with_sign(b);
    r = a < 0.0LF ? -r : r;
    return (r < 0.0LF) != (b < 0.0LF) ? r + b : r;
}
#endif
#endif

#ifdef NEED_FLOOR_DIV
// s / d rounded to the nearest float: digit by digit, because Vulkan rounds division within 2.5
// units only. Both are finite, at least 1, and the quotient is.
float rounded_quotient(float s, float d, int exponent)
{
    uint x = floatBitsToUint(s), y = floatBitsToUint(d), digits = 0u;
    uint r = x & 0x7fffffu | 0x800000u, unit = y & 0x7fffffu | 0x800000u;
    exponent += int(x >> 23) - int(y >> 23);
    uint under = r < unit ? 1u : 0u;
    r <<= under;
    exponent -= int(under);
    for (int i = 0; i < 25; i++) { // 24 digits, and one to round by
        uint digit = r >= unit ? 1u : 0u;
        digits = digits << 1 | digit;
        r = (r - digit * unit) << 1;
    }
    bool up = (digits & 1u) != 0u && (r != 0u || (digits & 2u) != 0u);
    if (exponent > 127)
        return infinity();
    return float((digits >> 1) + (up ? 1u : 0u)) *
           uintBitsToFloat(uint(127 + exponent - 23) << 23);
}
// The quotient of floats with these bits, x >= y > 0 and finite, by long division in integers, in
// units of y's last place, so that subnormal ones are exact. Below 2^21 it is exact; from there on
// the two roundings of tn_float_floor_divide() of <tenon/ops/program.h> follow.
float long_quotient(uint x, uint y, bool differs)
{
    uint exponent = max(y >> 23, 1u), steps = max(x >> 23, 1u) - exponent;
    uint whole = x - ((max(x >> 23, 1u) - 1u) << 23), unit = y - ((exponent - 1u) << 23);
    uint n = whole / unit, r = whole - n * unit;
    for (uint i = 0u; i < steps; i++) {
        r <<= 1;
        uint digit = r >= unit ? 1u : 0u;
        r -= digit * unit;
        n = n < 2097152u ? n << 1 | digit : n;
    }
    float below = differs && r != 0u ? 1.0 : 0.0;
    if (n < 2097152u)
        return differs ? -(float(n) + below) : float(n);
    // From 2^40 times the whole on, the rest is below what is rounded away.
    uint some = min(steps, 40u);
    float quotient = float(whole) * uintBitsToFloat((127u + some) << 23) - float(r);
    quotient = rounded_quotient(quotient, float(unit), int(steps - some));
    if (is_inf(quotient))
        return differs ? -quotient : quotient;
    quotient = differs ? -quotient - below : quotient;
    float low = floor(quotient);
    return quotient - low > 0.5 ? low + 1.0 : low;
}
float op_FLOOR_DIV(float a, float b)
{
    uint x = floatBitsToUint(a) & 0x7fffffffu, y = floatBitsToUint(b) & 0x7fffffffu;
    bool differs = (floatBitsToInt(a) < 0) != (floatBitsToInt(b) < 0);
    float side = differs ? -1.0 : 1.0;
    if (x >= 0x7f800000u || y > 0x7f800000u || y == 0u)
        return y == 0u && x != 0u && !is_nan(a) ? with_sign(infinity(), side) : not_a_number();
    if (x < y)
        return x != 0u && differs ? -1.0 : with_sign(0.0, side);
    // n * high, n * low and the rest are exact: n has 12 bits, and so has either half of b's. The
    // division may be one off.
    float size = with_sign(a, 1.0), d = with_sign(b, 1.0), n = floor(size / d);
    if (y < 25u << 23 || y >= 253u << 23 || !(n < 4096.0))
        return long_quotient(x, y, differs);
    float high = uintBitsToFloat(y & 0xfffff000u), low = d - high;
    float rest = size - n * high - n * low;
    n += rest < 0.0 ? -1.0 : rest >= d ? 1.0 : 0.0;
    bool is_whole = rest == 0.0 || rest == d || rest == -d;
    return differs ? -(is_whole ? n : n + 1.0) : n;
}
#ifdef NEED_F64
// Division of doubles is taken to be rounded correctly.
double op_FLOOR_DIV(double a, double b)
{
    bool differs = (int(unpackDouble2x32(a).y) < 0) != (int(unpackDouble2x32(b).y) < 0);
    if (!is_finite(a) || is_nan(b) || b == 0.0LF)
        return b == 0.0LF ? a / b : 0.0LF / 0.0LF;
    double x = abs(a), y = abs(b);
    if (x < y)
        return x != 0.0LF && differs ? -1.0LF : zero_with_sign(differs ? -1.0LF : 1.0LF);
    double n = floor(x / y);
    if (n < 67108864.0LF) {
        uvec2 bits = unpackDouble2x32(y);
        double high = packDouble2x32(uvec2(bits.x & 0xf8000000u, bits.y));
        double rest = x - n * high - n * (y - high);
        n += rest < 0.0LF ? -1.0LF : rest >= y ? 1.0LF : 0.0LF;
        bool is_whole = rest == 0.0LF || rest == y || rest == -y;
        return differs ? -(is_whole ? n : n + 1.0LF) : n;
    }
    double r = rest_of(x, y), quotient = (x - r) / y;
    if (differs)
        quotient = r != 0.0LF ? -quotient - 1.0LF : -quotient;
    double low = floor(quotient);
    return quotient - low > 0.5LF ? low + 1.0LF : low;
}
#endif
#endif
