// SPDX-License-Identifier: MIT
// The packings that quant.c reads: for each the meaning of a weight's byte, and a function
// that unpacks 32 elements of LANES rows. Nothing else in the products depends on them.
#ifndef KERNELS_CPU_QUANT_UNPACK_H
#define KERNELS_CPU_QUANT_UNPACK_H

#include "quant_lanes.h"

#if LANES == 4 // plain loops are not worth the code of many copies
#define INLINE static inline
#define UNROLL
#else
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 4")
#endif

// Numbers that a product needs for 32 elements of x beside their bytes and their scale.
enum extra {
    EXTRA_FIRST, // an integer with which the sum of products begins: -offset * their sum
    EXTRA_TERM,  // a float: the scale times their sum, for minima
    EXTRA_HALVES // the sums of both halves, 16 bits each
};

static const struct traits {
    int parts;  // parts of 32 elements in a block
    int offset; // a byte less this, times the scale, is the value
    enum extra extra;
    bool is_signed;   // bytes come from signed_bytes()
    bool has_halves;  // each 16 elements have a scale, `scale` of struct unpacked
    bool has_minimum; // each 16 elements have a minimum, `minimum` of struct unpacked
    bool is_crossed; // quarters 0 and 2 share bytes: these are read before those of 1 and 3
} traits_of[] = {
    [CPU_QUANT_q4_0_r16] = {1, 8, EXTRA_FIRST, false, false, false, false},
    [CPU_QUANT_q4_1_r16] = {1, 0, EXTRA_TERM, false, false, false, false},
    [CPU_QUANT_q5_0_r16] = {1, 16, EXTRA_FIRST, false, false, false, false},
    [CPU_QUANT_q5_1_r16] = {1, 0, EXTRA_TERM, false, false, false, false},
    [CPU_QUANT_q8_0_r16] = {1, BYTES_OFFSET, EXTRA_FIRST, true, false, false, false},
    [CPU_QUANT_q2_k_r16] = {8, 0, EXTRA_HALVES, false, false, true, false},
    [CPU_QUANT_q3_k_r16] = {8, 4, EXTRA_HALVES, false, true, false, false},
    [CPU_QUANT_q4_k_r16] = {8, 0, EXTRA_TERM, false, false, false, false},
    [CPU_QUANT_q5_k_r16] = {8, 0, EXTRA_TERM, false, false, false, false},
    [CPU_QUANT_q6_k_r16] = {8, 32, EXTRA_HALVES, false, true, false, true},
    [CPU_QUANT_iq4_nl_r16] = {1, BYTES_OFFSET, EXTRA_FIRST, true, false, false, false},
    [CPU_QUANT_iq4_xs_r16] = {8, BYTES_OFFSET, EXTRA_FIRST, true, false, false, false},
    [CPU_QUANT_mxfp4_r16] = {1, 12, EXTRA_FIRST, false, false, false, false},
};

// 32 elements of LANES rows.
struct unpacked {
    words bits[8]; // byte j of word i: element 4 * i + j
    words scale[2], minimum;
    floats factor, least; // factors of sums of products, and of sums of x
};

// unpack_...: `w` are the blocks of 16 rows, of which LANES rows from `lane` on are
// unpacked. In a block of 256, the 32 elements are quarter `quarter`, a constant, of half
// `half`.

INLINE words low_bits(words w)
{
    return masked(w, 0x0f0f0f0f);
}

// Unpacks 32 numbers of 4 bits from 4 words, in the order of tn_quant_nibble.
INLINE void unpack_4(const uint8_t *from, words *bits)
{
    for (int i = 0; i < 8; i++)
        bits[i] = low_bits(shifted(load_words(from + i % 4 * 64), i / 4 * 4));
}

// Sets bit 4 of each byte of word i to bit i of each byte of `high`.
INLINE void add_fifth(words high, words *bits)
{
    for (int i = 0; i < 8; i++)
        bits[i] = joined(bits[i], masked(shifted(high, i - 4), 0x10101010));
}

INLINE void unpack_q4_0(const uint8_t *w, int lane, int half, int quarter,
                        struct unpacked *out)
{
    (void)half, (void)quarter;
    unpack_4(w + 32 + 4 * lane, out->bits);
    out->factor = load_f16(w + 2 * lane);
}

INLINE void unpack_q4_1(const uint8_t *w, int lane, int half, int quarter,
                        struct unpacked *out)
{
    (void)half, (void)quarter;
    unpack_4(w + 64 + 4 * lane, out->bits);
    out->factor = load_f16(w + 2 * lane);
    out->least = load_f16(w + 32 + 2 * lane);
}

