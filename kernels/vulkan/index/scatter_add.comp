#version 460
// SPDX-License-Identifier: MIT
// out = x, plus updates[outer, m, inner] at out[outer, indices[m], inner]; all contiguous.
// For few indices: each output searches all indices for its own. IN, INDEX: dtypes.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer In { PASTE(S_, IN) d[]; } source;
layout(std430, binding = 1) readonly buffer Index { PASTE(S_, INDEX) d[]; } indices;
layout(std430, binding = 2) readonly buffer Updates { PASTE(S_, IN) d[]; } updates;
layout(std430, binding = 3) writeonly buffer Out { PASTE(S_, IN) d[]; } result;
layout(push_constant) uniform Args {
    uint n, extent, count, inner, in_offset, index_offset, update_offset, out_offset;
} args;

#include "program/index.glsl"
#include "scatter.glsl"

void main()
{
    uint i = group_number() * 256u + gl_LocalInvocationIndex;
    if (i >= args.n)
        return;
    uint row = i / args.inner;
    uint outer = row / args.extent;
    uint own = row - outer * args.extent, column = i - row * args.inner;
    SUM sum = LOADED(source.d[args.in_offset + i]);
    for (uint m = 0u; m < args.count; m++) {
        if (checked_index(m, args.extent) != own)
            continue;
        uint at = args.update_offset + (outer * args.count + m) * args.inner + column;
        sum = plus(sum, LOADED(updates.d[at]));
    }
    result.d[args.out_offset + i] = STORED(sum);
}
