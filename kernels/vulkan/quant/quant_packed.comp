#version 460
// SPDX-License-Identifier: MIT
// ROWS rows of x times the transposed matrix of packed rows of blocks (tn_quant_r16_at), at the
// rate at which these are read. FORMAT: as in quant.glsl. DOTS: x is rounded to bytes, 32
// elements to multiples of their greatest magnitude / 127, and products of four bytes are one
// instruction; otherwise they are of floats.
//
// Sixteen invocations, a strand, take a block of 16 rows: invocation 4 * word + quad reads
// sixteen bytes, which are word `word` of rows 4 * quad .. 4 * quad + 3, so that what it reads
// of x serves four rows, and a strand reads 256 bytes in one piece. A workgroup has 16 strands,
// which share the blocks of 16 rows, and takes several such groups of rows one after the other.
// Each invocation has EACH loads on their way, always: where a block is multiplied, the load of a
// later one begins, also of the next group.
//
// X_KIND: NORMED: rows of x are normalised by their root mean square first, and have a weight for
// each element, `beside`. The mean is there once x is read, so sums are of x times the weights, and
// what a row is divided by counts in the end. ROUNDED, with DOTS: `beside` is x in bytes, and X has
// their scales (quant_round.comp).
#include "program/types.glsl"
#ifdef DOTS
#extension GL_EXT_integer_dot_product : require
#include "quant_round.glsl"
#endif
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint X_ALIGNED = 0; // 1: x lies in memory, from a multiple of 4 elements on
layout(constant_id = 1) const uint X_KIND = 0;
#define NORMED 1u
#define ROUNDED 2u
layout(std430, binding = 0) readonly buffer X { float d[]; } x_source;
layout(std430, binding = 1) readonly buffer Weights { uvec4 d[]; } weights;
layout(std430, binding = 2) writeonly buffer Out { float d[]; } result;
layout(std430, binding = 3) readonly buffer Fours { vec4 d[]; } x_fours; // the same where X_ALIGNED is 1
layout(std430, binding = 4) readonly buffer Pairs { uvec2 d[]; } weight_pairs; // the weights
layout(std430, binding = 5) readonly buffer Beside { uvec4 d[]; } beside;
layout(push_constant) uniform Args {
    uint rows, columns, terms; // columns: of the result, and its row's length
    uint groups, each;         // of 16 packed rows; those of a workgroup
    uint x_offset, w_offset, out_offset; // of w: 16 bytes
    uint norm_offset; // vectors
    float eps;
} args;

#include "formats.glsl"

// By format: loads of fractions of an invocation; ZERO: the offset of a fraction.
#if FORMAT == q4_0
#define LOADS 1
#define ZERO 8
#elif FORMAT == q4_1
#define LOADS 1
#define ZERO 0
#elif FORMAT == q8_0
#define LOADS 2
#define ZERO 0
#elif FORMAT == q4_k
#define LOADS 11
#define ZERO 0
#elif FORMAT == q5_k
#define LOADS 13
#define ZERO 0
#else
#define LOADS 16
#define ZERO 32
#endif
// Pieces, that is, fours of low and of high elements; blocks that an invocation takes at a time.
// A block of 16 rows has BYTES uvec4s.
#if IS_LARGE
#define PIECES 8u
#define EACH 1u
#else
#define PIECES 1u
#define EACH 8u
#endif
#if FORMAT == q4_1 || FORMAT == q4_k || FORMAT == q5_k
#define HAS_MINIMUM 1
#else
#define HAS_MINIMUM 0
#endif

uvec4 loaded[EACH][LOADS];
uvec2 scale_halves[EACH], minimum_halves[EACH]; // of four rows
vec4 scale, minimum;                            // of the block that is multiplied

#define QUAD (gl_LocalInvocationIndex % 4u)
#define OWN_WORD (gl_LocalInvocationIndex / 4u % 4u)

// Four f16 of the invocation's rows, of the 16 that begin at `at`.
uvec2 load_halves(uint at)
{
    return weight_pairs.d[2u * at + QUAD];
}

vec4 floats_of_halves(uvec2 halves)
{
    return vec4(unpackHalf2x16(halves.x), unpackHalf2x16(halves.y));
}

