// SPDX-License-Identifier: MIT
// Rows of groupwise codes: decoding, and products with rows of floats. A group's codes
// times x are summed, and the sum multiplied by the group's scale; its bias multiplies the
// sum of x.
#include "groupwise.h"
#include "cpu/instruction_sets.h"
#include "cpu/variant.h"
#include "groupwise_lanes.h"

#define INLINE static inline __attribute__((always_inline))
#define ROWS CPU_GROUPWISE_ROWS
#define FETCHED 2048 // bytes ahead that are prefetched

// Kinds of codes. PACKED: codes of 3 to 6 bits, of which 16 lanes have 8 or 4 adjacent ones
// each, and one of each lane is read at a time.
enum kind { INTEGERS, BYTES, E2M1, E4M3, PACKED3, PACKED4, PACKED5, PACKED6 };

static enum kind groupwise_kind_of(const struct cpu_groupwise *w)
{
    if (w->mode == TN_GROUPWISE_mxfp8)
        return E4M3;
    return w->mode != TN_GROUPWISE_affine ? E2M1 : w->bits == 8 ? BYTES : INTEGERS;
}

static void codes_init(struct code_lanes *c, int32_t bits)
{
    memset(c->bytes, 0x80, sizeof(c->bytes));
    memset(c->shifts, 0, sizeof(c->shifts));
    c->mask = (UINT32_C(1) << bits) - 1;
    c->size = LANES * bits / 8;
    for (int32_t i = 0; i < LANES; i++) {
        const int32_t at = i * bits / 8;
        c->bytes[4 * i] = (uint8_t)at;
        if (at + 1 < c->size)
            c->bytes[4 * i + 1] = (uint8_t)(at + 1);
        c->shifts[i] = (uint32_t)(i * bits % 8);
    }
}

INLINE floats floats_at(enum kind kind, const struct code_lanes *c, const uint8_t *p)
{
    return kind == BYTES  ? bytes_at(p)
           : kind == E4M3 ? e4m3_units_at(p)
           : kind == E2M1 ? e2m1_at(c, p)
                          : integers_at(c, p);
}

// Reads the codes of a row by groups. Vectors are read beyond the end of a group, so the
// last group is copied.
struct group_reader {
    const uint8_t *next;
    int64_t bytes, left; // bytes of a group; groups that are left
    uint8_t last[128 + 16];
};

static struct group_reader groupwise_reader_of(const struct cpu_groupwise *w,
                                               const uint32_t *words)
{
    return (struct group_reader){.next = (const uint8_t *)words,
                                 .bytes = w->group * w->bits / 8,
                                 .left = w->k / w->group};
}

INLINE const uint8_t *next_group(struct group_reader *r)
{
    const uint8_t *p = r->next;
    __builtin_prefetch(p + FETCHED);
    r->next += r->bytes;
    if (--r->left > 0)
        return p;
    memcpy(r->last, p, (size_t)r->bytes);
    return r->last;
}

// --- values -----------------------------------------------------------------------------

INLINE void decode_row(enum kind kind, const struct cpu_groupwise *w,
                       const struct cpu_groupwise_row *row, float *out)
{
    struct code_lanes c;
    struct group_reader r = groupwise_reader_of(w, row->words);
    codes_init(&c, w->bits);
    for (int64_t g = 0; g < w->k / w->group; g++) {
        const uint8_t *p = next_group(&r);
        const floats scale = all(row->scales[g]);
        const floats bias = all(kind <= BYTES ? row->biases[g] : 0);
        for (int32_t i = 0; i < w->group; i += LANES, p += c.size, out += LANES) {
            const floats at = floats_at(kind, &c, p);
            const floats value = kind == E4M3 ? multiply(at, all(E4M3_UNIT)) : at;
            const floats product = multiply(value, scale);
            store(out, kind <= BYTES ? add(product, bias) : product);
        }
    }
}

