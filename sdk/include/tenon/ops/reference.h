// SPDX-License-Identifier: MIT
// For authors of reference kernels: elements of any dtype as numbers, and walks over any
// strided layout. Plain and slow on purpose; a fast kernel does not use this header.
//
//   // y = x * x, for a primitive whose output has the extents of its input.
//   int64_t index[TN_MAX_RANK] = {0};
//   if (tn_layout_count(&x->layout) > 0)
//       do {
//           double v = tn_get_f64(x, tn_offset_at(&x->layout, index));
//           tn_set_f64(y, tn_offset_at(&y->layout, index), v * v);
//       } while (tn_index_next(x->layout.rank, x->layout.extent, index));
//
// A whole reference, of the sum of squares along the last axis. The outer walk is over the
// output; its index is one of the input, too, whose last entry stays 0.
//
//   static tn_status reference(const tn_cpu_call *call)
//   {
//       const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
//       int32_t last = x->layout.rank - 1; // at least 0: infer refuses scalars
//       int64_t step = x->layout.stride[last], index[TN_MAX_RANK] = {0};
//       if (tn_layout_count(&out->layout) == 0)
//           return TN_OK;
//       do {
//           int64_t first = tn_offset_at(&x->layout, index);
//           double sum = 0;
//           for (int64_t i = 0; i < x->layout.extent[last]; i++) {
//               double v = tn_get_f64(x, first + i * step);
//               sum += v * v;
//           }
//           tn_set_f64(out, tn_offset_at(&out->layout, index), sum);
//       } while (tn_index_next(out->layout.rank, out->layout.extent, index));
//       return TN_OK;
//   }
//
// Dtypes. A double holds the elements of all dtypes exactly, but for integers beyond 2^53
// and complex numbers. A reference that is exact for integers reads and writes them as
// such; sums and products modulo 2^64 are the same for signed and unsigned dtypes:
//
//   if (tn_is_float(out->layout.dtype)) {
//       tn_set_f64(out, at, tn_get_f64(x, i) + tn_get_f64(y, k));
//   } else { // unsigned, since signed overflow is undefined in C
//       uint64_t a = (uint64_t)tn_get_i64(x, i), b = (uint64_t)tn_get_i64(y, k);
//       tn_set_i64(out, at, (int64_t)(a + b));
//   }
//
// Complex numbers are read and written by tn_get_complex and tn_set_complex; tn_get_f64
// gives the real part of one, and tn_set_f64 stores an imaginary part of 0. A real element
// reads as a complex number, so a reference may treat all dtypes but integers alike. Their
// arithmetic is in <tenon/ops/complex.h>:
//
//   tn_complex128 sum = {0, 0};
//   for (int64_t i = 0; i < n; i++) {
//       tn_complex128 v = tn_get_complex(x, first + i * step);
//       sum = tn_complex_operation(TN_EXPR_ADD, sum, tn_complex_multiply(v, v));
//   }
//   tn_set_complex(out, at, sum);
//
// An input that takes complex numbers says so in its tn_input_info: 0 there means the first
// dtypes only, without complex numbers and floats of 8 bits.
//
// Broadcasting. Inputs have the extents that the application gave. A reference whose inputs
// broadcast walks the output, and leaves out axes that an input lacks or has once:
//
//   int64_t offset = in->layout.offset;
//   int32_t missing = out->layout.rank - in->layout.rank;
//   for (int32_t i = 0; i < in->layout.rank; i++)
//       if (in->layout.extent[i] > 1)
//           offset += index[missing + i] * in->layout.stride[i];
//
// Optional inputs. The tensor of an input that was not given has data NULL and dtype
// TN_DTYPE_NONE; test for that before any of these functions.
//
// Accuracy. A reference accumulates floats in double and rounds once, when it stores: tests
// measure the errors of kernels from its results.
//
// Conversions are defined here and in <tenon/ops/float8.h>, once: the core folds constants
// by them, and backends are compared with them. They assume IEEE 754 arithmetic in the
// default rounding mode (to nearest, ties to even; IEEE 754-2019, clause 4.3.1), and no
// -ffast-math.
//
// One element, of any dtype: tn_get_f64, tn_get_i64, tn_get_complex, tn_set_f64,
// tn_set_i64, tn_set_complex. All elements of a layout: tn_layout_count, tn_index_next,
// tn_offset_at. Copies of views: tn_copy_region.
//
// Offsets count elements from tn_tensor.data. No function checks an offset or an index: the
// layouts that the core passes to kernels lie within their buffers.
//
// Threads. Any thread. All functions are pure but tn_set_f64, tn_set_i64, tn_set_complex
// and tn_copy_region, which write the elements that their arguments name; threads that
// write the same element are the caller's to keep apart. None fails.
#ifndef TENON_OPS_REFERENCE_H
#define TENON_OPS_REFERENCE_H

