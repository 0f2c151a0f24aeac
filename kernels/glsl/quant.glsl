// SPDX-License-Identifier: MIT
// Quantised weights, as <tenon/ops/quant.h> defines them: eight elements of a block of 32 at a
// time. FORMAT: q4_0, q4_1, q5_0, q5_1 or q8_0. Blocks are even numbers of bytes, and lie at
// no others than these: they are read in words of 16 bits.
//
// Part j, 0 .. 3, of a block is elements 4 * j .. 4 * j + 3, and the same 16 behind. These are
// the low and the high bits of four bytes (q8_0: bytes of their own). Parts of a block that
// neighbouring invocations take are neighbours in memory.
//
// The including file defines W_BINDING, and w_odd(): whether arrays begin at an odd byte,
// where a word is made of two.

#define q4_0 40 // FORMAT is compared as a number
#define q4_1 41
#define q5_0 50
#define q5_1 51
#define q8_0 80
#if FORMAT == q4_1 || FORMAT == q5_1
#define HAS_MINIMUM 1
#else
#define HAS_MINIMUM 0
#endif
#if FORMAT == q8_0
#define FRACTION_BITS 8
#define BLOCK_WORDS 17u // of 16 bits
#elif FORMAT == q5_0 || FORMAT == q5_1
#define FRACTION_BITS 5
#define BLOCK_WORDS (11u + uint(HAS_MINIMUM))
#else
#define FRACTION_BITS 4
#define BLOCK_WORDS (9u + uint(HAS_MINIMUM))
#endif

layout(std430, binding = W_BINDING) readonly buffer Weights { uint16_t d[]; } weights;

uint weight_word(uint at)
{
    uint word = uint(weights.d[at]);
    return w_odd() ? word >> 8 | (uint(weights.d[at + 1u]) & 0xffu) << 8 : word;
}
uint weight_pair(uint at)
{
    return weight_word(at) | weight_word(at + 1u) << 16;
}

// A part as memory holds it: the bytes of its elements, their fifth bits or (q8_0) further
// bytes, and the scale with the minimum above it. `at`: the block's first word.
uvec3 part_load(uint at, uint j)
{
#if HAS_MINIMUM
    uint scales = weight_pair(at), rest = at + 2u;
#else
    uint scales = weight_word(at), rest = at + 1u;
#endif
#if FRACTION_BITS == 8
    return uvec3(weight_pair(rest + 2u * j), weight_pair(rest + 8u + 2u * j), scales);
#elif FRACTION_BITS == 5
    return uvec3(weight_pair(rest + 2u + 2u * j), weight_pair(rest) >> (4u * j), scales);
#else
    return uvec3(weight_pair(rest + 2u * j), 0u, scales);
#endif
}

// The integers that a block's scale multiplies: of the first elements and of those 16 behind.
void part_integers(uvec3 part, out vec4 low, out vec4 high)
{
#if FRACTION_BITS == 8
    [[unroll]] for (int i = 0; i < 4; i++) {
        low[i] = float(bitfieldExtract(int(part.x), 8 * i, 8));
        high[i] = float(bitfieldExtract(int(part.y), 8 * i, 8));
    }
#else
    // A small integer under the exponent of 2^23 is a float: one operation instead of a
    // conversion, whose rate is lower. The difference is exact.
    const uint exponent = 0x4b000000u;
#if HAS_MINIMUM
    const float zero = 8388608.0;
#elif FRACTION_BITS == 5
    const float zero = 8388608.0 + 16.0;
#else
    const float zero = 8388608.0 + 8.0;
#endif
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        uint a = part.x >> (8u * i) & 15u, b = part.x >> (8u * i + 4u) & 15u;
#if FRACTION_BITS == 5
        a |= (part.y >> i & 1u) << 4;
        b |= (part.y >> (16u + i) & 1u) << 4;
#endif
        low[i] = uintBitsToFloat(exponent | a) - zero;
        high[i] = uintBitsToFloat(exponent | b) - zero;
    }
#endif
}

// The scale and the minimum.
vec2 part_scales(uvec3 part)
{
#if HAS_MINIMUM
    return unpackHalf2x16(part.z);
#else
    return vec2(unpackHalf2x16(part.z).x, 0.0);
#endif
}
