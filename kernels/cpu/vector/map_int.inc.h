// SPDX-License-Identifier: MIT
// The operations of one integer type: included by map_int.c once for each, with T, N (its
// name in tables), W (bits), IS_SIGNED, and MAPPER (MAP2 or MAP2S).
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

MAP1(F(neg), T, T, 0 - x)
MAP1(F(invert), T, T, ~x)
#if IS_SIGNED
MAP1(F(abs), T, T, x < 0 ? 0 - x : x)
MAP1(F(sign), T, T, (x > 0) - (x < 0))
MAPPER(F(shr), T, T, y < 0 || y >= W ? (x < 0 ? -1 : 0) : x >> (y & (W - 1)))
MAPPER(F(shl), T, T, y < 0 || y >= W ? 0 : (uint64_t)x << (y & (W - 1)))
#else
MAP1(F(abs), T, T, x)
MAP1(F(sign), T, T, x != 0)
MAPPER(F(shr), T, T, y >= W ? 0 : x >> (y & (W - 1)))
MAPPER(F(shl), T, T, y >= W ? 0 : (uint64_t)x << (y & (W - 1)))
#endif
MAPPER(F(add), T, T, x + y)
MAPPER(F(sub), T, T, x - y)
MAPPER(F(mul), T, T, x *y)
MAPPER(F(div), T, T, F(divide)(x, y))
MAPPER(F(mod), T, T, F(modulo)(x, y))
MAPPER(F(pow), T, T, F(power)(x, y))
MAPPER(F(min), T, T, x < y ? x : y)
MAPPER(F(max), T, T, x > y ? x : y)
MAPPER(F(and), T, T, x &y)
MAPPER(F(or), T, T, x | y)
MAPPER(F(xor), T, T, x ^ y)
MAPPER(F(eq), T, uint8_t, x == y)
MAPPER(F(ne), T, uint8_t, x != y)
MAPPER(F(lt), T, uint8_t, x < y)
MAPPER(F(le), T, uint8_t, x <= y)
MAPPER(F(gt), T, uint8_t, x > y)
MAPPER(F(ge), T, uint8_t, x >= y)
SELECT(F(select), T)

cpu_map_fn *const V(GLUE(cpu_map, N))[CPU_NUM_OPS] = {
    [CPU_OP_NEG] = F(neg),   [CPU_OP_INVERT] = F(invert), [CPU_OP_ABS] = F(abs),
    [CPU_OP_SIGN] = F(sign), [CPU_OP_ADD] = F(add),       [CPU_OP_SUB] = F(sub),
    [CPU_OP_MUL] = F(mul),   [CPU_OP_DIV] = F(div),       [CPU_OP_MOD] = F(mod),
    [CPU_OP_POW] = F(pow),   [CPU_OP_MIN] = F(min),       [CPU_OP_MAX] = F(max),
    [CPU_OP_AND] = F(and),   [CPU_OP_OR] = F(or),         [CPU_OP_XOR] = F(xor),
    [CPU_OP_SHL] = F(shl),   [CPU_OP_SHR] = F(shr),       [CPU_OP_EQ] = F(eq),
    [CPU_OP_NE] = F(ne),     [CPU_OP_LT] = F(lt),         [CPU_OP_LE] = F(le),
    [CPU_OP_GT] = F(gt),     [CPU_OP_GE] = F(ge),         [CPU_OP_SELECT] = F(select),
};

#undef F
#undef T
#undef N
#undef W
#undef IS_SIGNED
#undef MAPPER
