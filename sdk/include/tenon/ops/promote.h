// SPDX-License-Identifier: MIT
// For authors of operators: the dtype of a result whose operands differ in theirs, as
// expressions have it. Primitives with an `expr` need none of this.
//
//   tn_dtype out = tn_dtype_promote(infer->types[0].dtype, infer->types[1].dtype);
//   if (!out)
//       return infer->host->fail(...); // a float of 8 bits beside another dtype
//
// What two dtypes give, either way round:
//
//   BOOL and any other            the other one
//   integers of one sign          the wider one
//   integers of both signs        a signed one that holds both; F64 beside U64
//   floats                        the wider one; F16 with BF16 F32
//   a float and an integer        the wider one of the float and of what tn_dtype_inexact
//                                 makes of the integer; of equal widths the float
//   a complex dtype and another   the complex dtype whose parts hold what the real dtypes
//   give a float of 8 bits and another none: convert one of them
//
// Numbers without a dtype, such as the literals of expressions, promote otherwise: they
// have become arrays of some dtype before an operator sees them.
//
// Threads. Pure functions: any thread. None fails.
#ifndef TENON_OPS_PROMOTE_H
#define TENON_OPS_PROMOTE_H

#include <tenon/types.h>

// The dtype of a function such as exp of this dtype, as in NumPy: F16 for BOOL, I8 and U8;
// F32 for I16 and U16; F64 for wider integers; floats and complex dtypes stay.
static inline tn_dtype tn_dtype_inexact(tn_dtype dtype)
{
    if (!tn_dtype_in(dtype, TN_INTEGER_DTYPES | TN_DTYPE_BIT(TN_BOOL)))
        return dtype;
    int64_t size = tn_dtype_bytes(dtype);
    return size == 1 ? TN_F16 : size == 2 ? TN_F32 : TN_F64;
}

// As below, of two integer dtypes. Mixed signs need a signed dtype twice as wide as the
// unsigned one; beside U64 only F64 is left, which is exact up to 2^53.
static inline tn_dtype tn_dtype_promote_integers(tn_dtype a, tn_dtype b)
{
    int64_t size_a = tn_dtype_bytes(a), size_b = tn_dtype_bytes(b);
    if (tn_is_signed(a) == tn_is_signed(b))
        return size_a >= size_b ? a : b;
    int64_t of_signed = tn_is_signed(a) ? size_a : size_b;
    int64_t of_unsigned = tn_is_signed(a) ? size_b : size_a;
    int64_t size = of_signed > of_unsigned ? of_signed : 2 * of_unsigned;
    return size == 2 ? TN_I16 : size == 4 ? TN_I32 : size == 8 ? TN_I64 : TN_F64;
}

// As below, of dtypes that are not complex.
static inline tn_dtype tn_dtype_promote_real(tn_dtype a, tn_dtype b)
{
    if (a == b || b == TN_BOOL)
        return a;
    if (a == TN_BOOL)
        return b;
    int float_a = tn_is_float(a), float_b = tn_is_float(b);
    if (!float_a && !float_b)
        return tn_dtype_promote_integers(a, b);
    // For integers of 8 bits F16. BF16 is exact for these, too, so it stays.
    tn_dtype x = float_a ? a : b, y = tn_dtype_inexact(float_a ? b : a);
    if (tn_dtype_bytes(x) != tn_dtype_bytes(y))
        return tn_dtype_bytes(x) > tn_dtype_bytes(y) ? x : y;
    // F16 has more digits, BF16 more range: F32 has both.
    return x == y || float_a != float_b ? x : TN_F32;
}

// numpy.promote_types, but that F16 beside BF16 gives F32, and beside a complex dtype
// COMPLEX64. A float of 8 bits promotes with nothing but itself: TN_DTYPE_NONE, and so it
// is where one of the two is none of TN_DTYPES.
static inline tn_dtype tn_dtype_promote(tn_dtype a, tn_dtype b)
{
    const uint32_t float8 = TN_FLOAT8_DTYPES;
    if (a <= 0 || a >= TN_NUM_DTYPES || b <= 0 || b >= TN_NUM_DTYPES)
        return TN_DTYPE_NONE;
    if (a == b)
        return a;
    if (tn_dtype_in(a, float8) || tn_dtype_in(b, float8))
        return TN_DTYPE_NONE;
    if (tn_is_complex(a) || tn_is_complex(b))
        return tn_dtype_complex(tn_dtype_promote_real(tn_dtype_real(a), tn_dtype_real(b)));
    return tn_dtype_promote_real(a, b);
}

#endif // TENON_OPS_PROMOTE_H
