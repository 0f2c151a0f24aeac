#version 460
// SPDX-License-Identifier: MIT
// The sum of the squares of a part of a row, for each workgroup.
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer X { vec4 x[]; };
layout(std430, binding = 1) writeonly buffer Part { float part[]; };
layout(push_constant) uniform Push { uint rows, fours, parts, x_at, w_at, y_at; float eps; };
shared float sums[256];

void main()
{
    uint row = gl_WorkGroupID.x, id = gl_LocalInvocationID.x;
    float sum = 0.0;
    for (uint k = 0u; k < 8u; k++) {
        uint i = gl_WorkGroupID.y * 2048u + k * 256u + id;
        vec4 v = x[x_at + row * fours + min(i, fours - 1u)];
        sum += i < fours ? dot(v, v) : 0.0;
    }
    sum = subgroupAdd(sum);
    if (subgroupElect())
        sums[gl_SubgroupID] = sum;
    barrier();
    if (id > 0u)
        return;
    for (uint k = 1u; k < gl_NumSubgroups; k++)
        sum += sums[k];
    part[row * parts + gl_WorkGroupID.y] = sum;
}
