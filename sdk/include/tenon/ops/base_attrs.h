// SPDX-License-Identifier: MIT
// Attribute structs of the primitives of pack "base", frozen with each primitive's
// revision: for those who bring kernels or rules for them.
//
// Axes may be negative in what a user gives; kernels and rules see what was given. Helper:
// tn_axis(). "All axes" is `axis.given == 0`.
//
// Threads. Plain data.
#ifndef TENON_OPS_BASE_ATTRS_H
#define TENON_OPS_BASE_ATTRS_H

#include <tenon/attr.h>
#include <tenon/types.h>

// `axis` counted from the front, or -1 when it is not within `rank`.
static inline int32_t tn_axis(int64_t axis, int32_t rank)
{
    int64_t from_front = axis < 0 ? axis + rank : axis;
    return from_front >= 0 && from_front < rank ? (int32_t)from_front : -1;
}

// The axes named by `axes`, as bits: all of them when not given. Out of range: ignored.
static inline uint32_t tn_axis_set(const tn_ints *axes, int32_t rank)
{
    uint32_t set = 0;
    if (!axes->given)
        return (UINT32_C(1) << rank) - 1;
    for (uint32_t i = 0; i < axes->count; i++) {
        int32_t axis = tn_axis(axes->value[i], rank);
        if (axis >= 0)
            set |= UINT32_C(1) << axis;
    }
    return set;
}

// base.astype/1. Input: x.
typedef struct tn_astype_attrs {
    int64_t dtype;
} tn_astype_attrs;

// base.{sum,mean,max,min,logsumexp}/1. Input: x. Sums of bool and of integers narrower than
// 64 bits are i64 (u64 for unsigned), as in NumPy; mean of integers is f64; half floats are
// accumulated in f32.
typedef struct tn_reduce_attrs {
    tn_ints axis;     // one or several; not given: all
    int64_t keepdims; // bool
} tn_reduce_attrs;

// base.argmax/1: i64; the first of equals. axis not given (INT64_MIN): of the flattened.
typedef struct tn_argmax_attrs {
    int64_t axis;
    int64_t keepdims; // bool
} tn_argmax_attrs;
#define TN_NO_AXIS INT64_MIN

// base.{reshape,broadcast_to,sum_to}/1. Input: x.
typedef struct tn_shape_attrs {
    tn_ints shape; // reshape: one extent may be -1
} tn_shape_attrs;

// base.full/1 (no input)
typedef struct tn_full_attrs {
    tn_ints shape;
    double value;
    int64_t dtype; // not given: f32
} tn_full_attrs;

// base.clip/1: limits outside an integer dtype's range are that range's ends.
typedef struct tn_clip_attrs {
    double lo; // minus infinity
    double hi; // infinity
} tn_clip_attrs;

// base.transpose/1: axes not given: reversed.
typedef struct tn_transpose_attrs {
    tn_ints axes;
} tn_transpose_attrs;

// base.{expand_dims,squeeze}/1. Input: x.
typedef struct tn_axis_attrs {
    tn_ints axis; // one or several; squeeze: not given: all of extent 1
} tn_axis_attrs;

// base.slice/1 (x) and base.slice_update/1 (x, update: of the slice's extents): Python's
// start:stop:step per axis, counts up to the rank; lists not given: from the start, to the
// end, by 1. A value of TN_SLICE_END stands for an omitted bound.
typedef struct tn_slice_attrs {
    tn_ints start;
    tn_ints stop;
    tn_ints step;
} tn_slice_attrs;
#define TN_SLICE_END INT64_MAX

// base.concatenate/1: inputs of one dtype, equal but for `axis`.
typedef struct tn_concatenate_attrs {
    int64_t axis;
} tn_concatenate_attrs;

// base.pad/1: constant `value`; counts equal the rank.
typedef struct tn_pad_attrs {
    tn_ints before;
    tn_ints after;
    double value;
} tn_pad_attrs;

// base.take/1 (x, indices): out = x with `axis` replaced by the indices' shape. Negative
// indices count from the end; out of range is clamped.
// base.scatter_add/1 (x, indices, updates): x plus updates added at the indices along axis;
// shapes as take's. Out-of-range indices are dropped. Duplicate indices all count.
typedef struct tn_take_attrs {
    int64_t axis;
} tn_take_attrs;

// base.matmul/1 (a, b): as numpy.matmul with batch axes broadcast; rank 1 is promoted. A
// transposed operand is given as a transposed view (strides).
typedef struct tn_matmul_attrs {
    int64_t reserved; // 0
} tn_matmul_attrs;

// base.arange/1 (no input)
typedef struct tn_arange_attrs {
    double start;
    double stop;
    double step;
    int64_t dtype; // not given: i64 when all three are whole, else f64
} tn_arange_attrs;

// base.random_bits/1 (key: u32[2]): u32 words. base.random_{uniform,normal}/1 (key).
typedef struct tn_random_attrs {
    tn_ints shape;
    int64_t dtype; // not given: f32 (random_bits: always u32)
    double a;      // uniform: low; normal: mean
    double b;      // uniform: high; normal: standard deviation
} tn_random_attrs;

#endif // TENON_OPS_BASE_ATTRS_H