INLINE void unpack_q5_0(const uint8_t *w, int lane, int half, int quarter,
                        struct unpacked *out)
{
    (void)half, (void)quarter;
    unpack_4(w + 96 + 4 * lane, out->bits);
    add_fifth(load_words(w + 32 + 4 * lane), out->bits);
    out->factor = load_f16(w + 2 * lane);
}

INLINE void unpack_q5_1(const uint8_t *w, int lane, int half, int quarter,
                        struct unpacked *out)
{
    (void)half, (void)quarter;
    unpack_4(w + 128 + 4 * lane, out->bits);
    add_fifth(load_words(w + 64 + 4 * lane), out->bits);
    out->factor = load_f16(w + 2 * lane);
    out->least = load_f16(w + 32 + 2 * lane);
}

INLINE void unpack_q8_0(const uint8_t *w, int lane, int half, int quarter,
                        struct unpacked *out)
{
    (void)half, (void)quarter;
    for (int i = 0; i < 8; i++)
        out->bits[i] = signed_bytes(load_words(w + 32 + 4 * lane + 64 * i));
    out->factor = load_f16(w + 2 * lane);
}

// Unpacks the values that 4 bits choose from a table, in the form of signed_bytes().
INLINE void unpack_iq4(const uint8_t *from, words *bits)
{
#define IQ4(value) (int8_t)((value) ^ (BYTES_OFFSET ? -128 : 0))
    static const int8_t values[16] = {
        IQ4(-127), IQ4(-104), IQ4(-83), IQ4(-65), IQ4(-49), IQ4(-35), IQ4(-22), IQ4(-10),
        IQ4(1),    IQ4(13),   IQ4(25),  IQ4(38),  IQ4(53),  IQ4(69),  IQ4(89),  IQ4(113)};
#undef IQ4
    unpack_4(from, bits);
    for (int i = 0; i < 8; i++)
        bits[i] = looked_up(values, bits[i]);
}

INLINE void unpack_iq4_nl(const uint8_t *w, int lane, int half, int quarter,
                          struct unpacked *out)
{
    (void)half, (void)quarter;
    unpack_iq4(w + 32 + 4 * lane, out->bits);
    out->factor = load_f16(w + 2 * lane);
}

// Bytes are twice the values plus 12, so that none is negative.
INLINE void unpack_mxfp4(const uint8_t *w, int lane, int half, int quarter,
                         struct unpacked *out)
{
    static const int8_t values[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                      12, 11, 10, 9,  8,  6,  4,  0};
    (void)half, (void)quarter;
    unpack_4(w + 4 * lane, out->bits);
    for (int i = 0; i < 8; i++)
        out->bits[i] = looked_up(values, out->bits[i]);
    out->factor = half_scales(load_u8(w + 4 * 64 + lane));
}

// --- blocks of 256 ----------------------------------------------------------------------

// Two bytes of each word, from byte `first` on, as unsigned numbers of 16 bits.
INLINE words two_bytes(words w, int first)
{
    return joined(masked(shifted(w, 8 * first), 0xff),
                  masked(shifted(w, 8 * first - 8), 0xff0000));
}

// An unsigned number of 16 bits, twice in each word.
INLINE words twice(words w)
{
    return joined(w, shifted(w, -16));
}

// q2_k: bytes are numbers of 2 bits times their scale of 4 bits, 0 .. 45.
INLINE void unpack_q2_k(const uint8_t *w, int lane, int half, int quarter,
                        struct unpacked *out)
{
    const uint8_t *scales = w + 64 + 4 * lane, *bits = scales + (4 + 8 * half) * 64;
    const words both = load_words(scales + (2 * half + quarter / 2) * 64);
    const int first = quarter % 2 * 2;
    const words scale[2] = {twice(signed_byte(low_bits(both), first)),
                            twice(signed_byte(low_bits(both), first + 1))};
    for (int i = 0; i < 8; i++) {
        const words two =
            masked(shifted(load_words(bits + 64 * i), 2 * quarter), 0x03030303);
        out->bits[i] = multiplied(two, scale[i / 4]);
    }
    out->minimum = two_bytes(low_bits(shifted(both, 4)), first);
    out->factor = load_f16(w + 2 * lane);
    out->least = multiply(load_f16(w + 32 + 2 * lane), all_floats(-1));
}

INLINE void unpack_q3_k(const uint8_t *w, int lane, int half, int quarter,
                        struct unpacked *out)
{
    const uint8_t *scales = w + 32 + 4 * lane, *high = scales + 3 * 64;
    const uint8_t *bits = high + (8 + 8 * half) * 64;
    const words two = shifted_right(load_words(scales + 2 * 64), 4 * half);
    const words four = shifted_right(load_words(scales + quarter / 2 * 64), 4 * half);
    const words scale =
        joined(low_bits(four), masked(shifted(two, quarter / 2 * 2 - 4), 0x30303030));
    for (int i = 0; i < 8; i++) {
        const words top = shifted_right(load_words(high + 64 * i), 4 * half);
        out->bits[i] =
            joined(masked(shifted(load_words(bits + 64 * i), 2 * quarter), 0x03030303),
                   masked(shifted(top, quarter - 2), 0x04040404));
    }
    for (int i = 0; i < 2; i++)
        out->scale[i] = lowered(signed_byte(scale, quarter % 2 * 2 + i), 32);
    out->factor = load_f16(w + 2 * lane);
}