static void groupwise_decode(const struct cpu_groupwise *w,
                             const struct cpu_groupwise_row *row, float *out)
{
    switch (groupwise_kind_of(w)) {
    case INTEGERS:
        decode_row(INTEGERS, w, row, out);
        break;
    case BYTES:
        decode_row(BYTES, w, row, out);
        break;
    case E2M1:
        decode_row(E2M1, w, row, out);
        break;
    default:
        decode_row(E4M3, w, row, out);
    }
}

// --- products ---------------------------------------------------------------------------

// Whether codes are read as PACKED. Then prepared rows of x are reordered: element
// each * i + s of each 16 * each elements is at 16 * s + i, where a lane has `each` codes.
static bool is_packed(const struct cpu_groupwise *w)
{
    return LANES == 16 && w->bits >= 3 && w->bits <= 6 && w->group >= 16;
}

static int32_t codes_a_lane(int32_t bits)
{
    return bits <= 4 ? 8 : 4;
}

static void groupwise_prepare(const struct cpu_groupwise *w, const float *x, float *out)
{
    const int64_t padded = cpu_groupwise_padded(w->k), groups = w->k / w->group;
    float *sums = out + padded;
    if (is_packed(w)) {
        const int64_t each = codes_a_lane(w->bits), block = 16 * each;
        for (int64_t i = 0; i < padded; i++) {
            const int64_t from = i / block * block + i % 16 * each + i / 16 % each;
            out[i] = from < w->k ? x[from] : 0;
        }
    } else {
        memcpy(out, x, (size_t)w->k * sizeof(float));
    }
    memset(sums, 0,
           (size_t)(cpu_groupwise_prepared(w->k, w->group) - padded) * sizeof(float));
    for (int64_t g = 0; g < groups; g++)
        for (int64_t i = 0; i < w->group; i++)
            sums[g] += x[g * w->group + i];
}

// The total of `sum`, plus biases times sums of groups of x.
INLINE float biased(const struct cpu_groupwise *w, const struct cpu_groupwise_row *row,
                    const float *x, floats sum)
{
    const int64_t groups = w->k / w->group;
    const float *sums = x + cpu_groupwise_padded(w->k);
    float rest = 0;
    int64_t g = 0;
    if (w->mode != TN_GROUPWISE_affine)
        return total(sum);
    for (; g + LANES <= groups; g += LANES)
        sum = multiply_add(load(row->biases + g), load(sums + g), sum);
    for (; g < groups; g++)
        rest += row->biases[g] * sums[g];
    return total(sum) + rest;
}

INLINE void dot_rows(enum kind kind, int rows, const struct cpu_groupwise *w,
                     const struct code_lanes *c, const struct cpu_groupwise_row *row,
                     const float *x, floats *sums)
{
    const int64_t step = cpu_groupwise_prepared(w->k, w->group);
    struct group_reader r = groupwise_reader_of(w, row->words);
    for (int64_t g = 0; g < w->k / w->group; g++) {
        const uint8_t *p = next_group(&r);
        floats parts[ROWS];
        for (int t = 0; t < rows; t++)
            parts[t] = all(0);
        for (int32_t i = 0; i < w->group; i += LANES, p += c->size) {
            const floats at = floats_at(kind, c, p);
            for (int t = 0; t < rows; t++)
                parts[t] =
                    multiply_add(at, load(x + t * step + g * w->group + i), parts[t]);
        }
        for (int t = 0; t < rows; t++)
            sums[t] = multiply_add(all(row->scales[g]), parts[t], sums[t]);
    }
}

#if defined(__AVX512BW__) && defined(__AVX512F__)
// Positions of packed codes: the words that each 16 bytes of lanes take, the bytes of those
// that each lane takes, and the bits by which it shifts them.
struct packed_lanes {
    _Alignas(64) uint32_t words[16];
    _Alignas(64) uint8_t bytes[64];
    _Alignas(64) uint32_t shifts[16];
};

