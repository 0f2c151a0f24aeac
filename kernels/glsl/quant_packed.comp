#version 460
// SPDX-License-Identifier: MIT
// ROWS rows of x times the transposed matrix of packed rows of blocks (tn_quant_r16_at), at the
// rate at which these are read. FORMAT: as in quant.glsl. DOTS: x is rounded to bytes, 32
// elements to multiples of their greatest magnitude / 127, and products of four bytes are one
// instruction; otherwise they are of floats.
//
// Sixteen invocations, a strand, take a block of 16 rows: invocation 4 * word + quad reads
// sixteen bytes, which are word `word` of rows 4 * quad .. 4 * quad + 3, so that what it reads
// of x serves four rows, and a strand reads 256 bytes in one piece. Each invocation has several
// such loads on their way. STRANDS share the blocks of 16 rows; a workgroup has 16 strands.
#include "types.glsl"
#ifdef DOTS
#extension GL_EXT_integer_dot_product : require
#endif
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint X_ALIGNED = 0; // 1: x lies in memory, from a multiple of 4 elements on
layout(constant_id = 1) const uint STRANDS = 16;  // a power of two up to 16
layout(std430, binding = 0) readonly buffer X { float d[]; } x_source;
layout(std430, binding = 1) readonly buffer Weights { uvec4 d[]; } weights;
layout(std430, binding = 2) writeonly buffer Out { float d[]; } result;
layout(std430, binding = 3) readonly buffer Fours { vec4 d[]; } x_fours; // the same where X_ALIGNED is 1
layout(push_constant) uniform Args {
    uint rows, columns, terms; // columns: of the result, and its row's length
    uint groups;               // of 16 packed rows
    uint x_offset, w_offset, out_offset; // of w: 16 bytes
} args;

#define q4_0 40 // FORMAT is compared as a number
#define q4_1 41
#define q8_0 80
#define q4_k 4
#define q5_k 5
#define q6_k 6

// By format: uvec4s of a block of 16 rows (bytes of a block); its elements; loads of fractions
// and the like of an invocation; pieces, that is, fours of low and of high elements; blocks
// that an invocation takes at a time; whether there is a minimum; what a fraction has too much.
#if FORMAT == q4_0
#define BYTES 18u
#define LOADS 1
#define ZERO 8
#elif FORMAT == q4_1
#define BYTES 20u
#define LOADS 1
#define ZERO 0
#elif FORMAT == q8_0
#define BYTES 34u
#define LOADS 2
#define ZERO 0
#elif FORMAT == q4_k
#define BYTES 144u
#define LOADS 11
#define ZERO 0
#elif FORMAT == q5_k
#define BYTES 176u
#define LOADS 13
#define ZERO 0
#else
#define BYTES 210u
#define LOADS 16
#define ZERO 32
#endif
#if FORMAT == q4_k || FORMAT == q5_k || FORMAT == q6_k
#define IS_LARGE 1
#define BLOCK 256u
#define PIECES 8u
#define EACH 1u
#else
#define IS_LARGE 0
#define BLOCK 32u
#define PIECES 1u
#define EACH 4u
#endif
#if FORMAT == q4_1 || FORMAT == q4_k || FORMAT == q5_k
#define HAS_MINIMUM 1
#else
#define HAS_MINIMUM 0
#endif

uvec4 loaded[EACH][LOADS];
vec4 scale[EACH];   // of four rows
vec4 minimum[EACH];

#define QUAD (gl_LocalInvocationIndex % 4u)
#define OWN_WORD (gl_LocalInvocationIndex / 4u % 4u)

// Four f16 of the invocation's rows, of the 16 that begin at `at`.
vec4 load_halves(uint at)
{
    uvec4 eight = weights.d[at + QUAD / 2u];
    uvec2 own = QUAD % 2u == 0u ? eight.xy : eight.zw;
    return vec4(unpackHalf2x16(own.x), unpackHalf2x16(own.y));
}

