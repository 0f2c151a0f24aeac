// SPDX-License-Identifier: MIT
// The formats of 256 elements of <tenon/ops/quant.h>: where their bits are, and what they
// mean.
//
//   float values[256];
//   tn_quant_decode_q6_k(block, values); // reads TN_QUANT_BYTES_q6_k bytes
//
// Elements lie in halves of 128, or in quarters of 64, and the bits of those that are 32
// (or 64) apart share a byte: a processor takes them out with one shift for all.
//
//   q2_k    16 bytes: minimum << 4 | scale of each part. 64 bytes of fractions:
//           element e of half h, at bits 2 * (e / 32) of byte 32 * h + e % 32.
//           f16 d, f16 m.
//   q3_k    32 bytes: bit 2 of the fractions, at bit (element / 32) of byte element % 32.
//           64 bytes: bits 0 and 1, as of q2_k.
//           12 bytes of scales: of part p, bits 0 .. 3 in the low (p < 8) or high bits of
//           byte p % 8, bits 4 and 5 at bits 2 * (p / 4) of byte 8 + p % 4.
//           f16 d.
//   q4_k    f16 d, f16 m, 12 bytes of scales and minima. 128 bytes: element e of quarter
//           c, in the low (e < 32) or high bits of byte 32 * c + e % 32.
//   q5_k    as q4_k, with 32 bytes before the last 128:
//           bit 4 of the fractions, at bit (element / 32) of
//           byte element % 32.
//   q6_k    128 bytes: bits 0 .. 3 of element e of half h, in the low (e < 64) or high bits
//           of byte 64 * h + e % 64. 64 bytes: bits 4 and 5, at bits 2 * (e / 32) of byte
//           32 * h + e % 32. 16 signed bytes of scales. f16 d.
//   iq4_xs  f16 d, u16 with bits 4 and 5 of the scale of part p at bits 2 * p, 4 bytes with
//           bits 0 .. 3 in the low (p even) or high bits of byte p / 2. 8 times 16 bytes of
//           fractions, each 16 as of q4_0.
//
// The 12 bytes of q4_k and q5_k: parts 0 .. 3 have their scales in bits 0 .. 5 of bytes
// 0 .. 3 and their minima in bits 0 .. 5 of bytes 4 .. 7. Parts 4 .. 7 have bits 0 .. 3 of
// the scale in the low bits of bytes 8 .. 11, those of the minimum in the high ones, and
// bits 4 and 5 in the two bits that are left of bytes 0 .. 3 and 4 .. 7.
//
// All give one scale to each part, that is, one product more for 16 or 32 elements. A
// kernel that sums products of integers first, a part at a time, multiplies the sums by it.
//
// Products of d with a scale and with a fraction have at most 24 bits, so that they are
// exact as f32, in any order of the factors; the difference with a minimum is rounded once.
//
// Threads. Pure functions: any thread. None fails: every bit pattern is a block.
#ifndef TENON_OPS_QUANT_K_H
#define TENON_OPS_QUANT_K_H

#include <stddef.h>
#include <stdint.h>
#include <tenon/ops/quant_blocks.h>

// q2_k: an element is d * scale * q - m * minimum, where the fraction q has 2 bits, and
// each of the 16 parts of 16 elements a scale and a minimum of 4 bits: 2.625 bits an
// element.
static inline void tn_quant_decode_q2_k(const uint8_t *from, float *out)
{
    const uint8_t *scales = from, *bits = from + 16;
    float d = tn_quant_f16(from + 80), m = tn_quant_f16(from + 82);
    for (int32_t part = 0; part < 16; part++) {
        // Two parts share 32 bytes of fractions and their shift; those of a half have four
        // shifts. Of part p: half p / 8, shift 2 * (p % 8 / 2), and the second 16 bytes if
        // odd.
        const uint8_t *at = bits + part / 8 * 32 + part % 2 * 16;
        int32_t shift = part % 8 / 2 * 2;
        float scale = d * (float)(scales[part] & 15);
        float minimum = m * (float)(scales[part] >> 4);
        for (int32_t i = 0; i < 16; i++)
            out[part * 16 + i] = scale * (float)(at[i] >> shift & 3) - minimum;
    }
}

// The scale of part `part`, 0 .. 15, of q3_k, from its 12 bytes: 0 .. 63, which stands for
// -32 .. 31. Four bits come from one of the first 8 bytes, two from one of the last 4.
static inline int32_t tn_quant_scale_q3_k(const uint8_t *scales, int32_t part)
{
    int32_t low = part < 8 ? scales[part] & 15 : scales[part - 8] >> 4;
    return low | (scales[8 + part % 4] >> part / 4 * 2 & 3) << 4;
}

