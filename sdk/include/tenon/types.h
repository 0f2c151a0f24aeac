// SPDX-License-Identifier: MIT
// Element types (dtypes), shapes, strided layouts and tensors: the vocabulary that all
// other headers share.
//
//   // A row-major f32 matrix of 2 x 3 elements over memory of the caller's.
//   float data[6];
//   tn_tensor t = {.data = data,
//                  .layout = {.dtype = TN_F32, .rank = 2,
//                             .extent = {2, 3}, .stride = {3, 1}}};
//
// Units. Extents, strides and offsets count elements of the array, never bytes. Functions
// and fields whose unit is bytes say so.
//
// Threads. Plain data and pure functions: any thread, no lock. None of the functions fails.
#ifndef TENON_TYPES_H
#define TENON_TYPES_H

#include <stdint.h>

// Whether `ops`, a pointer to a table with a `struct_size`, reaches as far as `slot` and
// has a slot other than 0 there. False for a NULL table. A table comes from a plugin or
// host that was compiled with older headers, perhaps, and may end early: optional slots and
// fields that a later minor version added are read behind this test only. Evaluates `ops`
// several times.
//
//   void *bytes = TN_HAS(ops, buffer_map) ? ops->buffer_map(device, buffer) : NULL;
#define TN_HAS(ops, slot)                                                                  \
    ((ops) != NULL && (ops)->struct_size >= TN_END_OF(ops, slot) && (ops)->slot)

// Bytes from the start of the table to the end of `slot`: the least `struct_size` of a
// table that has the slot. A uint64_t; does not read the table.
#define TN_END_OF(ops, slot)                                                               \
    ((uint64_t)((const char *)&(ops)->slot - (const char *)(ops)) + sizeof((ops)->slot))

// The most axes that an array may have. The core refuses arrays of a higher rank with
// TN_ERR_ARGUMENT, so kernels and rules may size arrays of axes by this.
#define TN_MAX_RANK 8

// The table of element types, one row for each:
//
//   X(NAME, "name", type in memory, KIND, PRECISION, COMPUTED, "NumPy's name")
//
// NAME: TN_NAME is the dtype's number. "name": in messages, expressions and on the command
// line. Type in memory: the C type that stores one element, in the byte order of the
// machine. KIND: TN_KIND_ below. PRECISION: bits of the significand, so that whole numbers
// up to 2^PRECISION are exact (integers: up to 2^PRECISION - 1). COMPUTED: the dtype in
// which programs of <tenon/expr.h> compute elements of this dtype.
//
// A dtype's number is its position here, counted from 1. Numbers are ABI and are stored in
// files: a new dtype is added at the end, and no row moves or goes.
//
// f16, f32 and f64 are binary16, binary32 and binary64 of IEEE 754-2019, clause 3.6. bf16
// is the upper half of a binary32: 8 bits of exponent, 7 of fraction. f8_e4m3 and f8_e5m2
// are E4M3 and E5M2 of the OCP 8-bit Floating Point Specification 1.0 (float8_e4m3fn and
// float8_e5m2 of PyTorch): stored, converted and compared, but not computed in. A complex
// number is its real part, followed by its imaginary part.
// clang-format off
#define TN_DTYPES(X)                                                                     \
    X(BOOL, "bool", uint8_t, BOOL, 1, BOOL, "bool") /* one byte, 0 or 1 */               \
    X(I8, "i8", int8_t, SIGNED, 7, I8, "int8")                                           \
    X(I16, "i16", int16_t, SIGNED, 15, I16, "int16")                                     \
    X(I32, "i32", int32_t, SIGNED, 31, I32, "int32")                                     \
    X(I64, "i64", int64_t, SIGNED, 63, I64, "int64")                                     \
    X(U8, "u8", uint8_t, UNSIGNED, 8, U8, "uint8")                                       \
    X(U16, "u16", uint16_t, UNSIGNED, 16, U16, "uint16")                                 \
    X(U32, "u32", uint32_t, UNSIGNED, 32, U32, "uint32")                                 \
    X(U64, "u64", uint64_t, UNSIGNED, 64, U64, "uint64")                                 \
    X(F16, "f16", uint16_t, FLOAT, 11, F32, "float16") /* IEEE 754 binary16 */           \
    X(BF16, "bf16", uint16_t, FLOAT, 8, F32, "bfloat16") /* upper half of a binary32 */  \
    X(F32, "f32", float, FLOAT, 24, F32, "float32") /* IEEE 754 binary32 */              \
    X(F64, "f64", double, FLOAT, 53, F64, "float64") /* IEEE 754 binary64 */             \
    X(COMPLEX64, "complex64", tn_complex64, COMPLEX, 24, COMPLEX64, "complex64")         \
    X(COMPLEX128, "complex128", tn_complex128, COMPLEX, 53, COMPLEX128, "complex128")    \
    X(F8_E4M3, "f8_e4m3", uint8_t, FLOAT8, 4, F32, "float8_e4m3fn") /* to 448, no inf */ \
    X(F8_E5M2, "f8_e5m2", uint8_t, FLOAT8, 3, F32, "float8_e5m2") /* to 57344, and inf */
