// SPDX-License-Identifier: MIT
// Products with quantised weights: 16 rows of weights in lanes, and up to 8 rows of x that
// the unpacked bits of a block are used for.
#include "../quant.h"
#include "variant.h"
#include "quant_lanes.h"

#define TILE 8            // rows of x at a time
#define ROUND 12582912.0f // 1.5 * 2^23: floats from here on are integers

static const struct {
    int64_t elements, bytes;
} blocks_of[] = {
#define SIZES(name, plain, head)                                                           \
    [CPU_QUANT_##name] = {TN_QUANT_BLOCK_##plain, TN_QUANT_BYTES_##plain},
    TN_QUANT_PACKED_FORMATS(SIZES)
#undef SIZES
};

// --- rounding ---------------------------------------------------------------------------

// The word of a block of 32 that a format needs: an integer with which the sum of products
// begins, a float that goes with the minimum, or the sums of both halves.
static void round_extra(int32_t format, const int32_t sums[2], float scale, uint8_t *out)
{
    float term = scale * (float)(sums[0] + sums[1]);
    int32_t first =
        -(format == CPU_QUANT_q4_0_r16 ? 8 : BYTES_OFFSET) * (sums[0] + sums[1]);
    int16_t halves[2] = {(int16_t)sums[0], (int16_t)sums[1]};
    const void *from = &term;
    if (format == CPU_QUANT_q4_0_r16 || format == CPU_QUANT_q8_0_r16)
        from = &first;
    else if (format == CPU_QUANT_q6_k_r16)
        from = halves;
    memcpy(out, from, 4);
}

static float round_block(const float *x, int8_t *out, int32_t out_sums[2])
{
    uint32_t most = 0;
    for (int i = 0; i < 32; i++) {
        uint32_t magnitude = bits_of_f32(x[i]) & 0x7fffffff;
        most = magnitude > most ? magnitude : most;
    }
    float scale = f32_of_bits(most) / 127;
    float inverse = scale > 0 ? 1 / scale : 0;
    out_sums[0] = out_sums[1] = 0;
    if (most >= 0x7f800000 || inverse > 3e38f) { // not finite; or too small to divide by
        memset(out, 0, 32);
        return most >= 0x7f800000 ? f32_of_bits(0x7fc00000) : 0;
    }
    for (int half = 0; half < 2; half++)
        for (int i = 16 * half; i < 16 * half + 16; i++) {
            int32_t q =
                (int32_t)(x[i] * inverse + ROUND - ROUND); // to nearest, ties to even
            out[i] = (int8_t)q;
            out_sums[half] += q;
        }
    return scale;
}

static void quant_round(int32_t format, const float *x, int64_t k, uint8_t *out)
{
    int64_t blocks = k / 32;
    uint8_t *scales = out + k, *extra = scales + 4 * blocks;
    for (int64_t b = 0; b < blocks; b++) {
        int32_t sums[2];
        float scale = round_block(x + b * 32, (int8_t *)out + b * 32, sums);
        memcpy(scales + 4 * b, &scale, sizeof(scale));
        round_extra(format, sums, scale, extra + 4 * b);
    }
}

// --- products: blocks of 32 -------------------------------------------------------------

// A row of x in a block of 32: its bytes, its scale, and the format's word.
struct part {
    const uint8_t *q, *extra;
    float scale;
};

static inline struct part part_of(const struct cpu_quant_product *p, const uint8_t *x,
                                  int t, int64_t b)
{
    const uint8_t *row = x + t * cpu_quant_row_bytes(p->k), *scale = row + p->k + 4 * b;
    return (struct part){row + 32 * b, scale + p->k / 32 * 4,
                         f32_of_bits((uint32_t)word_at(scale))};
}

static inline float extra_float(const struct part *x)
{
    return f32_of_bits((uint32_t)word_at(x->extra));
}

// sum + the products of `count` words of four bytes.
static inline words dots(words sum, const words *w, const uint8_t *q, int count)
{
    for (int i = 0; i < count; i++)
        sum = dot(sum, w[i], all_words(word_at(q + 4 * i)));
    return sum;
}

static inline words low_bits(words w)
{
    return masked(w, 0x0f0f0f0f);
}

#define INLINE static inline __attribute__((always_inline))
// Adds the products of a block to the sums of `tile` rows of x. `w` are 16 blocks, of whose
// rows those from `lane` on are taken; b is the number of the block of 32 in x. `format`
// and `tile` are constants where these are inlined.
INLINE void add_32(const struct cpu_quant_product *p, int32_t format, int tile,
                   const uint8_t *w, int lane, const uint8_t *x, int64_t b, floats *sums)
{
    const bool has_minimum = format == CPU_QUANT_q4_1_r16;
    const uint8_t *from = w + (has_minimum ? 64 : 32) + 4 * lane;
    words bits[8];
    for (int i = 0; i < 8; i++) {
        if (format == CPU_QUANT_q8_0_r16)
            bits[i] = signed_bytes(load_words(from + 64 * i));
        else
            bits[i] = low_bits(shifted(load_words(from + i % 4 * 64), i / 4 * 4));
    }
    floats d = load_f16(w + 2 * lane), m = has_minimum ? load_f16(w + 32 + 2 * lane) : d;
    for (int t = 0; t < tile; t++) {
        const struct part part = part_of(p, x, t, b);
        words sum = all_words(has_minimum ? 0 : word_at(part.extra));
        if (format == CPU_QUANT_q8_0_r16)
            for (int i = 0; i < 8; i++)
                sum = dot_signed(sum, bits[i], all_words(word_at(part.q + 4 * i)));
        else
            sum = dots(sum, bits, part.q, 8);
        floats factor = multiply(d, all_floats(part.scale));
        sums[t] = add(sums[t], multiply(to_floats(sum), factor));
        if (has_minimum)
            sums[t] = add(sums[t], multiply(m, all_floats(extra_float(&part))));
    }
}

// --- products: blocks of 256 ------------------------------------------------------------

// The scales (or minima) of parts 0 .. 3, or 4 .. 7, of q4_k and q5_k: a byte each. `own`
// are the bytes that have all bits of the first ones, `rest` the last four.
static inline words scales_of(words own, words rest, int part)
{
    if (part < 4)
        return masked(own, 0x3f3f3f3f);
    return joined(low_bits(rest), masked(shifted(own, 2), 0x30303030));
}

// q4_k and q5_k, as above, with 32 elements at a time.
INLINE void add_4_k(const struct cpu_quant_product *p, int32_t format, int tile,
                    const uint8_t *w, int lane, const uint8_t *x, int64_t b, floats *sums)
{
    const bool is_5 = format == CPU_QUANT_q5_k_r16;
    const uint8_t *scales = w + 64 + 4 * lane, *high = scales + 3 * 64;
    const uint8_t *low = high + (is_5 ? 8 * 64 : 0);
    const floats d = load_f16(w + 2 * lane), m = load_f16(w + 32 + 2 * lane);
    const words first = load_words(scales), second = load_words(scales + 64);
    const words rest = load_words(scales + 128);
#pragma GCC unroll 8
    for (int part = 0; part < 8; part++) {
        words bits[8];
        for (int i = 0; i < 8; i++) {
            const uint8_t *from = low + (part / 2 * 8 + i) * 64;
            bits[i] = low_bits(shifted(load_words(from), part % 2 * 4));
            if (is_5)
                bits[i] =
                    joined(bits[i], masked(shifted(load_words(high + 64 * i), part - 4),
                                           0x10101010));
        }
        words scale = signed_byte(scales_of(first, rest, part), part % 4);
        words minimum = signed_byte(scales_of(second, shifted(rest, 4), part), part % 4);
        floats factor = multiply(d, to_floats(scale)),
               least = multiply(m, to_floats(minimum));
        for (int t = 0; t < tile; t++) {
            const struct part at = part_of(p, x, t, b + part);
            words sum = dots(all_words(0), bits, at.q, 8);
            sums[t] = add(sums[t],
                          multiply(to_floats(sum), multiply(factor, all_floats(at.scale))));
            sums[t] = add(sums[t], multiply(least, all_floats(-extra_float(&at))));
        }
    }
}

// q6_k. The scales of 16 elements are integers: both sums of 32 are joined before they
// become floats.
INLINE void add_6_k(const struct cpu_quant_product *p, int tile, const uint8_t *w, int lane,
                    const uint8_t *x, int64_t b, floats *sums)
{
    const uint8_t *low = w + 4 * lane, *high = low + 32 * 64, *scales = high + 16 * 64;
    const floats d = load_f16(w + 16 * 208 + 2 * lane);
#pragma GCC unroll 8
    for (int part = 0; part < 8; part++) {
        const int half = part / 4, quarter = part % 4;
        words bits[8];
        for (int i = 0; i < 8; i++) {
            words four = load_words(low + (half * 16 + quarter % 2 * 8 + i) * 64);
            words two = load_words(high + (half * 8 + i) * 64);
            bits[i] = joined(low_bits(shifted(four, quarter / 2 * 4)),
                             masked(shifted(two, 2 * quarter - 4), 0x30303030));
        }
        const words four = load_words(scales + part / 2 * 64);
        const words scale[2] = {signed_byte(four, part % 2 * 2),
                                signed_byte(four, part % 2 * 2 + 1)};
        for (int t = 0; t < tile; t++) {
            const struct part at = part_of(p, x, t, b + part);
            int16_t halves[2];
            memcpy(halves, at.extra, sizeof(halves));
            words sum = sum_of_products(
                scale[0], dots(all_words(-32 * halves[0]), bits, at.q, 4), scale[1],
                dots(all_words(-32 * halves[1]), bits + 4, at.q + 16, 4));
            floats factor = multiply(d, all_floats(at.scale));
            sums[t] = add(sums[t], multiply(to_floats(sum), factor));
        }
    }
}

// --- products ---------------------------------------------------------------------------

// The product of `tile` rounded rows at x with LANES rows of a group of weights.
INLINE void multiply_tile(const struct cpu_quant_product *p, int32_t format, int tile,
                          const uint8_t *w, int lane, const uint8_t *x, float *out)
{
    const int64_t step = 16 * blocks_of[format].bytes, each = blocks_of[format].elements;
    floats sums[TILE];
    for (int t = 0; t < tile; t++)
        sums[t] = all_floats(0);
    for (int64_t b = 0; b < p->k / 32; b += each / 32, w += step) {
        if (format == CPU_QUANT_q6_k_r16)
            add_6_k(p, tile, w, lane, x, b, sums);
        else if (format == CPU_QUANT_q4_k_r16 || format == CPU_QUANT_q5_k_r16)
            add_4_k(p, format, tile, w, lane, x, b, sums);
        else
            add_32(p, format, tile, w, lane, x, b, sums);
    }
    for (int t = 0; t < tile; t++)
        store(out + t * p->out_row, sums[t]);
}

// All rows of x with one group of weights.
#define GROUP(name, ...)                                                                   \
    static void group_##name(const struct cpu_quant_product *p, const uint8_t *w,          \
                             float *out)                                                   \
    {                                                                                      \
        const int32_t format = CPU_QUANT_##name;                                           \
        const int64_t row = cpu_quant_row_bytes(p->k);                                     \
        for (int lane = 0; lane < 16; lane += LANES) {                                     \
            float *to = out + lane;                                                        \
            int64_t r = 0;                                                                 \
            for (; r + TILE <= p->rows; r += TILE)                                         \
                multiply_tile(p, format, TILE, w, lane, p->x + r * row,                    \
                              to + r * p->out_row);                                        \
            for (; r + 4 <= p->rows; r += 4)                                               \
                multiply_tile(p, format, 4, w, lane, p->x + r * row, to + r * p->out_row); \
            for (; r < p->rows; r++)                                                       \
                multiply_tile(p, format, 1, w, lane, p->x + r * row, to + r * p->out_row); \
        }                                                                                  \
    }
