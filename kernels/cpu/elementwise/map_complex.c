// SPDX-License-Identifier: MIT
// Operations on complex numbers, and conversions from and to them. + - * and the operations
// on parts are computed in the dtype of a part; quotients, powers and functions by
// <tenon/ops/program.h> in double, and rounded.
//
// Without FMA: gcc 12 fuses (ac - bd, ad + bc) to multiply-adds in spite of
// -ffp-contract=off where it vectorises, and the variants would differ.
#if defined(__FMA__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("no-fma")
#endif
#include <math.h>
#include <tenon/ops/program.h>
#include "map_loops.h"
#include "variants.h"

// MAP1 and MAP2 for results that are structs.
#define COMPLEX1(name, R, expression)                                                      \
    static void name(void *out_, const void *const *in, int64_t n, uint32_t scalars)       \
    {                                                                                      \
        R *out = out_;                                                                     \
        const T *a = in[0];                                                                \
        (void)scalars;                                                                     \
        VECTORIZE for (int64_t i = 0; i < n; i++)                                          \
        {                                                                                  \
            T x = a[i];                                                                    \
            out[i] = expression;                                                           \
        }                                                                                  \
    }
#define COMPLEX2(name, R, expression)                                                      \
    static void name(void *out_, const void *const *in, int64_t n, uint32_t scalars)       \
    {                                                                                      \
        R *out = out_;                                                                     \
        const T *a = in[0], *b = in[1];                                                    \
        (void)scalars;                                                                     \
        VECTORIZE for (int64_t i = 0; i < n; i++)                                          \
        {                                                                                  \
            T x = a[i], y = b[i];                                                          \
            out[i] = expression;                                                           \
        }                                                                                  \
    }

// LOOP and ENTRY are applied to TN_EXPR_OPS, by the set of dtypes of an instruction. LOOP
// defines the loops of FLOAT_COMPLEX but those of class TEST; other loops are written out.
// ENTRY makes a table entry for each instruction that takes complex numbers.
#define LOOP_NONE(...)
#define LOOP_BOOL(...)
#define LOOP_INTEGER(...)
#define LOOP_BITS(...)
#define LOOP_FLOAT(...)
#define LOOP_NUMBER(...)
#define LOOP_ANY(...)
#define LOOP_NUMBER_COMPLEX(...)
#define LOOP_ANY_COMPLEX(...)
#define LOOP_COMPLEX(...)
#define LOOP_PARTS(...)
#define LOOP_ROW_NUMBER(...)
#define LOOP_ROW_ANY(...)
#define ENTRY_NONE(name)
#define ENTRY_BOOL(name)
#define ENTRY_INTEGER(name)
#define ENTRY_BITS(name)
#define ENTRY_FLOAT(name)
#define ENTRY_NUMBER(name)
#define ENTRY_ANY(name)
#define ENTRY_PARTS(name)
#define ENTRY_ROW_NUMBER(name)
#define ENTRY_ROW_ANY(name)
#define ENTRY_COMPLEX(name) [TN_EXPR_##name] = F(name),
#define ENTRY_FLOAT_COMPLEX ENTRY_COMPLEX
#define ENTRY_NUMBER_COMPLEX ENTRY_COMPLEX
#define ENTRY_ANY_COMPLEX ENTRY_COMPLEX

#define CAST_BLOCK 256 // elements

static inline bool is_infinite(double x)
{
    return fabs(x) == (double)INFINITY;
}

// One copy of this function serves both dtypes.
#define NOINLINE __attribute__((noinline))
static NOINLINE tn_complex128 map_complex_function_of(uint32_t op, tn_complex128 x)
{
    return tn_complex_function(op, x);
}
static NOINLINE tn_complex128 map_complex_power(tn_complex128 x, tn_complex128 y)
{
    return tn_complex_power(x, y);
}

// Squares of f32 are exact in f64 and do not overflow. If a part is infinite, so is the
// result, even if the other part is NaN.
static inline float modulus_f32(float re, float im)
{
    double a = (double)re, b = (double)im, size = sqrt(a * a + b * b);
    return is_infinite(a) || is_infinite(b) ? INFINITY : (float)size;
}

#define MODULUS_OF modulus_f32
#define T tn_complex64
#define N complex64
#define PART float
#define PART_DTYPE TN_F32
#include "map_complex.inc.h"
#undef T
#undef N
#undef PART
#undef PART_DTYPE
#undef MODULUS_OF

#define MODULUS_OF hypot
#define T tn_complex128
#define N complex128
#define PART double
#define PART_DTYPE TN_F64
#include "map_complex.inc.h"

// Casts between the complex dtypes, and to bool.
#define CAST(name, FROM, TO, expression)                                                   \
    void VC(name)(void *out_, const void *const *in, int64_t n, uint32_t scalars)          \
    {                                                                                      \
        TO *out = out_;                                                                    \
        const FROM *a = in[0];                                                             \
        (void)scalars;                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                  \
            FROM x = a[i];                                                                 \
            out[i] = expression;                                                           \
        }                                                                                  \
    }
CAST(complex64_to_complex64, tn_complex64, tn_complex64, x)
CAST(complex128_to_complex128, tn_complex128, tn_complex128, x)
CAST(complex64_to_complex128, tn_complex64, tn_complex128, wide_complex64(x))
CAST(complex128_to_complex64, tn_complex128, tn_complex64, narrow_complex64(x))
CAST(complex64_to_bool, tn_complex64, uint8_t, x.re != 0 || x.im != 0)
CAST(complex128_to_bool, tn_complex128, uint8_t, x.re != 0 || x.im != 0)
