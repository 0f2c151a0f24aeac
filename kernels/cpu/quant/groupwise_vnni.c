// SPDX-License-Identifier: MIT
// Products of groupwise codes of 2, 4 and 8 bits with x rounded to two bytes. A byte holds
// 4, 2 or 1 codes; VNNI multiplies four bytes at a time, without reordering codes.
#include "groupwise.h"
#include "cpu/variant.h"
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define ROWS CPU_GROUPWISE_ROWS
#define LANES 16
#define FETCHED 512 // words ahead that are prefetched
#define LOWEST 12   // added to doubled floats of 4 bits, so that none is negative

// Rounded elements of x for 16 words of codes: both bytes of x, for each position of a code
// in its byte; the scale of x for each lane; and for floats of 4 bits the integers with
// which the sums of both bytes begin, which undo LOWEST.
struct rounded_block {
    int8_t x[2][4][64];
    float scales[LANES];
    int32_t first[2][LANES];
};

// Bytes of a rounded_block in memory, where arrays that the codes do not use are left out.
static int64_t vnni_block_bytes(int32_t bits, bool is_float)
{
    return 64 * (2 * (8 / bits) + 1 + 2 * is_float);
}

// --- rounding ---------------------------------------------------------------------------

// 32 floats, rounded to scale * (254 * bytes[0] + bytes[1]), and the sum of the floats.
struct rounded {
    __m256i bytes[2];
    float scale, sum;
};

INLINE __m256i bytes_of(__m512i low, __m512i high)
{
    return _mm256_set_m128i(_mm512_cvtepi32_epi8(high), _mm512_cvtepi32_epi8(low));
}

// Rounds `count` floats, padded with zeros, to multiples of the greatest magnitude / 127,
// and the remainders to multiples of 1 / 254 of that unit.
INLINE struct rounded round_32(const float *x, int64_t count)
{
    const __mmask32 there = count < 32 ? (UINT32_C(1) << count) - 1 : UINT32_MAX;
    const __m512 low = _mm512_maskz_loadu_ps((__mmask16)there, x);
    const __m512 high = _mm512_maskz_loadu_ps((__mmask16)(there >> 16), x + 16);
    const uint32_t most = (uint32_t)_mm512_reduce_max_epi32(_mm512_max_epi32(
        _mm512_castps_si512(_mm512_abs_ps(low)), _mm512_castps_si512(_mm512_abs_ps(high))));
    const float scale = f32_of_bits(most) / 127, inverse = scale > 0 ? 1 / scale : 0;
    struct rounded out = {.sum = _mm512_reduce_add_ps(_mm512_add_ps(low, high))};
    if (most >= 0x7f800000 || inverse > 3e38f) { // not finite; or too small to divide by
        out.scale = most >= 0x7f800000 ? f32_of_bits(0x7fc00000) : 0;
        return out;
    }
    const __m512 by = _mm512_set1_ps(inverse), finer = _mm512_set1_ps(254);
    const __m512 x0 = _mm512_mul_ps(low, by), x1 = _mm512_mul_ps(high, by);
    const __m512i q0 = _mm512_cvtps_epi32(x0), q1 = _mm512_cvtps_epi32(x1);
    const __m512 rest0 = _mm512_sub_ps(x0, _mm512_cvtepi32_ps(q0));
    const __m512 rest1 = _mm512_sub_ps(x1, _mm512_cvtepi32_ps(q1));
    out.bytes[0] = bytes_of(q0, q1);
    out.bytes[1] = bytes_of(_mm512_cvtps_epi32(_mm512_mul_ps(rest0, finer)),
                            _mm512_cvtps_epi32(_mm512_mul_ps(rest1, finer)));
    out.scale = scale / 254;
    return out;
}

