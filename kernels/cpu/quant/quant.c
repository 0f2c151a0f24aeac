// SPDX-License-Identifier: MIT
// Products with quantised weights: lanes are 16 rows of weights, and the unpacked bits of a
// block are multiplied by up to 8 rows of x.
#include "quant.h"
#include "cpu/instruction_sets.h"
#include "cpu/variant.h"
#include "quant_sums.h"

#define TILE 8            // rows of x at a time
#define ROUND 12582912.0f // 1.5 * 2^23: adding and subtracting it rounds to an integer

// --- rounding ---------------------------------------------------------------------------

// Writes the word that a format needs for 32 elements of x: see enum extra.
static void round_extra(const struct traits *traits, const int32_t sums[2], float scale,
                        uint8_t *out)
{
    const float term = scale * (float)(sums[0] + sums[1]);
    const int32_t first = -traits->offset * (sums[0] + sums[1]);
    const int16_t halves[2] = {(int16_t)sums[0], (int16_t)sums[1]};
    const void *const from[] = {
        [EXTRA_FIRST] = &first, [EXTRA_TERM] = &term, [EXTRA_HALVES] = halves};
    memcpy(out, from[traits->extra], 4);
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
        round_extra(&traits_of[format], sums, scale, extra + 4 * b);
    }
}

// --- products ---------------------------------------------------------------------------

// sum + the products of `count` words of four bytes.
INLINE words dots(words sum, const words *w, const uint8_t *q, int count, bool is_signed)
{
    for (int i = 0; i < count; i++) {
        const words x = all_words(word_at(q + 4 * i));
        sum = is_signed ? dot_signed(sum, w[i], x) : dot(sum, w[i], x);
    }
    return sum;
}

// The sum of 32 products of integers.
INLINE words sum_of_32(const struct traits *f, const struct unpacked *w,
                       const struct part *x)
{
    int16_t halves[2];
    memcpy(halves, x->extra, sizeof(halves));
    if (f->has_halves)
        return sum_of_products(
            w->scale[0], dots(all_words(-f->offset * halves[0]), w->bits, x->q, 4, false),
            w->scale[1],
            dots(all_words(-f->offset * halves[1]), w->bits + 4, x->q + 16, 4, false));
    return dots(all_words(f->extra == EXTRA_FIRST ? word_at(x->extra) : 0), w->bits, x->q,
                8, f->is_signed);
}

// Adds the products of block number b of 32 elements to the sums of `tile` rows of x. `f`
// and `tile` are constants where this is inlined.
INLINE void add_32(const struct cpu_quant_product *p, const struct traits *f, int tile,
                   const struct unpacked *w, const uint8_t *x, int64_t b, floats *sums)
{
    for (int t = 0; t < tile; t++) {
        const struct part at = part_of(p, x, t, b);
        sums[t] = scaled(f, w, &at, sum_of_32(f, w, &at), sums[t]);
    }
}

// Prefetches the first cache lines of a block of 256, whose scales are read little by
// little later: processors prefetch by themselves only where no line is left out.
INLINE void fetch_scales(const uint8_t *w)
{
    for (int i = 0; i < 5; i++)
        __builtin_prefetch(w + 64 * i);
}

// Computes the product of `tile` rounded rows at x and LANES rows of a group of weights.
INLINE void multiply_tile(const struct cpu_quant_product *p, int32_t format, int tile,
                          const uint8_t *w, int lane, const uint8_t *x, float *out)
{
    const struct traits *f = &traits_of[format];
    const int64_t step = 16 * bytes_of[format];
    struct unpacked bits;
    floats sums[TILE];
    for (int t = 0; t < tile; t++)
        sums[t] = all_floats(0);
    for (int64_t b = 0; b < p->k / 32; b += f->parts, w += step) {
        if (f->parts == 1) {
            unpack(format, w, lane, 0, 0, &bits);
            add_32(p, f, tile, &bits, x, b, sums);
            continue;
        }
        if (tile == 1)
            fetch_scales(w);
        for (int half = 0; half < 2; half++) {
            UNROLL
            for (int i = 0; i < 4; i++) {
                const int quarter = f->is_crossed ? i % 2 * 2 + i / 2 : i;
                unpack(format, w, lane, half, quarter, &bits);
                add_32(p, f, tile, &bits, x, b + 4 * half + quarter, sums);
            }
        }
    }
    for (int t = 0; t < tile; t++)
        store(out + t * p->out_row, sums[t]);
}

// Defines the product of all rows of x and one group of weights.
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
    static group_fn *const by_format[] = {
#define ENTRY(name, ...) [CPU_QUANT_##name] = group_##name,
        TN_QUANT_PACKED_FORMATS(ENTRY)
#undef ENTRY
    };
    multiply_groups(p, by_format[p->format]);
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
