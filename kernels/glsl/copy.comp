#version 460
// SPDX-License-Identifier: MIT
// Copies elements of SIZE bytes from one strided region into another.
#include "types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint RANK = 1;

#define S_1 uint8_t
#define S_2 uint16_t
#define S_4 uint
#define S_8 uvec2
#define S_16 uvec4
#define S PASTE(S_, SIZE)
layout(std430, binding = 0) readonly buffer From { S d[]; } from;
layout(std430, binding = 1) writeonly buffer To { S d[]; } to;

layout(push_constant) uniform Args {
    uint n, from_offset, to_offset;
    uint extent[8];
    uint from_stride[8];
    uint to_stride[8];
} args;

void main()
{
    uint rest = group_number() * 256u + gl_LocalInvocationIndex;
    if (rest >= args.n)
        return;
    uint a = args.from_offset, b = args.to_offset;
    for (uint axis = RANK; axis-- > 0u;) {
        uint next = axis > 0u ? rest / args.extent[axis] : 0u;
        uint c = rest - next * args.extent[axis];
        a += c * args.from_stride[axis];
        b += c * args.to_stride[axis];
        rest = next;
    }
    to.d[b] = from.d[a];
}
