// SPDX-License-Identifier: MIT
// Quantised weights, as <tenon/ops/quant.h> defines them: eight elements at a time. FORMAT: a
// name of TN_QUANT_FORMATS. Only mxfp4 has blocks of an odd number of bytes: those of others
// lie at even ones, and are read in words of 16 bits.
//
// Part p of a row is elements 32 * (p / 4) + 4 * (p % 4) and the three behind, and the same 16
// behind (low and high). In formats of 32 elements these are the low and the high bits of four
// bytes (q8_0: bytes of their own). Parts that adjacent invocations take are adjacent in
// memory.
//
// The including file defines W_BINDING, and w_odd(): whether arrays begin at an odd byte,
// where a word is made of two (of mxfp4 each position says so). Where it defines PAIRS_BINDING, and
// w_in_pairs() is true, packed rows begin at a multiple of four bytes and are read by as many.

// The formats' numbers, of which FORMAT is one; BLOCK, its elements; whether IS_LARGE; UNITS of a block
// (words of 16 bits; of mxfp4 bytes); PACKED_HEAD; values that 4 bits choose (../pack/formats.py).
#include "formats.glsl"

// HEAD, where rows may be packed: the words that come first.
#if FORMAT == q4_0 || FORMAT == q4_1 || FORMAT == q8_0 || FORMAT == q4_k || FORMAT == q5_k || FORMAT == q6_k
#define HEAD PACKED_HEAD
#endif
// The offset of a fraction, 0 .. 255.
#if FORMAT == q4_0
#define ZERO 8
#elif FORMAT == q5_0
#define ZERO 16
#elif FORMAT == q3_k
#define ZERO 4
#elif FORMAT == q6_k
#define ZERO 32
#elif FORMAT == q8_0 || FORMAT == iq4_nl || FORMAT == iq4_xs || FORMAT == mxfp4
#define ZERO 128
#else
#define ZERO 0
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
const uvec4 table = VALUES_iq4;
#elif FORMAT == mxfp4
#define HAS_TABLE 1
const uvec4 table = VALUES_mxfp4;
#else
#define HAS_TABLE 0
#endif

layout(std430, binding = W_BINDING) readonly buffer Weights { uint16_t d[]; } weights;
#ifdef PAIRS_BINDING
layout(std430, binding = PAIRS_BINDING) readonly buffer Pairs { uint d[]; } weight_pairs; // the same
#endif

// A row of blocks, or one of its blocks.
struct Row {
    uint at;     // the first unit; of packed rows that of all 16
    uint stride; // units from a block to the next
    uint own;    // of packed rows the number among 16; 16: the row is not packed
};

// Row `row` of `terms` elements; those below `num_packed` are packed.
Row weight_row(uint first, uint row, uint terms, uint num_packed)
{
    uint units = terms / BLOCK * UNITS;
    if (row < num_packed)
        return Row(first + row / 16u * 16u * units, 16u * UNITS, row % 16u);
    return Row(first + row * units, UNITS, 16u);
}

#ifdef HEAD
// The position, in a packed block, of word `unit` of a block.
uint packed_unit(uint unit)
{
#if FORMAT == q6_k
    // As tn_quant_arrange: the scale, those of 16 elements, then 2 and 4 bits of each half.
    return unit == 104u  ? 0u
           : unit >= 96u ? unit - 95u
           : unit >= 80u ? unit - 23u
           : unit >= 64u ? unit - 55u
           : unit >= 32u ? unit + 41u
                         : unit + 25u;
#else
    return unit;
#endif
}
#endif

uint weight_word(Row row, uint unit)
{
#if FORMAT == mxfp4
    uint at = (row.at + unit) / 2u;
    bool is_odd = (row.at + unit) % 2u != 0u;
#else
    uint at = row.at + unit;
    bool is_odd = w_odd();
#endif
#ifdef HEAD
    // As tn_quant_r16_at, in words.
    if (row.own < 16u) {
        unit = packed_unit(unit);
        if (unit < HEAD) {
            at = row.at + unit * 16u + row.own;
        } else {
            uint word = unit - HEAD, left = UNITS - HEAD - word / 2u * 2u;
            at = row.at + HEAD * 16u + word / 2u * 32u + row.own * min(left, 2u) + word % 2u;
        }
    }
#endif
    uint word = uint(weights.d[at]);
    return is_odd ? word >> 8 | (uint(weights.d[at + 1u]) & 0xffu) << 8 : word;
}
#if FORMAT == mxfp4
#define WORD 2u
#else
#define WORD 1u
#endif
uint weight_pair(Row row, uint unit)
{
#if defined PAIRS_BINDING && defined HEAD
    uint from_head = packed_unit(unit) - HEAD;
    if (w_in_pairs() && row.own < 16u && unit >= HEAD && from_head % 2u == 0u)
        return weight_pairs.d[row.at / 2u + HEAD * 8u + from_head / 2u * 16u + row.own];
#endif
    return weight_word(row, unit) | weight_word(row, unit + WORD) << 16;
}

// The words of a part, and of the scales of 32 elements in blocks of 256: as they lie in memory, so
// that nothing waits for them yet. The part is j of the four of 32 elements.
struct Head {
    uvec4 a;
    uint b;
};