// Stores the bytes of 32 elements, number `at` of a block, in the order in which codes of
// `bits` bits are unpacked: grouped by the position of a code in its byte.
INLINE void put_bytes(int32_t bits, __m256i bytes, int64_t at, int8_t (*out)[64])
{
    if (bits == 8) {
        _mm256_storeu_si256((__m256i *)(void *)(out[0] + 32 * at), bytes);
    } else if (bits == 4) {
        const __m256i pairs = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
        const __m256i apart =
            _mm256_permute4x64_epi64(_mm256_shuffle_epi8(bytes, pairs), 0xd8);
        _mm_storeu_si128((__m128i *)(void *)(out[0] + 16 * at),
                         _mm256_castsi256_si128(apart));
        _mm_storeu_si128((__m128i *)(void *)(out[1] + 16 * at),
                         _mm256_extracti128_si256(apart, 1));
    } else {
        const __m256i fours = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
        int64_t apart[4];
        _mm256_storeu_si256(
            (__m256i *)(void *)apart,
            _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(bytes, fours),
                                        _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
        for (int part = 0; part < 4; part++)
            memcpy(out[part] + 8 * at, &apart[part], 8);
    }
}

// Stores the integers with which sums of floats of 4 bits begin; each lane has 8 elements.
INLINE void put_first(__m256i bytes, int64_t at, int32_t *out)
{
    const __m256i fours =
        _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(LOWEST), bytes);
    int32_t sums[8];
    _mm256_storeu_si256((__m256i *)(void *)sums, fours);
    for (int lane = 0; lane < 4; lane++)
        out[4 * at + lane] = -(sums[2 * lane] + sums[2 * lane + 1]);
}

INLINE void round_row(int32_t bits, const struct cpu_groupwise *w, const float *x,
                      float *out)
{
    const int32_t parts = 8 / bits, each = 32 / bits; // codes of a byte; codes of a word
    const int64_t padded = cpu_groupwise_padded(w->k);
    const bool is_affine = w->mode == TN_GROUPWISE_affine;
    uint8_t *to = (uint8_t *)out;
    float *sums = out + padded;
    memset(sums, 0,
           (size_t)(cpu_groupwise_prepared(w->k, w->group) - padded) * sizeof(float));
    for (int64_t at = 0; at < w->k;
         at += LANES * each, to += vnni_block_bytes(bits, !is_affine)) {
        struct rounded_block block = {.scales = {0}};
        for (int64_t i = 0; i < LANES * each / 32 && at + 32 * i < w->k; i++) {
            const int64_t from = at + 32 * i, lanes = 32 / each;
            const struct rounded r = round_32(x + from, w->k - from);
            for (int b = 0; b < 2; b++)
                put_bytes(bits, r.bytes[b], i, block.x[b]);
            for (int64_t lane = 0; lane < lanes; lane++)
                block.scales[lanes * i + lane] = r.scale;
            if (is_affine)
                sums[from / w->group] += r.sum;
            for (int b = 0; b < 2 && !is_affine; b++)
                put_first(r.bytes[b], i, block.first[b]);
        }
        for (int b = 0; b < 2; b++)
            memcpy(to + 64 * parts * b, block.x[b], (size_t)(64 * parts));
        memcpy(to + 128 * parts, block.scales, 64);
        if (!is_affine)
            memcpy(to + 128 * parts + 64, block.first, 128);
    }
}

static void groupwise_round(const struct cpu_groupwise *w, const float *x, float *out)
{
    if (w->bits == 2)
        round_row(2, w, x, out);
    else if (w->bits == 4)
        round_row(4, w, x, out);
    else
        round_row(8, w, x, out);
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

// Multiplies `columns` adjacent rows of codes by `rows` rows of x, of which at least one is
// 1. Sums are [row of x][row of codes].
INLINE void dot_block(int32_t bits, bool is_float, int rows, int columns,
                      const struct cpu_groupwise *w, const struct cpu_groupwise_row *row,
                      const uint8_t *x, int64_t x_step, __m512 *sums)
{
    const int32_t parts = 8 / bits, each = 32 / bits;
    const int32_t shift = __builtin_ctz((unsigned)(w->group / each)); // log2(words a group)
    const int64_t words = w->k / each, bytes = vnni_block_bytes(bits, is_float),
                  step = w->k / w->group;
    const __m512i lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i group = _mm512_srl_epi32(lane, _mm_cvtsi32_si128(shift));
    const __m512 finer = _mm512_set1_ps(254);
    const __mmask16 whole = (__mmask16)((1u << (((LANES - 1) >> shift) + 1)) - 1);
    for (int64_t at = 0; at < words; at += LANES, x += bytes) {
        __mmask16 mask = 0xffff, groups = whole;
        if (__builtin_expect(words - at < LANES, 0)) {
            mask = (__mmask16)((1u << (words - at)) - 1);
            groups = (__mmask16)((1u << (((words - at - 1) >> shift) + 1)) - 1);
        }
        for (int column = 0; column < columns; column++) {
            const uint32_t *from_words = row->words + column * words + at;
            __builtin_prefetch(from_words + FETCHED);
            const __m512i word = _mm512_maskz_loadu_epi32(mask, from_words);
            const __m512 scale = _mm512_permutexvar_ps(
                group,
                _mm512_maskz_loadu_ps(groups, row->scales + column * step + (at >> shift)));
            __m512i code[4];
            for (int p = 0; p < parts; p++)
                code[p] = codes_of(bits, is_float, word, p);
            for (int t = 0; t < rows; t++) {
                const uint8_t *from = x + t * x_step;
                const uint8_t *first = from + 128 * parts + 64;
                __m512i high =
                    is_float ? _mm512_loadu_si512(first) : _mm512_setzero_si512();
                __m512i low =
                    is_float ? _mm512_loadu_si512(first + 64) : _mm512_setzero_si512();
                for (int p = 0; p < parts; p++) {
                    high = _mm512_dpbusd_epi32(high, code[p],
                                               _mm512_loadu_si512(from + 64 * p));
                    low = _mm512_dpbusd_epi32(low, code[p],
                                              _mm512_loadu_si512(from + 64 * (parts + p)));
                }
                const __m512 sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), finer,
                                                   _mm512_cvtepi32_ps(low));
                const __m512 product =
                    _mm512_mul_ps(sum, _mm512_loadu_ps(from + 128 * parts));
                sums[t + column] = _mm512_fmadd_ps(product, scale, sums[t + column]);
            }
        }
    }
}