static void packed_init(struct packed_lanes *lanes, int32_t bits)
{
    const int32_t lane_bits = codes_a_lane(bits) * bits;
    memset(lanes->bytes, 0x80, sizeof(lanes->bytes));
    for (int32_t i = 0; i < 16; i++) {
        const int32_t first = i / 4 * 4 * lane_bits / 32, at = i * lane_bits - 32 * first;
        lanes->words[i] = (uint32_t)(first + i % 4);
        lanes->shifts[i] = (uint32_t)(at % 8);
        for (int32_t b = 0; b < (lane_bits + 7) / 8; b++)
            lanes->bytes[4 * i + b] = (uint8_t)(at / 8 + b);
    }
}

// 16 lanes of packed codes; bits above these may be set.
INLINE __m512i packed_at(int32_t bits, const struct packed_lanes *lanes, __mmask16 mask,
                         const uint32_t *words)
{
    const __m512i all = _mm512_maskz_loadu_epi32(mask, words);
    if (bits == 4)
        return all;
    const __m512i near = _mm512_permutexvar_epi32(_mm512_load_si512(lanes->words), all);
    const __m512i at = _mm512_shuffle_epi8(near, _mm512_load_si512(lanes->bytes));
    return bits == 5 ? _mm512_srlv_epi32(at, _mm512_load_si512(lanes->shifts)) : at;
}

// The values of the codes in the lowest bits of lanes: by tables, which take 4 or 5 bits,
// or converted.
INLINE floats packed_values(int32_t bits, __m512i code, floats low, floats high)
{
    if (bits == 6)
        return _mm512_cvtepi32_ps(_mm512_and_si512(code, _mm512_set1_epi32(63)));
    return bits == 5 ? _mm512_permutex2var_ps(low, code, high)
                     : _mm512_permutexvar_ps(code, low);
}

// The product for packed codes. Lane i has the scale of the group of its codes.
INLINE void dot_packed(int32_t bits, int rows, const struct cpu_groupwise *w,
                       const struct packed_lanes *lanes,
                       const struct cpu_groupwise_row *row, const float *x, floats *sums)
{
    const int32_t each = bits <= 4 ? 8 : 4, block = 16 * each;
    const int64_t step = cpu_groupwise_prepared(w->k, w->group);
    const int32_t shift = __builtin_ctz((unsigned)(w->group / each)); // log2(lanes a group)
    const __m512 digits =
        _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512 high = _mm512_add_ps(digits, _mm512_set1_ps(16));
    const __m512 low = w->mode != TN_GROUPWISE_affine ? e2m1_table()
                       : bits == 3 ? _mm512_shuffle_f32x4(digits, digits, 0x44)
                                   : digits;
    const __m512i lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i group = _mm512_srl_epi32(lane, _mm_cvtsi32_si128(shift));
    const uint32_t *words = row->words;
    const int32_t group_shift = __builtin_ctz((unsigned)w->group);
    const __mmask16 whole = (__mmask16)((1u << ((15 >> shift) + 1)) - 1);
    for (int64_t at = 0; at < w->k; at += block, x += block, words += block * bits / 32) {
        __mmask16 mask = (__mmask16)((1u << block * bits / 32) - 1), groups = whole;
        if (__builtin_expect(w->k - at < block, 0)) {
            const int64_t left = w->k - at;
            mask = (__mmask16)((1u << left * bits / 32) - 1);
            groups = (__mmask16)((1u << (((left / each - 1) >> shift) + 1)) - 1);
        }
        __builtin_prefetch((const uint8_t *)words + FETCHED);
        __m512i code = packed_at(bits, lanes, mask, words);
        const floats scale = _mm512_permutexvar_ps(
            group, _mm512_maskz_loadu_ps(groups, row->scales + (at >> group_shift)));
        floats parts[ROWS];
        for (int s = 0; s < each; s++) {
            const floats value = packed_values(
                bits, _mm512_srli_epi32(code, (unsigned)(bits * s)), low, high);
            for (int t = 0; t < rows; t++) {
                const floats from = load(x + t * step + 16 * s);
                parts[t] =
                    s ? multiply_add(value, from, parts[t]) : _mm512_mul_ps(value, from);
            }
        }
        for (int t = 0; t < rows; t++)
            sums[t] = multiply_add(scale, parts[t], sums[t]);
    }
}
#endif

