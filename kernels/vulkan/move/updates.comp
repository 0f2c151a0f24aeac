#version 460
// SPDX-License-Identifier: MIT
// PARTS copies, at most 3, of small strided regions in one launch: updates in place, whose regions
// begin at an index that is data, clamped so that they fit, and programs beside them, which are linked
// to what a copy reads. SIZE_0 to SIZE_2: bytes of an element; INDEX: the dtype of indices.
//
// CACHE (f32, f16, q8_0): the first two parts, or the only one, are rows of f32 of several sequences,
// which go to caches of that type, each to its own slot from its own position on. Rows outside are left
// out, and of sequences with the same slot all but the last one.
#include "program/types.glsl"
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
#ifdef CACHE
#define FIRST 3
#define CACHES 2
#define CACHE_f32 float
#define CACHE_f16 uint16_t
#define CACHE_q8_0 uint8_t
layout(std430, binding = 2) readonly buffer Slots { int d[]; } slots;
layout(push_constant) uniform Args {
    uint index_offset, slots_offset, sequences;
} args;
#else
#define FIRST 2
#define CACHES 0
layout(push_constant) uniform Args {
    uint index_offset;
} args;
#include "program/index.glsl"
#endif

#define COPY(i, FROM, TO)                                                                           \
    layout(std430, binding = FIRST + 2 * i) readonly buffer PASTE(From, i) { FROM d[]; } PASTE(from, i); \
    layout(std430, binding = FIRST + 1 + 2 * i) writeonly buffer PASTE(To, i) { TO d[]; } PASTE(to, i);

#ifdef CACHE
COPY(0, float, PASTE(CACHE_, CACHE))
#if PARTS > 1
COPY(1, float, PASTE(CACHE_, CACHE))
#endif
#else
COPY(0, PASTE(S_, SIZE_0), PASTE(S_, SIZE_0))
COPY(1, PASTE(S_, SIZE_1), PASTE(S_, SIZE_1))
#endif
#if PARTS > 2
COPY(2, PASTE(S_, SIZE_2), PASTE(S_, SIZE_2))
#endif

#ifdef CACHE
const uint NOWHERE = 0xffffffffu;

// Whether the workgroup has elements of one sequence alone; whether a later one has its slot then,
// for which all invocations look.
bool is_alone = false;
shared uint hidden;

void look_behind(uint part, uint first)
{
    uint each = regions.d[part].extent[0] * regions.d[part].extent[1] * regions.d[part].extent[2];
    uint sequence = first / each;
    is_alone = sequence == min(first + 255u, regions.d[part].n - 1u) / each;
    if (gl_LocalInvocationIndex == 0u)
        hidden = 0u;
    barrier();
    if (is_alone)
        for (uint i = sequence + 1u + gl_LocalInvocationIndex; i < args.sequences; i += 256u)
            if (slots.d[args.slots_offset + i] == slots.d[args.slots_offset + sequence])
                hidden = 1u;
    barrier();
}

// The begin of row `row` of a sequence, from the begin of the caches on. In a region `axis` is the
// number of positions, and `most` the number of slots.
uint row_position(uint part, uint sequence, uint row)
{
    int count = int(regions.d[part].axis), first = indices.d[args.index_offset + sequence];
    int slot = slots.d[args.slots_offset + sequence], position = first + int(row);
    bool is_written = first >= -count && first < count && position >= 0 && position < count &&
                      slot >= 0 && slot < int(regions.d[part].most);
    uint is_behind = hidden;
    if (!is_alone)
        for (uint i = sequence + 1u; i < args.sequences; i++)
            is_behind |= uint(slots.d[args.slots_offset + i] == slot);
    return is_written && is_behind == 0u
               ? uint(slot) * regions.d[part].to_stride[0] + uint(position) * regions.d[part].to_stride[2]
               : NOWHERE;
}
#endif

