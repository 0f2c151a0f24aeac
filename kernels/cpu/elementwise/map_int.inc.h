// SPDX-License-Identifier: MIT
// The operations of one integer type, as <tenon/ops/program.h> defines them. map_int.c
// includes this file once for each type, with T, N (its name in tables), SIGNED (that of
// the signed type of as many bits, which comes first), W (bits), IS_SIGNED, and MAPPER
// (MAP2, or MAP2S for the types whose operations accept scalars: see cpu_takes_scalars()).
#define F(op) GLUE(op, N)

static inline T F(divide)(T x, T y)
{
    if (y == 0)
        return 0;
#if IS_SIGNED
    if (y == -1)
        return (T)(0 - x);
    T quotient = (T)(x / y);
    return (T)(quotient - ((x % y != 0) & ((x ^ y) < 0)));
#else
    return (T)(x / y);
#endif
}

static inline T F(modulo)(T x, T y)
{
#if IS_SIGNED
    if (y == 0 || y == -1)
        return 0;
    T remainder = (T)(x % y);
    return (T)(remainder != 0 && (remainder ^ y) < 0 ? remainder + y : remainder);
#else
    return (T)(y == 0 ? 0 : x % y);
#endif
}

// A quotient of doubles, rounded down, equals the quotient of integers if these have at
// most 51 bits: then rounding cannot reach the next whole number. Where processors round
// vectors, such loops are vector loops; all integers of up to 32 bits are common operands.
#if W == 64
static inline double F(widened)(T x) // |x| is at most 2^51
{
    return f64_of_bits((uint64_t)x + MIDDLE_BITS) - MIDDLE;
}
static inline bool F(is_common)(T x, T y)
{
    uint64_t half = IS_SIGNED ? UINT64_C(1) << 50 : 0;
    return ((((uint64_t)x + half) | ((uint64_t)y + half)) >> 51) == 0;
}
#elif W == 32
#define widened_i32 (double)
#define widened_u32 (double)
#endif
#if W >= 32
static inline T F(quick_divide)(T x, T y)
{
    double quotient = floor(F(widened)(x) / F(widened)(y == 0 ? 1 : y));
    T result = (T)(bits_of_f64(quotient + MIDDLE) - MIDDLE_BITS);
    return y == 0 ? 0 : result;
}
#else
static inline T F(quick_divide)(T x, T y)
{
    int32_t result = (int32_t)floorf((float)x / (float)(y == 0 ? 1 : y));
    return (T)(y == 0 ? 0 : result);
}
#endif
static inline T F(quick_modulo)(T x, T y)
{
    return (T)(y == 0 ? 0 : x - F(quick_divide)(x, y) * y);
}

static inline T F(power)(T x, T y)
{
    T result = 1;
#if IS_SIGNED
    if (y < 0)
        return (T)(x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0);
#endif
    for (; y != 0; y = (T)(y >> 1)) {
        if (y & 1)
            result = (T)(result * x);
        x = (T)(x * x);
    }
    return result;
}

#if IS_SIGNED
MAP1(F(NEG), T, T, 0 - x)
MAP1(F(INVERT), T, T, ~x)
MAPPER(F(ADD), T, T, x + y)
MAPPER(F(SUB), T, T, x - y)
MAPPER(F(MUL), T, T, x *y)
MAPPER(F(AND), T, T, x &y)
MAPPER(F(OR), T, T, x | y)
MAPPER(F(XOR), T, T, x ^ y)
MAPPER(F(SHL), T, T, y < 0 || y >= W ? 0 : (uint64_t)x << (y & (W - 1)))
MAPPER(F(EQ), T, uint8_t, x == y)
MAPPER(F(NE), T, uint8_t, x != y)
SELECT(F(SELECT), T)
MAP1(F(ABS), T, T, x < 0 ? 0 - x : x)
MAP1(F(SIGN), T, T, (x > 0) - (x < 0))
MAPPER(F(SHR), T, T, y < 0 || y >= W ? (x < 0 ? -1 : 0) : x >> (y & (W - 1)))
#else
MAP1(F(ABS), T, T, x)
MAP1(F(SIGN), T, T, x != 0)
MAPPER(F(SHR), T, T, y >= W ? 0 : x >> (y & (W - 1)))
#endif
#if W < 64 || !ROUNDS_VECTORS
MAPPER(F(DIV), T, T, ROUNDS_VECTORS ? F(quick_divide)(x, y) : F(divide)(x, y))
MAPPER(F(MOD), T, T, ROUNDS_VECTORS ? F(quick_modulo)(x, y) : F(modulo)(x, y))
#else
#define spread F(spread)
#include "map_rare.inc.h"
MAP2_RARE(F(DIV), F(is_common)(x, y), F(quick_divide)(x, y), F(divide)(x, y))
MAP2_RARE(F(MOD), F(is_common)(x, y), F(quick_modulo)(x, y), F(modulo)(x, y))
#undef spread
#endif
MAPPER(F(POW), T, T, F(power)(x, y))
MAPPER(F(MIN), T, T, x < y ? x : y)
MAPPER(F(MAX), T, T, x > y ? x : y)
// GT and GE call these functions, since their loops are long.
__attribute__((noinline)) static cpu_map_fn F(LT), F(LE);
MAPPER(F(LT), T, uint8_t, x < y)
MAPPER(F(LE), T, uint8_t, x <= y)
MAP2_SWAPPED(F(GT), F(LT))
MAP2_SWAPPED(F(GE), F(LE))

cpu_map_fn *const V(GLUE(cpu_map, N))[CPU_NUM_OPS] = {TN_EXPR_OPS(ENTRY)};

#undef F
#undef T
#undef N
#undef SIGNED
#undef W
#undef IS_SIGNED
#undef MAPPER