#include <stdint.h>
#include <tenon/ops/float8.h>
#include <tenon/types.h>

// --- conversions -----------------------------------------------------------------------

// The value of a binary16 (IEEE 754-2019, clause 3.6: 5 bits of exponent with a bias of 15,
// 10 of fraction), given by its bits. Exact: every binary16 is a binary32. The greatest
// finite one is 65504, the least normal one 2^-14, the least subnormal one 2^-24. A NaN
// keeps its payload in the upper bits.
static inline float tn_f32_of_f16(uint16_t half)
{
    union {
        uint32_t u;
        float f;
    } v;
    uint32_t exponent = half >> 10 & 31, mantissa = half & 1023;
    if (exponent == 0) { // subnormal: counted in units of 2^-24
        v.f = (float)mantissa * 5.9604644775390625e-8f;
    } else { // the biases, 127 and 15, differ by 112; the greatest exponent stays infinity
        uint32_t rebiased = exponent == 31 ? 255 : exponent + 112;
        v.u = rebiased << 23 | mantissa << 13;
    }
    v.u |= (uint32_t)(half & 0x8000) << 16;
    return v.f;
}

// The bits of the binary16 nearest to `value`, ties to even (convertFormat of IEEE
// 754-2019, clause 5.4.2). From 65520 on, half way to the next power of two, the result is
// infinity. A NaN becomes a quiet NaN, its sign kept and its payload dropped.
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
    // Below 2^-14, subnormal. Floats from 1/2 on have an ulp of 2^-24, so adding 1/2 makes
    // the processor round to a multiple of 2^-24; the multiple is then in the low bits.
    if (v.u < 0x38800000) {
        v.f += 0.5f;
        return (uint16_t)(sign | (v.u - 0x3f000000));
    }
    uint32_t odd = v.u >> 13 & 1; // the last bit that is kept
    // Subtracts 112 from the exponent, and adds half an ulp of binary16 (0x1000), less a
    // bit where the last kept bit is even; a carry runs into the exponent.
    v.u += UINT32_C(0xc8000fff) + odd;
    return (uint16_t)(sign | v.u >> 13);
}

// The value of a bfloat16, given by its bits: the upper half of the binary32 of the same
// value, with 8 bits of exponent and 7 of fraction. Exact. Its range is that of binary32;
// whole numbers are exact up to 256.
static inline float tn_f32_of_bf16(uint16_t bits)
{
    union {
        uint32_t u;
        float f;
    } v;
    v.u = (uint32_t)bits << 16;
    return v.f;
}

// The bits of the bfloat16 nearest to `value`, ties to even: adds half an ulp, less one bit
// when the last kept bit is even, and cuts. The carry runs into the exponent, up to
// infinity. A NaN becomes a quiet NaN with the upper bits of its payload.
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

// `value` as an f32, rounded to odd: of the two floats next to an inexact value, the one
// whose last bit is 1. Rounding the result to a format that is at least two bits narrower
// then gives what rounding the double at once would give, since no tie appears where there
// was none (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved
// algorithms using rounding to odd", IEEE Transactions on Computers, 2008). Too large gives
// the greatest finite float, too small the least subnormal one; exact values, infinities
// and NaNs are kept.
//
// For example 1 + 2^-11 + 2^-30: the nearest float is 1 + 2^-11, a tie of binary16 that
// goes to 1. Rounded to odd, it is 1 + 2^-11 + 2^-23, which goes to 1 + 2^-10, as it
// should.
static inline float tn_f32_of_f64_odd(double value)
{
    union {
        float f;
        uint32_t u;
    } v;
    v.f = (float)value;
    double near = (double)v.f;                      // the nearest float, exact as a double
    if (near == value || value != value || v.u & 1) // exact, a NaN, or odd already
        return v.f;
    // The last bit is 0: its neighbour on the far side of `value` has a last bit of 1.
    v.u += (near < 0 ? -near : near) < (value < 0 ? -value : value) ? 1 : UINT32_MAX;
    return v.f;
}

