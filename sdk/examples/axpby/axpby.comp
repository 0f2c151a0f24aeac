#version 460
// SPDX-License-Identifier: MIT
// out = alpha * x + beta * y over contiguous f32. Operand i is binding i of set 0.
layout(local_size_x = 256) in;

layout(std430, set = 0, binding = 0) readonly buffer X { float x[]; };
layout(std430, set = 0, binding = 1) readonly buffer Y { float y[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Out { float result[]; };

layout(push_constant) uniform Push {
    uint count;
    uint x_offset;
    uint y_offset;
    uint out_offset;
    float alpha;
    float beta;
};

void main()
{
    // A device takes 65535 workgroups along x; the host lays more of them out along y.
    uint group = gl_WorkGroupID.x + gl_WorkGroupID.y * 65535u;
    uint i = group * 256u + gl_LocalInvocationID.x;
    if (i < count)
        result[out_offset + i] = alpha * x[x_offset + i] + beta * y[y_offset + i];
}
