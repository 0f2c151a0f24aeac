// SPDX-License-Identifier: MIT
// NumPy's names and promotion of dtypes, and conversion of single elements.
#include "dtype.h"

#include <math.h>
#include <string.h>
#include <tenon/ops/reference.h>

const char *dtype_numpy_name(tn_dtype dtype)
{
    static const char *const names[] = {"none",
#define NAME(name, text, type, kind, precision, computed, numpy) numpy,
                                        TN_DTYPES(NAME)
#undef NAME
    };
    return names[dtype];
}

tn_dtype dtype_parse(const char *name)
{
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++)
        if (strcmp(name, dtype_name(dtype)) == 0 ||
            strcmp(name, dtype_numpy_name(dtype)) == 0)
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
    if (dtype_is_inexact(dtype))
        return dtype;
    size_t size = dtype_size(dtype);
    return size == 1 ? TN_F16 : size == 2 ? TN_F32 : TN_F64;
}

static tn_dtype promote_floats(tn_dtype a, tn_dtype b)
{
    if (dtype_size(a) != dtype_size(b))
        return dtype_size(a) > dtype_size(b) ? a : b;
    return a == b ? a : TN_F32; // f16 has more digits, bf16 more range: f32 has both
}

// Mixed signs need a signed dtype twice as wide as the unsigned one. Beside u64 only f64 is
// left, which is exact up to 2^53.
static tn_dtype promote_integers(tn_dtype a, tn_dtype b)
{
    size_t size_a = dtype_size(a), size_b = dtype_size(b);
    if (tn_dtype_kind(a) == tn_dtype_kind(b))
        return size_a >= size_b ? a : b;
    size_t signed_size = tn_dtype_kind(a) == KIND_SIGNED ? size_a : size_b;
    size_t unsigned_size = tn_dtype_kind(a) == KIND_SIGNED ? size_b : size_a;
    if (signed_size > unsigned_size)
        return signed_of_size(signed_size);
    return unsigned_size < 8 ? signed_of_size(2 * unsigned_size) : TN_F64;
}

// With a complex dtype: parts of the dtype to which the parts promote.
static tn_dtype promote_complex(tn_dtype a, tn_dtype b)
{
    return tn_dtype_complex(dtype_promote(tn_dtype_real(a), tn_dtype_real(b)));
}

tn_dtype dtype_promote(tn_dtype a, tn_dtype b)
{
    const uint32_t float8 = TN_FLOAT8_DTYPES;
    if (!dtype_valid(a) || !dtype_valid(b))
        return TN_DTYPE_NONE;
    if (a == b)
        return a;
    if (tn_dtype_in(a, float8) || tn_dtype_in(b, float8))
        return TN_DTYPE_NONE;
    if (tn_is_complex(a) || tn_is_complex(b))
        return promote_complex(a, b);
    if (b == TN_BOOL)
        return a;
    if (a == TN_BOOL)
        return b;
    bool float_a = dtype_is_float(a), float_b = dtype_is_float(b);
    if (float_a && float_b)
        return promote_floats(a, b);
    if (!float_a && !float_b)
        return promote_integers(a, b);
    tn_dtype given = float_a ? a : b, made = dtype_to_float(float_a ? b : a);
    // `made` is f16 for 8-bit integers and bool. bf16 is exact for these, too, so it stays.
    return dtype_size(made) > dtype_size(given) ? made : given;
}

tn_dtype dtype_promote_weak(int weak_kind, tn_dtype other)
{
    if (!dtype_valid(other))
        return TN_DTYPE_NONE;
    if (weak_kind == KIND_COMPLEX)
        return tn_dtype_in(other, TN_FLOAT8_DTYPES) ? TN_DTYPE_NONE
               : dtype_is_inexact(other)            ? tn_dtype_complex(other)
                                                    : TN_COMPLEX128;
    if (weak_kind == KIND_FLOAT)
        return dtype_is_inexact(other) ? other : TN_F64;
    return other == TN_BOOL ? TN_I64 : other; // bool + 2 is an integer
}

// --- conversion of one element, as tenon/ops/reference.h defines it --------------------

static tn_tensor one_element(tn_dtype dtype, void *element)
{
    return (tn_tensor){element, {.dtype = dtype}};
}

double dtype_load(tn_dtype dtype, const void *element)
{
    tn_tensor tensor = one_element(dtype, (void *)(uintptr_t)element);
    return dtype_valid(dtype) ? tn_get_f64(&tensor, 0) : NAN;
}

void dtype_store(tn_dtype dtype, void *element, double value)
{
    tn_tensor tensor = one_element(dtype, element);
    if (dtype_valid(dtype))
        tn_set_f64(&tensor, 0, value);
}

// Bytes of integers are little-endian, as on every machine that Tenon builds for.
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "dtype_load_bits needs a little-endian machine"
#endif

uint64_t dtype_load_bits(tn_dtype dtype, const void *element)
{
    uint64_t bits = 0, sign;
    size_t size = dtype_size(dtype);
    if (dtype_is_inexact(dtype)) {
        double value = dtype_load(dtype, element);
        memcpy(&bits, &value, sizeof(bits));
        return bits;
    }
    memcpy(&bits, element, size);
    sign = UINT64_C(1) << (8 * size - 1);
    return tn_dtype_kind(dtype) == KIND_SIGNED ? (bits ^ sign) - sign : bits;
}

void dtype_store_bits(tn_dtype dtype, void *element, uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    if (dtype_is_inexact(dtype))
        dtype_store(dtype, element, value);
    else
        memcpy(element, &bits, dtype_size(dtype));
}