// `value` as an element of `dtype`, a bool or integer dtype: cut towards zero; out of
// range, the nearest integer of the dtype; NaN gives 0. For bool, 1 when `value` is not 0
// (a NaN is not 0). For an unsigned dtype, the result is the bits of a uint64_t.
//
//   300.7 as I8: 127    -3.5 as U8: 0    -3.5 as I8: -3    0.5 as BOOL: 1    NaN as I32: 0
//
// This is the definition of CAST from floats in <tenon/expr.h>; C11 6.3.1.4 leaves values
// out of range undefined, and NumPy leaves them to the compiler.
static inline int64_t tn_integer_of_f64(tn_dtype dtype, double value)
{
    int32_t bits = 8 * (int32_t)tn_dtype_bytes(dtype);
    // Half of the number of values: one more than the greatest signed integer. Comparing
    // with this power of two is exact, which the greatest integer itself is not as a
    // double.
    double half = (double)(UINT64_C(1) << (bits - 1));
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

// tn_integer_of_f64() for TN_I64.
static inline int64_t tn_i64_of_f64(double value)
{
    return tn_integer_of_f64(TN_I64, value);
}

// --- elements --------------------------------------------------------------------------

// The address of element `offset` of the tensor's buffer. Borrowed from the tensor. For
// code that copies elements without looking at them:
//
//   memcpy(row, tn_element(x, x->layout.offset + i * x->layout.stride[0]), bytes);
static inline char *tn_element(const tn_tensor *tensor, int64_t offset)
{
    return (char *)tensor->data + offset * tn_dtype_bytes(tensor->layout.dtype);
}

// Element `offset` of the buffer as an integer: exact for bool and integers (the bits of a
// uint64_t for U64); floats are converted as tn_i64_of_f64() does.
static inline int64_t tn_get_i64(const tn_tensor *tensor, int64_t offset);

// Statements of the switches below: return the T at p as a number, and store a number as a
// T at p. They copy bytes, so p need not be aligned, and the memory may have any effective
// type. `number` is a cast or a function, and the value to store.
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

// Element `offset` of the buffer as a double: exact but for I64 and U64 beyond 2^53, which
// are rounded to nearest even. Of a complex number the real part.
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
    case TN_COMPLEX64: // the real part comes first
        TN_REFERENCE_GET(float, (double))
    case TN_COMPLEX128:
        TN_REFERENCE_GET(double, (double))
    case TN_F8_E4M3:
        TN_REFERENCE_GET(uint8_t, (double)tn_f32_of_f8_e4m3)
    case TN_F8_E5M2:
        TN_REFERENCE_GET(uint8_t, (double)tn_f32_of_f8_e5m2)
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

// Stores an integer as element `offset` of the buffer: modulo 2^width for integers (the
// bits of a uint64_t for U64), 1 for bool unless it is 0, and as tn_set_f64() of the
// integer as a double for floats.
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

// Complex elements. `p` need not be aligned here either; an application's own memory is a
// multiple of the size of one part.
//
// Stores a complex number as element `offset` of the buffer. Each part is rounded once, to
// nearest even, for COMPLEX64. For another dtype this is the conversion of a complex number
// to a real one: the real part is stored as tn_set_f64() does, and the imaginary part is
// dropped, as PyTorch does; NumPy warns. For bool 1 when a part is not 0; a NaN is not 0.
static inline void tn_set_complex(const tn_tensor *tensor, int64_t offset,
                                  tn_complex128 value)
{
    void *p = tn_element(tensor, offset);
    tn_complex64 single = {(float)value.re, (float)value.im};
    switch (tensor->layout.dtype) {
    case TN_COMPLEX64:
        __builtin_memcpy(p, &single, sizeof(single));
        break;
    case TN_COMPLEX128:
        __builtin_memcpy(p, &value, sizeof(value));
        break;
    case TN_BOOL:
        tn_set_f64(tensor, offset, value.re != 0 ? 1 : value.im);
        break;
    default:
        tn_set_f64(tensor, offset, value.re);
    }
}

// Element `offset` of the buffer as a complex number: both parts exact, since each is a
// float or a double in memory, the real one first. Of another dtype tn_get_f64() with an
// imaginary part of 0.
static inline tn_complex128 tn_get_complex(const tn_tensor *tensor, int64_t offset)
{
    const void *p = tn_element(tensor, offset);
    tn_complex64 single;
    tn_complex128 value = {tn_get_f64(tensor, offset), 0};
    if (tensor->layout.dtype == TN_COMPLEX64) {
        __builtin_memcpy(&single, p, sizeof(single));
        value.im = (double)single.im;
    } else if (tensor->layout.dtype == TN_COMPLEX128) {
        __builtin_memcpy(&value, p, sizeof(value));
    }
    return value;
}

// Stores a number as element `offset` of the buffer: rounded once, to nearest even, for
// floats (too large is infinity, or NaN for F8_E4M3) and for complex numbers, whose
// imaginary part becomes 0; as tn_integer_of_f64() for bool and integers.
static inline void tn_set_f64(const tn_tensor *tensor, int64_t offset, double value)
{
    void *p = tn_element(tensor, offset);
    tn_complex128 number = {value, 0};
    switch (tensor->layout.dtype) {
    case TN_F16:
        TN_REFERENCE_SET(uint16_t, tn_f16_of_f32(tn_f32_of_f64_odd(value)))
    case TN_BF16:
        TN_REFERENCE_SET(uint16_t, tn_bf16_of_f32(tn_f32_of_f64_odd(value)))
    case TN_F32:
        TN_REFERENCE_SET(float, value)
    case TN_F64:
        TN_REFERENCE_SET(double, value)
    case TN_COMPLEX64:
    case TN_COMPLEX128:
        tn_set_complex(tensor, offset, number);
        break;
    case TN_F8_E4M3:
        TN_REFERENCE_SET(uint8_t, tn_f8_e4m3_of_f32(tn_f32_of_f64_odd(value)))
    case TN_F8_E5M2:
        TN_REFERENCE_SET(uint8_t, tn_f8_e5m2_of_f32(tn_f32_of_f64_odd(value)))
    default:
        tn_set_i64(tensor, offset, tn_integer_of_f64(tensor->layout.dtype, value));
    }
}
#undef TN_REFERENCE_GET
#undef TN_REFERENCE_SET

// --- walks -----------------------------------------------------------------------------

// The number of elements of a layout: the product of its extents; 1 for rank 0, 0 when an
// extent is 0. Fits an int64_t for every layout that the core passes.
static inline int64_t tn_layout_count(const tn_layout *layout)
{
    int64_t count = 1;
    for (int32_t i = 0; i < layout->rank; i++)
        count *= layout->extent[i];
    return count;
}

// The offset of the element at `index`, which has layout->rank entries, in elements from
// tn_tensor.data: offset + sum of index[i] * stride[i].
static inline int64_t tn_offset_at(const tn_layout *layout, const int64_t *index)
{
    int64_t offset = layout->offset;
    for (int32_t i = 0; i < layout->rank; i++)
        offset += index[i] * layout->stride[i];
    return offset;
}

// Advances `index`, of `rank` entries, to the next element in row-major order and
// returns 1. After the last element it returns 0, and the index is all zero again, ready
// for another walk. All extents are at least 1: test tn_layout_count() first. Start from an
// index of zeros.
//
// Walks nest. Over the last two axes, once for each index of the axes in front:
//
//   int32_t outer = x->layout.rank - 2;
//   do {
//       do {
//           v = tn_get_f64(x, tn_offset_at(&x->layout, index));
//       } while (tn_index_next(2, x->layout.extent + outer, index + outer));
//   } while (tn_index_next(outer, x->layout.extent, index));
static inline int32_t tn_index_next(int32_t rank, const int64_t *extent, int64_t *index)
{
    for (int32_t i = rank - 1; i >= 0; i--) {
        if (++index[i] < extent[i])
            return 1;
        index[i] = 0;
    }
    return 0;
}

// Copies the elements of view `from` to view `to`, which have one dtype, one rank and equal
// extents, and do not overlap. Rows that are contiguous in both are copied at once. To copy
// into a part of an array, set the offset, extents and strides of `to`:
//
//   tn_tensor to = *out;                          // a join along axis 0
//   to.layout.offset += done * to.layout.stride[0];
//   tn_copy_region(&to, &call->inputs[i]);        // walks the extents of the input
static inline void tn_copy_region(const tn_tensor *to, const tn_tensor *from)
{
    // Axes before the last are walked by index; the last axis, of n elements, is a row.
    const tn_layout *a = &to->layout, *b = &from->layout;
    int64_t bytes = tn_dtype_bytes(b->dtype), index[TN_MAX_RANK] = {0};
    int32_t outer = b->rank > 0 ? b->rank - 1 : 0;
    int64_t n = b->rank > 0 ? b->extent[outer] : 1;
    int64_t step_a = b->rank > 0 ? a->stride[outer] : 0;
    int64_t step_b = b->rank > 0 ? b->stride[outer] : 0;
    // A row lies in one piece when its elements are adjacent in both views.
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
