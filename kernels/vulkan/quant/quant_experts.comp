#version 460
// SPDX-License-Identifier: MIT
// Rows of x times the transposed matrices that they chose, in f32: of blocks (quant.glsl) of FORMAT, or
// of FLOATS, a dtype. With one of ROWS each pair of a row and a choice reads its matrix by itself. With
// more a workgroup has columns of a matrix, looks for the pairs that chose it, and reads the columns once
// for ROWS of them.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint W_ODD = 0;  // 1: w begins at an odd byte
layout(constant_id = 1) const uint LANES = 64; // that share a column: a power of two from 32 to 256
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const uint SUMS = 4;      // EACH * ROWS
layout(constant_id = 4) const uint X_ALIGNED = 0; // 1: x begins at a multiple of 4 elements
layout(std430, binding = 0) readonly buffer X { float d[]; } x_source;
layout(std430, binding = 4) readonly buffer Fours { vec4 d[]; } x_fours; // the same where X_ALIGNED is 1
layout(std430, binding = 2) writeonly buffer Out { float d[]; } result;
layout(push_constant) uniform Args {
    uint pairs, columns, terms;
    uint sharing;              // pairs that have one row of x
    uint experts, matrix;      // matrices, and units from one to the next: of floats elements
    uint x_offset, w_offset, out_offset; // of w: units
    uint index_offset, index_size, index_signed; // offset in bytes
} args;

// Eight elements of a row are a part: four are low, and four, HIGH behind these, high.
#ifdef FLOATS
#define HAS_MINIMUM 0
#define HIGH 4u
layout(std430, binding = 1) readonly buffer Fours_of_w { PASTE(SV_, FLOATS) d[]; } weights;
#define FROM(w) PASTE(FROM_, FLOATS)(w)

uint part_begin(uint part)
{
    return part * 8u;
}

vec4 load_four(uint at)
{
    PASTE(WV_, FLOATS) w = PASTE(WV_, FLOATS)(weights.d[at / 4u]);
    return vec4(FROM(w.x), FROM(w.y), FROM(w.z), FROM(w.w));
}

void load_w(uint matrix, uint column, uint part, out vec4 low, out vec4 high, out vec4 scales)
{
    uint at = matrix + column * args.terms + part_begin(part);
    low = load_four(at);
    high = load_four(at + HIGH);
    scales = vec4(1.0, 0.0, 1.0, 0.0);
}
#else
#define HIGH 16u
#define W_BINDING 1
bool w_odd()
{
    return W_ODD != 0u;
}
#include "quant.glsl"

uint part_begin(uint part)
{
    return part / 4u * 32u + part % 4u * 4u;
}

void load_w(uint matrix, uint column, uint part, out vec4 low, out vec4 high, out vec4 scales)
{
    uvec4 loaded = part_load(weight_row(matrix, column, args.terms, 0u), part);
    scales = part_scales(loaded);
    part_integers(loaded, low, high);
}
#endif
#define INDEX_BINDING 3
#include "row_index.glsl"

#define EACH 4u // columns of an invocation
const uint COLUMNS = 256u / LANES * EACH; // of a workgroup
#define LISTED 1024u // pairs that are looked through at a time
shared float part_sums[EACH][256];
shared uint chosen[LISTED], num_chosen;
float sums[SUMS];
uint x_rows[ROWS];

float sum_of(vec4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

vec4 load_x(uint at)
{
    if (X_ALIGNED != 0u)
        return x_fours.d[at / 4u];
    return vec4(x_source.d[at], x_source.d[at + 1u], x_source.d[at + 2u], x_source.d[at + 3u]);
}

// The products of x_rows with columns `first` and behind of a matrix, a share for each invocation.
void multiply(uint matrix, uint first, uint lane)
{
    [[unroll]] for (uint i = 0u; i < SUMS; i++)
        sums[i] = 0.0;
    for (uint part = lane; part < args.terms / 8u; part += LANES) {
        uint at = part_begin(part);
        vec4 scales[EACH], low[EACH], high[EACH];
        [[unroll]] for (uint c = 0u; c < EACH; c++)
            load_w(matrix, min(first + c, args.columns - 1u), part, low[c], high[c], scales[c]);
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            vec4 x_low = load_x(x_rows[r] + at), x_high = load_x(x_rows[r] + at + HIGH);
            [[unroll]] for (uint c = 0u; c < EACH; c++) {
                sums[c * ROWS + r] +=
                    sum_of(low[c] * x_low) * scales[c].x + sum_of(high[c] * x_high) * scales[c].z;
#if HAS_MINIMUM
                sums[c * ROWS + r] += sum_of(x_low) * scales[c].y + sum_of(x_high) * scales[c].w;
#endif
            }
        }
    }
}

// Adds the shares of row `r`, which is pair `pair` of the result.
void add_shares(uint r, uint pair, uint first, uint lane)
{
    [[unroll]] for (uint c = 0u; c < EACH; c++)
        part_sums[c][gl_LocalInvocationIndex] = sums[c * ROWS + r];
    barrier();
    for (uint step = LANES / 2u; step > 0u; step /= 2u) {
        if (lane < step)
            [[unroll]] for (uint c = 0u; c < EACH; c++)
                part_sums[c][gl_LocalInvocationIndex] += part_sums[c][gl_LocalInvocationIndex + step];
        barrier();
    }
    if (lane < EACH && first + lane < args.columns)
        result.d[args.out_offset + pair * args.columns + first + lane] =
            part_sums[lane][gl_LocalInvocationIndex - lane];
    barrier();
}

uint x_row(uint pair)
{
    return args.x_offset + pair / args.sharing * args.terms;
}

// All pairs from `begin` on that chose the expert, of LISTED.
void list_pairs(uint begin, uint expert)
{
    if (gl_LocalInvocationIndex == 0u)
        num_chosen = 0u;
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < LISTED && begin + i < args.pairs; i += 256u)
        if (row_of(begin + i, args.experts) == expert)
            chosen[atomicAdd(num_chosen, 1u)] = begin + i;
    barrier();
}

void main()
{
    uint number = group_number(), across = (args.columns + COLUMNS - 1u) / COLUMNS;
    uint own = number / across, lane = gl_LocalInvocationIndex % LANES;
    uint first = number % across * COLUMNS + gl_LocalInvocationIndex / LANES * EACH;
    if (own >= (ROWS == 1u ? args.pairs : args.experts))
        return;
    const bool is_alone = ROWS == 1u;
    uint expert = own, count = 1u;
    if (is_alone)
        expert = row_of(own, args.experts);
    for (uint begin = 0u; begin < (is_alone ? 1u : args.pairs); begin += LISTED) {
        if (!is_alone) {
            list_pairs(begin, own);
            count = num_chosen;
        }
        for (uint next = 0u; next < count; next += ROWS) {
            [[unroll]] for (uint r = 0u; r < ROWS; r++)
                x_rows[r] = x_row(is_alone ? own : chosen[min(next + r, count - 1u)]);
            multiply(args.w_offset + expert * args.matrix, first, lane);
            for (uint r = 0u; r < min(ROWS, count - next); r++)
                add_shares(r, is_alone ? own : chosen[next + r], first, lane);
        }
        barrier();
    }
}
