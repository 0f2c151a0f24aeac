// SPDX-License-Identifier: MIT
// Quantised weights, as <tenon/ops/quant.h> defines them: eight elements at a time. FORMAT: a
// name of TN_QUANT_FORMATS. Only mxfp4 has blocks of an odd number of bytes: those of others
// lie at even ones, and are read in words of 16 bits.
//
// Part p of a row is elements 32 * (p / 4) + 4 * (p % 4) and the three behind, and the same 16
// behind (low and high). In formats of 32 elements these are the low and the high bits of four
// bytes (q8_0: bytes of their own). Parts that neighbouring invocations take are neighbours in
// memory.
//
// The including file defines W_BINDING, and w_odd(): whether arrays begin at an odd byte,
// where a word is made of two (of mxfp4 each place says so).

#define q4_0 40 // FORMAT is compared as a number
#define q4_1 41
#define q5_0 50
#define q5_1 51
#define q8_0 80
#define q2_k 2
#define q3_k 3
#define q4_k 4
#define q5_k 5
#define q6_k 6
#define iq4_nl 42
#define iq4_xs 43
#define mxfp4 44

// By format: UNITS of a block (words of 16 bits; of mxfp4 bytes), and ZERO, which is what a
// fraction, 0 .. 255, has too much.
#if FORMAT == q4_0
#define UNITS 9u
#define ZERO 8
#elif FORMAT == q4_1
#define UNITS 10u
#define ZERO 0
#elif FORMAT == q5_0
#define UNITS 11u
#define ZERO 16
#elif FORMAT == q5_1
#define UNITS 12u
#define ZERO 0
#elif FORMAT == q8_0
#define UNITS 17u
#define ZERO 128
#elif FORMAT == q2_k
#define UNITS 42u
#define ZERO 0
#elif FORMAT == q3_k
#define UNITS 55u
#define ZERO 4
#elif FORMAT == q4_k
#define UNITS 72u
#define ZERO 0
#elif FORMAT == q5_k
#define UNITS 88u
#define ZERO 0
#elif FORMAT == q6_k
#define UNITS 105u
#define ZERO 32
#elif FORMAT == iq4_nl
#define UNITS 9u
#define ZERO 128
#elif FORMAT == iq4_xs
#define UNITS 68u
#define ZERO 128
#else
#define UNITS 17u
#define ZERO 128
#endif

#if FORMAT == q2_k || FORMAT == q3_k || FORMAT == q4_k || FORMAT == q5_k || FORMAT == q6_k || FORMAT == iq4_xs
#define BLOCK 256u // elements
#else
#define BLOCK 32u
#endif
#if FORMAT == q4_1 || FORMAT == q5_1 || FORMAT == q2_k || FORMAT == q4_k || FORMAT == q5_k
#define HAS_MINIMUM 1
#else
#define HAS_MINIMUM 0
#endif
// Whether 16 elements have a scale, so that the high ones of a part have another.
#if FORMAT == q2_k || FORMAT == q3_k || FORMAT == q6_k
#define HAS_HALVES 1
#else
#define HAS_HALVES 0
#endif
// Whether 4 bits choose a value: four bytes a word, of the value + 128.
#if FORMAT == iq4_nl || FORMAT == iq4_xs
#define HAS_TABLE 1
const uvec4 table = uvec4(0x3f2d1801u, 0x766a5d4fu, 0xa6998d81u, 0xf1d9c5b5u);
#elif FORMAT == mxfp4
#define HAS_TABLE 1
const uvec4 table = uvec4(0x83828180u, 0x8c888684u, 0x7d7e7f80u, 0x74787a7cu);
#else
#define HAS_TABLE 0
#endif

layout(std430, binding = W_BINDING) readonly buffer Weights { uint16_t d[]; } weights;