// Loads what block `at` has for this invocation.
void load_block(uint i, uint at)
{
#if !IS_LARGE
    scale[i] = load_halves(at);
#if HAS_MINIMUM
    minimum[i] = load_halves(at + 2u);
#endif
    uint from = at + 2u + 2u * uint(HAS_MINIMUM) + 4u * OWN_WORD + QUAD;
    loaded[i][0] = weights.d[from];
#if LOADS == 2
    loaded[i][1] = weights.d[from + 16u];
#endif
#elif FORMAT == q6_k
    // 4 words of scales; of each half 8 words of 2 bits and 16 of 4 bits.
    scale[i] = load_halves(at);
    at += 2u;
    [[unroll]] for (uint p = 0u; p < 8u; p++)
        loaded[i][p] = weights.d[at + 4u * ((p < 4u ? 12u : 20u) + 4u * p + OWN_WORD) + QUAD];
    [[unroll]] for (uint p = 0u; p < 4u; p++)
        loaded[i][8u + p] = weights.d[at + 4u * ((p < 2u ? 4u : 20u) + 4u * p + OWN_WORD) + QUAD];
    [[unroll]] for (uint p = 0u; p < 4u; p++)
        loaded[i][12u + p] = weights.d[at + 4u * p + QUAD];
#else
    scale[i] = load_halves(at);
    minimum[i] = -load_halves(at + 2u);
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
    scales = vec4(integers) * scale[i];
    integers = is_first ? b & 63u : (c >> 4 & 15u) | (b >> 6 & 3u) << 4;
    minima = vec4(integers) * minimum[i];
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
    low_scale = high_scale = scale[i];
    low_minimum = high_minimum = minimum[i];
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
    low_scale = scale[i] * vec4(ivec4(loaded[i][12u + 2u * half_of] << (24u - shift)) >> 24);
    high_scale = scale[i] * vec4(ivec4(loaded[i][13u + 2u * half_of] << (24u - shift)) >> 24);
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

shared vec4 part_sums[ROWS][256];
vec4 sums[ROWS];

uint first_of_x; // of the workgroup's rows

uint x_row(uint r)
{
    return args.x_offset + min(first_of_x + r, args.rows - 1u) * args.terms;
}

#ifdef DOTS
// Parts of 32 elements of a row of x, of what strands take at a time. Of four rows and blocks of 256
// there are eight strands at most, for the sake of shared memory.
#if ROWS > 1 && IS_LARGE
#define PARTS 64u
#else
#define PARTS (16u * EACH * BLOCK / 32u)
#endif
shared uint x_bytes[ROWS][PARTS * 8u];
shared float x_scales[ROWS][PARTS];

// Rounds 32 elements of a row. As integers the bits of magnitudes are in their order, and
// those of what is no finite number are the greatest: then the scale is no number either.
void round_part(uint r, uint part, uint at)
{
    vec4 x[8];
    uint most = 0u;
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        x[i] = load_x(at + 4u * i);
        uvec4 size = floatBitsToUint(x[i]) & 0x7fffffffu;
        most = max(most, max(max(size.x, size.y), max(size.z, size.w)));
    }
    bool is_finite = most < 0x7f800000u;
    // Below 2^-119 the factor would be infinite, or nearly: what is so small counts as 0.
    float factor = is_finite && most > 0x04000000u ? 127.0 / uintBitsToFloat(most) : 0.0;
    x_scales[r][part] = uintBitsToFloat(is_finite ? most : 0x7fc00000u) * (1.0 / 127.0);
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        vec4 scaled = is_finite ? x[i] * factor : vec4(0.0);
        uvec4 q = uvec4(ivec4(roundEven(scaled))) & 0xffu;
        x_bytes[r][part * 8u + i] = q.x | q.y << 8 | q.z << 16 | q.w << 24;
    }
}

// Rounds what the strands take of x at blocks `begin` and behind.
void round_x(uint begin)
{
    uint first = begin * BLOCK, parts = min(STRANDS * EACH * BLOCK / 32u, (args.terms - first) / 32u);
    for (uint own = gl_LocalInvocationIndex; own < parts * uint(ROWS); own += 256u)
        round_part(own / parts, own % parts, x_row(own / parts) + first + own % parts * 32u);
}

