// SPDX-License-Identifier: MIT
// Facts about dtypes, and NumPy's promotion.
#ifndef CORE_BASE_DTYPE_H
#define CORE_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/types.h>

enum dtype_kind { KIND_NONE, KIND_BOOL, KIND_SIGNED, KIND_UNSIGNED, KIND_FLOAT };

struct dtype_info {
    const char *numpy; // "float32"
    uint8_t size;      // bytes
    uint8_t kind;
};
extern const struct dtype_info dtype_table[TN_NUM_DTYPES];

static inline bool dtype_valid(tn_dtype dtype)
{
    return dtype > TN_DTYPE_NONE && dtype < TN_NUM_DTYPES;
}
static inline const char *dtype_name(tn_dtype dtype)
{
    return tn_dtype_name(dtype);
}
static inline size_t dtype_size(tn_dtype dtype)
{
    return dtype_table[dtype].size;
}
static inline bool dtype_is_float(tn_dtype dtype)
{
    return dtype_table[dtype].kind == KIND_FLOAT;
}

// "f32", "float32"; TN_DTYPE_NONE when unknown.
tn_dtype dtype_parse(const char *name);

// numpy.promote_types; f16 with bf16 gives f32.
tn_dtype dtype_promote(tn_dtype a, tn_dtype b);

// The dtype of a number without one of its own (weak_kind: KIND_SIGNED or KIND_FLOAT) with
// `other`: 2 keeps any, 2.0 keeps floats and makes integers f64 (NEP 50).
tn_dtype dtype_promote_weak(int weak_kind, tn_dtype other);

// The float dtype in which functions of it are computed: bool, i8, u8: f16; i16, u16: f32;
// wider integers: f64; floats: themselves (numpy.exp).
tn_dtype dtype_to_float(tn_dtype dtype);

// One element converted to double and back; half floats included.
double dtype_load(tn_dtype dtype, const void *element);
void dtype_store(tn_dtype dtype, void *element, double value);

// The same exactly, widened: floats to the bits of a double, integers to 64 bits.
uint64_t dtype_load_bits(tn_dtype dtype, const void *element);
void dtype_store_bits(tn_dtype dtype, void *element, uint64_t bits);

float half_to_float(uint16_t bits);
uint16_t float_to_half(float value); // to nearest even
static inline float bfloat_to_float(uint16_t bits)
{
    union {
        uint32_t u;
        float f;
    } v = {(uint32_t)bits << 16};
    return v.f;
}
uint16_t float_to_bfloat(float value); // to nearest even

#endif // CORE_BASE_DTYPE_H
