// SPDX-License-Identifier: MIT
// Encoding of formats: the block nearest to some floats, by a plain rule for each format.
//
// The rules, for the 32 elements x of a block; 1 / d is computed in f32 from the d that is
// not yet rounded to f16, and is 0 where d is 0; floor is what a cast to integers does:
//
//   q4_0    d = e / -8, where e is the element of greatest magnitude (the first one);
//           q = floor(x / d + 8.5), at most 15. So e is -8 * d, the end of the scale.
//   q5_0    the same with -16, 16.5 and 31.
//   q4_1    m = least, d = (greatest - m) / 15; q = floor((x - m) / d + 0.5), at most 15.
//   q5_1    the same with 31.
//   q8_0    d = greatest magnitude / 127; q = x / d, rounded to nearest, ties away from 0.
//   mxfp4   e = floor(log2 of the greatest magnitude) - 2 + 127; q is the nearest value, of
//           equal ones the lowest q.
//
// These rules give the blocks of other programs that write GGUF, bit by bit. Blocks of the
// other formats are searched for: encode_search.h.
//
// Values must be finite. Other values give a block that decodes to arbitrary floats or NaN,
// but no undefined behaviour: integers are clamped as floats before they are cast.
//
// Threads. Pure functions: any thread. None fails.
#ifndef QUANT_ENCODE_H
#define QUANT_ENCODE_H

#include <stddef.h>
#include <stdint.h>
#include <tenon/ops/quant.h>
#include "encode_search.h"

// The formats with a plain rule: X(name) for encode_<name>.
#define ENCODED_FORMATS(X)                                                                 \
    X(q4_0)                                                                                \
    X(q4_1)                                                                                \
    X(q5_0)                                                                                \
    X(q5_1)                                                                                \
    X(q8_0)                                                                                \
    X(mxfp4)

// floor(x) clamped to 0 .. `most`; NaN gives 0.
static int32_t clamped(float x, int32_t most)
{
    if (!(x > 0))
        return 0;
    return x >= (float)most ? most : (int32_t)x;
}

// The element of greatest magnitude, the first of equal ones; 0 where all are 0 or NaN.
static float extreme_of(const float *values)
{
    float extreme = 0, magnitude = 0;
    for (int32_t i = 0; i < 32; i++) {
        float v = values[i] < 0 ? -values[i] : values[i];
        if (v > magnitude) {
            magnitude = v;
            extreme = values[i];
        }
    }
    return extreme;
}

// Encodes a block with q in 16 bytes at `bytes`, and bit 4 of each q in the word at `high`,
// which may be NULL. q = floor((x - minimum) * inverse + half), from 0 to `most`.
static void encode_bits(const float *values, float minimum, float inverse, float half,
                        int32_t most, uint8_t *bytes, uint8_t *high)
{
    uint32_t word = 0;
    for (int32_t i = 0; i < 16; i++)
        bytes[i] = 0;
    for (int32_t i = 0; i < 32; i++) {
        float scaled = (values[i] - minimum) * inverse;
        int32_t q = clamped(scaled + half, most);
        set_nibble(bytes, i, q);
        word |= (uint32_t)(q >> 4) << i;
    }
    for (int32_t i = 0; high && i < 4; i++)
        high[i] = (uint8_t)(word >> 8 * i & 255);
}

// q4_0: d from the extreme element.
static void encode_q4_0(const float *values, uint8_t *out)
{
    float d = extreme_of(values) / -8;
    set_f16(out, d);
    encode_bits(values, 0, d != 0 ? 1 / d : 0, 8.5f, 15, out + 2, NULL);
}

// q5_0: likewise.
static void encode_q5_0(const float *values, uint8_t *out)
{
    float d = extreme_of(values) / -16;
    set_f16(out, d);
    encode_bits(values, 0, d != 0 ? 1 / d : 0, 16.5f, 31, out + 6, out + 2);
}

// q4_1 and q5_1: returns d and stores m, from the least and the greatest element.
static float range_of(const float *values, int32_t most, float *minimum)
{
    float least = values[0], greatest = values[0];
    for (int32_t i = 1; i < 32; i++) {
        least = values[i] < least ? values[i] : least;
        greatest = values[i] > greatest ? values[i] : greatest;
    }
    *minimum = least;
    return (greatest - least) / (float)most;
}

// q4_1.
static void encode_q4_1(const float *values, uint8_t *out)
{
    float m, d = range_of(values, 15, &m);
    set_f16(out, d);
    set_f16(out + 2, m);
    encode_bits(values, m, d != 0 ? 1 / d : 0, 0.5f, 15, out + 4, NULL);
}

// q5_1.
static void encode_q5_1(const float *values, uint8_t *out)
{
    float m, d = range_of(values, 31, &m);
    set_f16(out, d);
    set_f16(out + 2, m);
    encode_bits(values, m, d != 0 ? 1 / d : 0, 0.5f, 31, out + 8, out + 4);
}

// x rounded to nearest, ties away from 0, within -127 .. 127; NaN gives 0. The fraction is
// compared, as adding 1/2 may round up by itself.
static int32_t rounded(float x)
{
    float magnitude = x < 0 ? -x : x;
    int32_t whole = clamped(magnitude, 127);
    whole += whole < 127 && magnitude - (float)whole >= 0.5f;
    return x < 0 ? -whole : whole;
}

// q8_0: d from the greatest magnitude.
static void encode_q8_0(const float *values, uint8_t *out)
{
    float extreme = extreme_of(values);
    float d = (extreme < 0 ? -extreme : extreme) / 127;
    float inverse = d != 0 ? 1 / d : 0;
    set_f16(out, d);
    for (int32_t i = 0; i < 32; i++)
        out[2 + i] = (uint8_t)(rounded(values[i] * inverse) & 255);
}

// Writes 16 bytes of q, the indices of those of 16 values whose products with d are
// nearest.
static void encode_nearest(const float *values, int32_t (*value)(int32_t), float d,
                           uint8_t *bytes)
{
    for (int32_t i = 0; i < 16; i++)
        bytes[i] = 0;
    for (int32_t i = 0; i < 32; i++) {
        int32_t best = 0;
        float error = 0;
        for (int32_t q = 0; q < 16; q++) {
            float apart = (float)value(q) * d - values[i];
            apart = apart < 0 ? -apart : apart;
            if (q == 0 || apart < error) {
                best = q;
                error = apart;
            }
        }
        set_nibble(bytes, i, best);
    }
}

// mxfp4: the exponent is the greatest magnitude's less 2, the exponent of the format's
// greatest value, 6. Magnitudes below 2^-124 get the least scale.
static void encode_mxfp4(const float *values, uint8_t *out)
{
    union {
        float f;
        uint32_t u;
    } v;
    v.f = extreme_of(values);
    uint32_t exponent = v.u >> 23 & 255;
    out[0] = (uint8_t)(exponent > 2 ? exponent - 2 : 0);
    encode_nearest(values, tn_quant_mxfp4_value, tn_quant_half_scale(out[0]), out + 1);
}

#endif // QUANT_ENCODE_H