uint weight_word(uint at)
{
#if FORMAT == mxfp4
    uint first = at / 2u;
    bool is_odd = at % 2u != 0u;
#else
    uint first = at;
    bool is_odd = w_odd();
#endif
    uint word = uint(weights.d[first]);
    return is_odd ? word >> 8 | (uint(weights.d[first + 1u]) & 0xffu) << 8 : word;
}
#if FORMAT == mxfp4
#define WORD 2u
#else
#define WORD 1u
#endif
uint weight_pair(uint at)
{
    return weight_word(at) | weight_word(at + WORD) << 16;
}
// Byte `byte` of what begins at `at`.
uint weight_byte(uint at, uint byte)
{
    return weight_word(at + byte / 2u) >> (byte % 2u * 8u) & 0xffu;
}

// A part: the fractions of the low and of the high elements, a byte each, then what
// part_scales() reads. `at`: the row's first unit.
uvec4 part_load(uint at, uint part)
{
    uint j = part % 4u;
    at += part / (BLOCK / 8u) * UNITS;
#if BLOCK == 32u
#if FORMAT == q8_0
    return uvec4(weight_pair(at + 1u + 2u * j), weight_pair(at + 9u + 2u * j), weight_word(at), 0u) ^
           uvec4(0x80808080u, 0x80808080u, 0u, 0u);
#elif FORMAT == mxfp4
    uint scales = weight_word(at) & 0xffu, bits = weight_pair(at + 1u + 4u * j);
#elif HAS_MINIMUM
    uint scales = weight_pair(at), bits = weight_pair(at + UNITS - 8u + 2u * j);
#else
    uint scales = weight_word(at), bits = weight_pair(at + UNITS - 8u + 2u * j);
#endif
#if FORMAT != q8_0
    uvec2 fractions = uvec2(bits, bits >> 4) & 0x0f0f0f0fu;
#if FORMAT == q5_0 || FORMAT == q5_1
    // Bits 0 .. 3 of a fifth go to the bytes by one product.
    uint fifth = weight_pair(at + UNITS - 10u) >> (4u * j);
    fractions |= ((uvec2(fifth, fifth >> 16) & 15u) * 0x204081u & 0x01010101u) << 4;
#endif
    return uvec4(fractions, scales, 0u);
#endif
#else
    uint s = part % 32u / 4u, half_of = s / 4u, shift = s % 4u * 2u;
#if FORMAT == q2_k
    uint from = at + 8u + 16u * half_of + 2u * j;
    uvec2 fractions = uvec2(weight_pair(from), weight_pair(from + 8u)) >> shift & 0x03030303u;
    uint both = weight_word(at + s);
    return uvec4(fractions, weight_pair(at + 40u), (both & 0x0f0fu) | (both & 0xf0f0u) << 12);
#elif FORMAT == q3_k
    uint from = at + 16u + 16u * half_of + 2u * j, high = at + 2u * j;
    uvec2 fractions = uvec2(weight_pair(from), weight_pair(from + 8u)) >> shift & 0x03030303u;
    fractions |= (uvec2(weight_pair(high), weight_pair(high + 8u)) >> s & 0x01010101u) << 2;
    uint scales = weight_word(at + 48u + s % 4u) >> (4u * half_of) & 0x0f0fu;
    scales |= (weight_word(at + 52u + s % 2u) >> (s / 2u * 2u) & 0x0303u) << 4;
    return uvec4(fractions, weight_word(at + 54u), scales);
#elif FORMAT == q4_k || FORMAT == q5_k
    uint from = at + UNITS - 64u + s / 2u * 16u + 2u * j;
    uvec2 fractions =
        uvec2(weight_pair(from), weight_pair(from + 8u)) >> (s % 2u * 4u) & 0x0f0f0f0fu;
#if FORMAT == q5_k
    uint high = at + 8u + 2u * j;
    fractions |= (uvec2(weight_pair(high), weight_pair(high + 8u)) >> s & 0x01010101u) << 4;
#endif
    uint scale = weight_byte(at, 4u + s % 4u), minimum = weight_byte(at, 8u + s % 4u);
    if (s >= 4u) {
        uint both = weight_byte(at, 8u + s);
        scale = (both & 15u) | scale >> 6 << 4;
        minimum = both >> 4 | minimum >> 6 << 4;
    }
    return uvec4(fractions, weight_pair(at), (scale & 63u) | (minimum & 63u) << 16);
#elif FORMAT == q6_k
    uint from = at + 32u * half_of + s % 2u * 16u + 2u * j, high = at + 64u + 16u * half_of + 2u * j;
    uvec2 fractions =
        uvec2(weight_pair(from), weight_pair(from + 8u)) >> (s % 4u / 2u * 4u) & 0x0f0f0f0fu;
    fractions |= (uvec2(weight_pair(high), weight_pair(high + 8u)) >> shift & 0x03030303u) << 4;
    return uvec4(fractions, weight_word(at + 104u), weight_word(at + 96u + s));
#else
    uint bits = weight_pair(at + 4u + 8u * s + 2u * j);
    uint scale = weight_byte(at, 4u + s / 2u) >> (s % 2u * 4u) & 15u;
    scale |= (weight_word(at + 1u) >> (2u * s) & 3u) << 4;
    return uvec4(uvec2(bits, bits >> 4) & 0x0f0f0f0fu, weight_word(at), scale);
#endif
#endif
}

