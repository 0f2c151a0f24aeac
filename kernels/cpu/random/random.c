// SPDX-License-Identifier: MIT
// Threefry-2x32 of adjacent counters, one in each lane, and its words as floats.
#include <tenon/ops/threefry.h>
#include "cpu/variant.h"
#include "variants.h"

// Defines words_NAME, which computes the words (a, b) of each counter; `keep` writes them.
#define WORDS(name, keep)                                                                  \
    static void words_##name(uint32_t *x, uint32_t *y, const struct cpu_counters *c,       \
                             int64_t n)                                                    \
    {                                                                                      \
        const uint32_t k0 = c->key[0], k1 = c->key[1];                                     \
        const uint32_t first0 = c->first[0], first1 = c->first[1];                         \
        const uint32_t mask0 = c->mask[0], mask1 = c->mask[1];                             \
        (void)y;                                                                           \
        VECTORIZE for (int64_t i = 0; i < n; i++)                                          \
        {                                                                                  \
            uint32_t a = first0 + ((uint32_t)i & mask0);                                   \
            uint32_t b = first1 + ((uint32_t)i & mask1);                                   \
            TN_THREEFRY(uint32_t, a, b, k0, k1);                                           \
            keep;                                                                          \
        }                                                                                  \
    }
WORDS(first, x[i] = a)
WORDS(folded, x[i] = a ^ b)
WORDS(both, (x[i] = a, y[i] = b))

// Words and floats that share memory.
typedef uint32_t word __attribute__((may_alias));
typedef float number __attribute__((may_alias));

#define BELOW_ONE 0x1.fffffep-1f
#define ABOVE_MINUS_ONE (-BELOW_ONE)

// Defines unit_NAME, which replaces each word w by the float `expression`.
#define UNIT(name, expression)                                                             \
    static void unit_##name(void *words, int64_t n)                                        \
    {                                                                                      \
        const word *in = words;                                                            \
        number *out = words;                                                               \
        VECTORIZE for (int64_t i = 0; i < n; i++)                                          \
        {                                                                                  \
            uint32_t w = in[i];                                                            \
            out[i] = expression;                                                           \
        }                                                                                  \
    }

static inline float unit_of_word(uint32_t w)
{
    float u = (float)w * 0x1p-32f;
    return u < BELOW_ONE ? u : BELOW_ONE;
}

static inline float random_words_signed_of(float u)
{
    float x = u * 2.0f + ABOVE_MINUS_ONE;
    return x > ABOVE_MINUS_ONE ? x : ABOVE_MINUS_ONE;
}

UNIT(23, (float)(int32_t)(w >> 9) * 0x1p-23f)
UNIT(24, (float)(int32_t)(w >> 8) * 0x1p-24f)
UNIT(24_after, (float)(int32_t)((w >> 8) + 1) * 0x1p-24f)
UNIT(32, unit_of_word(w))
UNIT(signed_23, random_words_signed_of((float)(int32_t)(w >> 9) * 0x1p-23f))
UNIT(signed_32, random_words_signed_of(unit_of_word(w)))
UNIT(angle, (float)(int32_t)(w >> 8) * 3.7450702e-7f)

static void scale_numbers(float *x, int64_t n, float factor)
{
    VECTORIZE for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

static void multiply_numbers(float *x, const float *y, int64_t n)
{
    VECTORIZE for (int64_t i = 0; i < n; i++) x[i] = 0.0f + x[i] * y[i];
}

const struct cpu_random_kernels V(cpu_random) = {
    .words = {words_first, words_folded, words_both},
    .unit = {unit_23, unit_24, unit_24_after, unit_32, unit_signed_23, unit_signed_32,
             unit_angle},
    .scale = scale_numbers,
    .multiply = multiply_numbers,
};
