// SPDX-License-Identifier: MIT
// Names, sizes and kinds of dtypes, NumPy's promotion, and conversion of single elements.
#ifndef CORE_BASE_DTYPE_H
#define CORE_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/types.h>

enum dtype_kind {
    KIND_NONE = TN_KIND_NONE,
    KIND_BOOL = TN_KIND_BOOL,
    KIND_SIGNED = TN_KIND_SIGNED,
    KIND_UNSIGNED = TN_KIND_UNSIGNED,
    KIND_FLOAT = TN_KIND_FLOAT,
    KIND_FLOAT8 = TN_KIND_FLOAT8,
    KIND_COMPLEX = TN_KIND_COMPLEX,
};

#define DTYPE_MAX_SIZE 16 // bytes of the largest element

static inline bool dtype_valid(tn_dtype dtype)
{
    return dtype > TN_DTYPE_NONE && dtype < TN_NUM_DTYPES;
}
static inline const char *dtype_name(tn_dtype dtype)
{
    return tn_dtype_name(dtype);
}
const char *dtype_numpy_name(tn_dtype dtype); // "float32"
static inline size_t dtype_size(tn_dtype dtype)
{
    return (size_t)tn_dtype_bytes(dtype);
}
static inline bool dtype_is_float(tn_dtype dtype)
{
    return tn_is_float(dtype);
}
// Floats, those of 8 bits included, and complex numbers: what derivatives flow through.
// Numbers of these dtypes are kept as the bits of a double, the real part.
static inline bool dtype_is_inexact(tn_dtype dtype)
{
    return tn_dtype_in(dtype, TN_FLOAT_DTYPES | TN_FLOAT8_DTYPES | TN_COMPLEX_DTYPES);
}

// The dtype named "f32" or, as in NumPy, "float32"; TN_DTYPE_NONE when unknown.
tn_dtype dtype_parse(const char *name);

// numpy.promote_types; f16 with bf16 gives f32, and with a complex dtype complex64. A float
// of 8 bits promotes with nothing but itself: TN_DTYPE_NONE.
tn_dtype dtype_promote(tn_dtype a, tn_dtype b);

// The promotion of `other` with a weakly typed number (one without a dtype, as in NEP 50;
// weak_kind: KIND_SIGNED, KIND_FLOAT or KIND_COMPLEX). 2 keeps every dtype but bool, which
// becomes i64; 2.0 keeps floats and complex dtypes and turns all others into f64; 2j keeps
// complex dtypes, and turns f64, integers and bool into complex128 and other floats into
// complex64.
tn_dtype dtype_promote_weak(int weak_kind, tn_dtype other);

// The dtype of a float function such as exp of this dtype (numpy.exp): f16 for bool, i8 and
// u8; f32 for i16 and u16; f64 for wider integers; floats and complex dtypes stay.
tn_dtype dtype_to_float(tn_dtype dtype);

// Converts one element to double and back; of a complex number the real part. An invalid
// dtype loads as NaN.
double dtype_load(tn_dtype dtype, const void *element);
void dtype_store(tn_dtype dtype, void *element, double value);

// One element as 64 bits, without loss: floats as the bits of a double, integers extended
// by sign or zero. Of a complex number the real part; the imaginary one is stored as 0.
uint64_t dtype_load_bits(tn_dtype dtype, const void *element);
void dtype_store_bits(tn_dtype dtype, void *element, uint64_t bits);

#endif // CORE_BASE_DTYPE_H
