#version 460
// SPDX-License-Identifier: MIT
// Softmax, its logarithm, and cross entropy: along one axis of a contiguous array seen as
// [outer, length, inner]. OP_softmax, OP_log_softmax, OP_cross_entropy (inner is 1); IN: a
// float dtype of 32 bits or fewer. A row is one invocation's, or (WIDE) a workgroup's.
#define NEED_EXP
#define NEED_LOG
#include "types.glsl"
#include "scalar.glsl"
#include "functions.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint WIDE = 0;

layout(std430, binding = 0) readonly buffer In { PASTE(S_, IN) d[]; } source;
#ifdef OP_cross_entropy
layout(std430, binding = 1) readonly buffer Labels { PASTE(S_, LABEL) d[]; } labels;
layout(std430, binding = 2) writeonly buffer Out { PASTE(S_, IN) d[]; } result;
#else
layout(std430, binding = 1) writeonly buffer Out { PASTE(S_, IN) d[]; } result;
#endif
layout(push_constant) uniform Args {
    uint rows, extent, inner, in_offset, out_offset, label_offset;
} args;

shared vec2 lanes[256]; // the largest value, and the sum of exp(x - it)

float load_element(uint at)
{
    return PASTE(FROM_, IN)(PASTE(W_, IN)(source.d[at]));
}

// exp(a - b) where both may be infinite: two equal ones differ by nothing.
float weight(float a, float b)
{
    return a == b ? 1.0 : op_EXP(a - b);
}

vec2 combine(vec2 a, vec2 b)
{
    float high = is_nan(a.x) || is_nan(b.x) ? not_a_number() : max(a.x, b.x);
    return vec2(high, a.y * weight(a.x, high) + b.y * weight(b.x, high));
}

vec2 summarise(uint first, uint stride)
{
    uint lane = WIDE != 0u ? gl_LocalInvocationIndex : 0u;
    uint step_size = WIDE != 0u ? 256u : 1u;
    vec2 a = vec2(-infinity(), 0.0);
    for (uint i = lane; i < args.extent; i += step_size)
        a = combine(a, vec2(load_element(first + i * stride), 1.0));
    if (WIDE == 0u)
        return a;
    lanes[lane] = a;
    for (uint width = 128u; width > 0u; width >>= 1) {
        barrier();
        if (lane < width)
            lanes[lane] = combine(lanes[lane], lanes[lane + width]);
    }
    barrier();
    return lanes[0];
}

void main()
{
    uint lane = gl_LocalInvocationIndex;
    uint row = WIDE != 0u ? group_number() : group_number() * 256u + lane;
    if (row >= args.rows)
        return;
    uint outer = row / args.inner;
    uint first = (outer * args.extent) * args.inner + (row - outer * args.inner);
    vec2 total = summarise(args.in_offset + first, args.inner);
#ifdef OP_cross_entropy
    if (WIDE != 0u && lane != 0u)
        return;
    uint label = uint(PASTE(W_, LABEL)(labels.d[args.label_offset + row]));
    float y = 0.0; // a label that is no class costs nothing
    if (label < args.extent)
        y = total.x + op_LOG(total.y) - load_element(args.in_offset + first + label);
    result.d[args.out_offset + row] = PASTE(S_, IN)(PASTE(TO_, IN)(y));
#else
    uint start = WIDE != 0u ? lane : 0u;
    uint step_size = WIDE != 0u ? 256u : 1u;
#ifdef OP_log_softmax
    float shift = op_LOG(total.y);
#else
    float scale = 1.0 / total.y;
#endif
    for (uint i = start; i < args.extent; i += step_size) {
        uint at = first + i * args.inner;
        float x = load_element(args.in_offset + at);
#ifdef OP_log_softmax
        float y = (x - total.x) - shift;
#else
        float y = op_EXP(x - total.x) * scale;
#endif
        result.d[args.out_offset + at] = PASTE(S_, IN)(PASTE(TO_, IN)(y));
    }
#endif
}
