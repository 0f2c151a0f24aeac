// SPDX-License-Identifier: MIT
// The formats of 32 elements of <tenon/ops/quant.h>, and what the blocks of all formats are
// made of: where the bits are, and what they mean.
//
//   float values[32];
//   tn_quant_decode_q4_1(block, values); // reads TN_QUANT_BYTES_q4_1 bytes
//
// Each function reads one block, at any address, and writes its 32 elements. Every bit
// pattern is a block: scales may be subnormal, infinite or NaN, and then so are the values,
// by the rules of IEEE 754. Integers are exact in an f32, and their product with a scale of
// 11 bits too, so that a value is rounded once at most: where a minimum is added.
//
// Sixteen bytes hold 32 fractions of 4 bits: of element i < 16 in the low bits (0 .. 3) of
// byte i, of element i + 16 in its high ones (4 .. 7). A fifth bit is apart, in a word.
//
// Names. `from` is the first byte of a block, `d` its scale and `m` its minimum, both f16,
// q the fraction of an element, an integer without a sign. A format's name is the bits of a
// fraction, and whether it has a minimum: q4_0 has none, q4_1 has one. The names are those
// that files of language models use, in small letters.
//
// Where a kernel reads 16 bytes at once, the order of elements is that of `b & 15` for the
// first half and `b >> 4` for the second one: two operations give all 32 fractions.
//
// What a kernel may change is the order in which it multiplies and adds; what it reads as
// the value of an element is what these functions give.
//
// Each function here is short on purpose: it is the definition, and the compiler makes of
// its loop what the processor has.
//
// Threads. Pure functions and constant data: any thread. None fails.
#ifndef TENON_OPS_QUANT_BLOCKS_H
#define TENON_OPS_QUANT_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <tenon/ops/reference.h>

// --- the parts of blocks ---------------------------------------------------------------

// The value of the f16 at `p`, which need not be aligned. Little-endian, on every host.
static inline float tn_quant_f16(const uint8_t *p)
{
    return tn_f32_of_f16((uint16_t)(p[0] | p[1] << 8));
}

// The u32 at `p`, which need not be aligned. Little-endian, on every host.
static inline uint32_t tn_quant_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

// Four bits, 0 .. 15, of element i, 0 .. 31, in 16 bytes: of the first half of the elements
// the low ones, of the second half the high ones.
static inline int32_t tn_quant_nibble(const uint8_t *bytes, int32_t i)
{
    return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4;
}

// The value of iq4_nl and iq4_xs that 4 bits choose. They rise with the bits, closer to
// each other near 0, which is not among them.
static inline int32_t tn_quant_iq4_value(int32_t q)
{
    static const int8_t values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};
    return values[q];
}

// Twice the value of mxfp4's 4 bits, E2M1: a sign, 2 bits of exponent with a bias of 1, 1
// of fraction. Doubled, all are integers: 0.5 is the least positive one, 6 the greatest.
static inline int32_t tn_quant_mxfp4_value(int32_t q)
{
    static const int8_t values[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                      0, -1, -2, -3, -4, -6, -8, -12};
    return values[q];
}

// Half the scale of mxfp4, 2^(e - 128): from 2^-128, which is subnormal as an f32, to
// 2^127. The specification has 255 as NaN; here it is the number that follows, as files
// have it.
static inline float tn_quant_half_scale(uint8_t e)
{
    union {
        uint32_t u;
        float f;
    } v;
    v.u = e < 2 ? UINT32_C(0x200000) << e : ((uint32_t)e - 1) << 23;
    return v.f;
}

// --- blocks of 32 elements: values -----------------------------------------------------

// q4_0: f16 d, 16 bytes of fractions of 4 bits, 0 .. 15. An element is d * (q - 8): from
// -8 * d to 7 * d, so that 0 is a value, and one end reaches a step farther than the other.
// d may be negative: then the positive end does.
static inline void tn_quant_decode_q4_0(const uint8_t *from, float *out)
{
    float d = tn_quant_f16(from);
    for (int32_t i = 0; i < 32; i++)
        out[i] = (float)(tn_quant_nibble(from + 2, i) - 8) * d;
}

