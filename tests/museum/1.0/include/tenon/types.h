// SPDX-License-Identifier: MIT
// Element types, shapes and layouts: the words that every other header uses.
//
// Threads. Plain data.
#ifndef TENON_TYPES_H
#define TENON_TYPES_H

#include <stdint.h>

// True when the table `ops`, made by somebody else, reaches as far as `slot` and fills
// it. Every optional slot is read through this.
#define TN_HAS(ops, slot)                                                                  \
    ((ops) != NULL && (ops)->struct_size >= TN_END_OF(ops, slot) && (ops)->slot)
#define TN_END_OF(ops, slot)                                                               \
    ((uint64_t)((const char *)&(ops)->slot - (const char *)(ops)) + sizeof((ops)->slot))

// The most axes an array may have.
#define TN_MAX_RANK 8

// Element types. The numbers never change and are stored in files.
typedef int32_t tn_dtype;
enum {
    TN_DTYPE_NONE = 0, // absent
    TN_BOOL = 1,       // one byte, 0 or 1
    TN_I8 = 2,
    TN_I16 = 3,
    TN_I32 = 4,
    TN_I64 = 5,
    TN_U8 = 6,
    TN_U16 = 7,
    TN_U32 = 8,
    TN_U64 = 9,
    TN_F16 = 10,  // IEEE 754 binary16
    TN_BF16 = 11, // upper half of a binary32
    TN_F32 = 12,  // IEEE 754 binary32
    TN_F64 = 13,  // IEEE 754 binary64
    TN_NUM_DTYPES = 14,
};

// Sets of dtypes, as bits 1 << dtype.
#define TN_DTYPE_BIT(dtype) (UINT32_C(1) << (dtype))
#define TN_SIGNED_DTYPES                                                                   \
    (TN_DTYPE_BIT(TN_I8) | TN_DTYPE_BIT(TN_I16) | TN_DTYPE_BIT(TN_I32) |                   \
     TN_DTYPE_BIT(TN_I64))
#define TN_UNSIGNED_DTYPES                                                                 \
    (TN_DTYPE_BIT(TN_U8) | TN_DTYPE_BIT(TN_U16) | TN_DTYPE_BIT(TN_U32) |                   \
     TN_DTYPE_BIT(TN_U64))
#define TN_INTEGER_DTYPES (TN_SIGNED_DTYPES | TN_UNSIGNED_DTYPES)
#define TN_FLOAT_DTYPES                                                                    \
    (TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16) | TN_DTYPE_BIT(TN_F32) |                 \
     TN_DTYPE_BIT(TN_F64))
#define TN_ALL_DTYPES (TN_DTYPE_BIT(TN_BOOL) | TN_INTEGER_DTYPES | TN_FLOAT_DTYPES)

// "f32", for messages; "none" for what is no dtype. Constant text.
static inline const char *tn_dtype_name(tn_dtype dtype)
{
    static const char *const names[TN_NUM_DTYPES] = {"none", "bool", "i8",  "i16", "i32",
                                                     "i64",  "u8",   "u16", "u32", "u64",
                                                     "f16",  "bf16", "f32", "f64"};
    return dtype > 0 && dtype < TN_NUM_DTYPES ? names[dtype] : names[0];
}

// Bytes of an element; 0 for what is no dtype.
static inline int64_t tn_dtype_bytes(tn_dtype dtype)
{
    static const uint8_t bytes[TN_NUM_DTYPES] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
    return dtype > 0 && dtype < TN_NUM_DTYPES ? bytes[dtype] : 0;
}

// Extents of an array, outermost axis first. rank 0 is a scalar of one element.
typedef struct tn_shape {
    int32_t rank;                // 0 .. TN_MAX_RANK
    uint32_t reserved;           // 0
    int64_t extent[TN_MAX_RANK]; // >= 0 below rank, 0 above
} tn_shape;

// What infer works on: a dtype and extents, no memory.
typedef struct tn_type {
    tn_dtype dtype; // TN_DTYPE_NONE: an optional input that was not given
    int32_t rank;
    int64_t extent[TN_MAX_RANK];
} tn_type;

// Where the elements of an array lie in a buffer. Element (i0, i1, ...) stands at
// offset + i0 * stride[0] + i1 * stride[1] + ..., all counted in elements, not bytes.
// Strides may be 0 (broadcast) or negative.
typedef struct tn_layout {
    tn_dtype dtype;
    int32_t rank;
    int64_t offset;
    int64_t extent[TN_MAX_RANK];
    int64_t stride[TN_MAX_RANK];
} tn_layout;

// An array in memory that the reader may touch directly. `data` is the buffer's first
// byte: layout.offset still has to be added.
typedef struct tn_tensor {
    void *data;
    tn_layout layout;
} tn_tensor;

// Integers of an attribute: axes, extents, strides. `given` tells an empty list (1) from
// an absent one (0).
typedef struct tn_ints {
    uint32_t count; // 0 .. TN_MAX_RANK
    uint32_t given;
    int64_t value[TN_MAX_RANK];
} tn_ints;

// Opaque to plugins.
typedef struct tn_scope tn_scope;
typedef struct tn_array tn_array;

#endif // TENON_TYPES_H
