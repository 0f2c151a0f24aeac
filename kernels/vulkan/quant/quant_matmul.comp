#version 460
// SPDX-License-Identifier: MIT
// x times the transposed matrix that rows of blocks stand for (quant.glsl), in f32. ROWS: few
// rows of x, whose time is that of reading the weights once. TILE: many, by the tiles of
// matmul.glsl, to which each weight comes as a float.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint W_ODD = 0;     // 1: w begins at an odd byte
layout(constant_id = 1) const uint X_ALIGNED = 0; // 1: x lies in memory, from a multiple of 4 elements on
layout(constant_id = 2) const uint IS_PACKED = 0; // 1: rows of w are packed 16 by 16
layout(std430, binding = 0) readonly buffer X { float d[]; } x_source;
layout(std430, binding = 2) writeonly buffer Out { float d[]; } result;
layout(push_constant) uniform Args {
    uint rows, columns, terms; // terms: a multiple of 32
    uint x_offset, w_offset, out_offset; // of w: units
} args;
#define W_BINDING 1
bool w_odd()
{
    return W_ODD != 0u;
}
#include "quant.glsl"

Row row_at(uint column)
{
    uint num_packed = IS_PACKED != 0u ? args.columns / 16u * 16u : 0u;
    return weight_row(args.w_offset, column, args.terms, num_packed);
}

#ifdef ROWS
layout(std430, binding = 3) readonly buffer Fours { vec4 d[]; } x_fours; // the same where X_ALIGNED is 1
// LANES invocations share the terms of EACH columns, part by part; what they read of x serves
// all of these.
layout(constant_id = 3) const uint LANES = 64; // a power of two from 32 to 256
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

float sum_of(vec4 v)
{
    return (v.x + v.y) + (v.z + v.w);
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
        uvec4 loaded[AT_ONCE][EACH];
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++) {
            uint part = min(begin + i * LANES + lane, parts - 1u);
            [[unroll]] for (uint c = 0u; c < EACH; c++)
                loaded[i][c] =
                    part_load(row_at(min(first_column + c, args.columns - 1u)), part);
        }
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++) {
            uint part = begin + i * LANES + lane;
            if (part >= parts)
                break;
            vec4 x[ROWS][2];
            vec2 x_sum[ROWS];
            [[unroll]] for (uint r = 0u; r < uint(ROWS); r++) {
                uint at = args.x_offset + min(first_row + r, args.rows - 1u) * args.terms +
                          part / 4u * 32u + part % 4u * 4u;
                x[r][0] = load_x(at);
                x[r][1] = load_x(at + 16u);
                x_sum[r] = vec2(sum_of(x[r][0]), sum_of(x[r][1]));
            }
            [[unroll]] for (uint c = 0u; c < EACH; c++) {
                vec4 scales = part_scales(loaded[i][c]), low, high;
                part_integers(loaded[i][c], low, high);
                [[unroll]] for (uint r = 0u; r < uint(ROWS); r++) {
#if HAS_HALVES
                    sums[c][r] += sum_of(low * x[r][0]) * scales.x + sum_of(high * x[r][1]) * scales.z;
#else
                    sums[c][r] += sum_of(low * x[r][0] + high * x[r][1]) * scales.x;
#endif
#if HAS_HALVES && HAS_MINIMUM
                    sums[c][r] += x_sum[r].x * scales.y + x_sum[r].y * scales.w;
#elif HAS_MINIMUM
                    sums[c][r] += (x_sum[r].x + x_sum[r].y) * scales.y;
#endif
                }
            }
        }
    }
    [[unroll]] for (uint c = 0u; c < EACH; c++)
        [[unroll]] for (uint r = 0u; r < uint(ROWS); r++)
            part_sums[c * uint(ROWS) + r][gl_LocalInvocationIndex] = sums[c][r];
    barrier();
    // Four invocations of adjacent outputs' sums at a time, then one.
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
    uvec4 part = part_load(row_at(column), k / 32u * 4u + k % 16u / 4u);
    vec4 scales = part_scales(part);
    bool is_high = k % 32u >= 16u;
    uint four = is_high ? part.y : part.x;
    return part_value(integer_of(four >> (k % 4u * 8u) & 0xffu), is_high ? scales.zw : scales.xy);
}
void store(uint row, uint column, float value)
{
    result.d[args.out_offset + row * args.columns + column] = value;
}
#if TILE >= 64
#define UNCHECKED_SLICES
#endif
#include "matmul/matmul.glsl"

void main()
{
    uint across = (args.columns + uint(TILE) - 1u) / uint(TILE), number = group_number();
    uint row = number / across;
    if (row * uint(TILE) < args.rows)
        multiply(row, number % across, args.rows, args.columns, 0u, args.terms);
}
#endif
