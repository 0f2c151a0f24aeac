#version 460
// SPDX-License-Identifier: MIT
// Rows that fit the registers of LANES invocations of a workgroup, a power of two: each keeps
// its share, so that memory is read once. Sums meet by shuffles within a subgroup, and in
// shared memory where a row has several.
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint LANES = 1;
layout(constant_id = 2) const uint EACH = 1; // fours that an invocation keeps
layout(constant_id = 3) const uint SUBGROUP = 32; // gl_SubgroupSize, known to the compiler
layout(std430, binding = 0) readonly buffer X { vec4 x[]; };
layout(std430, binding = 1) readonly buffer W { vec4 w[]; };
layout(std430, binding = 2) writeonly buffer Y { vec4 y[]; };
layout(push_constant) uniform Push { uint rows, fours, parts, x_at, w_at, y_at; float eps; };
shared float sums[256]; // by subgroup

void main()
{
    uint group = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x;
    uint id = gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID, lane = id % LANES;
    uint row = group * (gl_WorkGroupSize.x / LANES) + id / LANES;
    uint first = min(row, rows - 1u) * fours; // barriers need all invocations: none returns
    vec4 kept[EACH];
    float sum = 0.0;
    for (uint k = 0u; k < EACH; k++) {
        uint i = lane + k * LANES;
        vec4 v = x[x_at + first + min(i, fours - 1u)]; // without a branch, loads overlap
        kept[k] = i < fours ? v : vec4(0.0);
        sum += dot(kept[k], kept[k]);
    }
    if (LANES <= SUBGROUP) {
        for (uint mask = LANES / 2u; mask > 0u; mask /= 2u)
            sum += subgroupShuffleXor(sum, mask);
    } else {
        uint several = LANES / SUBGROUP; // subgroups of a row
        sum = subgroupAdd(sum);
        if (subgroupElect())
            sums[gl_SubgroupID] = sum;
        barrier();
        sum = 0.0;
        for (uint k = gl_SubgroupInvocationID; k < several; k += SUBGROUP)
            sum += sums[id / LANES * several + k];
        sum = subgroupAdd(sum);
    }
    float scale = inversesqrt(sum / float(4u * fours) + eps);
    for (uint k = 0u; k < EACH; k++) {
        uint i = lane + k * LANES;
        if (i < fours && row < rows)
            y[y_at + first + i] = kept[k] * scale * w[w_at + i];
    }
}