// clang-format on

// One element of the complex dtypes. Aligned as one of its parts is.
typedef struct tn_complex64 {
    float re, im;
} tn_complex64;
typedef struct tn_complex128 {
    double re, im;
} tn_complex128;

// An element type: TN_BOOL, TN_I8 ..., in the order of TN_DTYPES. TN_NUM_DTYPES is 1
// more than the greatest number, for arrays that are indexed by dtype. Test for integers or
// floats by the sets below, never by a range of numbers: rows are appended.
typedef int32_t tn_dtype;
enum {
    TN_DTYPE_NONE = 0, // no dtype: an input that was not given, an attribute left out
#define TN_DTYPE_ENUM(name, ...) TN_##name,
    TN_DTYPES(TN_DTYPE_ENUM)
#undef TN_DTYPE_ENUM
        TN_NUM_DTYPES,
};

// Kinds of values that a dtype stores.
enum {
    TN_KIND_NONE = 0,     // of TN_DTYPE_NONE and of numbers that are no dtype
    TN_KIND_BOOL = 1,     // 0 or 1; another byte is never stored
    TN_KIND_SIGNED = 2,   // integers, two's complement
    TN_KIND_UNSIGNED = 3, // integers from 0
    TN_KIND_FLOAT = 4,    // IEEE 754 binary formats, and bfloat16
    TN_KIND_FLOAT8 = 5,   // floats of 8 bits: stored, converted, compared
    TN_KIND_COMPLEX = 6,  // pairs of floats: real and imaginary part
};

// Sets of dtypes: bit `dtype` of a uint32_t. Kernels and devices state by such sets which
// dtypes they take. TN_DTYPE_BIT is the set of one dtype; sets are joined with `|`:
//
//   .dtypes = TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64)
//
// The sets by kind are constant expressions made from the table above. Bool is in
// TN_ALL_DTYPES only: it is no integer here. TN_FLOAT_DTYPES are the floats that are
// computed with, those of 8 bits excepted. Later headers may add a dtype to each set but
// TN_FIRST_DTYPES; a compiled plugin keeps the sets that it was compiled with.
#define TN_DTYPE_BIT(dtype) (UINT32_C(1) << (dtype))
#define TN_SIGNED_DTYPES ((uint32_t)TN_SIGNED_DTYPES_)
#define TN_UNSIGNED_DTYPES ((uint32_t)TN_UNSIGNED_DTYPES_)
#define TN_FLOAT_DTYPES ((uint32_t)TN_FLOAT_DTYPES_)
#define TN_FLOAT8_DTYPES ((uint32_t)TN_FLOAT8_DTYPES_)
#define TN_COMPLEX_DTYPES ((uint32_t)TN_COMPLEX_DTYPES_)
#define TN_INTEGER_DTYPES (TN_SIGNED_DTYPES | TN_UNSIGNED_DTYPES)
#define TN_ALL_DTYPES                                                                      \
    (TN_DTYPE_BIT(TN_BOOL) | TN_INTEGER_DTYPES | TN_FLOAT_DTYPES | TN_FLOAT8_DTYPES |      \
     TN_COMPLEX_DTYPES)
