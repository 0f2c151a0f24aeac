#version 460
// SPDX-License-Identifier: MIT
// x times the transposed matrix that rows of blocks stand for (quant.glsl), in f32. ROWS: few
// rows of x, whose time is that of reading the weights once. TILE: many, by the tiles of
// matmul.glsl, to which each weight comes as a float.
#include "types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint W_ODD = 0;     // 1: w begins at an odd byte
layout(constant_id = 1) const uint X_ALIGNED = 0; // 1: x lies in memory, from a multiple of 4 elements on
layout(std430, binding = 0) readonly buffer X { float d[]; } x_source;
layout(std430, binding = 2) writeonly buffer Out { float d[]; } result;
layout(push_constant) uniform Args {
    uint rows, columns, terms; // terms: a multiple of 32
    uint x_offset, w_offset, out_offset; // of w: words of 16 bits
} args;
#define W_BINDING 1
bool w_odd()
{
    return W_ODD != 0u;
}
#include "quant.glsl"

uint block_at(uint column, uint block)
{
    return args.w_offset + (column * (args.terms / 32u) + block) * BLOCK_WORDS;
}

#ifdef ROWS
layout(std430, binding = 3) readonly buffer Fours { vec4 d[]; } x_fours; // the same where X_ALIGNED is 1
// LANES invocations share the terms of EACH columns, part by part; what they read of x serves
// all of these.
layout(constant_id = 2) const uint LANES = 64; // a power of two from 32 to 256
#define EACH 4u
#define AT_ONCE 2u // parts of each column that are on their way together
const uint COLUMNS = 256u / LANES * EACH; // of a workgroup
shared float part_sums[EACH * ROWS][256];

vec4 load_x(uint at)
{
    if (X_ALIGNED != 0u)
        return x_fours.d[at / 4u];
    return vec4(x_source.d[at], x_source.d[at + 1u], x_source.d[at + 2u], x_source.d[at + 3u]);
}

void main()
{
    uint number = group_number(), across = (args.columns + COLUMNS - 1u) / COLUMNS;
    uint first_row = number / across * uint(ROWS);
    uint lane = gl_LocalInvocationIndex % LANES;
    uint first_column = number % across * COLUMNS + gl_LocalInvocationIndex / LANES * EACH;
    uint parts = args.terms / 8u;
    if (first_row >= args.rows)
        return;
    float sums[EACH][ROWS];
    [[unroll]] for (uint c = 0u; c < EACH; c++)
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
            sums[c][r] = 0.0;
    for (uint begin = 0u; begin < parts; begin += LANES * AT_ONCE) {
        uvec3 loaded[AT_ONCE][EACH];
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++) {
            uint part = min(begin + i * LANES + lane, parts - 1u);
            [[unroll]] for (uint c = 0u; c < EACH; c++)
                loaded[i][c] =
                    part_load(block_at(min(first_column + c, args.columns - 1u), part / 4u), part % 4u);
        }
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++) {
            uint part = begin + i * LANES + lane;
            if (part >= parts)
                break;
            vec4 x[ROWS][2];
            float x_sum[ROWS];
            [[unroll]] for (uint r = 0u; r < uint(ROWS); r++) {
                uint at = args.x_offset + min(first_row + r, args.rows - 1u) * args.terms +
                          part / 4u * 32u + part % 4u * 4u;
                x[r][0] = load_x(at);
                x[r][1] = load_x(at + 16u);
                vec4 both = x[r][0] + x[r][1];
                x_sum[r] = (both.x + both.y) + (both.z + both.w);
            }
            [[unroll]] for (uint c = 0u; c < EACH; c++) {
                vec2 scales = part_scales(loaded[i][c]);
                vec4 low, high;
                part_integers(loaded[i][c], low, high);
                [[unroll]] for (uint r = 0u; r < uint(ROWS); r++) {
                    vec4 products = low * x[r][0] + high * x[r][1];
                    sums[c][r] += ((products.x + products.y) + (products.z + products.w)) * scales.x;
#if HAS_MINIMUM
                    sums[c][r] += x_sum[r] * scales.y;
#endif
                }
            }
        }
    }
    [[unroll]] for (uint c = 0u; c < EACH; c++)
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
            part_sums[c * uint(ROWS) + r][gl_LocalInvocationIndex] = sums[c][r];
    barrier();
    // Four invocations of neighbouring outputs' sums at a time, then one.
    uint outputs = COLUMNS * uint(ROWS);
    for (uint own = gl_LocalInvocationIndex; own < outputs * 4u; own += 256u) {
        uint of = own / 4u, quarter = own % 4u, column = of % COLUMNS, r = of / COLUMNS;
        uint line = column % EACH * uint(ROWS) + r, from = column / EACH * LANES + quarter;
        float sum = 0.0;
        [[unroll]] for (uint i = 0u; i < LANES; i += 4u)
            sum += part_sums[line][from + i];
        part_sums[line][from] = sum;
    }
    barrier();
    for (uint of = gl_LocalInvocationIndex; of < outputs; of += 256u) {
        uint own = of % COLUMNS, row = first_row + of / COLUMNS;
        uint column = number % across * COLUMNS + own;
        uint line = own % EACH * uint(ROWS) + of / COLUMNS, from = own / EACH * LANES;
        if (row < args.rows && column < args.columns)
            result.d[args.out_offset + row * args.columns + column] =
                (part_sums[line][from] + part_sums[line][from + 1u]) +
                (part_sums[line][from + 2u] + part_sums[line][from + 3u]);
    }
}
#else
#define ACC float
#define A_ALONG_K 1u
#define B_ALONG_K 1u
float load_a(uint row, uint k)
{
    return x_source.d[args.x_offset + row * args.terms + k];
}
float load_b(uint k, uint column)
{
    uint at = block_at(column, k / 32u), i = k % 32u;
#if HAS_MINIMUM
    uint rest = at + 2u;
#else
    uint rest = at + 1u;
#endif
    vec2 scales = vec2(unpackHalf2x16(weight_word(at)).x, 0.0);
#if HAS_MINIMUM
    scales.y = unpackHalf2x16(weight_word(at + 1u)).x;
#endif
#if FRACTION_BITS == 8
    uint word = weight_word(rest + i / 2u);
    return float(bitfieldExtract(int(word), int(i % 2u * 8u), 8)) * scales.x;
#else
#if FRACTION_BITS == 5
    uint fifth = weight_word(rest + i / 16u) >> (i % 16u) & 1u;
    rest += 2u;
#else
    const uint fifth = 0u;
#endif
    uint q = weight_word(rest + i % 16u / 2u) >> (i % 2u * 8u + i / 16u * 4u) & 15u;
#if HAS_MINIMUM
    const float zero = 0.0;
#elif FRACTION_BITS == 5
    const float zero = 16.0;
#else
    const float zero = 8.0;
#endif
    return (float(q | fifth << 4) - zero) * scales.x + scales.y;
#endif
}
void store(uint row, uint column, float value)
{
    result.d[args.out_offset + row * args.columns + column] = value;
}
#if TILE >= 64
#define UNCHECKED_SLICES
#endif
#include "matmul.glsl"

void main()
{
    uint across = (args.columns + uint(TILE) - 1u) / uint(TILE), number = group_number();
    uint row = number / across;
    if (row * uint(TILE) < args.rows)
        multiply(row, number % across, args.rows, args.columns, 0u, args.terms);
}
#endif