Head head_fetch(Row row, uint number_of_32)
{
    row.at += number_of_32 / 8u * row.stride;
    uint s = number_of_32 % 8u, own = s % 4u / 2u;
    Head head = Head(uvec4(0u), 0u);
#if FORMAT == q2_k
    head.a.xyz = uvec3(weight_word(row, 40u), weight_word(row, 41u), weight_word(row, s));
#elif FORMAT == q3_k
    head.a.xyz = uvec3(weight_word(row, 54u), weight_word(row, 48u + s % 4u), weight_word(row, 52u + s % 2u));
#elif FORMAT == q4_k || FORMAT == q5_k
    head.a = uvec4(weight_word(row, 0u), weight_word(row, 1u), weight_word(row, 2u + own), weight_word(row, 4u + own));
    head.b = weight_word(row, 4u + s / 2u);
#elif FORMAT == q6_k
    head.a.xy = uvec2(weight_word(row, 104u), weight_word(row, 96u + s));
#elif FORMAT == iq4_xs
    head.a.xyz = uvec3(weight_word(row, 0u), weight_word(row, 2u + s / 4u), weight_word(row, 1u));
#endif
    return head;
}

uvec4 part_fetch(Row row, uint number_of_32, uint j)
{
    row.at += number_of_32 / (BLOCK / 32u) * row.stride;
    uvec4 read = uvec4(0u);
#if FORMAT == q8_0
    read.xyz = uvec3(weight_pair(row, 1u + 2u * j), weight_pair(row, 9u + 2u * j), weight_word(row, 0u));
#elif FORMAT == mxfp4
    read.xz = uvec2(weight_pair(row, 1u + 4u * j), weight_word(row, 0u));
#elif !IS_LARGE
    read.xz = uvec2(weight_pair(row, UNITS - 8u + 2u * j), weight_word(row, 0u));
#if HAS_MINIMUM
    read.w = weight_word(row, 1u);
#endif
#if FORMAT == q5_0 || FORMAT == q5_1
    read.y = weight_pair(row, UNITS - 10u);
#endif
#else
    uint s = number_of_32 % 8u, half_of = s / 4u;
#if FORMAT == q2_k
    uint from = 8u + 16u * half_of + 2u * j;
#elif FORMAT == q3_k
    uint from = 16u + 16u * half_of + 2u * j, high = 2u * j;
#elif FORMAT == q4_k || FORMAT == q5_k
    uint from = UNITS - 64u + s / 2u * 16u + 2u * j, high = 8u + 2u * j;
#elif FORMAT == q6_k
    uint from = 32u * half_of + s % 2u * 16u + 2u * j, high = 64u + 16u * half_of + 2u * j;
#else
    uint from = 4u + 8u * s + 2u * j;
#endif
    read.x = weight_pair(row, from);
#if FORMAT != iq4_xs
    read.y = weight_pair(row, from + 8u);
#endif
#if FORMAT == q3_k || FORMAT == q5_k || FORMAT == q6_k
    read.zw = uvec2(weight_pair(row, high), weight_pair(row, high + 8u));
#endif
#endif
    return read;
}

// A part: the fractions of the low and of the high elements, a byte each, then what
// part_scales() reads.
uvec4 part_unpack(uvec4 read, Head head, uint number_of_32, uint j)
{
#if FORMAT == q8_0
    return read ^ uvec4(0x80808080u, 0x80808080u, 0u, 0u);
#elif !IS_LARGE
    uvec2 fractions = uvec2(read.x, read.x >> 4) & 0x0f0f0f0fu;
#if FORMAT == q5_0 || FORMAT == q5_1
    // Bits 0 .. 3 of a fifth go to the bytes by one product.
    uint fifth = read.y >> (4u * j);
    fractions |= ((uvec2(fifth, fifth >> 16) & 15u) * 0x204081u & 0x01010101u) << 4;
#elif FORMAT == mxfp4
    read.z &= 0xffu;
#endif
    return uvec4(fractions, read.z | read.w << 16, 0u);
#else
    uint s = number_of_32 % 8u, half_of = s / 4u, shift = s % 4u * 2u;
#if FORMAT == q2_k
    uint both = head.a.z;
    return uvec4(read.xy >> shift & 0x03030303u, head.a.x | head.a.y << 16, (both & 0x0f0fu) | (both & 0xf0f0u) << 12);
#elif FORMAT == q3_k
    uvec2 fractions = (read.xy >> shift & 0x03030303u) | (read.zw >> s & 0x01010101u) << 2;
    uint scales = (head.a.y >> (4u * half_of) & 0x0f0fu) | (head.a.z >> (s / 2u * 2u) & 0x0303u) << 4;
    return uvec4(fractions, head.a.x, scales);
#elif FORMAT == q4_k || FORMAT == q5_k
    uvec2 fractions = read.xy >> (s % 2u * 4u) & 0x0f0f0f0fu;
#if FORMAT == q5_k
    fractions |= (read.zw >> s & 0x01010101u) << 4;
#endif
    uvec3 bytes = uvec3(head.a.zw, head.b) >> (s % 2u * 8u) & 0xffu;
    uint scale = bytes.x, minimum = bytes.y;
    if (s >= 4u) {
        scale = (bytes.z & 15u) | scale >> 6 << 4;
        minimum = bytes.z >> 4 | minimum >> 6 << 4;
    }
    return uvec4(fractions, head.a.x | head.a.y << 16, (scale & 63u) | (minimum & 63u) << 16);
#elif FORMAT == q6_k
    uvec2 fractions = (read.xy >> (s % 4u / 2u * 4u) & 0x0f0f0f0fu) | (read.zw >> shift & 0x03030303u) << 4;
    return uvec4(fractions, head.a.x, head.a.y);
#else
    uint scale = (head.a.y >> (s / 2u % 2u * 8u + s % 2u * 4u) & 15u) | (head.a.z >> (2u * s) & 3u) << 4;
    return uvec4(uvec2(read.x, read.x >> 4) & 0x0f0f0f0fu, head.a.x, scale);
#endif
#endif
}

