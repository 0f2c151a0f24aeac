#version 460
// SPDX-License-Identifier: MIT
// x in bytes, and their scales (quant_round.glsl), for products whose workgroups would each round a
// long x anew (quant_packed.comp). Eight elements an invocation.
#include "program/types.glsl"
#include "quant_round.glsl"
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float d[]; } x_source;
layout(std430, binding = 1) writeonly buffer Bytes { uvec2 d[]; } bytes;
layout(std430, binding = 2) writeonly buffer Scales { float d[]; } scales;
layout(push_constant) uniform Args {
    uint eights, x_offset; // eights: a multiple of four
} args;

void main()
{
    uint own = group_number() * 64u + gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    uint at = args.x_offset + min(own, args.eights - 4u + own % 4u) * 8u;
    vec4 low, high;
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        low[i] = x_source.d[at + i];
        high[i] = x_source.d[at + 4u + i];
    }
    float scale;
    uvec2 eight = rounded_eight(low, high, scale);
    if (own >= args.eights)
        return;
    bytes.d[own] = eight;
    if (own % 4u == 0u)
        scales.d[own / 4u] = scale;
}
