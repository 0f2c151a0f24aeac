// SPDX-License-Identifier: MIT
// For those who write reference kernels: elements of any dtype as numbers, and walks over
// any layout. Plain and slow on purpose; a kernel that must be fast does not use this.
//
//   int64_t index[TN_MAX_RANK] = {0};
//   if (tn_layout_count(&x->layout) > 0)
//       do {
//           double v = tn_get_f64(x, tn_offset_at(&x->layout, index));
//           tn_set_f64(y, tn_offset_at(&y->layout, index), v * v);
//       } while (tn_index_next(x->layout.rank, x->layout.extent, index));
//
// Threads. Pure functions; tn_set_* and tn_copy_region write where they are told.
#ifndef TENON_OPS_REFERENCE_H
#define TENON_OPS_REFERENCE_H

#include <stdint.h>
#include <tenon/types.h>

// --- dtypes ----------------------------------------------------------------------------

// Whether the set, of TN_DTYPE_BIT, has this dtype.
static inline int32_t tn_dtype_in(tn_dtype dtype, uint32_t set)
{
    return (set >> dtype & 1) != 0;
}

// The value of an IEEE 754 binary16: exact.
static inline float tn_f32_of_f16(uint16_t half)
{
    union {
        uint32_t u;
        float f;
    } v;
    uint32_t exponent = half >> 10 & 31, mantissa = half & 1023;
    if (exponent == 0) { // subnormal: counted in units of 2^-24
        v.f = (float)mantissa * 5.9604644775390625e-8f;
    } else {
        uint32_t rebiased = exponent == 31 ? 255 : exponent + 112;
        v.u = rebiased << 23 | mantissa << 13;
    }
    v.u |= (uint32_t)(half & 0x8000) << 16;
    return v.f;
}

// To nearest, ties to even.
static inline uint16_t tn_f16_of_f32(float value)
{
    union {
        float f;
        uint32_t u;
    } v;
    v.f = value;
    uint32_t sign = v.u >> 16 & 0x8000;
    v.u &= 0x7fffffff;
    if (v.u >= 0x7f800000) // infinity or NaN
        return (uint16_t)(sign | 0x7c00 | (v.u > 0x7f800000 ? 0x200 : 0));
    if (v.u >= 0x477ff000) // 65520 and more round to infinity
        return (uint16_t)(sign | 0x7c00);
    if (v.u < 0x38800000) { // subnormal: adding 1/2 makes the processor round to 2^-24
        v.f += 0.5f;
        return (uint16_t)(sign | (v.u - 0x3f000000));
    }
    uint32_t odd = v.u >> 13 & 1;
    v.u += UINT32_C(0xc8000fff) + odd; // exponent less 112, and half an ulp less a bit
    return (uint16_t)(sign | v.u >> 13);
}

// The value of a bfloat16: exact.
static inline float tn_f32_of_bf16(uint16_t bits)
{
    union {
        uint32_t u;
        float f;
    } v;
    v.u = (uint32_t)bits << 16;
    return v.f;
}

