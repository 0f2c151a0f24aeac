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

// Bytes of an element.
static inline int64_t tn_dtype_bytes(tn_dtype dtype)
{
    static const uint8_t bytes[TN_NUM_DTYPES] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
    return dtype > 0 && dtype < TN_NUM_DTYPES ? bytes[dtype] : 0;
}

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

// --- elements --------------------------------------------------------------------------

// The place `offset` elements from the start of the data: see tn_offset_at().
static inline char *tn_element(const tn_tensor *tensor, int64_t offset)
{
    return (char *)tensor->data + offset * tn_dtype_bytes(tensor->layout.dtype);
}

// Element `offset` of the buffer as an integer (the bits of a uint64_t for U64); floats are
// truncated, and clamped to what an int64_t holds (NaN: 0).
static inline int64_t tn_get_i64(const tn_tensor *tensor, int64_t offset);

// The same as a double.
static inline double tn_get_f64(const tn_tensor *tensor, int64_t offset)
{
    const void *p = tn_element(tensor, offset);
    switch (tensor->layout.dtype) {
    case TN_F16:
        return (double)tn_f32_of_f16(*(const uint16_t *)p);
    case TN_BF16:
        return (double)tn_f32_of_bf16(*(const uint16_t *)p);
    case TN_F32:
        return (double)*(const float *)p;
    case TN_F64:
        return *(const double *)p;
    case TN_U64:
        return (double)*(const uint64_t *)p;
    default:
        return (double)tn_get_i64(tensor, offset);
    }
}

// Cut towards zero, saturating; NaN is 0.
static inline int64_t tn_i64_of_f64(double value)
{
    if (value != value)
        return 0;
    if (value >= 9223372036854775808.0)
        return INT64_MAX;
    if (value < -9223372036854775808.0)
        return INT64_MIN;
    return (int64_t)value;
}

static inline int64_t tn_get_i64(const tn_tensor *tensor, int64_t offset)
{
    const void *p = tn_element(tensor, offset);
    switch (tensor->layout.dtype) {
    case TN_BOOL:
    case TN_U8:
        return *(const uint8_t *)p;
    case TN_I8:
        return *(const int8_t *)p;
    case TN_I16:
        return *(const int16_t *)p;
    case TN_U16:
        return *(const uint16_t *)p;
    case TN_I32:
        return *(const int32_t *)p;
    case TN_U32:
        return *(const uint32_t *)p;
    case TN_I64:
    case TN_U64:
        return *(const int64_t *)p;
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
        *(uint8_t *)p = value != 0;
        break;
    case TN_I8:
    case TN_U8:
        *(uint8_t *)p = (uint8_t)value;
        break;
    case TN_I16:
    case TN_U16:
        *(uint16_t *)p = (uint16_t)value;
        break;
    case TN_I32:
    case TN_U32:
        *(uint32_t *)p = (uint32_t)value;
        break;
    case TN_I64:
    case TN_U64:
        *(int64_t *)p = value;
        break;
    default:
        tn_set_f64(tensor, offset, (double)value);
    }
}

// Stores a number, rounded to nearest for floats, truncated for integers.
static inline void tn_set_f64(const tn_tensor *tensor, int64_t offset, double value)
{
    void *p = tn_element(tensor, offset);
    switch (tensor->layout.dtype) {
    case TN_F16:
        *(uint16_t *)p = tn_f16_of_f32((float)value);
        break;
    case TN_BF16:
        *(uint16_t *)p = tn_bf16_of_f32((float)value);
        break;
    case TN_F32:
        *(float *)p = (float)value;
        break;
    case TN_F64:
        *(double *)p = value;
        break;
    case TN_BOOL:
        *(uint8_t *)p = value != 0;
        break;
    case TN_U64:
        if (value >= 9223372036854775808.0) {
            double most = 18446744073709549568.0; // the largest double below 2^64
            *(uint64_t *)p = (uint64_t)(value < most ? value : most);
            break;
        }
        tn_set_i64(tensor, offset, tn_i64_of_f64(value));
        break;
    default:
        tn_set_i64(tensor, offset, tn_i64_of_f64(value));
    }
}

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