TN_QUANT_PACKED_FORMATS(GROUP)

static void quant_product(const struct cpu_quant_product *p)
{
    static void (*const by_format[])(const struct cpu_quant_product *, const uint8_t *,
                                     float *) = {
#define ENTRY(name, ...) [CPU_QUANT_##name] = group_##name,
        TN_QUANT_PACKED_FORMATS(ENTRY)
#undef ENTRY
    };
    const int64_t bytes =
        p->k / blocks_of[p->format].elements * 16 * blocks_of[p->format].bytes;
    for (int64_t g = 0; g < p->groups; g++)
        by_format[p->format](p, p->w + g * bytes, p->out + 16 * g);
}

// --- values -----------------------------------------------------------------------------

#define DECODE(name, block, bytes, type)                                                   \
    static void decode_##name(const uint8_t *from, int64_t blocks, float *out)             \
    {                                                                                      \
        for (int64_t b = 0; b < blocks; b++)                                               \
            tn_quant_decode_##name(from + b * (bytes), out + b * (block));                 \
    }
TN_QUANT_FORMATS(DECODE)

static void quant_decode(uint32_t format, const uint8_t *from, int64_t blocks, float *out)
{
    static void (*const by_format[])(const uint8_t *, int64_t, float *) = {
#define ENTRY(name, ...) decode_##name,
        TN_QUANT_FORMATS(ENTRY)
#undef ENTRY
    };
    by_format[format](from, blocks, out);
}

#define TEXT_(variant) #variant
#define TEXT(variant) TEXT_(variant)

extern const struct cpu_quant_kernels V(cpu_quant_kernels);
const struct cpu_quant_kernels V(cpu_quant_kernels) = {
    .name = TEXT(CPU_VARIANT),
    .needs = CPU_VARIANT_NEEDS,
    .round = quant_round,
    .product = quant_product,
    .decode = quant_decode,
};