// The 13 dtypes of the first release, which never become more. A rule of a kernel, an input
// of a primitive or a device that names no dtypes takes these, so that a plugin is never
// handed a dtype that did not exist when it was written.
#define TN_FIRST_DTYPES UINT32_C(0x3ffe)
#define TN_BIT_IF_SIGNED_(name, text, type, kind, ...)                                     \
    | (TN_KIND_##kind == TN_KIND_SIGNED ? TN_DTYPE_BIT(TN_##name) : 0)
#define TN_BIT_IF_UNSIGNED_(name, text, type, kind, ...)                                   \
    | (TN_KIND_##kind == TN_KIND_UNSIGNED ? TN_DTYPE_BIT(TN_##name) : 0)
#define TN_BIT_IF_FLOAT_(name, text, type, kind, ...)                                      \
    | (TN_KIND_##kind == TN_KIND_FLOAT ? TN_DTYPE_BIT(TN_##name) : 0)
#define TN_BIT_IF_FLOAT8_(name, text, type, kind, ...)                                     \
    | (TN_KIND_##kind == TN_KIND_FLOAT8 ? TN_DTYPE_BIT(TN_##name) : 0)
#define TN_BIT_IF_COMPLEX_(name, text, type, kind, ...)                                    \
    | (TN_KIND_##kind == TN_KIND_COMPLEX ? TN_DTYPE_BIT(TN_##name) : 0)
// The sums, each made once: tables name the sets hundreds of times, and the sums written
// out in each place would be most of what a compiler reads.
enum {
    TN_SIGNED_DTYPES_ = 0 TN_DTYPES(TN_BIT_IF_SIGNED_),
    TN_UNSIGNED_DTYPES_ = 0 TN_DTYPES(TN_BIT_IF_UNSIGNED_),
    TN_FLOAT_DTYPES_ = 0 TN_DTYPES(TN_BIT_IF_FLOAT_),
    TN_FLOAT8_DTYPES_ = 0 TN_DTYPES(TN_BIT_IF_FLOAT8_),
    TN_COMPLEX_DTYPES_ = 0 TN_DTYPES(TN_BIT_IF_COMPLEX_),
};

// Whether `dtype` is in `set`, made of TN_DTYPE_BIT: 1 or 0. TN_DTYPE_NONE is in no set
// above. `dtype` is 0 .. 31.
static inline int32_t tn_dtype_in(tn_dtype dtype, uint32_t set)
{
    return (set >> dtype & 1) != 0;
}

// Whether `dtype` is a float dtype that is computed with; whether it is an integer dtype
// with a sign. 1 or 0. Floats have a sign, too, but are not what tn_is_signed() asks for.
static inline int32_t tn_is_float(tn_dtype dtype)
{
    return tn_dtype_in(dtype, TN_FLOAT_DTYPES);
}
static inline int32_t tn_is_signed(tn_dtype dtype)
{
    return tn_dtype_in(dtype, TN_SIGNED_DTYPES);
}

// Whether `dtype` is complex: 1 or 0.
static inline int32_t tn_is_complex(tn_dtype dtype)
{
    return tn_dtype_in(dtype, TN_COMPLEX_DTYPES);
}

// The dtype of the parts of a complex dtype, F32 or F64; another `dtype` itself.
static inline tn_dtype tn_dtype_real(tn_dtype dtype)
{
    return dtype == TN_COMPLEX64 ? TN_F32 : dtype == TN_COMPLEX128 ? TN_F64 : dtype;
}

// The complex dtype whose parts hold numbers of the float dtype `dtype`: COMPLEX128 for F64
// and else COMPLEX64. A complex `dtype` itself.
static inline tn_dtype tn_dtype_complex(tn_dtype dtype)
{
    return dtype == TN_F64 || dtype == TN_COMPLEX128 ? TN_COMPLEX128 : TN_COMPLEX64;
}

// The name of a dtype ("f32"); "none" for a number that is no dtype. Static text.
static inline const char *tn_dtype_name(tn_dtype dtype)
{
    static const char *const names[] = {"none",
#define TN_DTYPE_NAME(name, text, ...) text,
                                        TN_DTYPES(TN_DTYPE_NAME)
#undef TN_DTYPE_NAME
    };
    return names[dtype > 0 && dtype < TN_NUM_DTYPES ? dtype : 0];
}

// Bytes of one element of a dtype; 0 for a number that is no dtype.
static inline int64_t tn_dtype_bytes(tn_dtype dtype)
{
    static const uint8_t bytes[] = {0,
#define TN_DTYPE_BYTES(name, text, type, ...) sizeof(type),
                                    TN_DTYPES(TN_DTYPE_BYTES)
#undef TN_DTYPE_BYTES
    };
    return bytes[dtype > 0 && dtype < TN_NUM_DTYPES ? dtype : 0];
}

// Bits of the significand that a dtype keeps, the implicit leading bit of floats included:
// 24 for f32. Whole numbers up to 2^precision are exact (integers: 2^precision - 1), and
// rounding to a normal float of this dtype changes a number by at most 2^-precision of it:
// tests take their tolerance from here. Of a complex dtype those of each part. 0 for a
// number that is no dtype.
static inline int32_t tn_dtype_precision(tn_dtype dtype)
{
    static const uint8_t bits[] = {0,
#define TN_DTYPE_PRECISION(name, text, type, kind, precision, ...) precision,
                                   TN_DTYPES(TN_DTYPE_PRECISION)
#undef TN_DTYPE_PRECISION
    };
    return bits[dtype > 0 && dtype < TN_NUM_DTYPES ? dtype : 0];
}

// The kind of a dtype's values: TN_KIND_NONE for a number that is no dtype, else another
// TN_KIND_.
static inline uint32_t tn_dtype_kind(tn_dtype dtype)
{
    static const uint8_t kinds[] = {TN_KIND_NONE,
#define TN_DTYPE_KIND(name, text, type, kind, ...) TN_KIND_##kind,
                                    TN_DTYPES(TN_DTYPE_KIND)
#undef TN_DTYPE_KIND
    };
    return kinds[dtype > 0 && dtype < TN_NUM_DTYPES ? dtype : 0];
}

// The dtype in which programs of <tenon/expr.h> compute elements of `dtype`: F32 for F16,
// BF16 and floats of 8 bits, which are formats of storage only, and otherwise `dtype`. NONE
// for a number that is no dtype.
static inline tn_dtype tn_dtype_computed(tn_dtype dtype)
{
    static const uint8_t computed[] = {TN_DTYPE_NONE,
#define TN_DTYPE_COMPUTED(name, text, type, kind, precision, computed, ...) TN_##computed,
                                       TN_DTYPES(TN_DTYPE_COMPUTED)
#undef TN_DTYPE_COMPUTED
    };
    return computed[dtype > 0 && dtype < TN_NUM_DTYPES ? dtype : 0];
}

// Extents of an array, outermost axis first. Filled by the caller (TN_SHAPE of
// <tenon/tenon.h> writes one) and borrowed for the call. Rank 0 is a scalar: one element.
// An extent of 0 means an array without elements, which is valid everywhere.
typedef struct tn_shape {
    int32_t rank;                // 0 .. TN_MAX_RANK
    uint32_t reserved;           // 0
    int64_t extent[TN_MAX_RANK]; // >= 0 below rank, 0 above
} tn_shape;

// The type of an array: its dtype and extents, without memory. The core fills the types of
// inputs; a primitive's `infer` fills those of outputs. The core refuses a type whose size
// in bytes does not fit 63 bits, so products of extents need no check in kernels.
typedef struct tn_type {
    tn_dtype dtype;              // TN_DTYPE_NONE: an optional input that was not given
    int32_t rank;                // 0 .. TN_MAX_RANK
    int64_t extent[TN_MAX_RANK]; // outermost axis first; only those below rank count
    uint32_t flags;              // 0
    uint32_t reserved;           // 0
} tn_type;

// A strided view: where the elements of an array lie in a buffer. Element (i0, i1, ...) is
// number
//
//   offset + i0 * stride[0] + i1 * stride[1] + ...
//
// of the buffer, all counted in elements. A stride of 0 repeats one element along the axis
// (broadcast); a negative stride runs backwards. The core fills layouts and has checked
// that no element lies outside of its buffer.
typedef struct tn_layout {
    tn_dtype dtype;              // TN_DTYPE_NONE: an optional operand that was not given
    int32_t rank;                // 0 .. TN_MAX_RANK
    int64_t offset;              // of element (0, 0, ...)
    int64_t extent[TN_MAX_RANK]; // as in tn_type
    int64_t stride[TN_MAX_RANK]; // of an axis of extent 1: any number, and never used
    uint32_t flags;              // 0
    uint32_t reserved;           // 0
} tn_layout;

// An array in memory of the host, for reference kernels and cpu.c/1 kernels. Whoever passes
// a tensor owns its memory; the callee borrows it for the call. `data` is a multiple of the
// size of an element (of a complex dtype: of one part), and of nothing more: an
// application's own memory is used in place.
typedef struct tn_tensor {
    void *data; // first byte of the buffer: layout.offset is not added yet; NULL: absent
    tn_layout layout; // of the elements within the buffer
} tn_tensor;

// A list of integers as an attribute's value: axes, extents, strides. An empty list and one
// that is left out differ: `axis=[]` reduces nothing, no `axis` reduces all axes.
typedef struct tn_ints {
    uint32_t count;             // 0 .. TN_MAX_RANK
    uint32_t given;             // 1, or 0 for a list that was left out (then count is 0)
    int64_t value[TN_MAX_RANK]; // the first `count` are read
} tn_ints;

// Lists of any length as an attribute's value; at most TN_ATTR_MOST values. In a struct of
// attributes the member is a pointer to such a list, which is NULL when the attribute was
// left out; an empty list is a list of count 0.
typedef struct tn_int_list {
    uint64_t count;
    const int64_t *value; // `count` of them; may be NULL when count is 0
} tn_int_list;
typedef struct tn_float_list {
    uint64_t count;
    const double *value; // `count` of them; may be NULL when count is 0
} tn_float_list;

// The most values of a list, and the most bytes of a text, that an attribute may have.
#define TN_ATTR_MOST (INT64_C(1) << 20)

// Opaque: a scope builds graph and owns the arrays made in it; an array is one output of a
// node of that graph. <tenon/tenon.h> has their functions for applications, tn_build of
// <tenon/primitive.h> those for a plugin's rules.
typedef struct tn_scope tn_scope;
typedef struct tn_array tn_array;

#endif // TENON_TYPES_H
