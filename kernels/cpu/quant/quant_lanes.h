// SPDX-License-Identifier: MIT
// Vectors for quant.c: LANES sums of integers, one for each row of weights, and dot
// products of four bytes, of which sums are made. They use intrinsics of the variant's
// instruction set, or plain loops.
#ifndef KERNELS_CPU_QUANT_LANES_H
#define KERNELS_CPU_QUANT_LANES_H

#include <string.h>
#include <tenon/ops/reference.h>

static inline int32_t word_at(const void *p)
{
    int32_t word;
    memcpy(&word, p, sizeof(word));
    return word;
}

// Defines the functions for x86; names of intrinsics and types differ in their widths.
// `shifted` shifts by constants, to the right, or to the left if negative; `signed_byte` is
// byte i of each word. `multiplied` and `sum_of_pairs` multiply numbers of 16 bits, and
// `sum_of_pairs` adds both products in a word. `half_scales` is tn_quant_half_scale.
#define X86_LANES(WIDTH)                                                                   \
    typedef __m##WIDTH##i words;                                                           \
    typedef __m##WIDTH floats;                                                             \
    static inline words load_words(const uint8_t *p)                                       \
    {                                                                                      \
        return _mm##WIDTH##_loadu_si##WIDTH((const words *)(const void *)p);               \
    }                                                                                      \
    static inline words all_words(int32_t x)                                               \
    {                                                                                      \
        return _mm##WIDTH##_set1_epi32(x);                                                 \
    }                                                                                      \
    static inline words masked(words w, int32_t mask)                                      \
    {                                                                                      \
        return _mm##WIDTH##_and_si##WIDTH(w, all_words(mask));                             \
    }                                                                                      \
    static inline words joined(words a, words b)                                           \
    {                                                                                      \
        return _mm##WIDTH##_or_si##WIDTH(a, b);                                            \
    }                                                                                      \
    static inline words shifted(words w, int by)                                           \
    {                                                                                      \
        return by < 0 ? _mm##WIDTH##_slli_epi32(w, -by) : _mm##WIDTH##_srli_epi32(w, by);  \
    }                                                                                      \
    static inline words signed_byte(words w, int i)                                        \
    {                                                                                      \
        return _mm##WIDTH##_srai_epi32(_mm##WIDTH##_slli_epi32(w, 24 - 8 * i), 24);        \
    }                                                                                      \
    static inline words lowered(words w, int32_t by)                                       \
    {                                                                                      \
        return _mm##WIDTH##_sub_epi32(w, all_words(by));                                   \
    }                                                                                      \
    static inline words shifted_right(words w, int by)                                     \
    {                                                                                      \
        return _mm##WIDTH##_srl_epi32(w, _mm_cvtsi32_si128(by));                           \
    }                                                                                      \
    static inline words multiplied(words a, words b)                                       \
    {                                                                                      \
        return _mm##WIDTH##_mullo_epi16(a, b);                                             \
    }                                                                                      \
    static inline words sum_of_pairs(words a, words b)                                     \
    {                                                                                      \
        return _mm##WIDTH##_madd_epi16(a, b);                                              \
    }                                                                                      \
    static inline words sum_of_products(words a, words b, words c, words d)                \
    {                                                                                      \
        return _mm##WIDTH##_add_epi32(_mm##WIDTH##_mullo_epi32(a, b),                      \
                                      _mm##WIDTH##_mullo_epi32(c, d));                     \
    }                                                                                      \
    static inline floats half_scales(words e)                                              \
    {                                                                                      \
        const words less = _mm##WIDTH##_min_epi32(e, all_words(1));                        \
        const words tiny =                                                                 \
            _mm##WIDTH##_add_epi32(_mm##WIDTH##_slli_epi32(less, 21), all_words(1 << 21)); \
        return _mm##WIDTH##_castsi##WIDTH##_ps(                                            \
            _mm##WIDTH##_max_epi32(tiny, _mm##WIDTH##_slli_epi32(lowered(e, 1), 23)));     \
    }                                                                                      \
    static inline floats all_floats(float x)                                               \
    {                                                                                      \
        return _mm##WIDTH##_set1_ps(x);                                                    \
    }                                                                                      \
    static inline floats to_floats(words w)                                                \
    {                                                                                      \
        return _mm##WIDTH##_cvtepi32_ps(w);                                                \
    }                                                                                      \
    static inline floats multiply(floats a, floats b)                                      \
    {                                                                                      \
        return _mm##WIDTH##_mul_ps(a, b);                                                  \
    }                                                                                      \
    static inline floats add(floats a, floats b)                                           \
    {                                                                                      \
        return _mm##WIDTH##_add_ps(a, b);                                                  \
    }                                                                                      \
    static inline void store(float *p, floats x)                                           \
    {                                                                                      \
        _mm##WIDTH##_storeu_ps(p, x);                                                      \
    }

