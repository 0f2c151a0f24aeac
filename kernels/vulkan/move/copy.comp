#version 460
// SPDX-License-Identifier: MIT
// Copies elements of SIZE bytes from one strided region into another. With INDEX, an integer
// dtype: one of the regions begins at indices that are data, clamped so that it fits. Negative
// indices count from the end.
#include "program/types.glsl"
#include "program/divide.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint RANK = 1;

#define S_1 uint8_t
#define S_2 uint16_t
#define S_4 uint
#define S_8 uvec2
#define S_16 uvec4
#define S PASTE(S_, SIZE)
layout(std430, binding = 0) readonly buffer From { S d[]; } from;
layout(std430, binding = 1) writeonly buffer To { S d[]; } to;

#ifdef INDEX
layout(constant_id = 1) const uint ENTRIES = 1;
layout(constant_id = 2) const uint START_IS_TO = 0; // 1: the start moves the region that is written
layout(std430, binding = 2) readonly buffer Start { PASTE(S_, INDEX) d[]; } indices;
// number of an index, extent of its axis, the greatest first index, stride
layout(std430, binding = 3) readonly buffer Entries { uvec4 d[]; } entries;
#endif

layout(push_constant) uniform Args {
    uint n, from_offset, to_offset;
    uint extent[7]; // of axes 1 to 7
    uint from_stride[8];
    uint to_stride[8];
    uint by[4]; // what divides by the extents of the last axis, and of the one before
#ifdef INDEX
    uint index_offset, index_stride;
#endif
} args;

#ifdef INDEX
#include "program/index.glsl"

// Elements from the region's offset to the first of its elements.
uint start()
{
    uint shift = 0u;
    for (uint i = 0u; i < ENTRIES; i++) {
        uvec4 entry = entries.d[i];
        uint first = clamped_index(entry.x * args.index_stride, entry.y);
        shift += min(first, entry.z) * entry.w;
    }
    return shift;
}
#endif

// rest / the extent of an axis.
uint before(uint rest, uint axis)
{
    uint from_last = RANK - 1u - axis;
    return from_last < 2u ? divide(rest, args.by[2u * from_last], args.by[2u * from_last + 1u])
                          : rest / args.extent[axis - 1u];
}

void main()
{
    uint rest = group_number() * 256u + gl_LocalInvocationIndex;
    if (rest >= args.n)
        return;
    uint a = args.from_offset, b = args.to_offset;
    for (uint axis = RANK; axis-- > 0u;) {
        uint next = axis > 0u ? before(rest, axis) : 0u;
        uint c = axis > 0u ? rest - next * args.extent[axis - 1u] : rest;
        a += c * args.from_stride[axis];
        b += c * args.to_stride[axis];
        rest = next;
    }
#ifdef INDEX
    uint shift = start();
    a += START_IS_TO == 0u ? shift : 0u;
    b += START_IS_TO == 0u ? 0u : shift;
#endif
    to.d[b] = from.d[a];
}
