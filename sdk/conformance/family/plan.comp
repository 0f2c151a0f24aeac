#version 460
// SPDX-License-Identifier: MIT
// The kit's planned kernel, launched twice. First it multiplies by a table of four numbers:
// to[i] = from[i] * table[i % 4]; then, with LAST, it turns the order and adds:
// to[i] = from[count - 1 - i] + add * table[3].
layout(local_size_x = 64) in;
layout(constant_id = 5) const uint LAST = 0;
layout(std430, set = 0, binding = 0) readonly buffer From { uint from[]; };
layout(std430, set = 0, binding = 1) writeonly buffer To { uint to[]; };
layout(std430, set = 0, binding = 2) readonly buffer Table { uint table[4]; };
layout(push_constant) uniform Push { uint count, from_at, to_at; int from_step; int add; };

void main()
{
    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x) * 64u + gl_LocalInvocationID.x;
    if (i >= count)
        return;
    uint k = LAST != 0u ? count - 1u - i : i;
    uint value = from[from_at + k * uint(from_step)];
    to[to_at + i] = LAST != 0u ? value + uint(add) * table[3] : value * table[i & 3u];
}
