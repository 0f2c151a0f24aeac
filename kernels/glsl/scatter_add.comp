#version 460
// SPDX-License-Identifier: MIT
// out = x, plus updates[outer, m, inner] at out[outer, indices[m], inner]; all contiguous.
// Each output looks through the indices for its own: no atomics, and so the same sum in the
// same order every time. IN, INDEX: dtypes; ACC: what is summed in.
#include "types.glsl"
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer In { PASTE(S_, IN) d[]; } source;
layout(std430, binding = 1) readonly buffer Index { PASTE(S_, INDEX) d[]; } indices;
layout(std430, binding = 2) readonly buffer Updates { PASTE(S_, IN) d[]; } updates;
layout(std430, binding = 3) writeonly buffer Out { PASTE(S_, IN) d[]; } result;
layout(push_constant) uniform Args {
    uint n, extent, count, inner, in_offset, index_offset, update_offset, out_offset;
} args;

#include "index.glsl"

void main()
{
    uint i = group_number() * 256u + gl_LocalInvocationIndex;
    if (i >= args.n)
        return;
    uint row = i / args.inner;
    uint outer = row / args.extent;
    uint own = row - outer * args.extent, column = i - row * args.inner;
    ACC sum = ACC(PASTE(FROM_, IN)(PASTE(W_, IN)(source.d[args.in_offset + i])));
    for (uint m = 0u; m < args.count; m++) {
        if (checked_index(m, args.extent) != own)
            continue;
        uint at = args.update_offset + (outer * args.count + m) * args.inner + column;
        sum += ACC(PASTE(FROM_, IN)(PASTE(W_, IN)(updates.d[at])));
    }
    result.d[args.out_offset + i] = PASTE(S_, IN)(PASTE(TO_, IN)(PASTE(C_, IN)(sum)));
}
