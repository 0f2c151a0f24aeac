// SPDX-License-Identifier: MIT
// NumPy's names and promotion of dtypes, and conversion of single elements.
#include "dtype.h"

#include <math.h>
#include <string.h>
#include <tenon/ops/promote.h>
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

tn_dtype dtype_to_float(tn_dtype dtype)
{
    return tn_dtype_inexact(dtype);
}

tn_dtype dtype_promote(tn_dtype a, tn_dtype b)
{
    return tn_dtype_promote(a, b);
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
