#version 460
// SPDX-License-Identifier: @LICENSE@
// out = alpha * x + beta * y over contiguous f32. Operand i is binding i of set 0, and begins
// at element `..._at`.
layout(local_size_x = 256) in;
layout(std430, set = 0, binding = 0) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 1) readonly buffer Y { float y[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Out { float result[]; };
layout(push_constant) uniform Push { uint count, x_at, y_at, out_at; float alpha, beta; };

void main()
{
    // More workgroups than the device takes along x go on along y.
    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x) * 256u + gl_LocalInvocationID.x;
    if (i < count)
        result[out_at + i] = alpha * x[x_at + i] + beta * y[y_at + i];
}
