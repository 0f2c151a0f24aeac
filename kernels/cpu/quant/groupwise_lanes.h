// SPDX-License-Identifier: MIT
// Vectors for groupwise.c: LANES floats, and LANES codes, from any byte on, as floats. The
// codes of a vector begin at a byte, as LANES times their bits is a multiple of 8. Each
// lane takes the two bytes in which its code lies, shifts and masks them.
#ifndef KERNELS_CPU_GROUPWISE_LANES_H
#define KERNELS_CPU_GROUPWISE_LANES_H

#include <string.h>
#include <tenon/ops/quant_groups.h>

// Floats e4m3 are read in units of 256: their bits are those of halves, whose exponents are
// less by 8.
#define E4M3_UNIT 256.0F

// Positions of LANES codes of a number of bits: the bytes that each lane takes, the bits by
// which it shifts them, and the mask.
struct code_lanes {
    _Alignas(64) uint8_t bytes[64];
    _Alignas(64) uint32_t shifts[16];
    uint32_t mask;
    int32_t size; // bytes of LANES codes
};

#if defined(__AVX512BW__) && defined(__AVX512F__)
#include <immintrin.h>
#define LANES 16
typedef __m512 floats;
static inline floats load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline void store(float *p, floats x)
{
    _mm512_storeu_ps(p, x);
}
static inline floats all(float x)
{
    return _mm512_set1_ps(x);
}
static inline floats multiply(floats a, floats b)
{
    return _mm512_mul_ps(a, b);
}
static inline floats add(floats a, floats b)
{
    return _mm512_add_ps(a, b);
}
static inline floats multiply_add(floats a, floats b, floats sum)
{
    return _mm512_fmadd_ps(a, b, sum);
}
static inline float total(floats x)
{
    return _mm512_reduce_add_ps(x);
}
static inline __m512i codes_of(const struct code_lanes *c, const uint8_t *p)
{
    const __m512i all =
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)p));
    const __m512i at = _mm512_shuffle_epi8(all, _mm512_load_si512(c->bytes));
    return _mm512_and_si512(_mm512_srlv_epi32(at, _mm512_load_si512(c->shifts)),
                            _mm512_set1_epi32((int32_t)c->mask));
}
static inline floats integers_at(const struct code_lanes *c, const uint8_t *p)
{
    return _mm512_cvtepi32_ps(codes_of(c, p));
}
static inline floats bytes_at(const uint8_t *p)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}
static inline floats e2m1_table(void)
{
    return _mm512_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4,
                          -6);
}
static inline floats e2m1_at(const struct code_lanes *c, const uint8_t *p)
{
    return _mm512_permutexvar_ps(codes_of(c, p), e2m1_table());
}
static inline floats e4m3_units_at(const uint8_t *p)
{
    const __m256i bytes =
        _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
    const __m256i half =
        _mm256_and_si256(_mm256_slli_epi16(bytes, 7), _mm256_set1_epi16((int16_t)0xbf80));
    return _mm512_cvtph_ps(half);
}

#elif defined(__AVX2__)
#include <immintrin.h>
#define LANES 8
typedef __m256 floats;
static inline floats load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline void store(float *p, floats x)
{
    _mm256_storeu_ps(p, x);
}
static inline floats all(float x)
{
    return _mm256_set1_ps(x);
}
static inline floats multiply(floats a, floats b)
{
    return _mm256_mul_ps(a, b);
}
static inline floats add(floats a, floats b)
{
    return _mm256_add_ps(a, b);
}
static inline floats multiply_add(floats a, floats b, floats sum)
{
    return _mm256_fmadd_ps(a, b, sum);
}
static inline float total(floats x)
{
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}
static inline __m256i codes_of(const struct code_lanes *c, const uint8_t *p)
{
    const __m256i all =
        _mm256_broadcastsi128_si256(_mm_loadl_epi64((const __m128i *)(const void *)p));
    const __m256i at = _mm256_shuffle_epi8(
        all, _mm256_load_si256((const __m256i *)(const void *)c->bytes));
    return _mm256_and_si256(
        _mm256_srlv_epi32(at, _mm256_load_si256((const __m256i *)(const void *)c->shifts)),
        _mm256_set1_epi32((int32_t)c->mask));
}
static inline floats integers_at(const struct code_lanes *c, const uint8_t *p)
{
    return _mm256_cvtepi32_ps(codes_of(c, p));
}
static inline floats bytes_at(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}
static inline floats e2m1_at(const struct code_lanes *c, const uint8_t *p)
{
    const __m256i at = codes_of(c, p);
    const __m256 table = _mm256_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6);
    const __m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(at, 3), 31);
    return _mm256_xor_ps(_mm256_permutevar8x32_ps(table, at), _mm256_castsi256_ps(sign));
}
static inline floats e4m3_units_at(const uint8_t *p)
{
    const __m128i bytes =
        _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)p));
    const __m128i half =
        _mm_and_si128(_mm_slli_epi16(bytes, 7), _mm_set1_epi16((int16_t)0xbf80));
    return _mm256_cvtph_ps(half);
}

#else
#define LANES 8
typedef struct floats {
    float at[8];
} floats;
#define EACH(value)                                                                        \
    floats out;                                                                            \
    for (int i = 0; i < 8; i++)                                                            \
        out.at[i] = (value);                                                               \
    return out
static inline floats load(const float *p)
{
    EACH(p[i]);
}
static inline void store(float *p, floats x)
{
    memcpy(p, x.at, sizeof(x.at));
}
static inline floats all(float x)
{
    EACH(x);
}
static inline floats multiply(floats a, floats b)
{
    EACH(a.at[i] * b.at[i]);
}
static inline floats add(floats a, floats b)
{
    EACH(a.at[i] + b.at[i]);
}
static inline floats multiply_add(floats a, floats b, floats sum)
{
    EACH(a.at[i] * b.at[i] + sum.at[i]);
}
static inline float total(floats x)
{
    float sum = 0;
    for (int i = 0; i < 8; i++)
        sum += x.at[i];
    return sum;
}
static inline uint32_t code_of(const struct code_lanes *c, const uint8_t *p, int i)
{
    const uint8_t *at = p + c->bytes[4 * i];
    return (uint32_t)(at[0] | at[c->bytes[4 * i + 1] != 0x80] << 8) >> c->shifts[i] &
           c->mask;
}
static inline floats integers_at(const struct code_lanes *c, const uint8_t *p)
{
    EACH((float)code_of(c, p, i));
}
static inline floats bytes_at(const uint8_t *p)
{
    EACH((float)p[i]);
}
static inline floats e2m1_at(const struct code_lanes *c, const uint8_t *p)
{
    EACH(tn_groupwise_float(TN_GROUPWISE_mxfp4, code_of(c, p, i)));
}
static inline floats e4m3_units_at(const uint8_t *p)
{
    EACH(tn_groupwise_e4m3(p[i]) / E4M3_UNIT);
}
#undef EACH
#endif

#endif // KERNELS_CPU_GROUPWISE_LANES_H
