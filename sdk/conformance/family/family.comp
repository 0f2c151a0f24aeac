#version 460
// SPDX-License-Identifier: MIT
// The kit's own kernel: y[i] = 2 * x[i] + the extent of x + the attribute `add`, where x may
// have gaps between its elements. Operand i is binding i of set 0.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Y { uint y[]; };
layout(push_constant) uniform Push { uint count, x_at, y_at; int x_step; uint x_extent; int add; };

void main()
{
    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x) * 64u + gl_LocalInvocationID.x;
    if (i < count)
        y[y_at + i] = 2u * x[x_at + i * uint(x_step)] + x_extent + uint(add);
}