// Loads this invocation's words of block `at`.
void load_block(uint i, uint at)
{
#if !IS_LARGE
    scale_halves[i] = load_halves(at);
#if HAS_MINIMUM
    minimum_halves[i] = load_halves(at + 2u);
#endif
    uint from = at + 2u + 2u * uint(HAS_MINIMUM) + 4u * OWN_WORD + QUAD;
    loaded[i][0] = weights.d[from];
#if LOADS == 2
    loaded[i][1] = weights.d[from + 16u];
#endif
#elif FORMAT == q6_k
    // 4 words of scales; of each half 8 words of 2 bits and 16 of 4 bits.
    scale_halves[i] = load_halves(at);
    at += 2u;
    [[unroll]] for (uint p = 0u; p < 8u; p++)
        loaded[i][p] = weights.d[at + 4u * ((p < 4u ? 12u : 20u) + 4u * p + OWN_WORD) + QUAD];
    [[unroll]] for (uint p = 0u; p < 4u; p++)
        loaded[i][8u + p] = weights.d[at + 4u * ((p < 2u ? 4u : 20u) + 4u * p + OWN_WORD) + QUAD];
    [[unroll]] for (uint p = 0u; p < 4u; p++)
        loaded[i][12u + p] = weights.d[at + 4u * p + QUAD];
#else
    scale_halves[i] = load_halves(at);
    minimum_halves[i] = load_halves(at + 2u) ^ 0x80008000u;
    [[unroll]] for (uint p = 0u; p < 3u; p++)
        loaded[i][p] = weights.d[at + 4u + 4u * p + QUAD];
    [[unroll]] for (uint p = 0u; p < uint(LOADS) - 3u; p++)
        loaded[i][3u + p] = weights.d[at + 16u + 4u * (4u * p + OWN_WORD) + QUAD];
#endif
}

// A piece of a block: elements, fractions of four rows, their scales and minima.
uint low_at, high_at;
uvec4 low, high;
vec4 low_scale, high_scale, low_minimum, high_minimum;

#if FORMAT == q4_k || FORMAT == q5_k
// The scales and the minima of part `s` of four rows, times those of the block.
void part_scales(uint i, uint s, out vec4 scales, out vec4 minima)
{
    uint shift = s % 4u * 8u;
    uvec4 a = loaded[i][0] >> shift, b = loaded[i][1] >> shift, c = loaded[i][2] >> shift;
    bool is_first = s < 4u;
    uvec4 integers = is_first ? a & 63u : (c & 15u) | (a >> 6 & 3u) << 4;
    scales = vec4(integers) * scale;
    integers = is_first ? b & 63u : (c >> 4 & 15u) | (b >> 6 & 3u) << 4;
    minima = vec4(integers) * minimum;
}
#endif

void read_piece(uint i, uint p)
{
#if !IS_LARGE
    low_at = 4u * OWN_WORD;
    high_at = low_at + 16u;
#if FORMAT == q8_0
    low = loaded[i][0];
    high = loaded[i][1];
#else
    low = loaded[i][0] & 0x0f0f0f0fu;
    high = loaded[i][0] >> 4 & 0x0f0f0f0fu;
#endif
    low_scale = high_scale = scale;
    low_minimum = high_minimum = minimum;
#elif FORMAT == q6_k
    // Load p has words 4 * p + word: of half p / 4, word 4 * (p % 4) + word of 16.
    uint half_of = p / 4u, of_32 = p % 4u / 2u;
    low_at = 128u * half_of + 16u * (p % 4u) + 4u * OWN_WORD;
    high_at = low_at + 64u;
    uvec4 two = loaded[i][8u + 2u * half_of + p % 2u] >> (2u * of_32);
    low = (loaded[i][p] & 0x0f0f0f0fu) | (two & 0x03030303u) << 4;
    high = (loaded[i][p] >> 4 & 0x0f0f0f0fu) | (two >> 4 & 0x03030303u) << 4;
    // Scales 8 * half_of + p % 4, and 4 behind.
    uint shift = p % 4u * 8u;
    low_scale = scale * vec4(ivec4(loaded[i][12u + 2u * half_of] << (24u - shift)) >> 24);
    high_scale = scale * vec4(ivec4(loaded[i][13u + 2u * half_of] << (24u - shift)) >> 24);
#else
    // Load p has words 4 * p + word: of quarter p / 2, word 4 * (p % 2) + word of 8.
    uint quarter = p / 2u;
    low_at = 64u * quarter + 16u * (p % 2u) + 4u * OWN_WORD;
    high_at = low_at + 32u;
    uvec4 bits = loaded[i][uint(LOADS) - 8u + p];
    low = bits & 0x0f0f0f0fu;
    high = bits >> 4 & 0x0f0f0f0fu;
#if FORMAT == q5_k
    uvec4 fifth = loaded[i][3u + p % 2u] >> (2u * quarter);
    low |= (fifth & 0x01010101u) << 4;
    high |= (fifth >> 1 & 0x01010101u) << 4;
#endif
    part_scales(i, 2u * quarter, low_scale, low_minimum);
    part_scales(i, 2u * quarter + 1u, high_scale, high_minimum);
#endif
}