// Where an element of a region comes from and goes to.
uvec2 element_position(uint part, uint rest)
{
    uint a = regions.d[part].from_offset, b = regions.d[part].to_offset, row = 0u;
    bool is_cache = part < uint(CACHES);
    for (uint axis = 4u; axis-- > 0u;) {
        uint extent = axis > 0u ? regions.d[part].extent[axis - 1u] : 1u;
        uint next = axis > 0u ? rest / extent : 0u, c = rest - next * extent;
        a += c * regions.d[part].from_stride[axis];
        if (!is_cache || axis % 2u == 1u)
            b += c * regions.d[part].to_stride[axis];
#ifdef CACHE
        if (is_cache && axis == 2u)
            row = c;
        if (is_cache && axis == 0u) {
            uint begin = row_position(part, c, row);
            b = begin == NOWHERE ? NOWHERE : b + begin;
        }
#endif
        rest = next;
    }
#ifndef CACHE
    uint count = regions.d[part].axis;
    if (count != 0u)
        b += min(clamped_index(regions.d[part].number, count), regions.d[part].most) *
             regions.d[part].stride;
#endif
    return uvec2(a, b);
}

#ifdef BLOCKS
shared float values[256]; // of eight blocks

// Writes an element of a block: its byte, and the first one the scale. b: where its row begins.
#define WRITE_BLOCK(i)                                                                              \
    {                                                                                               \
        float x = 0.0;                                                                              \
        if (is_there)                                                                               \
            x = PASTE(from, i).d[at.x];                                                             \
        values[own] = x;                                                                            \
        barrier();                                                                                  \
        float most = 0.0;                                                                           \
        for (uint k = 0u; k < 32u; k++)                                                             \
            most = max(most, abs(values[own / 32u * 32u + k]));                                     \
        float scale = most / 127.0, inverse = scale != 0.0 ? 1.0 / scale : 0.0;                     \
        float size = floor(abs(x) * inverse + 0.5);                                                 \
        uint column = number % regions.d[part].extent[2], bits = f16_bits(scale);                  \
        uint block = at.y + column / 32u * 34u;                                                     \
        if (is_there && at.y != NOWHERE) {                                                          \
            PASTE(to, i).d[block + 2u + column % 32u] = uint8_t(uint(int(x < 0.0 ? -size : size)) & 255u); \
            if (column % 32u < 2u)                                                                  \
                PASTE(to, i).d[block + column % 32u] = uint8_t(bits >> column % 32u * 8u & 255u);   \
        }                                                                                           \
    }
#endif

#ifdef CACHE
#define VALUE_f32(x) (x)
#define VALUE_f16(x) uint16_t(f16_bits(x))
#define WRITE(i)                                                                                    \
    if (at.y != NOWHERE)                                                                            \
        PASTE(to, i).d[at.y] = PASTE(VALUE_, CACHE)(PASTE(from, i).d[at.x]);
#else
#define WRITE(i) PASTE(to, i).d[at.y] = PASTE(from, i).d[at.x];
#endif

void main()
{
    uint group = group_number(), part = 0u, own = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 1u; i < uint(PARTS); i++)
        part += group >= regions.d[i].first_group ? 1u : 0u;
    uint number = (group - regions.d[part].first_group) * 256u + own;
    bool is_there = number < regions.d[part].n;
#ifdef CACHE
    if (part < uint(CACHES))
        look_behind(part, number - own);
#endif
    uvec2 at = element_position(part, is_there ? number : 0u);
#ifdef BLOCKS
    if (part == 0u)
        WRITE_BLOCK(0)
#if PARTS > 1
    else if (part == 1u)
        WRITE_BLOCK(1)
#endif
    if (!is_there)
        return;
#else
    if (!is_there)
        return;
    if (part == 0u) {
        WRITE(0)
    }
#if PARTS > 1
    else if (part == 1u) {
        WRITE(1)
    }
#endif
#endif
#if PARTS > 2
    if (part == 2u)
        to2.d[at.y] = from2.d[at.x];
#endif
}
