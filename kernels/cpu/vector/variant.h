// SPDX-License-Identifier: MIT
// Included by the files of this folder. Each file is compiled once for each variant, with
// the variant's name in CPU_VARIANT, and holds plain loops that the compiler vectorises.
#ifndef KERNELS_CPU_VARIANT_H
#define KERNELS_CPU_VARIANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "../cpu.h"

// V(name) is `name` with the variant's name behind it: symbols of several variants are
// linked into one library.
#define GLUE_(name, variant) name##_##variant
#define GLUE(name, variant) GLUE_(name, variant)
#define V(name) GLUE(name, CPU_VARIANT)
// Likewise for what map_complex.c defines, which a variant may have from another one: wider
// vectors gain little there.
#define VC(name) GLUE(name, CPU_COMPLEX_VARIANT)

// Tells the compiler that no iteration of the next loop reads what another iteration
// writes. It cannot see that by itself, since an output may begin where an input begins.
#ifdef __clang__
#define VECTORIZE _Pragma("clang loop vectorize(assume_safety)")
#else
#define VECTORIZE _Pragma("GCC ivdep")
#endif

// The tables that each variant consists of.
extern cpu_map_fn *const V(cpu_map_bool)[CPU_NUM_OPS], *const V(cpu_map_i8)[CPU_NUM_OPS],
                                                           *const
    V(cpu_map_i16)[CPU_NUM_OPS],
        *const V(cpu_map_i32)[CPU_NUM_OPS], *const V(cpu_map_i64)[CPU_NUM_OPS],
                                                *const
    V(cpu_map_u8)[CPU_NUM_OPS],
        *const V(cpu_map_u16)[CPU_NUM_OPS], *const V(cpu_map_u32)[CPU_NUM_OPS],
                                                *const V(cpu_map_u64)[CPU_NUM_OPS],
                                                    *const
    V(cpu_map_f32)[CPU_NUM_OPS],
        *const V(cpu_map_f64)[CPU_NUM_OPS], *const VC(cpu_map_complex64)[CPU_NUM_OPS],
                                                *const VC(cpu_map_complex128)[CPU_NUM_OPS];
extern cpu_map_fn *const V(cpu_casts)[TN_NUM_DTYPES][TN_NUM_DTYPES];
extern cpu_copy_fn *const V(cpu_copies)[5];
extern cpu_transpose_fn *const V(cpu_transposes)[5];
extern cpu_stream_fn V(cpu_stream);
void V(cpu_fence)(void);
extern cpu_product_fn *const V(cpu_products)[TN_NUM_DTYPES];
extern const struct cpu_reduce_kernels V(cpu_reductions);
extern const struct cpu_argmax_kernels V(cpu_argmax);
extern const struct cpu_nn_kernels V(cpu_nn);
extern cpu_fft_fn V(cpu_fft_f32), V(cpu_fft_f64);
extern cpu_fft_part_fn V(cpu_fft_part_f32), V(cpu_fft_part_f64);
extern cpu_fft_fold_fn V(cpu_fft_fold_f32), V(cpu_fft_fold_f64);
void V(cpu_few_by_rows)(const struct cpu_few_rows *p);
void V(cpu_few_by_columns)(const struct cpu_few_rows *p);

// X(name, dtype) for each integer and float dtype that is computed in. The conversions
// between these, bool and complex dtypes, and complex numbers of two parts.
#define CPU_REAL_DTYPES(X)                                                                 \
    X(i8, TN_I8)                                                                           \
    X(i16, TN_I16)                                                                         \
    X(i32, TN_I32)                                                                         \
    X(i64, TN_I64)                                                                         \
    X(u8, TN_U8)                                                                           \
    X(u16, TN_U16)                                                                         \
    X(u32, TN_U32)                                                                         \
    X(u64, TN_U64)                                                                         \
    X(f32, TN_F32)                                                                         \
    X(f64, TN_F64)