vec4 load_x(uint at)
{
    if (X_ALIGNED != 0u)
        return x_fours.d[at / 4u];
    return vec4(x_source.d[at], x_source.d[at + 1u], x_source.d[at + 2u], x_source.d[at + 3u]);
}

vec4 sums[ROWS];

uint first_of_x; // of the workgroup's rows

uint x_row(uint r)
{
    return args.x_offset + min(first_of_x + r, args.rows - 1u) * args.terms;
}

vec4 load_norm(uint at)
{
    return uintBitsToFloat(beside.d[args.norm_offset + at / 4u]);
}

// Sums of parts of the squares of a row of x.
#define MOST_NORM_PARTS 64u
shared float norm_parts[ROWS][MOST_NORM_PARTS];
uint num_norm_parts;

// The factor of the sums of row `r`.
float norm_factor(uint r)
{
    if (X_KIND != NORMED)
        return 1.0;
    float sum = 0.0;
    for (uint i = 0u; i < num_norm_parts; i++)
        sum += norm_parts[r][i];
    return inversesqrt(sum / float(args.terms) + args.eps);
}

#ifdef DOTS
// Elements of a row of x that are in shared memory at once: a multiple of the elements that strands
// take at a time.
#if ROWS > 1
#define CHUNK 4096u
#else
#define CHUNK 12288u
#endif
shared uvec2 x_bytes[ROWS][CHUNK / 8u];
shared float x_scales[ROWS][CHUNK / 32u];

// Rounds a chunk of x, from element `first` on.
#define AT_ONCE 4u // loads of eight elements on their way
float squares[ROWS];
void round_x(uint first)
{
    uint eights = min(CHUNK, args.terms - first) / 8u;
    uint invocation = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    [[unroll]] for (uint r = 0u; r < uint(ROWS); r++) {
        if (first == 0u)
            squares[r] = 0.0;
        for (uint begin = 0u; begin < eights; begin += 256u * AT_ONCE) {
            vec4 x[2u * AT_ONCE], factor[2u * AT_ONCE];
            [[unroll]] for (uint i = 0u; i < AT_ONCE; i++) {
                if (begin + i * 256u >= eights)
                    break;
                uint own = min(begin + i * 256u + invocation, eights - 4u + invocation % 4u);
                uint at = first + own * 8u;
                x[2u * i] = load_x(x_row(r) + at);
                x[2u * i + 1u] = load_x(x_row(r) + at + 4u);
                if (X_KIND == NORMED) {
                    factor[2u * i] = load_norm(at);
                    factor[2u * i + 1u] = load_norm(at + 4u);
                }
            }
            [[unroll]] for (uint i = 0u; i < AT_ONCE; i++) {
                uint own = begin + i * 256u + invocation;
                if (begin + i * 256u >= eights)
                    break;
                vec4 low_four = x[2u * i], high_four = x[2u * i + 1u];
                if (X_KIND == NORMED) {
                    float sum = dot(low_four, low_four) + dot(high_four, high_four);
                    squares[r] += own < eights ? sum : 0.0;
                    low_four *= factor[2u * i];
                    high_four *= factor[2u * i + 1u];
                }
                float of_bytes;
                uvec2 bytes = rounded_eight(low_four, high_four, of_bytes);
                if (own < eights) {
                    x_bytes[r][own] = bytes;
                    if (own % 4u == 0u)
                        x_scales[r][own / 4u] = of_bytes;
                }
            }
        }
        if (X_KIND == NORMED) {
            float sum = squares[r];
            for (uint i = 1u; i < gl_SubgroupSize; i *= 2u)
                sum += subgroupShuffleXor(sum, i);
            norm_parts[r][gl_SubgroupID] = sum;
        }
    }
    num_norm_parts = gl_NumSubgroups;
}