// sum + biases times sums of groups of x.
INLINE __m512 biased(int64_t groups, const float *biases, const float *of_x, __m512 sum)
{
    for (int64_t g = 0; g < groups; g += LANES) {
        const int64_t left = groups - g < LANES ? groups - g : LANES;
        const __mmask16 mask = (__mmask16)((1u << left) - 1);
        sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, biases + g),
                              _mm512_maskz_loadu_ps(mask, of_x + g), sum);
    }
    return sum;
}

// The totals of 4 vectors.
INLINE __m128 totals(const __m512 *sums)
{
    const __m512 low = _mm512_add_ps(_mm512_unpacklo_ps(sums[0], sums[1]),
                                     _mm512_unpackhi_ps(sums[0], sums[1]));
    const __m512 high = _mm512_add_ps(_mm512_unpacklo_ps(sums[2], sums[3]),
                                      _mm512_unpackhi_ps(sums[2], sums[3]));
    const __m512 all = _mm512_add_ps(_mm512_shuffle_ps(low, high, 0x44),
                                     _mm512_shuffle_ps(low, high, 0xee));
    const __m256 half =
        _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

// Multiplies one row of x by 4 rows of codes, or 4 rows by one, or one by one.
INLINE void dot_some(int32_t bits, bool is_float, int rows, int columns,
                     const struct cpu_groupwise *w, const struct cpu_groupwise_row *row,
                     const float *x, float *out, int64_t out_row)
{
    const int64_t step = cpu_groupwise_prepared(w->k, w->group), groups = w->k / w->group;
    const int count = rows * columns;
    __m512 sums[4];
    float found[4];
    for (int i = 0; i < 4; i++)
        sums[i] = _mm512_setzero_ps();
    dot_block(bits, is_float, rows, columns, w, row, (const uint8_t *)x,
              step * (int64_t)sizeof(float), sums);
    for (int i = 0; i < count && !is_float; i++)
        sums[i] =
            biased(groups, row->biases + (columns > 1 ? i * groups : 0),
                   x + (rows > 1 ? i * step : 0) + cpu_groupwise_padded(w->k), sums[i]);
    if (count == 1)
        found[0] = _mm512_reduce_add_ps(sums[0]);
    else
        _mm_storeu_ps(found, totals(sums));
    for (int i = 0; i < count; i++) // undoes the doubling of floats of 4 bits
        out[columns > 1 ? i : i * out_row] = is_float ? found[i] * 0.5f : found[i];
}

INLINE void dot_columns(int32_t bits, bool is_float, int rows,
                        const struct cpu_groupwise *w, struct cpu_groupwise_row row,
                        int64_t columns, const float *x, float *out, int64_t out_row)
{
    const int64_t groups = w->k / w->group;
    for (int64_t column = 0; column < columns;) {
        const int64_t count = rows == 1 && columns - column >= 4 ? 4 : 1;
        if (rows == 1 && count == 4)
            dot_some(bits, is_float, 1, 4, w, &row, x, out + column, out_row);
        else
            dot_some(bits, is_float, rows, 1, w, &row, x, out + column, out_row);
        row.words += count * groups * (w->group * w->bits / 32);
        row.scales += count * groups;
        if (!is_float)
            row.biases += count * groups;
        column += count;
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
