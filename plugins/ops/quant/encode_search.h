// SPDX-License-Identifier: MIT
// Encoding of formats whose blocks are searched for: formats of 256 elements, and iq4_nl.
// encode.h has the formats with a plain rule.
//
// A function writes the block with the least squared error that it finds, the same for
// equal values on every processor. NaN counts as 0; magnitudes beyond 2^20, and infinity,
// as 2^20.
//
// Formats of 256 elements have parts, each with a scale (and a minimum) of few bits. Three
// steps find a block:
//
//   1. each part by itself, with any float as its scale: candidates near the scale that
//      the extreme elements suggest. Least squares give the best scale for the fractions of
//      a candidate, and the candidate of least error wins.
//   2. the block's d (and m): the greatest scale at the end of its range, rounded to f16.
//   3. refinement: each part takes the integers next to its scale (and minimum) where that
//      reduces the error, with its fractions rounded anew; then least squares over the
//      block give d (and m), kept where they reduce the error. Until nothing improves.
//
// Squared errors have weights, which are 1 where none are given. iq4_nl is one part, whose
// scale is d; with weights, q4_0 and q5_0 are searched for in the same way.
//
// Threads. Pure functions: any thread. None fails.
#ifndef QUANT_ENCODE_SEARCH_H
#define QUANT_ENCODE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tenon/ops/quant.h>

// The formats that are searched for: X(name) for encode_<name>.
#define SEARCHED_FORMATS(X)                                                                \
    X(q2_k)                                                                                \
    X(q3_k)                                                                                \
    X(q4_k)                                                                                \
    X(q5_k)                                                                                \
    X(q6_k)                                                                                \
    X(iq4_nl)                                                                              \
    X(iq4_xs)

#define DECLARE(name) void encode_##name(const float *values, uint8_t *out);
SEARCHED_FORMATS(DECLARE)
#undef DECLARE

// Formats that take weights, positive and finite: X(name) for weigh_<name>.
#define WEIGHED_FORMATS(X)                                                                 \
    SEARCHED_FORMATS(X)                                                                    \
    X(q4_0)                                                                                \
    X(q5_0)

#define DECLARE(name)                                                                      \
    void weigh_##name(const float *values, const float *weights, uint8_t *out);
WEIGHED_FORMATS(DECLARE)
#undef DECLARE

// --- shared by both searches -------------------------------------------------------------

#define BLOCK 256
#define MAX_PARTS 16
#define MAX_PART 32
#define ROUNDS 3            // of refinement
#define GREATEST 1048576.0f // of magnitudes: in range of all formats, with finite squares
#define LEAST_MAGNITUDE 1e-15f // squares of smaller magnitudes would be lost
#define MAX_F16 65504.0f
#define ROUNDING 3e-7f // relative difference of sums of squares that is rounding

// x rounded to nearest, ties to even, for |x| < 2^22.
static inline float to_nearest(float x)
{
    return x + 12582912.0f - 12582912.0f;
}

static inline float within(float x, float least, float most)
{
    x = x < least ? least : x;
    return x > most ? most : x;
}

// The nearest finite f16, as a float.
static inline float as_f16(float x)
{
    return tn_f32_of_f16(tn_f16_of_f32(within(x, -MAX_F16, MAX_F16)));
}

// As as_f16(), for a scale whose integers reach the end of their range. Below the least
// normal f16, where steps are coarse, takes the next f16 of greater magnitude, so that no
// integer is cut off and not all become 0.
static inline float scale_f16(float x)
{
    const float step = 0x1p-24f, magnitude = x < 0 ? -x : x;
    if (magnitude >= 0x1p-14f)
        return as_f16(x);
    float steps = (float)(int32_t)(magnitude / step);
    steps += steps * step < magnitude;
    return x < 0 ? -steps * step : steps * step;
}

// Copies the block with NaN as 0, and infinity and magnitudes beyond GREATEST as GREATEST.
static inline void tame(const float *values, int32_t count, float *out)
{
    for (int32_t i = 0; i < count; i++) {
        float x = values[i];
        out[i] = x != x ? 0 : within(x, -GREATEST, GREATEST);
    }
}

static inline float total(const float *errors, int32_t count)
{
    float sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += errors[i];
    return sum;
}

// --- parts of blocks, for encode.h too ---------------------------------------------------

// Stores `value` as an f16 at `p`, rounded to nearest; returns the stored value.
static inline float set_f16(uint8_t *p, float value)
{
    uint16_t bits = tn_f16_of_f32(value);
    p[0] = (uint8_t)(bits & 255);
    p[1] = (uint8_t)(bits >> 8);
    return tn_f32_of_f16(bits);
}

// Stores four bits as element i of 32, in 16 bytes that were 0.
static inline void set_nibble(uint8_t *bytes, int32_t i, int32_t q)
{
    bytes[i & 15] = (uint8_t)(bytes[i & 15] | (q & 15) << (i < 16 ? 0 : 4));
}

#endif // QUANT_ENCODE_SEARCH_H