// Copies a chunk of x that was rounded before.
void copy_x(uint first)
{
    uint count = min(CHUNK, args.terms - first);
    [[unroll]] for (uint r = 0u; r < uint(ROWS); r++) {
        uint at = min(first_of_x + r, args.rows - 1u) * args.terms + first;
        for (uint i = gl_LocalInvocationIndex; i < count / 16u; i += 256u) {
            uvec4 bytes = beside.d[at / 16u + i];
            x_bytes[r][2u * i] = bytes.xy;
            x_bytes[r][2u * i + 1u] = bytes.zw;
        }
        for (uint i = gl_LocalInvocationIndex; i < count / 32u; i += 256u)
            x_scales[r][i] = x_source.d[at / 32u + i];
    }
}

ivec4 dots(uvec4 four, int x)
{
    return ivec4(dotPacked4x8EXT(int(four.x), x), dotPacked4x8EXT(int(four.y), x),
                 dotPacked4x8EXT(int(four.z), x), dotPacked4x8EXT(int(four.w), x));
}

vec4 products(ivec4 sum, int of_x, float x_scale, vec4 scales, vec4 minima)
{
    // As the low bits of a float of 1.5 * 2^23, which integers of 22 bits do not leave.
    vec4 result = scales * (intBitsToFloat(sum + (0x4b400000 - ZERO * of_x)) - 12582912.0);
#if HAS_MINIMUM
    result += minima * float(of_x);
#endif
    return result * x_scale;
}

// Four elements of x.
int x_word(uint r, uint at)
{
    return int(x_bytes[r][at / 8u][at / 4u % 2u]);
}

// Sums of products of row `r` of x with a piece, whose block begins at `at` in x_bytes.
vec4 piece_products(uint r, uint at)
{
    int a = x_word(r, at + low_at), b = x_word(r, at + high_at);
    int of_a = dotPacked4x8EXT(a, 0x01010101), of_b = dotPacked4x8EXT(b, 0x01010101);
#if !IS_LARGE
    return products(dots(low, a) + dots(high, b), of_a + of_b, x_scales[r][at / 32u], low_scale, low_minimum);
#else
    return products(dots(low, a), of_a, x_scales[r][(at + low_at) / 32u], low_scale, low_minimum) +
           products(dots(high, b), of_b, x_scales[r][(at + high_at) / 32u], high_scale, high_minimum);
#endif
}
#else
// Floats of fractions as bytes; those of q8_0 have a sign.
vec4 floats_of(uint four)
{
#if FORMAT == q8_0
    four ^= 0x80808080u;
    const float zero = 8388608.0 + 128.0;
#else
    const float zero = 8388608.0 + float(ZERO);
#endif
    uvec4 bytes = uvec4(four, four >> 8, four >> 16, four >> 24) & 0xffu;
    return uintBitsToFloat(0x4b000000u | bytes) - zero;
}

vec4 dots(uvec4 four, vec4 x)
{
    return vec4(dot(floats_of(four.x), x), dot(floats_of(four.y), x), dot(floats_of(four.z), x),
                dot(floats_of(four.w), x));
}

// Adds the squares of the rows of x, before they are multiplied.
#define NORM_SUMS 16u
shared float norm_sums[256];
void add_squares()
{
    uint own = gl_LocalInvocationIndex;
    num_norm_parts = NORM_SUMS;
    [[unroll]] for (uint r = 0u; r < uint(ROWS); r++) {
        float sum = 0.0;
        for (uint at = own * 4u; at < args.terms; at += 1024u) {
            vec4 x = load_x(x_row(r) + at);
            sum += dot(x, x);
        }
        norm_sums[own] = sum;
        barrier();
        if (own < NORM_SUMS) {
            sum = 0.0;
            for (uint i = 0u; i < 256u; i += NORM_SUMS)
                sum += norm_sums[own + i];
            norm_parts[r][own] = sum;
        }
        barrier();
    }
}

