#version 460
// SPDX-License-Identifier: MIT
// x as floats of 16 bits (OUT), of which matrix units multiply: two elements an invocation.
#include "types.glsl"
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer X { float d[]; } x_source;
layout(std430, binding = 1) writeonly buffer Pairs { uint d[]; } result;
layout(push_constant) uniform Args {
    uint pairs, x_offset;
} args;

void main()
{
    uint own = group_number() * 256u + gl_LocalInvocationIndex;
    if (own >= args.pairs)
        return;
    uint at = args.x_offset + 2u * own;
    result.d[own] = PASTE(TO_, OUT)(x_source.d[at]) | PASTE(TO_, OUT)(x_source.d[at + 1u]) << 16;
}