// q3_k: an element is d * (scale - 32) * (q - 4), where the fraction q has 3 bits, two of
// them beside those of other elements and one in a mask, and each of the 16 parts of 16
// elements a scale of 6 bits: 3.4375 bits an element. `high` are the bytes of the mask, of
// which each holds a bit of 8 elements that are 32 apart.
static inline void tn_quant_decode_q3_k(const uint8_t *from, float *out)
{
    const uint8_t *high = from, *bits = from + 32, *scales = from + 96;
    float d = tn_quant_f16(from + 108);
    for (int32_t part = 0; part < 16; part++) {
        const uint8_t *at = bits + part / 8 * 32 + part % 2 * 16;
        const uint8_t *top = high + part % 2 * 16;
        int32_t shift = part % 8 / 2 * 2, bit = part / 2;
        float scale = d * (float)(tn_quant_scale_q3_k(scales, part) - 32);
        for (int32_t i = 0; i < 16; i++) {
            int32_t q = (at[i] >> shift & 3) | (top[i] >> bit & 1) << 2;
            out[part * 16 + i] = scale * (float)(q - 4);
        }
    }
}

// The scale (`minimum` 0) or the minimum (`minimum` 1) of part `part`, 0 .. 7, of q4_k and
// q5_k, from their 12 bytes: 0 .. 63. Those of the first four parts lie in one byte each,
// those of the others in pieces of 4 and 2 bits.
static inline int32_t tn_quant_scale_q4_k(const uint8_t *scales, int32_t part,
                                          int32_t minimum)
{
    const uint8_t *own = scales + 4 * minimum;
    if (part < 4)
        return own[part] & 63;
    return (scales[4 + part] >> 4 * minimum & 15) | own[part - 4] >> 6 << 4;
}

// q4_k: an element is d * scale * q - m * minimum, where the fraction q has 4 bits, and
// each of the 8 parts of 32 elements a scale and a minimum of 6 bits: 4.5 bits an element.
static inline void tn_quant_decode_q4_k(const uint8_t *from, float *out)
{
    float d = tn_quant_f16(from), m = tn_quant_f16(from + 2);
    for (int32_t part = 0; part < 8; part++) {
        const uint8_t *at = from + 16 + part / 2 * 32;
        int32_t shift = part % 2 * 4;
        float scale = d * (float)tn_quant_scale_q4_k(from + 4, part, 0);
        float minimum = m * (float)tn_quant_scale_q4_k(from + 4, part, 1);
        for (int32_t i = 0; i < 32; i++)
            out[part * 32 + i] = scale * (float)(at[i] >> shift & 15) - minimum;
    }
}

// q5_k: as q4_k, with a fifth bit of each fraction in bytes of their own: 5.5 bits an
// element. Bit `part` of these bytes is that of the elements of a part.
static inline void tn_quant_decode_q5_k(const uint8_t *from, float *out)
{
    const uint8_t *high = from + 16;
    float d = tn_quant_f16(from), m = tn_quant_f16(from + 2);
    for (int32_t part = 0; part < 8; part++) {
        const uint8_t *at = from + 48 + part / 2 * 32;
        int32_t shift = part % 2 * 4;
        float scale = d * (float)tn_quant_scale_q4_k(from + 4, part, 0);
        float minimum = m * (float)tn_quant_scale_q4_k(from + 4, part, 1);
        for (int32_t i = 0; i < 32; i++) {
            int32_t q = (at[i] >> shift & 15) | (high[i] >> part & 1) << 4;
            out[part * 32 + i] = scale * (float)q - minimum;
        }
    }
}

// q6_k: an element is d * scale * (q - 32), where the fraction q has 6 bits, 4 and 2 in
// bytes apart, and each of the 16 parts of 16 elements a signed scale of 8 bits: 6.5625
// bits an element.
static inline void tn_quant_decode_q6_k(const uint8_t *from, float *out)
{
    const uint8_t *low = from, *high = from + 128, *scales = from + 192;
    float d = tn_quant_f16(from + 208);
    for (int32_t part = 0; part < 16; part++) {
        // Part p of half p / 8: 16 elements from 16 * (p % 8) on.
        const uint8_t *four = low + part / 8 * 64 + part % 4 * 16;
        const uint8_t *two = high + part / 8 * 32 + part % 2 * 16;
        int32_t shift = part % 8 / 4 * 4, bits = part % 8 / 2 * 2;
        float scale = d * (float)tn_quant_signed(scales[part]);
        for (int32_t i = 0; i < 16; i++) {
            int32_t q = (four[i] >> shift & 15) | (two[i] >> bits & 3) << 4;
            out[part * 16 + i] = scale * (float)(q - 32);
        }
    }
}

// iq4_xs: an element is d * (scale - 32) * tn_quant_iq4_value(q), the values of iq4_nl,
// where each of the 8 parts of 32 elements has a scale of 6 bits: 4.25 bits an element.
static inline void tn_quant_decode_iq4_xs(const uint8_t *from, float *out)
{
    float d = tn_quant_f16(from);
    uint32_t high = (uint32_t)from[2] | (uint32_t)from[3] << 8;
    for (int32_t part = 0; part < 8; part++) {
        const uint8_t *at = from + 8 + part * 16;
        int32_t low = from[4 + part / 2] >> part % 2 * 4 & 15;
        float scale = d * (float)((low | (int32_t)(high >> 2 * part & 3) << 4) - 32);
        for (int32_t i = 0; i < 32; i++)
            out[part * 32 + i] = scale * (float)tn_quant_iq4_value(tn_quant_nibble(at, i));
    }
}

#endif // TENON_OPS_QUANT_K_H