vec4 load_normed(uint r, uint at)
{
    vec4 x = load_x(x_row(r) + at);
    return X_KIND == NORMED ? x * load_norm(at) : x;
}

// Sums of products of row `r` of x with a piece, whose block is at element `at` of x.
vec4 piece_products(uint r, uint at)
{
    vec4 a = load_normed(r, at + low_at), b = load_normed(r, at + high_at);
#if !IS_LARGE
    vec4 sum = (dots(low, a) + dots(high, b)) * low_scale;
#else
    vec4 sum = dots(low, a) * low_scale + dots(high, b) * high_scale;
#endif
#if HAS_MINIMUM
    sum += ((a.x + a.y) + (a.z + a.w)) * low_minimum + ((b.x + b.y) + (b.z + b.w)) * high_minimum;
#endif
    return sum;
}
#endif

void multiply(uint i, uint at)
{
    scale = floats_of_halves(scale_halves[i]);
#if HAS_MINIMUM
    minimum = floats_of_halves(minimum_halves[i]);
#endif
    [[unroll]] for (uint p = 0u; p < PIECES; p++) {
        read_piece(i, p);
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
            sums[r] += piece_products(r, at);
    }
}

// Sums of a row of x and a group, of all invocations; sums of the next group are written while some
// invocations still add these.
shared float part_sums[2][1024];

// Writes the sums of row `r` and the group: sixteen invocations do, others each time.
void write_sums(uint r, uint group, uint count)
{
    uint own = gl_LocalInvocationIndex, which = count % 2u;
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        part_sums[which][4u * own + i] = sums[r][i];
    barrier();
    if (own / 16u != count % 16u)
        return;
    vec4 sum = vec4(0.0);
    [[unroll]] for (uint i = 0u; i < 64u; i++)
        sum[i % 4u] += part_sums[which][16u * i + own % 16u];
    if (first_of_x + r < args.rows)
        result.d[args.out_offset + (first_of_x + r) * args.columns + group * 16u + own % 16u] =
            ((sum.x + sum.y) + (sum.z + sum.w)) * norm_factor(r);
}

// Begins the loads of a round of blocks of the strands.
#define LOAD_AT_ONCE (16u * EACH)
void load_next(uint i, uint from, uint begin, uint blocks)
{
    uint block = begin + i * 16u + gl_LocalInvocationIndex / 16u;
    if (begin + i * 16u < blocks)
        load_block(i, from + min(block, blocks - 1u) * BYTES);
}

void main()
{
    uint number = group_number(), across = (args.groups + args.each - 1u) / args.each;
    uint first = number % across * args.each, last = min(first + args.each, args.groups);
    uint blocks = args.terms / BLOCK, strand = gl_LocalInvocationIndex / 16u;
    first_of_x = number / across * uint(ROWS);
    if (first_of_x >= args.rows)
        return;
    uint from = args.w_offset + first * blocks * BYTES, count = 0u;
    [[unroll]] for (uint i = 0u; i < EACH; i++)
        load_next(i, from, 0u, blocks);
#ifndef DOTS
    if (X_KIND == NORMED)
        add_squares();
#endif
    for (uint group = first; group < last; group++) {
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
            sums[r] = vec4(0.0);
        for (uint begin = 0u; begin < blocks; begin += LOAD_AT_ONCE) {
#ifdef DOTS
            uint in_chunk = begin * BLOCK % CHUNK;
            if (in_chunk == 0u && (group == first || args.terms > CHUNK)) {
                if (count + begin > 0u)
                    barrier();
                if (X_KIND == ROUNDED)
                    copy_x(begin * BLOCK);
                else
                    round_x(begin * BLOCK);
                barrier();
            }
#else
            uint in_chunk = begin * BLOCK;
#endif
            bool is_last = begin + LOAD_AT_ONCE >= blocks;
            uint next = is_last ? 0u : begin + LOAD_AT_ONCE;
            if (is_last)
                from += blocks * BYTES;
            [[unroll]] for (uint i = 0u; i < EACH; i++) {
                uint block = i * 16u + strand;
                if (begin + block < blocks)
                    multiply(i, in_chunk + block * BLOCK);
                if (!is_last || group + 1u < last)
                    load_next(i, from, next, blocks);
            }
        }
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
            write_sums(r, group, count++);
    }
}