// What a fraction of a part means: the integer that a scale multiplies, and ZERO.
uint fraction_value(uint q)
{
#if HAS_TABLE
    uint four = q < 8u ? (q < 4u ? table.x : table.y) : (q < 12u ? table.z : table.w);
    return four >> (q % 4u * 8u) & 0xffu;
#else
    return q;
#endif
}

// A small integer under the exponent of 2^23 is a float: one operation instead of a
// conversion, whose rate is lower. The difference is exact.
float integer_of(uint q)
{
    return uintBitsToFloat(0x4b000000u | fraction_value(q)) - (8388608.0 + float(ZERO));
}

// The integers that a block's scales multiply.
void part_integers(uvec4 part, out vec4 low, out vec4 high)
{
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        low[i] = integer_of(part.x >> (8u * i) & 0xffu);
        high[i] = integer_of(part.y >> (8u * i) & 0xffu);
    }
}

// The scale and the minimum of the low elements, and those of the high ones. All products
// here are exact.
vec4 part_scales(uvec4 part)
{
    vec2 head = unpackHalf2x16(part.z);
#if FORMAT == mxfp4
    // 2^(e - 128), by the fields of a float: below 2^-126 it is subnormal.
    return vec4(uintBitsToFloat(part.z < 2u ? 0x200000u << part.z : part.z - 1u << 23), 0.0, 0.0, 0.0).xyxy;
#elif FORMAT == q2_k
    uvec4 integers = uvec4(part.w, part.w >> 16, part.w >> 8, part.w >> 24) & 15u;
    return vec4(integers) * vec4(head.x, -head.y, head.x, -head.y);
#elif FORMAT == q4_k || FORMAT == q5_k
    return (vec2(uvec2(part.w, part.w >> 16) & 63u) * vec2(head.x, -head.y)).xyxy;
#elif FORMAT == q3_k
    return vec4(float(part.w & 63u) - 32.0, 0.0, float(part.w >> 8 & 63u) - 32.0, 0.0) * head.x;
#elif FORMAT == q6_k
    return vec4(float(bitfieldExtract(int(part.w), 0, 8)), 0.0, float(bitfieldExtract(int(part.w), 8, 8)), 0.0) * head.x;
#elif FORMAT == iq4_xs
    return vec4((float(part.w) - 32.0) * head.x, 0.0, 0.0, 0.0).xyxy;
#elif HAS_MINIMUM
    return head.xyxy;
#else
    return vec4(head.x, 0.0, head.x, 0.0);
#endif
}

// An element of these: a product, and with a minimum its sum with that.
float part_value(float integer, vec2 scales)
{
#if HAS_MINIMUM
    return integer * scales.x + scales.y;
#else
    return integer * scales.x;
#endif
}
