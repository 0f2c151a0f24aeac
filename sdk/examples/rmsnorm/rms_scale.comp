#version 460
// SPDX-License-Identifier: MIT
// Adds the sums of a row, and scales a part of it, for each workgroup.
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer X { vec4 x[]; };
layout(std430, binding = 1) readonly buffer W { vec4 w[]; };
layout(std430, binding = 2) writeonly buffer Y { vec4 y[]; };
layout(std430, binding = 3) readonly buffer Part { float part[]; };
layout(push_constant) uniform Push { uint rows, fours, parts, x_at, w_at, y_at; float eps; };

void main()
{
    uint row = gl_WorkGroupID.x;
    float sum = 0.0;
    for (uint k = gl_SubgroupInvocationID; k < parts; k += gl_SubgroupSize)
        sum += part[row * parts + k];
    float scale = inversesqrt(subgroupAdd(sum) / float(4u * fours) + eps);
    for (uint k = 0u; k < 8u; k++) {
        uint i = gl_WorkGroupID.y * 2048u + k * 256u + gl_LocalInvocationID.x;
        if (i < fours)
            y[y_at + row * fours + i] = x[x_at + row * fours + i] * scale * w[w_at + i];
    }
}
