#version 460
// SPDX-License-Identifier: MIT
// Rows of quantised weights as floats of 16 bits (OUT), in rows that follow each other: 32
// elements for each invocation (quant.glsl). Of packed rows, neighbours are the sixteen that share
// memory.
#include "types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint W_ODD = 0;     // 1: w begins at an odd byte
layout(constant_id = 1) const uint IS_PACKED = 0; // 1: rows are packed 16 by 16; 2: from a multiple of 4 bytes on
layout(std430, binding = 1) writeonly buffer Out { uvec4 d[]; } result;
layout(push_constant) uniform Args {
    uint rows, row_parts; // of 32 elements
    uint w_offset;        // in units (quant.glsl)
} args;
#define W_BINDING 0
#define PAIRS_BINDING 2
#define HALVES OUT
bool w_odd()
{
    return W_ODD != 0u;
}
bool w_in_pairs()
{
    return IS_PACKED == 2u;
}
#include "quant.glsl"

void main()
{
    uint own = group_number() * 256u + gl_LocalInvocationIndex;
    uint row = own / args.row_parts, in_row = own % args.row_parts, num_packed = 0u;
    if (IS_PACKED != 0u) {
        num_packed = args.rows / 16u * 16u;
        row = own / (16u * args.row_parts) * 16u + own % 16u;
        in_row = own / 16u % args.row_parts;
    }
    if (row >= args.rows)
        return;
    Row from = weight_row(args.w_offset, row, args.row_parts * 32u, num_packed);
    uvec2 low[4], high[4];
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        uvec4 part = part_load(from, in_row * 4u + i);
        vec4 scales = part_scales(part), first, behind;
        part_integers(part, first, behind);
        low[i] = part_halves(first, scales.xy);
        high[i] = part_halves(behind, scales.zw);
    }
    uint to = (row * args.row_parts + in_row) * 4u;
    result.d[to] = uvec4(low[0], low[1]);
    result.d[to + 1u] = uvec4(low[2], low[3]);
    result.d[to + 2u] = uvec4(high[0], high[1]);
    result.d[to + 3u] = uvec4(high[2], high[3]);
}
