// SPDX-License-Identifier: MIT
// Encoding of the formats whose blocks are searched for: those of 256 elements, and iq4_nl.
// encode.h has the formats with a plain rule.
//
// A function writes the block of least squared error that it finds; the same for the same
// values, on every processor. NaN counts as 0, and magnitudes beyond 2^20, infinity among
// them, as 2^20.
//
// Formats of 256 elements have parts, each with a scale (and a minimum) of few bits. Three
// steps give a block:
//
//   1. each part by itself: a scale that is any float, of those near the one that the
//      extreme elements ask for. For the fractions that a candidate leads to, the best
//      scale is that of least squares, and the candidate of least error wins.
//   2. the block's d (and m): the greatest scale at the end of its range, rounded to f16.
//   3. refinement: each part takes the integers next to its scale (and minimum) where the
//      error falls, its fractions rounded anew; then least squares over the block give d
//      (and m), which are kept where the error falls. Until nothing falls.
//
// Squared errors count by weights, which are 1 where none are given. iq4_nl is one part,
// whose d is its scale; with weights q4_0 and q5_0 are searched for like it.
//
// Threads. Pure functions: any thread. None fails.
#ifndef QUANT_ENCODE_SEARCH_H
#define QUANT_ENCODE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tenon/ops/quant.h>

// The formats: X(name) for encode_<name>.
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

// --- what both searches share ------------------------------------------------------------

#define BLOCK 256
#define MAX_PARTS 16
#define MAX_PART 32
#define ROUNDS 3               // of refinement
#define GREATEST 1048576.0f    // of magnitudes: all formats reach it, squares stay finite
#define LEAST_MAGNITUDE 1e-15f // squares of smaller ones would be lost
#define MAX_F16 65504.0f
#define ROUNDING 3e-7f // of sums of squares: what two candidates may differ by

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

// The f16 that is nearest and finite, as a float.
static inline float as_f16(float x)
{
    return tn_f32_of_f16(tn_f16_of_f32(within(x, -MAX_F16, MAX_F16)));
}

// The same for a scale whose integers reach to their end: below the least normal f16, where
// steps are coarse, the next one of greater magnitude, so that none is cut off, nor all of
// them 0.
static inline float scale_f16(float x)
{
    const float step = 0x1p-24f, magnitude = x < 0 ? -x : x;
    if (magnitude >= 0x1p-14f)
        return as_f16(x);
    float steps = (float)(int32_t)(magnitude / step);
    steps += steps * step < magnitude;
    return x < 0 ? -steps * step : steps * step;
}

// The block with NaN as 0 and infinities, as all that is greater, as GREATEST.
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

// Stores `value` as an f16 at `p`, rounded to nearest; gives what was stored.
static inline float set_f16(uint8_t *p, float value)
{
    uint16_t bits = tn_f16_of_f32(value);
    p[0] = (uint8_t)(bits & 255);
    p[1] = (uint8_t)(bits >> 8);
    return tn_f32_of_f16(bits);
}

// Stores four bits of element i of 32, in 16 bytes that were 0.
static inline void set_nibble(uint8_t *bytes, int32_t i, int32_t q)
{
    bytes[i & 15] = (uint8_t)(bytes[i & 15] | (q & 15) << (i < 16 ? 0 : 4));
}

#endif // QUANT_ENCODE_SEARCH_H
