#version 460
// SPDX-License-Identifier: MIT
// Rows of quantised weights as values of dtype OUT, eight elements for each invocation
// (quant.glsl): all rows, or with IS_TAKE those that indices mean. Negative indices count from
// the end; others out of range are the nearest.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint W_ODD = 0; // 1: w begins at an odd byte
layout(constant_id = 1) const uint IS_TAKE = 0;
layout(constant_id = 2) const uint IS_PACKED = 0; // 1: rows are packed 16 by 16
layout(std430, binding = 2) writeonly buffer Out { PASTE(S_, OUT) d[]; } result;
layout(push_constant) uniform Args {
    uint parts, row_parts; // of all rows, and of one
    uint rows;             // of w
    uint w_offset;         // in units (quant.glsl)
    uint out_offset;
    uint index_offset, index_size, index_signed; // offset in bytes
} args;
#define W_BINDING 0
bool w_odd()
{
    return W_ODD != 0u;
}
#include "quant.glsl"

#define INDEX_BINDING 1
#include "row_index.glsl"

void store(uint at, float value)
{
#ifdef NEED_F64
    result.d[at] = double(value);
#else
    result.d[at] = PASTE(S_, OUT)(PASTE(TO_, OUT)(value));
#endif
}

void main()
{
    uint own = group_number() * 256u + gl_LocalInvocationIndex;
    if (own >= args.parts)
        return;
    uint row = own / args.row_parts, in_row = own - row * args.row_parts;
    uint from = IS_TAKE != 0u ? row_of(row, args.rows) : row;
    uint num_packed = IS_PACKED != 0u ? args.rows / 16u * 16u : 0u;
    uvec4 part = part_load(weight_row(args.w_offset, from, args.row_parts * 8u, num_packed), in_row);
    vec4 scales = part_scales(part), low, high;
    part_integers(part, low, high);
    uint to = args.out_offset + row * args.row_parts * 8u + in_row / 4u * 32u + in_row % 4u * 4u;
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        store(to + i, part_value(low[i], scales.xy));
        store(to + 16u + i, part_value(high[i], scales.zw));
    }
}
