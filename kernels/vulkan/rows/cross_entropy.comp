#version 460
// SPDX-License-Identifier: MIT
// Cross entropy of rows. IN, LABEL: dtypes; ACC: type of the computation. A row is computed
// by one invocation, or (WIDE) by a workgroup.
#define NEED_EXP
#define NEED_LOG
#include "program/types.glsl"
#include "program/scalar.glsl"
#include "program/functions.glsl"
#include "program/functions_f64.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint WIDE = 0;

layout(std430, binding = 0) readonly buffer In { PASTE(S_, IN) d[]; } source;
layout(std430, binding = 1) readonly buffer Labels { PASTE(S_, LABEL) d[]; } labels;
layout(std430, binding = 2) writeonly buffer Out { PASTE(S_, IN) d[]; } result;
layout(push_constant) uniform Args {
    uint rows, extent, in_offset, out_offset, label_offset;
} args;

struct summary {
    ACC high, sum; // the maximum, and the sum of exp(x - high)
};
shared summary lanes[256];

ACC load_element(uint at)
{
    return PASTE(FROM_, IN)(PASTE(W_, IN)(source.d[at]));
}

// exp(a - b), where both may be infinite: equal infinities give 1, not a NaN.
ACC weight(ACC a, ACC b)
{
    return a == b ? ACC(1) : op_EXP(a - b);
}

summary combine(summary a, summary b)
{
    bool lost = is_nan(a.high) || is_nan(b.high);
    ACC high = lost ? ACC(not_a_number()) : max(a.high, b.high);
    return summary(high, a.sum * weight(a.high, high) + b.sum * weight(b.high, high));
}

summary summarise(uint first)
{
    uint lane = WIDE != 0u ? gl_LocalInvocationIndex : 0u;
    uint step_size = WIDE != 0u ? 256u : 1u;
    summary a = summary(ACC(-infinity()), ACC(0));
    for (uint i = lane; i < args.extent; i += step_size)
        a = combine(a, summary(load_element(first + i), ACC(1)));
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
    uint first = args.in_offset + row * args.extent;
    summary total = summarise(first);
    if (WIDE != 0u && lane != 0u)
        return;
    // Compared in the label's own type: cut to 32 bits, a wrong label might look like a class.
    PASTE(W_, LABEL) label = PASTE(W_, LABEL)(labels.d[args.label_offset + row]);
    ACC y = ACC(0); // the loss of a label that is no class
    if (label >= PASTE(W_, LABEL)(0) && label < PASTE(W_, LABEL)(args.extent))
        y = total.high + op_LOG(total.sum) - load_element(first + uint(label));
    result.d[args.out_offset + row] = PASTE(S_, IN)(PASTE(TO_, IN)(y));
}
