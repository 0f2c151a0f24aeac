#version 460
// SPDX-License-Identifier: MIT
// result[outer, index, inner] += updates[outer, m, inner] for integers of 32 and 64 bits, whose sums
// are the same in any order: by atomic additions of words of 32 bits. With STAGED the result is a
// vector of few elements: each workgroup first sums its part of the updates in shared memory, where
// `copies` of the elements share the additions to one of them.
// IN: u32, or u64 with TWO_WORDS, also for signed integers. INDEX: an integer dtype.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint STAGED = 0;
layout(constant_id = 1) const uint SHARED_WORDS = 1;
layout(std430, binding = 0) readonly buffer Index { PASTE(S_, INDEX) d[]; } indices;
layout(std430, binding = 1) readonly buffer Updates { PASTE(S_, IN) d[]; } updates;
layout(std430, binding = 2) buffer Out { uint d[]; } result;
layout(push_constant) uniform Args {
    uint n, extent, count, inner; // n: of updates
    uint index_offset, update_offset, out_offset;
    uint parts, part; // workgroups, and the updates of one
    uint copies;      // a power of two
} args;

#include "program/index.glsl"

#define AT_ONCE 4u // updates in flight for each invocation
#define NONE 0xffffffffu
#ifdef TWO_WORDS
#define WORDS 2
#else
#define WORDS 1
#endif

shared uint bins[SHARED_WORDS]; // of a copy: all lower words, then all upper ones

#ifdef TWO_WORDS
#define WORD uvec2
WORD words_of(PASTE(W_, IN) x)
{
    return unpackUint2x32(x);
}

// The carry of a sum, from the lower word before it.
uint upper_of(uint before, WORD x)
{
    return x.y + uint(before + x.x < before);
}
#else
#define WORD uint
WORD words_of(PASTE(W_, IN) x)
{
    return x;
}
#endif

void add_shared(uint copy, uint at, WORD x)
{
    uint base = copy * args.extent * WORDS + at;
#ifdef TWO_WORDS
    uint upper = upper_of(atomicAdd(bins[base], x.x), x);
    if (upper != 0u)
        atomicAdd(bins[base + args.extent], upper);
#else
    atomicAdd(bins[base], x);
#endif
}

void add(uint at, WORD x)
{
    uint base = (args.out_offset + at) * WORDS;
#ifdef TWO_WORDS
    uint upper = upper_of(atomicAdd(result.d[base], x.x), x);
    if (upper != 0u)
        atomicAdd(result.d[base + 1u], upper);
#else
    atomicAdd(result.d[base], x);
#endif
}

// The element of the result that update i goes to, or NONE.
uint element_of(uint i)
{
    if (STAGED != 0u) {
        uint key = checked_index(i, args.extent);
        return key < args.extent ? key : NONE;
    }
    uint row = i / args.inner;
    uint outer = row / args.count;
    uint key = checked_index(row - outer * args.count, args.extent);
    return key < args.extent ? (outer * args.extent + key) * args.inner + (i - row * args.inner) : NONE;
}

void put(uint i, uint at, WORD x)
{
    if (STAGED != 0u)
        add_shared(i & (args.copies - 1u), at, x);
    else
        add(at, x);
}

// Adds what the workgroup summed.
void add_bins()
{
    for (uint at = gl_LocalInvocationIndex; at < args.extent; at += 256u) {
        uint low = 0u, high = 0u;
        for (uint copy = 0u; copy < args.copies; copy++) {
            uint base = copy * args.extent * WORDS + at, own = bins[base];
            low += own;
#ifdef TWO_WORDS
            high += bins[base + args.extent] + uint(low < own);
#endif
        }
#ifdef TWO_WORDS
        if ((low | high) != 0u)
            add(at, uvec2(low, high));
#else
        if (low != 0u)
            add(at, low);
#endif
    }
}

void main()
{
    uint lane = gl_LocalInvocationIndex, group = group_number();
    if (group >= args.parts)
        return;
    if (STAGED != 0u) {
        for (uint i = lane; i < args.copies * args.extent * WORDS; i += 256u)
            bins[i] = 0u;
        barrier();
    }
    uint begin = group * args.part, end = begin + min(args.part, args.n - begin);
    for (uint first = begin; first < end; first += AT_ONCE * 256u) {
        uint to[AT_ONCE];
        WORD x[AT_ONCE];
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++) {
            uint i = first + k * 256u + lane, at = min(i, end - 1u);
            to[k] = element_of(at);
            x[k] = words_of(PASTE(W_, IN)(updates.d[args.update_offset + at]));
            to[k] = i < end ? to[k] : NONE;
        }
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++)
            if (to[k] != NONE)
                put(lane, to[k], x[k]);
    }
    if (STAGED != 0u) {
        barrier();
        add_bins();
    }
}
