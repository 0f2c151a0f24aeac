#version 460
// SPDX-License-Identifier: MIT
// result[outer, index, inner] = updates[outer, m, inner], the last of equal indices, for many indices
// of few rows:
//
//   OP_clear  no row has an update
//   OP_mark   1 + the number of a row's last update, by atomic maxima; INDEX: an integer dtype
//   OP_put    each element of the result is that update's, or x's. Elements of SIZE bytes
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint IN_PLACE = 0; // the result is x already
layout(push_constant) uniform Args {
    uint n, extent, count, inner; // n: invocations
    uint index_offset, in_offset, update_offset, out_offset;
} args;

#ifdef OP_clear
layout(std430, binding = 0) writeonly buffer Last { uint d[]; } last;
#elif defined(OP_mark)
layout(std430, binding = 0) readonly buffer Index { PASTE(S_, INDEX) d[]; } indices;
layout(std430, binding = 1) buffer Last { uint d[]; } last;
#include "program/index.glsl"
#else
#define S_1 uint8_t
#define S_2 uint16_t
#define S_4 uint
#define S_8 uvec2
#define S_16 uvec4
#define S PASTE(S_, SIZE)
layout(std430, binding = 0) readonly buffer In { S d[]; } source;
layout(std430, binding = 1) readonly buffer Last { uint d[]; } last;
layout(std430, binding = 2) readonly buffer Updates { S d[]; } updates;
layout(std430, binding = 3) writeonly buffer Out { S d[]; } result;
#endif

void main()
{
    uint i = group_number() * 256u + gl_LocalInvocationIndex;
    if (i >= args.n)
        return;
#ifdef OP_clear
    last.d[i] = 0u;
#elif defined(OP_mark)
    uint key = checked_index(i, args.extent);
    if (key < args.extent)
        atomicMax(last.d[key], i + 1u);
#else
    uint row = i / args.inner;
    uint outer = row / args.extent;
    uint m = last.d[row - outer * args.extent];
    if (m > 0u)
        result.d[args.out_offset + i] =
            updates.d[args.update_offset + (outer * args.count + m - 1u) * args.inner + (i - row * args.inner)];
    else if (IN_PLACE == 0u)
        result.d[args.out_offset + i] = source.d[args.in_offset + i];
#endif
}