// To nearest, ties to even.
static inline uint16_t tn_bf16_of_f32(float value)
{
    union {
        float f;
        uint32_t u;
    } v;
    v.f = value;
    if ((v.u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(v.u >> 16 | 0x40); // NaN stays NaN
    return (uint16_t)((v.u + 0x7fff + (v.u >> 16 & 1)) >> 16);
}

// Rounded to f32 such that a half float made of it is what the double itself would round
// to: an inexact result gets an odd last bit, so that no tie is seen where there was none.
static inline float tn_f32_of_f64_odd(double value)
{
    union {
        float f;
        uint32_t u;
    } v;
    v.f = (float)value;
    double near = (double)v.f;
    if (near == value || value != value || v.u & 1)
        return v.f;
    v.u += (near < 0 ? -near : near) < (value < 0 ? -value : value) ? 1 : UINT32_MAX;
    return v.f;
}

// The integer that a float becomes, as CAST of <tenon/expr.h> says: cut towards zero, out
// of range the nearest that `dtype` (bool or an integer) has, NaN 0; to bool: is it not 0?
// Of an unsigned dtype the bits of a uint64_t. This is the one place that says so.
static inline int64_t tn_integer_of_f64(tn_dtype dtype, double value)
{
    int32_t bits = 8 * (int32_t)tn_dtype_bytes(dtype);
    double half = (double)(UINT64_C(1) << (bits - 1)); // of the number of values
    if (dtype == TN_BOOL)
        return value != 0;
    if (value != value)
        return 0;
    if (!tn_dtype_in(dtype, TN_SIGNED_DTYPES)) {
        if (value >= 2 * half)
            return (int64_t)(UINT64_MAX >> (64 - bits));
        return value > 0 ? (int64_t)(uint64_t)value : 0;
    }
    if (value >= half)
        return INT64_MAX >> (64 - bits);
    return value < -half ? INT64_MIN >> (64 - bits) : (int64_t)value;
}

// The same for i64.
static inline int64_t tn_i64_of_f64(double value)
{
    return tn_integer_of_f64(TN_I64, value);
}

// --- elements --------------------------------------------------------------------------

// The place `offset` elements from the start of the data: see tn_offset_at().
static inline char *tn_element(const tn_tensor *tensor, int64_t offset)
{
    return (char *)tensor->data + offset * tn_dtype_bytes(tensor->layout.dtype);
}

// Element `offset` of the buffer as an integer (the bits of a uint64_t for U64); floats are
// converted as to an i64.
static inline int64_t tn_get_i64(const tn_tensor *tensor, int64_t offset);

// Gives the T at p, which need not be aligned, as a number.
#define TN_REFERENCE_GET(T, number)                                                        \
    {                                                                                      \
        T value;                                                                           \
        __builtin_memcpy(&value, p, sizeof(value));                                        \
        return number(value);                                                              \
    }
#define TN_REFERENCE_SET(T, number)                                                        \
    {                                                                                      \
        T stored = (T)(number);                                                            \
        __builtin_memcpy(p, &stored, sizeof(stored));                                      \
        break;                                                                             \
    }

// The same as a double.
static inline double tn_get_f64(const tn_tensor *tensor, int64_t offset)
{
    const void *p = tn_element(tensor, offset);
    switch (tensor->layout.dtype) {
    case TN_F16:
        TN_REFERENCE_GET(uint16_t, (double)tn_f32_of_f16)
    case TN_BF16:
        TN_REFERENCE_GET(uint16_t, (double)tn_f32_of_bf16)
    case TN_F32:
        TN_REFERENCE_GET(float, (double))
    case TN_F64:
        TN_REFERENCE_GET(double, (double))
    case TN_U64:
        TN_REFERENCE_GET(uint64_t, (double))
    default:
        return (double)tn_get_i64(tensor, offset);
    }
}

static inline int64_t tn_get_i64(const tn_tensor *tensor, int64_t offset)
{
    const void *p = tn_element(tensor, offset);
    switch (tensor->layout.dtype) {
    case TN_BOOL:
    case TN_U8:
        TN_REFERENCE_GET(uint8_t, (int64_t))
    case TN_I8:
        TN_REFERENCE_GET(int8_t, (int64_t))
    case TN_I16:
        TN_REFERENCE_GET(int16_t, (int64_t))
    case TN_U16:
        TN_REFERENCE_GET(uint16_t, (int64_t))
    case TN_I32:
        TN_REFERENCE_GET(int32_t, (int64_t))
    case TN_U32:
        TN_REFERENCE_GET(uint32_t, (int64_t))
    case TN_I64:
    case TN_U64:
        TN_REFERENCE_GET(int64_t, (int64_t))
    default:
        return tn_i64_of_f64(tn_get_f64(tensor, offset));
    }
}

static inline void tn_set_f64(const tn_tensor *tensor, int64_t offset, double value);

// Stores an integer, wrapped to the element's width (the bits of a uint64_t for U64).
static inline void tn_set_i64(const tn_tensor *tensor, int64_t offset, int64_t value)
{
    void *p = tn_element(tensor, offset);
    switch (tensor->layout.dtype) {
    case TN_BOOL:
        TN_REFERENCE_SET(uint8_t, value != 0)
    case TN_I8:
    case TN_U8:
        TN_REFERENCE_SET(uint8_t, value)
    case TN_I16:
    case TN_U16:
        TN_REFERENCE_SET(uint16_t, value)
    case TN_I32:
    case TN_U32:
        TN_REFERENCE_SET(uint32_t, value)
    case TN_I64:
    case TN_U64:
        TN_REFERENCE_SET(int64_t, value)
    default:
        tn_set_f64(tensor, offset, (double)value);
    }
}

// Stores a number: floats are rounded once, to nearest even; integers are what
// tn_integer_of_f64() makes of it.
static inline void tn_set_f64(const tn_tensor *tensor, int64_t offset, double value)
{
    void *p = tn_element(tensor, offset);
    switch (tensor->layout.dtype) {
    case TN_F16:
        TN_REFERENCE_SET(uint16_t, tn_f16_of_f32(tn_f32_of_f64_odd(value)))
    case TN_BF16:
        TN_REFERENCE_SET(uint16_t, tn_bf16_of_f32(tn_f32_of_f64_odd(value)))
    case TN_F32:
        TN_REFERENCE_SET(float, value)
    case TN_F64:
        TN_REFERENCE_SET(double, value)
    default:
        tn_set_i64(tensor, offset, tn_integer_of_f64(tensor->layout.dtype, value));
    }
}
#undef TN_REFERENCE_GET
#undef TN_REFERENCE_SET

// --- walks -----------------------------------------------------------------------------

// The number of elements.
static inline int64_t tn_layout_count(const tn_layout *layout)
{
    int64_t count = 1;
    for (int32_t i = 0; i < layout->rank; i++)
        count *= layout->extent[i];
    return count;
}

// Where the element at `index` stands, in elements from the start of the tensor's data.
static inline int64_t tn_offset_at(const tn_layout *layout, const int64_t *index)
{
    int64_t offset = layout->offset;
    for (int32_t i = 0; i < layout->rank; i++)
        offset += index[i] * layout->stride[i];
    return offset;
}

// Counts the index up in row-major order. 0 after the last one, and then it is all zero
// again. All extents are at least 1.
static inline int32_t tn_index_next(int32_t rank, const int64_t *extent, int64_t *index)
{
    for (int32_t i = rank - 1; i >= 0; i--) {
        if (++index[i] < extent[i])
            return 1;
        index[i] = 0;
    }
    return 0;
}

// Copies elements of one dtype between two regions of equal extents. The layouts' ranks,
// extents and offsets say where: both are walked over `from`'s extents.
static inline void tn_copy_region(const tn_tensor *to, const tn_tensor *from)
{
    const tn_layout *a = &to->layout, *b = &from->layout;
    int64_t bytes = tn_dtype_bytes(b->dtype), index[TN_MAX_RANK] = {0};
    int32_t outer = b->rank > 0 ? b->rank - 1 : 0;
    int64_t n = b->rank > 0 ? b->extent[outer] : 1;
    int64_t step_a = b->rank > 0 ? a->stride[outer] : 0;
    int64_t step_b = b->rank > 0 ? b->stride[outer] : 0;
    int32_t rows = n == 1 || (step_a == 1 && step_b == 1);
    if (tn_layout_count(b) == 0)
        return;
    do {
        char *p = tn_element(to, tn_offset_at(a, index));
        const char *q = tn_element(from, tn_offset_at(b, index));
        if (rows) {
            __builtin_memcpy(p, q, (uint64_t)(n * bytes));
            continue;
        }
        for (int64_t i = 0; i < n; i++)
            __builtin_memcpy(p + i * step_a * bytes, q + i * step_b * bytes,
                             (uint64_t)bytes);
    } while (tn_index_next(outer, b->extent, index));
}

#endif // TENON_OPS_REFERENCE_H
