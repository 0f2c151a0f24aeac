#version 460
// SPDX-License-Identifier: MIT
// Gathers: out[outer, m, inner] = x[outer, indices[m], inner], all contiguous. Elements of
// SIZE bytes; INDEX: an integer dtype. Negative indices count from the end; indices out of range
// are clamped.
#include "program/types.glsl"
layout(local_size_x = 256) in;
#define S_1 uint8_t
#define S_2 uint16_t
#define S_4 uint
#define S_8 uvec2
#define S_16 uvec4
#define S PASTE(S_, SIZE)
layout(std430, binding = 0) readonly buffer In { S d[]; } source;
layout(std430, binding = 1) readonly buffer Index { PASTE(S_, INDEX) d[]; } indices;
layout(std430, binding = 2) writeonly buffer Out { S d[]; } result;
layout(push_constant) uniform Args {
    uint n, extent, count, inner, in_offset, index_offset, out_offset;
} args;

#include "program/index.glsl"

void main()
{
    uint i = group_number() * 256u + gl_LocalInvocationIndex;
    if (i >= args.n)
        return;
    uint row = i / args.inner;
    uint outer = row / args.count;
    uint k = clamped_index(row - outer * args.count, args.extent);
    result.d[args.out_offset + i] =
        source.d[args.in_offset + (outer * args.extent + k) * args.inner +
                 (i - row * args.inner)];
}
