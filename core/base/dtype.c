// SPDX-License-Identifier: MIT
// Facts about dtypes, NumPy's promotion, and conversion of single elements.
#include "dtype.h"

#include <math.h>
#include <string.h>

const struct dtype_info dtype_table[TN_NUM_DTYPES] = {
    [TN_DTYPE_NONE] = {"none", "none", 0, KIND_NONE},
    [TN_BOOL] = {"bool", "bool", 1, KIND_BOOL},
    [TN_I8] = {"i8", "int8", 1, KIND_SIGNED},
    [TN_I16] = {"i16", "int16", 2, KIND_SIGNED},
    [TN_I32] = {"i32", "int32", 4, KIND_SIGNED},
    [TN_I64] = {"i64", "int64", 8, KIND_SIGNED},
    [TN_U8] = {"u8", "uint8", 1, KIND_UNSIGNED},
    [TN_U16] = {"u16", "uint16", 2, KIND_UNSIGNED},
    [TN_U32] = {"u32", "uint32", 4, KIND_UNSIGNED},
    [TN_U64] = {"u64", "uint64", 8, KIND_UNSIGNED},
    [TN_F16] = {"f16", "float16", 2, KIND_FLOAT},
    [TN_BF16] = {"bf16", "bfloat16", 2, KIND_FLOAT},
    [TN_F32] = {"f32", "float32", 4, KIND_FLOAT},
    [TN_F64] = {"f64", "float64", 8, KIND_FLOAT},
};

tn_dtype dtype_parse(const char *name)
{
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++)
        if (strcmp(name, dtype_table[dtype].name) == 0 ||
            strcmp(name, dtype_table[dtype].numpy) == 0)
            return dtype;
    return TN_DTYPE_NONE;
}

// --- promotion -------------------------------------------------------------------------

static tn_dtype signed_of_size(size_t size)
{
    return size == 1 ? TN_I8 : size == 2 ? TN_I16 : size == 4 ? TN_I32 : TN_I64;
}

tn_dtype dtype_to_float(tn_dtype dtype)
{
    if (dtype_is_float(dtype))
        return dtype;
    size_t size = dtype_size(dtype);
    return size == 1 ? TN_F16 : size == 2 ? TN_F32 : TN_F64;
}

// Each integer is exact in the result, except 64-bit ones, which f64 has to hold.
static tn_dtype promote_floats(tn_dtype a, tn_dtype b)
{
    if (dtype_size(a) != dtype_size(b))
        return dtype_size(a) > dtype_size(b) ? a : b;
    return a == b ? a : TN_F32; // f16 and bf16
}

static tn_dtype promote_integers(tn_dtype a, tn_dtype b)
{
    size_t size_a = dtype_size(a), size_b = dtype_size(b);
    if (dtype_table[a].kind == dtype_table[b].kind)
        return size_a >= size_b ? a : b;
    size_t signed_size = dtype_table[a].kind == KIND_SIGNED ? size_a : size_b;
    size_t unsigned_size = dtype_table[a].kind == KIND_SIGNED ? size_b : size_a;
    if (signed_size > unsigned_size)
        return signed_of_size(signed_size);
    return unsigned_size < 8 ? signed_of_size(2 * unsigned_size) : TN_F64;
}

tn_dtype dtype_promote(tn_dtype a, tn_dtype b)
{
    if (!dtype_valid(a) || !dtype_valid(b))
        return TN_DTYPE_NONE;
    if (a == b || b == TN_BOOL)
        return a;
    if (a == TN_BOOL)
        return b;
    bool float_a = dtype_is_float(a), float_b = dtype_is_float(b);
    if (float_a && float_b)
        return promote_floats(a, b);
    if (!float_a && !float_b)
        return promote_integers(a, b);
    tn_dtype given = float_a ? a : b, made = dtype_to_float(float_a ? b : a);
    // 8-bit integers are exact in both half floats, so the given one stays.
    return dtype_size(made) > dtype_size(given) ? made : given;
}

tn_dtype dtype_promote_weak(int weak_kind, tn_dtype other)
{
    if (!dtype_valid(other))
        return TN_DTYPE_NONE;
    if (weak_kind == KIND_FLOAT)
        return dtype_is_float(other) ? other : TN_F64;
    return other == TN_BOOL ? TN_I64 : other; // True + 2 is no bool
}

// --- half floats -----------------------------------------------------------------------

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

float half_to_float(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff;
    if (rest >= 0x7c00) // infinity, NaN
        return float_of(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest >= 0x400)
        return float_of(sign | ((rest << 13) + ((127 - 15) << 23)));
    float value = (float)rest * 0x1p-24f; // subnormal or zero
    return sign ? -value : value;
}