// q4_1: f16 d, f16 m, 16 bytes of fractions of 4 bits, 0 .. 15: 5 bits an element with its
// share of d and m. An element is d * q + m:
// sixteen values at equal distances from the least, m, to the greatest.
static inline void tn_quant_decode_q4_1(const uint8_t *from, float *out)
{
    float d = tn_quant_f16(from), m = tn_quant_f16(from + 2);
    for (int32_t i = 0; i < 32; i++)
        out[i] = (float)tn_quant_nibble(from + 4, i) * d + m;
}

// q5_0: f16 d, u32 of high bits, 16 bytes. A fraction, 0 .. 31, has its bits 0 .. 3 in the
// bytes and bit 4 at bit i of the word. An element is d * (q - 16).
static inline void tn_quant_decode_q5_0(const uint8_t *from, float *out)
{
    float d = tn_quant_f16(from);
    uint32_t high = tn_quant_u32(from + 2);
    for (int32_t i = 0; i < 32; i++) {
        int32_t q = tn_quant_nibble(from + 6, i) | (int32_t)(high >> i & 1) << 4;
        out[i] = (float)(q - 16) * d;
    }
}

// q5_1: f16 d, f16 m, u32 of high bits, 16 bytes, with fractions of 5 bits, as those of
// q5_0, and values as those of q4_1: an element is d * q + m. That is 6 bits an element.
static inline void tn_quant_decode_q5_1(const uint8_t *from, float *out)
{
    float d = tn_quant_f16(from), m = tn_quant_f16(from + 2);
    uint32_t high = tn_quant_u32(from + 4);
    for (int32_t i = 0; i < 32; i++) {
        int32_t q = tn_quant_nibble(from + 8, i) | (int32_t)(high >> i & 1) << 4;
        out[i] = (float)q * d + m;
    }
}

// The signed number that a byte holds: its bits as those of an int8_t, that is, in two's
// complement, -128 .. 127.
static inline int32_t tn_quant_signed(uint8_t byte)
{
    return byte < 128 ? byte : byte - 256;
}

// q8_0: f16 d, 32 signed bytes. An element is d * q. Encoders use -127 .. 127 only, but
// -128 has a meaning too. Kernels that round the other operand of a product to bytes round
// it like this, with a scale for 32 elements.
static inline void tn_quant_decode_q8_0(const uint8_t *from, float *out)
{
    float d = tn_quant_f16(from);
    for (int32_t i = 0; i < 32; i++)
        out[i] = (float)tn_quant_signed(from[2 + i]) * d;
}

// iq4_nl: f16 d, 16 bytes of indices of 4 bits. An element is d * tn_quant_iq4_value(q):
// values at unequal distances, where the elements of a normal distribution are many.
static inline void tn_quant_decode_iq4_nl(const uint8_t *from, float *out)
{
    float d = tn_quant_f16(from);
    for (int32_t i = 0; i < 32; i++)
        out[i] = (float)tn_quant_iq4_value(tn_quant_nibble(from + 2, i)) * d;
}

// mxfp4: u8 e, 16 bytes of floats of 4 bits, E2M1 (OCP Microscaling Formats 1.0, 5.3.3 and
// 5.4.1). An element is 2^(e - 127) * its value, computed as half the scale times twice the
// value. No element is NaN, and -0 decodes as +0.
static inline void tn_quant_decode_mxfp4(const uint8_t *from, float *out)
{
    float d = tn_quant_half_scale(from[0]);
    for (int32_t i = 0; i < 32; i++)
        out[i] = (float)tn_quant_mxfp4_value(tn_quant_nibble(from + 1, i)) * d;
}

#endif // TENON_OPS_QUANT_BLOCKS_H