uvec4 part_load(Row row, uint part)
{
    uint number_of_32 = part / 4u, j = part % 4u;
    return part_unpack(part_fetch(row, number_of_32, j), head_fetch(row, number_of_32), number_of_32, j);
}

// The value of a part's fraction: the integer that a scale multiplies, and ZERO.
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

// An element: a product of integer and scale, and with a minimum its sum with that.
float part_value(float integer, vec2 scales)
{
#if HAS_MINIMUM
    return integer * scales.x + scales.y;
#else
    return integer * scales.x;
#endif
}

#ifdef HALVES
// Four elements as floats of 16 bits (HALVES), in two words: elements 0 and 2, 1 and 3.
#ifdef IS_BF16
// Fractions below 128 are those bits of a float of 128; the difference is part of the minimum.
// Numbers are rounded by their bits, which suits finite numbers only: where a scale is NaN or infinite,
// so are the elements.
uvec2 part_halves(uint fractions, vec2 scales)
{
    vec4 values;
#if FORMAT == q8_0 || HAS_TABLE
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        values[i] = integer_of(fractions >> (8u * i) & 0xffu) * scales.x;
    float least = scales.x;
#else
    uvec4 shifted = uvec4(fractions << 16, fractions << 8, fractions, fractions >> 8);
    float least = scales.y - (128.0 + float(ZERO)) * scales.x;
    values = uintBitsToFloat(0x43000000u | shifted & 0xff0000u) * scales.x + least;
#endif
    uvec4 bits = floatBitsToUint(values) + 0x8000u;
    bool is_none = (floatBitsToUint(least) & 0x7f800000u) == 0x7f800000u;
    return (bits.xy >> 16 | (bits.zw & 0xffff0000u)) | (is_none ? 0x7fc07fc0u : 0u);
}

// A part as floats of 16 bits.
uvec4 part_floats(uvec4 part)
{
    vec4 scales = part_scales(part);
    return uvec4(part_halves(part.x, scales.xy), part_halves(part.y, scales.zw));
}
#else
// part_scales() as pairs of f16.
uvec4 part_scale_pairs(uvec4 part)
{
#if IS_LARGE || FORMAT == mxfp4
    vec4 scales = part_scales(part);
    return uvec4(packHalf2x16(scales.xx), packHalf2x16(scales.yy), packHalf2x16(scales.zz), packHalf2x16(scales.ww));
#else
    return (uvec2(part.z, part.z >> 16) & 0xffffu).xyxy * 0x10001u;
#endif
}

// Not 0 where a scale or a minimum is 256 or more, so that elements might leave f16.
uint part_excess(uvec4 part)
{
    uvec4 sizes = (part_scale_pairs(part) & 0x7fff7fffu) + 0x24002400u;
    sizes |= sizes.zwzw;
#if HAS_MINIMUM
    sizes.x |= sizes.y;
#endif
    return sizes.x & 0x80008000u;
}

// Two fractions under the exponent of 1024 are f16; the difference is exact.
f16vec2 pair_integers(uint fractions)
{
    return unpackFloat2x16(fractions & 0x00ff00ffu | 0x64006400u) - f16vec2(float16_t(1024.0 + float(ZERO)));
}

uvec2 part_halves(uint fractions, uvec2 scales)
{
#if HAS_TABLE
    uint values = 0u;
    [[unroll]] for (uint i = 0u; i < 32u; i += 8u)
        values |= fraction_value(fractions >> i & 0xffu) << i;
    fractions = values;
#endif
    f16vec2 scale = unpackFloat2x16(scales.x);
    f16vec2 even = pair_integers(fractions) * scale, odd = pair_integers(fractions >> 8) * scale;
#if HAS_MINIMUM
    even += unpackFloat2x16(scales.y);
    odd += unpackFloat2x16(scales.y);
#endif
    return uvec2(packFloat2x16(even), packFloat2x16(odd));
}

uvec4 part_floats(uvec4 part)
{
    uvec4 scales = part_scale_pairs(part);
    return uvec4(part_halves(part.x, scales.xy), part_halves(part.y, scales.zw));
}
#endif
#endif