ivec4 dots(uvec4 four, int x)
{
    return ivec4(dotPacked4x8EXT(int(four.x), x), dotPacked4x8EXT(int(four.y), x),
                 dotPacked4x8EXT(int(four.z), x), dotPacked4x8EXT(int(four.w), x));
}

vec4 products(ivec4 sum, int of_x, float x_scale, vec4 scales, vec4 minima)
{
    vec4 result = scales * vec4(sum - ZERO * of_x);
#if HAS_MINIMUM
    result += minima * float(of_x);
#endif
    return result * x_scale;
}

// Sums of products of row `r` of x with a piece, whose block begins at `at` in x_bytes.
vec4 piece_products(uint r, uint at)
{
    int a = int(x_bytes[r][(at + low_at) / 4u]), b = int(x_bytes[r][(at + high_at) / 4u]);
    int of_a = dotPacked4x8EXT(a, 0x01010101), of_b = dotPacked4x8EXT(b, 0x01010101);
#if !IS_LARGE
    return products(dots(low, a) + dots(high, b), of_a + of_b, x_scales[r][at / 32u], low_scale, low_minimum);
#else
    return products(dots(low, a), of_a, x_scales[r][(at + low_at) / 32u], low_scale, low_minimum) +
           products(dots(high, b), of_b, x_scales[r][(at + high_at) / 32u], high_scale, high_minimum);
#endif
}
#else
// Of fractions as bytes; those of q8_0 have a sign.
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

// Sums of products of row `r` of x with a piece, whose block is at element `at` of x.
vec4 piece_products(uint r, uint at)
{
    vec4 a = load_x(x_row(r) + at + low_at), b = load_x(x_row(r) + at + high_at);
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
    [[unroll]] for (uint p = 0u; p < PIECES; p++) {
        read_piece(i, p);
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
            sums[r] += piece_products(r, at);
    }
}

void main()
{
    uint number = group_number(), of_workgroup = 16u / STRANDS;
    uint across = (args.groups + of_workgroup - 1u) / of_workgroup;
    uint strand = gl_LocalInvocationIndex / 16u % STRANDS;
    uint first_group = number % across * of_workgroup;
    uint group = min(first_group + gl_LocalInvocationIndex / 16u / STRANDS, args.groups - 1u);
    uint blocks = args.terms / BLOCK, from = args.w_offset + group * blocks * BYTES;
    first_of_x = number / across * uint(ROWS);
    if (first_of_x >= args.rows)
        return;
    [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
        sums[r] = vec4(0.0);
    for (uint begin = 0u; begin < blocks; begin += STRANDS * EACH) {
        [[unroll]] for (uint i = 0u; i < EACH; i++)
            load_block(i, from + min(begin + i * STRANDS + strand, blocks - 1u) * BYTES);
#ifdef DOTS
        if (begin > 0u)
            barrier();
        round_x(begin);
        barrier();
#endif
        [[unroll]] for (uint i = 0u; i < EACH; i++) {
            uint block = begin + i * STRANDS + strand;
            if (block >= blocks)
                break;
#ifdef DOTS
            multiply(i, (block - begin) * BLOCK);
#else
            multiply(i, block * BLOCK);
#endif
        }
    }
    [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
        part_sums[r][gl_LocalInvocationIndex] = sums[r];
    barrier();
    // The sums of 4 * STRANDS invocations are those of four rows of weights.
    uint own = gl_LocalInvocationIndex;
    for (uint at = own; at < of_workgroup * 4u * uint(ROWS); at += 256u) {
        uint r = at / (of_workgroup * 4u), four = at % (of_workgroup * 4u);
        uint first = four / 4u * STRANDS * 16u + four % 4u;
        vec4 sum = vec4(0.0);
        for (uint i = 0u; i < STRANDS * 4u; i++)
            sum += part_sums[r][first + 4u * i];
        uint row = first_of_x + r, column = first_group * 16u + four * 4u;
        if (row >= args.rows || column >= args.groups * 16u)
            continue;
        [[unroll]] for (uint i = 0u; i < 4u; i++)
            result.d[args.out_offset + row * args.columns + column + i] = sum[i];
    }
}