uint16_t float_to_half(float value)
{
    uint32_t bits = bits_of(value), rest = bits & 0x7fffffff;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (rest > 0x7f800000)
        return sign | 0x7e00 | (rest >> 13 & 0x1ff);
    if (rest >= 0x477ff000) // 65520 and more round to infinity
        return sign | 0x7c00;
    if (rest < 0x38800000) { // below 2^-14: let the addition round to a multiple of 2^-24
        float shifted = float_of(rest) + 0.5f;
        return sign | (uint16_t)(bits_of(shifted) - bits_of(0.5f));
    }
    uint32_t rounded = rest + 0xfff + (rest >> 13 & 1);
    return sign | (uint16_t)((rounded - ((127 - 15) << 23)) >> 13);
}

uint16_t float_to_bfloat(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40); // stays a NaN
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// --- one element -----------------------------------------------------------------------

// A float that rounds to a half float as the double itself would: inexact results get an
// odd last bit, so that no tie is seen where there was none.
static float round_to_odd(double value)
{
    float near = (float)value;
    uint32_t bits = bits_of(near);
    if ((double)near == value || value != value || bits & 1)
        return near;
    return float_of(fabs((double)near) < fabs(value) ? bits + 1 : bits - 1);
}

static int64_t to_signed(double value, int bits)
{
    double limit = ldexp(1.0, bits - 1);
    if (value != value)
        return 0;
    if (value >= limit)
        return INT64_MAX >> (64 - bits);
    return value <= -limit ? INT64_MIN >> (64 - bits) : (int64_t)value;
}

static uint64_t to_unsigned(double value, int bits)
{
    if (!(value > 0))
        return 0;
    return value >= ldexp(1.0, bits) ? UINT64_MAX >> (64 - bits) : (uint64_t)value;
}

#define LOAD(type)                                                                         \
    {                                                                                      \
        type value;                                                                        \
        memcpy(&value, element, sizeof(value));                                            \
        return (double)value;                                                              \
    }
#define STORE(type, converted)                                                             \
    {                                                                                      \
        type stored = (type)(converted);                                                   \
        memcpy(element, &stored, sizeof(stored));                                          \
        return;                                                                            \
    }

double dtype_load(tn_dtype dtype, const void *element)
{
    uint16_t half;
    switch (dtype) {
    case TN_BOOL:
    case TN_U8:
        LOAD(uint8_t)
    case TN_I8:
        LOAD(int8_t)
    case TN_I16:
        LOAD(int16_t)
    case TN_I32:
        LOAD(int32_t)
    case TN_I64:
        LOAD(int64_t)
    case TN_U16:
        LOAD(uint16_t)
    case TN_U32:
        LOAD(uint32_t)
    case TN_U64:
        LOAD(uint64_t)
    case TN_F32:
        LOAD(float)
    case TN_F64:
        LOAD(double)
    case TN_F16:
        memcpy(&half, element, sizeof(half));
        return (double)half_to_float(half);
    case TN_BF16:
        memcpy(&half, element, sizeof(half));
        return (double)bfloat_to_float(half);
    }
    return NAN;
}

void dtype_store(tn_dtype dtype, void *element, double value)
{
    int bits = 8 * (int)dtype_size(dtype);
    switch (dtype) {
    case TN_BOOL:
        STORE(uint8_t, value != 0)
    case TN_I8:
        STORE(int8_t, to_signed(value, bits))
    case TN_I16:
        STORE(int16_t, to_signed(value, bits))
    case TN_I32:
        STORE(int32_t, to_signed(value, bits))
    case TN_I64:
        STORE(int64_t, to_signed(value, bits))
    case TN_U8:
        STORE(uint8_t, to_unsigned(value, bits))
    case TN_U16:
        STORE(uint16_t, to_unsigned(value, bits))
    case TN_U32:
        STORE(uint32_t, to_unsigned(value, bits))
    case TN_U64:
        STORE(uint64_t, to_unsigned(value, bits))
    case TN_F16:
        STORE(uint16_t, float_to_half(round_to_odd(value)))
    case TN_BF16:
        STORE(uint16_t, float_to_bfloat(round_to_odd(value)))
    case TN_F32:
        STORE(float, value)
    case TN_F64:
        STORE(double, value)
    }
}
#undef LOAD
#undef STORE

// Bytes of integers are little-endian, as on every machine that Tenon builds for.
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "dtype_load_bits needs a little-endian machine"
#endif

uint64_t dtype_load_bits(tn_dtype dtype, const void *element)
{
    uint64_t bits = 0, sign;
    size_t size = dtype_size(dtype);
    if (dtype_is_float(dtype)) {
        double value = dtype_load(dtype, element);
        memcpy(&bits, &value, sizeof(bits));
        return bits;
    }
    memcpy(&bits, element, size);
    sign = UINT64_C(1) << (8 * size - 1);
    return dtype_table[dtype].kind == KIND_SIGNED ? (bits ^ sign) - sign : bits;
}

void dtype_store_bits(tn_dtype dtype, void *element, uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    if (dtype_is_float(dtype))
        dtype_store(dtype, element, value);
    else
        memcpy(element, &bits, dtype_size(dtype));
}
