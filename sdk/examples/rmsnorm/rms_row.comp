#version 460
// SPDX-License-Identifier: MIT
// A row for each workgroup. Each invocation keeps its share of the row in registers, so that
// memory is read once.
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint EACH = 1; // fours that an invocation keeps
layout(std430, binding = 0) readonly buffer X { vec4 x[]; };
layout(std430, binding = 1) readonly buffer W { vec4 w[]; };
layout(std430, binding = 2) writeonly buffer Y { vec4 y[]; };
layout(push_constant) uniform Push { uint rows, fours, parts, x_at, w_at, y_at; float eps; };
shared float sums[256];

void main()
{
    uint row = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x, id = gl_LocalInvocationID.x;
    if (row >= rows)
        return; // the whole workgroup
    vec4 kept[EACH];
    float sum = 0.0;
    for (uint k = 0u; k < EACH; k++) {
        uint i = id + k * 256u;
        kept[k] = i < fours ? x[x_at + row * fours + i] : vec4(0.0);
        sum += dot(kept[k], kept[k]);
    }
    sum = subgroupAdd(sum);
    if (subgroupElect())
        sums[gl_SubgroupID] = sum;
    barrier();
    sum = 0.0;
    for (uint k = 0u; k < gl_NumSubgroups; k++)
        sum += sums[k];
    float scale = inversesqrt(sum / float(4u * fours) + eps);
    for (uint k = 0u; k < EACH; k++) {
        uint i = id + k * 256u;
        if (i < fours)
            y[y_at + row * fours + i] = kept[k] * scale * w[w_at + i];
    }
}