// Computes columns one by one, with codes of one kind.
INLINE void dot_columns(enum kind kind, int rows, const struct cpu_groupwise *w,
                        struct cpu_groupwise_row row, int64_t columns, const float *x,
                        float *out, int64_t out_row)
{
    const int64_t step = cpu_groupwise_prepared(w->k, w->group), groups = w->k / w->group;
    struct code_lanes c;
#if LANES == 16
    struct packed_lanes lanes;
    packed_init(&lanes, w->bits);
#endif
    codes_init(&c, w->bits);
    for (int64_t column = 0; column < columns; column++) {
        floats sums[ROWS];
        for (int t = 0; t < rows; t++)
            sums[t] = all(0);
#if LANES == 16
        if (kind >= PACKED3)
            dot_packed(3 + (int32_t)(kind - PACKED3), rows, w, &lanes, &row, x, sums);
#endif
        if (kind < PACKED3)
            dot_rows(kind, rows, w, &c, &row, x, sums);
        for (int t = 0; t < rows; t++)
            out[t * out_row + column] =
                biased(w, &row, x + t * step, sums[t]) * (kind == E4M3 ? E4M3_UNIT : 1);
        row.words += groups * (w->group * w->bits / 32);
        row.scales += groups;
        if (w->mode == TN_GROUPWISE_affine)
            row.biases += groups;
    }
}

#define DOT_CASE(kind, rows)                                                               \
    case kind:                                                                             \
        dot_columns(kind, rows, w, *row, columns, x, out, out_row);                        \
        break;
#define DOT(rows)                                                                          \
    static void dot_##rows(const struct cpu_groupwise *w,                                  \
                           const struct cpu_groupwise_row *row, int64_t columns,           \
                           const float *x, float *out, int64_t out_row)                    \
    {                                                                                      \
        switch (is_packed(w) ? PACKED3 + (enum kind)(w->bits - 3)                          \
                             : groupwise_kind_of(w)) {                                     \
            DOT_CASE(PACKED3, rows)                                                        \
            DOT_CASE(PACKED4, rows)                                                        \
            DOT_CASE(PACKED5, rows)                                                        \
            DOT_CASE(PACKED6, rows)                                                        \
            DOT_CASE(INTEGERS, rows)                                                       \
            DOT_CASE(BYTES, rows)                                                          \
            DOT_CASE(E2M1, rows)                                                           \
            DOT_CASE(E4M3, rows)                                                           \
        }                                                                                  \
    }
DOT(1)
DOT(4)

static void groupwise_dot(const struct cpu_groupwise *w,
                          const struct cpu_groupwise_row *first, int64_t columns,
                          const float *x, int64_t count, float *out, int64_t out_row)
{
    const int64_t step = cpu_groupwise_prepared(w->k, w->group);
    if (count == ROWS) {
        dot_4(w, first, columns, x, out, out_row);
        return;
    }
    for (int64_t t = 0; t < count; t++)
        dot_1(w, first, columns, x + t * step, out + t * out_row, out_row);
}

#define TEXT_(variant) #variant
#define TEXT(variant) TEXT_(variant)

extern const struct cpu_groupwise_kernels V(cpu_groupwise_kernels);
const struct cpu_groupwise_kernels V(cpu_groupwise_kernels) = {
    .name = TEXT(CPU_VARIANT),
    .needs = CPU_VARIANT_NEEDS,
    .decode = groupwise_decode,
    .prepare = groupwise_prepare,
    .dot = groupwise_dot,
};
