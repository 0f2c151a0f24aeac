#version 460
// SPDX-License-Identifier: MIT
// A few rows of x times the transposed matrix w of halves (FLOATS: f16 or bf16), whose time is that of
// reading w: in f32, ROWS rows at a time. LANES invocations share the terms of EACH columns, eight of
// these by eight: what they read of x serves all of these columns.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint LANES = 64;    // a power of two from 32 to 256
layout(constant_id = 1) const uint X_ALIGNED = 0; // 1: x begins at a multiple of 4 elements
layout(std430, binding = 0) readonly buffer X { float d[]; } x_source;
layout(std430, binding = 1) readonly buffer Weights { uvec4 d[]; } weights;
layout(std430, binding = 2) writeonly buffer Out { float d[]; } result;
layout(std430, binding = 3) readonly buffer Fours { vec4 d[]; } x_fours; // the same where X_ALIGNED is 1
layout(push_constant) uniform Args {
    uint rows, columns, terms; // terms: a multiple of 8
    uint x_offset, w_offset, out_offset; // of w: eights
} args;
#if ROWS == 1 // more of them read less of x, which is little here
#define EACH 2u
#else
#define EACH 4u
#endif
#define AT_ONCE 2u // parts of each column that are on their way together
#define ADDED 4    // rows whose shares meet at a time
#if ROWS < ADDED
#define GROUP_ROWS ROWS
#else
#define GROUP_ROWS ADDED
#endif
const uint COLUMNS = 256u / LANES * EACH; // of a workgroup
shared float part_sums[EACH * GROUP_ROWS][256];

vec4 load_x(uint at)
{
    if (X_ALIGNED != 0u)
        return x_fours.d[at / 4u];
    return vec4(x_source.d[at], x_source.d[at + 1u], x_source.d[at + 2u], x_source.d[at + 3u]);
}

vec4 four_of_f16(uint first, uint second)
{
    return vec4(unpackHalf2x16(first), unpackHalf2x16(second));
}
vec4 four_of_bf16(uint first, uint second)
{
    return uintBitsToFloat(uvec4(first << 16, first & 0xffff0000u, second << 16, second & 0xffff0000u));
}

float sum_of(vec4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

// Adds the shares of rows `first` and behind, of a workgroup's, and stores the sums.
void add_shares(uint first, uint first_row, uint first_column)
{
    uint outputs = COLUMNS * uint(GROUP_ROWS);
    barrier();
    // Four invocations of adjacent outputs' sums at a time, then one.
    for (uint own = gl_LocalInvocationIndex; own < outputs * 4u; own += 256u) {
        uint of = own / 4u, quarter = own % 4u, column = of % COLUMNS, r = of / COLUMNS;
        uint line = column % EACH * uint(GROUP_ROWS) + r, from = column / EACH * LANES + quarter;
        float sum = 0.0;
        [[unroll]] for (uint i = 0u; i < LANES; i += 4u)
            sum += part_sums[line][from + i];
        part_sums[line][from] = sum;
    }
    barrier();
    for (uint of = gl_LocalInvocationIndex; of < outputs; of += 256u) {
        uint own = of % COLUMNS, row = first_row + first + of / COLUMNS, column = first_column + own;
        uint line = own % EACH * uint(GROUP_ROWS) + of / COLUMNS, from = own / EACH * LANES;
        if (row < args.rows && column < args.columns)
            result.d[args.out_offset + row * args.columns + column] =
                (part_sums[line][from] + part_sums[line][from + 1u]) +
                (part_sums[line][from + 2u] + part_sums[line][from + 3u]);
    }
}

void main()
{
    uint number = group_number(), across = (args.columns + COLUMNS - 1u) / COLUMNS;
    uint first_row = number / across * uint(ROWS), column_of_group = number % across * COLUMNS;
    uint lane = gl_LocalInvocationIndex % LANES, parts = args.terms / 8u;
    uint first_column = column_of_group + gl_LocalInvocationIndex / LANES * EACH;
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
                loaded[i][c] = weights.d[args.w_offset + min(first_column + c, args.columns - 1u) * parts + part];
        }
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++) {
            uint part = begin + i * LANES + lane;
            if (part >= parts)
                break;
            vec4 low[EACH], high[EACH];
            [[unroll]] for (uint c = 0u; c < EACH; c++) {
                low[c] = PASTE(four_of_, FLOATS)(loaded[i][c].x, loaded[i][c].y);
                high[c] = PASTE(four_of_, FLOATS)(loaded[i][c].z, loaded[i][c].w);
            }
            [[unroll]] for (uint r = 0u; r < uint(ROWS); r++) {
                uint at = args.x_offset + min(first_row + r, args.rows - 1u) * args.terms + part * 8u;
                vec4 x_low = load_x(at), x_high = load_x(at + 4u);
                [[unroll]] for (uint c = 0u; c < EACH; c++)
                    sums[c][r] += sum_of(low[c] * x_low + high[c] * x_high);
            }
        }
    }
    [[unroll]] for (uint first = 0u; first < uint(ROWS); first += uint(GROUP_ROWS)) {
        if (first > 0u)
            barrier(); // the sums before are read
        [[unroll]] for (uint c = 0u; c < EACH; c++)
            [[unroll]] for (uint r = 0u; r < uint(GROUP_ROWS); r++)
                part_sums[c * uint(GROUP_ROWS) + r][gl_LocalInvocationIndex] = sums[c][first + r];
        add_shares(first, first_row, column_of_group);
    }
}
