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
    return a > b || isnan(a) ? a : b; // a NaN when either is
}
%end
%if min

float min_of(float a, float b)
{
    return a < b || isnan(a) ? a : b; // a NaN when either is
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
    // More workgroups than the device takes along x go on along y.
    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x) * 256u + gl_LocalInvocationID.x;
    if (i < count)
        result[out_at + i] = @GLSL_EXPR@;
}