// Unpacks the factors of q4_k and q5_k, which share their layout.
INLINE void unpack_factors(const uint8_t *w, int lane, int half, int quarter,
                           struct unpacked *out)
{
    const uint8_t *scales = w + 64 + 4 * lane;
    words scale = load_words(scales), minimum = load_words(scales + 64);
    if (half) {
        const words rest = load_words(scales + 128);
        scale = joined(low_bits(rest), masked(shifted(scale, 2), 0x30303030));
        minimum =
            joined(low_bits(shifted(rest, 4)), masked(shifted(minimum, 2), 0x30303030));
    }
    scale = signed_byte(masked(scale, 0x3f3f3f3f), quarter);
    minimum = signed_byte(masked(minimum, 0x3f3f3f3f), quarter);
    out->factor = multiply(load_f16(w + 2 * lane), to_floats(scale));
    out->least =
        multiply(load_f16(w + 32 + 2 * lane), multiply(to_floats(minimum), all_floats(-1)));
}

INLINE void unpack_q4_k(const uint8_t *w, int lane, int half, int quarter,
                        struct unpacked *out)
{
    const uint8_t *from = w + (4 + (2 * half + quarter / 2) * 8) * 64 + 4 * lane;
    for (int i = 0; i < 8; i++)
        out->bits[i] = low_bits(shifted(load_words(from + 64 * i), quarter % 2 * 4));
    unpack_factors(w, lane, half, quarter, out);
}

INLINE void unpack_q5_k(const uint8_t *w, int lane, int half, int quarter,
                        struct unpacked *out)
{
    const uint8_t *high = w + 4 * 64 + 4 * lane;
    const uint8_t *low = high + (8 + (2 * half + quarter / 2) * 8) * 64;
    for (int i = 0; i < 8; i++) {
        const words top = shifted_right(load_words(high + 64 * i), 4 * half);
        out->bits[i] = joined(low_bits(shifted(load_words(low + 64 * i), quarter % 2 * 4)),
                              masked(shifted(top, quarter - 4), 0x10101010));
    }
    unpack_factors(w, lane, half, quarter, out);
}

INLINE void unpack_q6_k(const uint8_t *w, int lane, int half, int quarter,
                        struct unpacked *out)
{
    const uint8_t *scales = w + 32 + 4 * lane, *high = scales + (4 + half * 24) * 64;
    const uint8_t *low = high + (8 + quarter % 2 * 8) * 64;
    for (int i = 0; i < 8; i++)
        out->bits[i] =
            masked(shifted(load_words(high + 64 * i), 2 * quarter - 4), 0x30303030);
    for (int i = 0; i < 8; i++) {
        const words four = low_bits(shifted(load_words(low + 64 * i), quarter / 2 * 4));
        out->bits[i] = joined(out->bits[i], four);
    }
    for (int i = 0; i < 2; i++)
        out->scale[i] = signed_byte(load_words(scales + (2 * half + quarter / 2) * 64),
                                    quarter % 2 * 2 + i);
    out->factor = load_f16(w + 2 * lane);
}

INLINE void unpack_iq4_xs(const uint8_t *w, int lane, int half, int quarter,
                          struct unpacked *out)
{
    const uint8_t *from = w + (2 + (4 * half + quarter) * 4) * 64 + 4 * lane;
    const words four = shifted_right(load_words(w + 64 + 4 * lane), 16 * half);
    const words two = shifted_right(load_u16(w + 32 + 2 * lane), 8 * half);
    const words scale = joined(masked(shifted(four, 4 * quarter), 0x0f),
                               masked(shifted(two, 2 * quarter - 4), 0x30));
    unpack_iq4(from, out->bits);
    out->factor = multiply(load_f16(w + 2 * lane), to_floats(lowered(scale, 32)));
}

INLINE void unpack(int32_t format, const uint8_t *w, int lane, int half, int quarter,
                   struct unpacked *out)
{
    switch (format) {
#define CASE(name, plain, ...)                                                             \
    case CPU_QUANT_##name:                                                                 \
        unpack_##plain(w, lane, half, quarter, out);                                       \
        break;
        TN_QUANT_PACKED_FORMATS(CASE)
#undef CASE
    }
}

#endif // KERNELS_CPU_QUANT_UNPACK_H
