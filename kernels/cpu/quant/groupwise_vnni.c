// SPDX-License-Identifier: MIT
// Products of groupwise codes of 2, 4 and 8 bits with x rounded to bytes: words hold 4, 2
// or 1 codes a byte, which VNNI multiplies four at a time where they lie.
#include "groupwise.h"
#include "cpu/variant.h"
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define ROWS CPU_GROUPWISE_ROWS
#define LANES 16
#define FETCHED 512 // words ahead that are asked for
#define LOWEST 12   // added to doubled floats of 4 bits, so that all are positive

// What goes with 16 words of codes: x's bytes for each code of a byte; scales of x by lane;
// and with floats of 4 bits the integers with which sums begin.
struct rounded_block {
    int8_t x[4][64];
    float scales[LANES];
    int32_t first[LANES];
};

// Bytes of a block in memory: those of as many codes as a byte has.
static int64_t block_bytes(int32_t bits)
{
    return 64 * (8 / bits + 2);
}

// --- rounding ---------------------------------------------------------------------------

// 32 floats, of which `count` are there, to multiples of their greatest magnitude / 127.
static float round_32(const float *x, int64_t count, int8_t *out)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t magnitude = bits_of_f32(x[i]) & 0x7fffffff;
        most = magnitude > most ? magnitude : most;
    }
    const float scale = f32_of_bits(most) / 127, inverse = scale > 0 ? 1 / scale : 0;
    memset(out, 0, 32);
    if (most >= 0x7f800000 || inverse > 3e38f) // not finite; or too small to divide by
        return most >= 0x7f800000 ? f32_of_bits(0x7fc00000) : 0;
    for (int64_t i = 0; i < count; i++)
        out[i] = (int8_t)(x[i] * inverse + 12582912.0f - 12582912.0f); // to nearest
    return scale;
}

static void groupwise_round(const struct cpu_groupwise *w, const float *x, float *out)
{
    const int32_t parts = 8 / w->bits, each = 32 / w->bits; // codes of a byte, of a word
    const int64_t padded = cpu_groupwise_padded(w->k);
    uint8_t *to = (uint8_t *)out;
    float *sums = out + padded;
    for (int64_t at = 0; at < w->k; at += LANES * each, to += block_bytes(w->bits)) {
        int8_t rounded[256];
        float scales[8] = {0};
        struct rounded_block block = {.first = {0}};
        for (int64_t i = 0; i < LANES * each; i += 32) {
            const int64_t left = w->k - at - i;
            scales[i / 32] = round_32(x + at + i,
                                      left < 0    ? 0
                                      : left < 32 ? left
                                                  : 32,
                                      rounded + i);
        }
        for (int32_t i = 0; i < LANES * each; i++) {
            block.x[i % parts][i / parts] = rounded[i];
            block.first[i / each] -= LOWEST * rounded[i];
        }
        for (int32_t lane = 0; lane < LANES; lane++)
            block.scales[lane] = scales[lane * each / 32];
        memcpy(to, block.x, (size_t)(64 * parts));
        memcpy(to + 64 * parts, block.scales, 64);
        memcpy(to + 64 * parts + 64, block.first, 64);
    }
    memset(sums, 0,
           (size_t)(cpu_groupwise_prepared(w->k, w->group) - padded) * sizeof(float));
    for (int64_t i = 0; i < w->k; i++)
        sums[i / w->group] += x[i];
}

// --- products ---------------------------------------------------------------------------

INLINE __m512i codes_of(int32_t bits, bool is_float, __m512i words, int part)
{
    const __m512i bytes =
        bits == 8 ? words
                  : _mm512_and_si512(_mm512_srli_epi16(words, (unsigned)(bits * part)),
                                     _mm512_set1_epi8((char)((1 << bits) - 1)));
    const __m128i table =
        _mm_setr_epi8(LOWEST, LOWEST + 1, LOWEST + 2, LOWEST + 3, LOWEST + 4, LOWEST + 6,
                      LOWEST + 8, LOWEST + 12, LOWEST, LOWEST - 1, LOWEST - 2, LOWEST - 3,
                      LOWEST - 4, LOWEST - 6, LOWEST - 8, LOWEST - 12);
    return is_float ? _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), bytes) : bytes;
}

