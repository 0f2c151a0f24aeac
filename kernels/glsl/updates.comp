#version 460
// SPDX-License-Identifier: MIT
// PARTS copies, 2 or 3, of small strided regions in one launch: updates in place, whose regions begin
// at an index that is data, clamped so that they fit, and programs beside them, which are linked to
// what a copy reads. SIZE_0 to SIZE_2: bytes of an element; INDEX: the dtype of indices.
#include "types.glsl"
layout(local_size_x = 256) in;

#define S_2 uint16_t
#define S_4 uint
struct region {
    uint n, first_group; // elements, workgroups before
    uint from_offset, to_offset;
    uint extent[3]; // of axes 1 to 3
    uint from_stride[4];
    uint to_stride[4];
    uint number;                // of the index
    uint axis, most, stride; // extent of its axis (0: none), the greatest first index, elements
};
layout(std430, binding = 0) readonly buffer Regions { region d[]; } regions;
layout(std430, binding = 1) readonly buffer Start { PASTE(S_, INDEX) d[]; } indices;
layout(push_constant) uniform Args {
    uint index_offset;
} args;
#include "index.glsl"

#define COPY(i)                                                                                     \
    layout(std430, binding = 2 + 2 * i) readonly buffer PASTE(From, i) { PASTE(S_, PASTE(SIZE_, i)) d[]; } PASTE(from, i); \
    layout(std430, binding = 3 + 2 * i) writeonly buffer PASTE(To, i) { PASTE(S_, PASTE(SIZE_, i)) d[]; } PASTE(to, i);

COPY(0)
COPY(1)
#if PARTS > 2
COPY(2)
#endif

// Where an element of a region comes from and goes to.
uvec2 place(uint part, uint rest)
{
    uint a = regions.d[part].from_offset, b = regions.d[part].to_offset;
    for (uint axis = 4u; axis-- > 0u;) {
        uint extent = axis > 0u ? regions.d[part].extent[axis - 1u] : 1u;
        uint next = axis > 0u ? rest / extent : 0u, c = rest - next * extent;
        a += c * regions.d[part].from_stride[axis];
        b += c * regions.d[part].to_stride[axis];
        rest = next;
    }
    uint count = regions.d[part].axis;
    if (count != 0u)
        b += min(clamped_index(regions.d[part].number, count), regions.d[part].most) *
             regions.d[part].stride;
    return uvec2(a, b);
}

void main()
{
    uint group = group_number(), part = 0u;
    [[unroll]] for (uint i = 1u; i < uint(PARTS); i++)
        part += group >= regions.d[i].first_group ? 1u : 0u;
    uint i = (group - regions.d[part].first_group) * 256u + gl_LocalInvocationIndex;
    if (i >= regions.d[part].n)
        return;
    uvec2 at = place(part, i);
    if (part == 0u)
        to0.d[at.y] = from0.d[at.x];
    else if (part == 1u)
        to1.d[at.y] = from1.d[at.x];
#if PARTS > 2
    else
        to2.d[at.y] = from2.d[at.x];
#endif
}
