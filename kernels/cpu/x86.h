// SPDX-License-Identifier: MIT
// Instructions of x86 that vector types of the compiler have no operator for. <immintrin.h>
// has them all, and takes longer to read than most files here take to compile. Builtins
// that gcc and clang have under different names are told apart here and nowhere else.
#ifndef KERNELS_CPU_X86_H
#define KERNELS_CPU_X86_H

#include <stdint.h>
#include <string.h>

// Functions of one or a few instructions, which are always inlined.
#define X86 static inline __attribute__((always_inline))

#ifdef __SSE2__
typedef signed char x86_i8x16 __attribute__((vector_size(16)));
typedef char x86_c8x16 __attribute__((vector_size(16))); // operand type of gcc's builtins
typedef int16_t x86_i16x8 __attribute__((vector_size(16)));
typedef int32_t x86_i32x4 __attribute__((vector_size(16)));
typedef long long x86_i64x2 __attribute__((vector_size(16)));
typedef float x86_f32x4 __attribute__((vector_size(16)));
#endif

#ifdef __SSE2__
// Copies a line of 64 bytes past the caches; `to` is aligned to it.
X86 void x86_stream_line(void *to, const void *from)
{
#if defined(__AVX512F__)
    enum { BYTES = 64 };
#elif defined(__AVX__)
    enum { BYTES = 32 };
#else
    enum { BYTES = 16 };
#endif
    typedef long long vector __attribute__((vector_size(BYTES), may_alias));
    for (int i = 0; i < 64 / BYTES; i++) {
        vector part, *at = (vector *)to + i;
        memcpy(&part, (const char *)from + i * BYTES, sizeof(part));
#if defined(__clang__)
        __builtin_nontemporal_store(part, at);
#elif defined(__AVX512F__)
        __builtin_ia32_movntdq512(at, part);
#elif defined(__AVX__)
        __builtin_ia32_movntdq256(at, part);
#else
        __builtin_ia32_movntdq(at, part);
#endif
    }
}
#endif

#ifdef __AVX__
typedef float x86_f32x8 __attribute__((vector_size(32)));
#endif

#ifdef __F16C__
// The 8 halves at p as floats; and 8 floats to halves, rounded to nearest, ties to even.
X86 x86_f32x8 x86_widen_f16(const void *p)
{
    x86_i16x8 halves;
    memcpy(&halves, p, sizeof(halves));
    return __builtin_ia32_vcvtph2ps256(halves);
}
X86 void x86_narrow_f16(void *p, const float *from)
{
    x86_f32x8 x;
    memcpy(&x, from, sizeof(x));
    x86_i16x8 halves = __builtin_ia32_vcvtps2ph256(x, 0);
    memcpy(p, &halves, sizeof(halves));
}
// The half at p as a float, in all lanes.
X86 x86_f32x8 x86_widen_one_f16(const void *p)
{
    uint16_t half;
    memcpy(&half, p, sizeof(half));
    const x86_f32x4 x = __builtin_ia32_vcvtph2ps((x86_i16x8)(x86_i32x4){half});
    return __builtin_shufflevector(x, x, 0, 0, 0, 0, 0, 0, 0, 0);
}
#endif

#ifdef __AVX2__
// The 8 numbers of BF16 at p as floats.
X86 x86_f32x8 x86_widen_bf16(const void *p)
{
    x86_i16x8 halves;
    memcpy(&halves, p, sizeof(halves));
#ifdef __clang__
    typedef uint16_t bits __attribute__((vector_size(16)));
    typedef uint32_t words __attribute__((vector_size(32)));
    return (x86_f32x8)(__builtin_convertvector((bits)halves, words) << 16);
#else
    typedef int32_t words __attribute__((vector_size(32)));
    return (x86_f32x8)((words)__builtin_ia32_pmovzxwd256(halves) << 16);
#endif
}
// The 8 signed bytes at p as floats.
X86 x86_f32x8 x86_floats_of_i8(const void *p)
{
    long long all;
    memcpy(&all, p, sizeof(all));
    const x86_i64x2 pair = {all};
#ifdef __clang__
    typedef int32_t words __attribute__((vector_size(32)));
    const x86_i8x16 x = (x86_i8x16)pair;
    return __builtin_convertvector(
        __builtin_convertvector(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7),
                                words),
        x86_f32x8);
#else
    return __builtin_ia32_cvtdq2ps256(__builtin_ia32_pmovsxbd256((x86_c8x16)pair));
#endif
}
#endif

#ifdef __AVX512F__
typedef float x86_f32x16 __attribute__((vector_size(64)));
typedef int16_t x86_i16x16 __attribute__((vector_size(32)));
typedef int32_t x86_i32x16 __attribute__((vector_size(64)));
// The 16 halves at p, and the 16 numbers of BF16 at p, as floats.
X86 x86_f32x16 x86_widen_16_f16(const void *p)
{
    x86_i16x16 halves;
    memcpy(&halves, p, sizeof(halves));
    return __builtin_ia32_vcvtph2ps512_mask(halves, (x86_f32x16){0}, (uint16_t)-1, 4);
}
X86 x86_f32x16 x86_widen_16_bf16(const void *p)
{
    x86_i16x16 halves;
    memcpy(&halves, p, sizeof(halves));
#ifdef __clang__
    typedef uint16_t bits __attribute__((vector_size(32)));
    typedef uint32_t words __attribute__((vector_size(64)));
    return (x86_f32x16)(__builtin_convertvector((bits)halves, words) << 16);
#else
    return (
        x86_f32x16)(__builtin_ia32_pmovzxwd512_mask(halves, (x86_i32x16){0}, (uint16_t)-1)
                    << 16);
#endif
}
// Loads the first n floats at p, with zeros behind them; stores the first n floats alone.
X86 x86_f32x16 x86_load_some(const float *p, int64_t n)
{
    return __builtin_ia32_loadups512_mask((const void *)p, (x86_f32x16){0},
                                          (uint16_t)((1u << n) - 1));
}
X86 void x86_store_some(float *p, x86_f32x16 x, int64_t n)
{
    __builtin_ia32_storeups512_mask((void *)p, x, (uint16_t)((1u << n) - 1));
}
#endif

#endif // KERNELS_CPU_X86_H
