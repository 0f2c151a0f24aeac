#version 460
// SPDX-License-Identifier: MIT
// Rows of x times the transposed matrices of blocks (quant.glsl) that they chose, in f32. Each
// pair of a row and a choice reads its matrix by itself: a matrix that many chose comes from
// the cache.
#include "types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint W_ODD = 0;  // 1: w begins at an odd byte
layout(constant_id = 1) const uint LANES = 64; // that share a column: a power of two from 32 to 256
layout(std430, binding = 0) readonly buffer X { float d[]; } x_source;
layout(std430, binding = 2) writeonly buffer Out { float d[]; } result;
layout(push_constant) uniform Args {
    uint pairs, columns, terms;
    uint sharing;              // pairs that have one row of x
    uint experts, matrix;      // matrices, and units from one to the next
    uint x_offset, w_offset, out_offset; // of w: units
    uint index_offset, index_size, index_signed; // offset in bytes
} args;
#define W_BINDING 1
bool w_odd()
{
    return W_ODD != 0u;
}
#include "quant.glsl"
#define INDEX_BINDING 3
#include "row_index.glsl"

#define EACH 4u // columns of an invocation
const uint COLUMNS = 256u / LANES * EACH; // of a workgroup
shared float part_sums[EACH][256];

float sum_of(vec4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

vec4 load_x(uint at)
{
    return vec4(x_source.d[at], x_source.d[at + 1u], x_source.d[at + 2u], x_source.d[at + 3u]);
}

void main()
{
    uint number = group_number(), across = (args.columns + COLUMNS - 1u) / COLUMNS;
    uint pair = number / across, lane = gl_LocalInvocationIndex % LANES;
    if (pair >= args.pairs)
        return;
    uint first = number % across * COLUMNS + gl_LocalInvocationIndex / LANES * EACH;
    uint matrix = args.w_offset + row_of(pair, args.experts) * args.matrix;
    uint x_row = args.x_offset + pair / args.sharing * args.terms;
    float sums[EACH];
    [[unroll]] for (uint c = 0u; c < EACH; c++)
        sums[c] = 0.0;
    for (uint part = lane; part < args.terms / 8u; part += LANES) {
        uint at = x_row + part / 4u * 32u + part % 4u * 4u;
        vec4 x_low = load_x(at), x_high = load_x(at + 16u);
        [[unroll]] for (uint c = 0u; c < EACH; c++) {
            uint column = min(first + c, args.columns - 1u);
            uvec4 loaded = part_load(weight_row(matrix, column, args.terms, 0u), part);
            vec4 scales = part_scales(loaded), low, high;
            part_integers(loaded, low, high);
            sums[c] += sum_of(low * x_low) * scales.x + sum_of(high * x_high) * scales.z;
#if HAS_MINIMUM
            sums[c] += sum_of(x_low) * scales.y + sum_of(x_high) * scales.w;
#endif
        }
    }
    [[unroll]] for (uint c = 0u; c < EACH; c++)
        part_sums[c][gl_LocalInvocationIndex] = sums[c];
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
}