// `dot`: sum + the products of four bytes of w, 0 .. 255, and of x, -127 .. 127. Without
// VNNI products of two bytes are summed in 16 bits first, so w must be at most 128.
// `dot_signed`: the same for signed bytes of w from `signed_bytes`, which may add
// BYTES_OFFSET to them; the sum is then too large by BYTES_OFFSET times the sum of x.
#if defined(__AVX512BW__) && defined(__AVX512F__)
#include <immintrin.h>
#define LANES 16
X86_LANES(512)
static inline floats load_f16(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline words load_u16(const uint8_t *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline words load_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline words looked_up(const int8_t table[16], words indices)
{
    const __m128i all = _mm_loadu_si128((const __m128i *)(const void *)table);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(all), indices);
}
#if defined(__AVX512VNNI__)
#define BYTES_OFFSET 128
static inline words dot(words sum, words w, words x)
{
    return _mm512_dpbusd_epi32(sum, w, x);
}
static inline words signed_bytes(words w)
{
    return _mm512_xor_si512(w, _mm512_set1_epi8(-128));
}
#define dot_signed dot
#else
#define BYTES_OFFSET 0
static inline words dot(words sum, words w, words x)
{
    const words pairs = _mm512_maddubs_epi16(w, x);
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
static inline words signed_bytes(words w)
{
    return w;
}
static inline words dot_signed(words sum, words w, words x)
{
    const __mmask64 negative = _mm512_movepi8_mask(w);
    const words turned = _mm512_mask_sub_epi8(x, negative, _mm512_setzero_si512(), x);
    return dot(sum, _mm512_abs_epi8(w), turned);
}
#endif

#elif defined(__AVX2__)
#include <immintrin.h>
#define LANES 8
#define BYTES_OFFSET 0
X86_LANES(256)
static inline floats load_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline words load_u16(const uint8_t *p)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline words load_u8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
static inline words looked_up(const int8_t table[16], words indices)
{
    const __m128i all = _mm_loadu_si128((const __m128i *)(const void *)table);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(all), indices);
}
static inline words dot(words sum, words w, words x)
{
    const words pairs = _mm256_maddubs_epi16(w, x);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
static inline words signed_bytes(words w)
{
    return w;
}
static inline words dot_signed(words sum, words w, words x)
{
    return dot(sum, _mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}

#else
#define LANES 4
#define BYTES_OFFSET 0
typedef union words {
    int8_t byte[16];
    int16_t pair[8];
    int32_t word[4];
} words;
typedef float floats __attribute__((vector_size(16)));
#define EACH(expression)                                                                   \
    for (int i = 0; i < 4; i++)                                                            \
        w.word[i] = (int32_t)(expression);                                                 \
    return w
static inline words load_words(const uint8_t *p)
{
    words w;
    memcpy(w.byte, p, sizeof(w.byte));
    return w;
}
static inline words all_words(int32_t x)
{
    words w;
    EACH(x);
}
static inline words masked(words w, int32_t mask)
{
    EACH(w.word[i] & mask);
}
static inline words joined(words w, words b)
{
    EACH(w.word[i] | b.word[i]);
}
static inline words shifted(words w, int by)
{
    EACH(by < 0 ? (uint32_t)w.word[i] << -by : (uint32_t)w.word[i] >> by);
}
static inline words shifted_right(words w, int by)
{
    EACH((uint32_t)w.word[i] >> by);
}
static inline words signed_byte(words w, int at)
{
    EACH(w.byte[4 * i + at]);
}
static inline words lowered(words w, int32_t by)
{
    EACH(w.word[i] - by);
}
static inline words load_u16(const uint8_t *p)
{
    words w;
    EACH(p[2 * i] | p[2 * i + 1] << 8);
}
static inline words load_u8(const uint8_t *p)
{
    words w;
    EACH(p[i]);
}
static inline words looked_up(const int8_t table[16], words w)
{
    for (int i = 0; i < 16; i++)
        w.byte[i] = table[w.byte[i]];
    return w;
}
static inline words multiplied(words w, words b)
{
    for (int i = 0; i < 8; i++)
        w.pair[i] = (int16_t)(w.pair[i] * b.pair[i]);
    return w;
}
static inline words sum_of_pairs(words w, words b)
{
    EACH(w.pair[2 * i] * b.pair[2 * i] + w.pair[2 * i + 1] * b.pair[2 * i + 1]);
}
static inline words sum_of_products(words w, words b, words c, words d)
{
    EACH(w.word[i] * b.word[i] + c.word[i] * d.word[i]);
}
#undef EACH
static inline floats all_floats(float x)
{
    return (floats){x, x, x, x};
}
static inline floats to_floats(words w)
{
    return (floats){(float)w.word[0], (float)w.word[1], (float)w.word[2], (float)w.word[3]};
}
static inline floats multiply(floats a, floats b)
{
    return a * b;
}
static inline floats add(floats a, floats b)
{
    return a + b;
}
static inline void store(float *p, floats x)
{
    memcpy(p, &x, sizeof(x));
}
static inline floats load_f16(const uint8_t *p)
{
    return (floats){tn_quant_f16(p), tn_quant_f16(p + 2), tn_quant_f16(p + 4),
                    tn_quant_f16(p + 6)};
}
static inline floats half_scales(words e)
{
    return (floats){
        tn_quant_half_scale((uint8_t)e.word[0]), tn_quant_half_scale((uint8_t)e.word[1]),
        tn_quant_half_scale((uint8_t)e.word[2]), tn_quant_half_scale((uint8_t)e.word[3])};
}
static inline words dot_signed(words sum, words w, words x)
{
    for (int i = 0; i < 16; i++)
        sum.word[i / 4] += w.byte[i] * x.byte[i];
    return sum;
}
static inline words dot(words sum, words w, words x)
{
    return dot_signed(sum, w, x);
}
static inline words signed_bytes(words w)
{
    return w;
}
#endif

#endif // KERNELS_CPU_QUANT_LANES_H