// One row of codes.
INLINE void dot_row(int32_t bits, bool is_float, int rows, const struct cpu_groupwise *w,
                    const struct cpu_groupwise_row *row, const uint8_t *x, int64_t step,
                    __m512 *sums)
{
    const int32_t parts = 8 / bits, each = 32 / bits;
    const int32_t shift = __builtin_ctz((unsigned)(w->group / each)); // words of a group
    const int64_t words = w->k / each, bytes = 64 * (parts + 2);
    const __m512i lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i group = _mm512_srl_epi32(lane, _mm_cvtsi32_si128(shift));
    const __mmask16 whole = (__mmask16)((1u << (((LANES - 1) >> shift) + 1)) - 1);
    for (int64_t at = 0; at < words; at += LANES, x += bytes) {
        __mmask16 mask = 0xffff, groups = whole;
        if (__builtin_expect(words - at < LANES, 0)) {
            mask = (__mmask16)((1u << (words - at)) - 1);
            groups = (__mmask16)((1u << (((words - at - 1) >> shift) + 1)) - 1);
        }
        __builtin_prefetch(row->words + at + FETCHED);
        const __m512i word = _mm512_maskz_loadu_epi32(mask, row->words + at);
        const __m512 scale = _mm512_permutexvar_ps(
            group, _mm512_maskz_loadu_ps(groups, row->scales + (at >> shift)));
        __m512i code[4];
        for (int p = 0; p < parts; p++)
            code[p] = codes_of(bits, is_float, word, p);
        for (int t = 0; t < rows; t++) {
            const uint8_t *from = x + t * step;
            __m512i sum = is_float ? _mm512_loadu_si512(from + 64 * parts + 64)
                                   : _mm512_setzero_si512();
            for (int p = 0; p < parts; p++)
                sum = _mm512_dpbusd_epi32(sum, code[p], _mm512_loadu_si512(from + 64 * p));
            const __m512 product =
                _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(from + 64 * parts));
            sums[t] = _mm512_fmadd_ps(product, scale, sums[t]);
        }
    }
}

// The sum of a row, with biases times sums of groups of x.
INLINE float biased(const struct cpu_groupwise *w, const struct cpu_groupwise_row *row,
                    const float *of_x, __m512 sum)
{
    const int64_t groups = w->k / w->group;
    if (w->mode != TN_GROUPWISE_affine)
        return _mm512_reduce_add_ps(sum) * 0.5f; // floats were doubled
    for (int64_t g = 0; g < groups; g += LANES) {
        const int64_t left = groups - g < LANES ? groups - g : LANES;
        const __mmask16 mask = (__mmask16)((1u << left) - 1);
        sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, row->biases + g),
                              _mm512_maskz_loadu_ps(mask, of_x + g), sum);
    }
    return _mm512_reduce_add_ps(sum);
}

INLINE void dot_columns(int32_t bits, bool is_float, int rows,
                        const struct cpu_groupwise *w, struct cpu_groupwise_row row,
                        int64_t columns, const float *x, float *out, int64_t out_row)
{
    const int64_t step = cpu_groupwise_prepared(w->k, w->group), groups = w->k / w->group;
    for (int64_t column = 0; column < columns; column++) {
        __m512 sums[ROWS];
        for (int t = 0; t < rows; t++)
            sums[t] = _mm512_setzero_ps();
        dot_row(bits, is_float, rows, w, &row, (const uint8_t *)x,
                step * (int64_t)sizeof(float), sums);
        for (int t = 0; t < rows; t++)
            out[t * out_row + column] =
                biased(w, &row, x + t * step + cpu_groupwise_padded(w->k), sums[t]);
        row.words += groups * (w->group * w->bits / 32);
        row.scales += groups;
        if (!is_float)
            row.biases += groups;
    }
}

INLINE void dot_of(int rows, const struct cpu_groupwise *w,
                   const struct cpu_groupwise_row *first, int64_t columns, const float *x,
                   float *out, int64_t out_row)
{
    if (w->mode != TN_GROUPWISE_affine)
        dot_columns(4, true, rows, w, *first, columns, x, out, out_row);
    else if (w->bits == 2)
        dot_columns(2, false, rows, w, *first, columns, x, out, out_row);
    else if (w->bits == 4)
        dot_columns(4, false, rows, w, *first, columns, x, out, out_row);
    else
        dot_columns(8, false, rows, w, *first, columns, x, out, out_row);
}

static void groupwise_dot_rounded(const struct cpu_groupwise *w,
                                  const struct cpu_groupwise_row *first, int64_t columns,
                                  const float *x, int64_t count, float *out,
                                  int64_t out_row)
{
    const int64_t step = cpu_groupwise_prepared(w->k, w->group);
    if (count == ROWS) {
        dot_of(ROWS, w, first, columns, x, out, out_row);
        return;
    }
    for (int64_t t = 0; t < count; t++)
        dot_of(1, w, first, columns, x + t * step, out + t * out_row, out_row);
}

extern const struct cpu_groupwise_rounding cpu_groupwise_vnni;
const struct cpu_groupwise_rounding cpu_groupwise_vnni = {
    .prepare = groupwise_round,
    .dot = groupwise_dot_rounded,
};