#define CPU_COMPLEX_CASTS(name, dtype)                                                     \
    extern cpu_map_fn VC(complex64_to_##name), VC(complex128_to_##name),                   \
        VC(name##_to_complex64), VC(name##_to_complex128);
CPU_REAL_DTYPES(CPU_COMPLEX_CASTS)
CPU_COMPLEX_CASTS(bool, TN_BOOL)
extern cpu_map_fn VC(complex64_to_complex64), VC(complex64_to_complex128),
    VC(complex128_to_complex64), VC(complex128_to_complex128), VC(join_complex64),
    VC(join_complex128);

// The bits of a float, and the float of these bits.
static inline uint32_t bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}
static inline float f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}
static inline uint64_t bits_of_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}
static inline double f64_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

// Define a cpu_map_fn `name` over elements of type T, with results of type R. `expression`
// reads the operands x and y of one element. MAP1 and MAP2 ignore `scalars`.
#define MAP1(name, T, R, expression)                                                       \
    static void name(void *out_, const void *const *in, int64_t n, uint32_t scalars)       \
    {                                                                                      \
        R *out = out_;                                                                     \
        const T *a = in[0];                                                                \
        (void)scalars;                                                                     \
        VECTORIZE for (int64_t i = 0; i < n; i++)                                          \
        {                                                                                  \
            T x = a[i];                                                                    \
            out[i] = (R)(expression);                                                      \
        }                                                                                  \
    }
#define MAP2(name, T, R, expression)                                                       \
    static void name(void *out_, const void *const *in, int64_t n, uint32_t scalars)       \
    {                                                                                      \
        R *out = out_;                                                                     \
        const T *a = in[0], *b = in[1];                                                    \
        (void)scalars;                                                                     \
        VECTORIZE for (int64_t i = 0; i < n; i++)                                          \
        {                                                                                  \
            T x = a[i], y = b[i];                                                          \
            out[i] = (R)(expression);                                                      \
        }                                                                                  \
    }
// MAP2 for operations that accept `scalars`: a loop for each combination, in which a scalar
// stays in a register.
#define MAP2S(name, T, R, expression)                                                      \
    static void name(void *out_, const void *const *in, int64_t n, uint32_t scalars)       \
    {                                                                                      \
        R *out = out_;                                                                     \
        const T *a = in[0], *b = in[1];                                                    \
        if (scalars == 0) {                                                                \
            VECTORIZE for (int64_t i = 0; i < n; i++)                                      \
            {                                                                              \
                T x = a[i], y = b[i];                                                      \
                out[i] = (R)(expression);                                                  \
            }                                                                              \
        } else if (scalars == 2) {                                                         \
            T y = *b;                                                                      \
            VECTORIZE for (int64_t i = 0; i < n; i++)                                      \
            {                                                                              \
                T x = a[i];                                                                \
                out[i] = (R)(expression);                                                  \
            }                                                                              \
        } else if (scalars == 1) {                                                         \
            T x = *a;                                                                      \
            VECTORIZE for (int64_t i = 0; i < n; i++)                                      \
            {                                                                              \
                T y = b[i];                                                                \
                out[i] = (R)(expression);                                                  \
            }                                                                              \
        } else {                                                                           \
            T x = *a, y = *b;                                                              \
            R result = (R)(expression);                                                    \
            for (int64_t i = 0; i < n; i++)                                                \
                out[i] = result;                                                           \
        }                                                                                  \
    }
// Defines `name` of x and y as `other`, defined by MAP2 or MAP2S, of y and x.
#define MAP2_SWAPPED(name, other)                                                          \
    static void name(void *out, const void *const *in, int64_t n, uint32_t scalars)        \
    {                                                                                      \
        const void *const swapped[] = {in[1], in[0]};                                      \
        other(out, swapped, n, (scalars & 1) << 1 | (scalars >> 1 & 1));                   \
    }
// Defines the cpu_map_fn of SELECT: of the second and third operand, by the first, a bool.
#define SELECT(name, T)                                                                    \
    static void name(void *out_, const void *const *in, int64_t n, uint32_t scalars)       \
    {                                                                                      \
        T *out = out_;                                                                     \
        const uint8_t *condition = in[0];                                                  \
        const T *a = in[1], *b = in[2];                                                    \
        (void)scalars;                                                                     \
        VECTORIZE for (int64_t i = 0; i < n; i++)                                          \
        {                                                                                  \
            T x = a[i], y = b[i];                                                          \
            out[i] = condition[i] ? x : y;                                                 \
        }                                                                                  \
    }

#endif // KERNELS_CPU_VARIANT_H
