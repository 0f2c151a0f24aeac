#version 460
// SPDX-License-Identifier: @LICENSE@
// @FOR@ over contiguous f32. Operand i is binding i of set 0, and begins at element
// `..._at`.
layout(local_size_x = 256) in;
@BINDINGS@
layout(push_constant) uniform Push {
@PUSH@
};
%if max

float max_of(float a, float b)
{
    return a > b || isnan(a) ? a : b; // NaN where one of them is
}
%end
%if min

float min_of(float a, float b)
{
    return a < b || isnan(a) ? a : b; // NaN where one of them is
}
%end
%if choose

float choose(bool condition, float a, float b)
{
    return condition ? a : b;
}
%end

void main()
{
    // A device takes 65535 workgroups along x; the host lays more of them out along y.
    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * 65535u) * 256u + gl_LocalInvocationID.x;
    if (i < count)
        result[out_at + i] = @GLSL_EXPR@;
}
