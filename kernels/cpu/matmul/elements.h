// SPDX-License-Identifier: MIT
// Elements of F32, BF16 and F16 as vectors of floats, of the width that a variant has.
#ifndef KERNELS_CPU_ELEMENTS_H
#define KERNELS_CPU_ELEMENTS_H

#include <tenon/ops/reference.h>
#include "cpu/lanes.h"
#include "cpu/variant.h"
#include "cpu/x86.h"

typedef float v8f __attribute__((vector_size(32)));
typedef float v8f_loose __attribute__((vector_size(32), aligned(4), may_alias));

// Load one element at p, or eight.
INLINE float one_f32(const char *p)
{
    float x;
    memcpy(&x, p, sizeof(x));
    return x;
}

INLINE float one_bf16(const char *p)
{
    uint16_t x;
    memcpy(&x, p, sizeof(x));
    return f32_of_bits((uint32_t)x << 16);
}

INLINE float one_f16(const char *p)
{
    uint16_t x;
    memcpy(&x, p, sizeof(x));
    return tn_f32_of_f16(x);
}

INLINE v8f eight_f32(const char *p)
{
    return *(const v8f_loose *)(const void *)p;
}

INLINE v8f eight_bf16(const char *p)
{
#ifdef __AVX2__
    return x86_widen_bf16(p);
#else
    v8f out;
    for (int i = 0; i < 8; i++)
        out[i] = one_bf16(p + 2 * i);
    return out;
#endif
}

INLINE v8f eight_f16(const char *p)
{
#ifdef __F16C__
    return x86_widen_f16(p);
#else
    v8f out;
    for (int i = 0; i < 8; i++)
        out[i] = one_f16(p + 2 * i);
    return out;
#endif
}

// Load LANES elements.
INLINE vector many_f32(const char *p)
{
    return *(const loose *)(const void *)p;
}

#if LANES == 16
INLINE vector many_bf16(const char *p)
{
    return x86_widen_16_bf16(p);
}
INLINE vector many_f16(const char *p)
{
    return x86_widen_16_f16(p);
}
#elif LANES == 8
INLINE vector many_bf16(const char *p)
{
    return eight_bf16(p);
}
INLINE vector many_f16(const char *p)
{
    return eight_f16(p);
}
#else
INLINE vector many_bf16(const char *p)
{
    return (vector){one_bf16(p), one_bf16(p + 2), one_bf16(p + 4), one_bf16(p + 6)};
}
INLINE vector many_f16(const char *p)
{
    return (vector){one_f16(p), one_f16(p + 2), one_f16(p + 4), one_f16(p + 6)};
}
#endif

// Defines the load of n elements, fewer than LANES, with zeros behind them.
#define SOME(KIND, SIZE)                                                                   \
    static vector some_##KIND(const char *p, int64_t n)                                    \
    {                                                                                      \
        vector out = {0};                                                                  \
        for (int64_t i = 0; i < n; i++)                                                    \
            out[i] = one_##KIND(p + i * SIZE);                                             \
        return out;                                                                        \
    }

#endif // KERNELS_CPU_ELEMENTS_H
