#version 460
// SPDX-License-Identifier: MIT
// The true elements of a mask, in order, at most `size` of them:
//
//   OP_mark     packs each tile of TILE elements into bits, and counts them; with BALLOT by
//               subgroups, which have all a power of two of invocations
//   OP_scan     turns the counts of tiles into sums over the tiles before, and writes the sum of all
//   OP_write    writes the numbers of the true elements
//   OP_indices  turns these into indices along an axis, and writes `fill` behind the last
//   OP_take     moves the rows that have these numbers, elements of SIZE bytes; or writes `fill`
//
// The mask is read once: all else reads its bits. Behind the counts lies their sum.
#ifdef BALLOT
#extension GL_KHR_shader_subgroup_ballot : require
#endif
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(push_constant) uniform Args {
    uint n, tiles, size; // n: elements of the mask
    uint inner, extent;  // of an axis; of a row
    uint in_offset, out_offset;
    uint fill0, fill1, fill2, fill3;
} args;

#define ROUNDS 16u // elements of an invocation
#define TILE (256u * ROUNDS)
#define WORDS (8u * ROUNDS)

#if defined(OP_mark)
#define AT_ONCE 4u // elements in flight for each invocation
layout(std430, binding = 0) readonly buffer In { S_bool d[]; } source;
layout(std430, binding = 1) writeonly buffer Bits { uint d[]; } bits;
layout(std430, binding = 2) writeonly buffer Counts { uint d[]; } counts;
shared uint words[WORDS], total;

void main()
{
#ifdef BALLOT
    uint lane = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
#else
    uint lane = gl_LocalInvocationIndex;
#endif
    uint tile = group_number();
    if (tile >= args.tiles)
        return;
    if (lane == 0u)
        total = 0u;
    if (lane < WORDS)
        words[lane] = 0u;
    barrier();
    for (uint r = 0u; r < ROUNDS; r += AT_ONCE) {
        bool is[AT_ONCE];
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++) {
            uint i = tile * TILE + (r + k) * 256u + lane;
            is[k] = FROM_bool(W_bool(source.d[args.in_offset + min(i, args.n - 1u)])) && i < args.n;
        }
        [[unroll]] for (uint k = 0u; k < AT_ONCE; k++) {
            uint at = (r + k) * 8u + (lane >> 5);
#ifdef BALLOT
            uvec4 ballot = subgroupBallot(is[k]);
            uint part = gl_SubgroupInvocationID >> 5;
            uint word = part == 0u ? ballot.x : part == 1u ? ballot.y : part == 2u ? ballot.z : ballot.w;
            if ((gl_SubgroupInvocationID & 31u) == 0u)
                atomicOr(words[at], word << (lane & 31u));
#else
            if (is[k])
                atomicOr(words[at], 1u << (lane & 31u));
#endif
        }
    }
    barrier();
    if (lane < WORDS) {
        uint word = words[lane];
        bits.d[tile * WORDS + lane] = word;
        atomicAdd(total, uint(bitCount(word)));
    }
    barrier();
    if (lane == 0u)
        counts.d[tile] = total;
}

#elif defined(OP_scan)
layout(std430, binding = 0) buffer Counts { uint d[]; } counts;
layout(std430, binding = 1) writeonly buffer Count { uvec2 d[]; } result;
#define EACH 8u // tiles of an invocation at once
shared uint scanned[256];

// One workgroup.
void main()
{
    uint lane = gl_LocalInvocationIndex, before = 0u;
    for (uint first = 0u; first < args.tiles; first += 256u * EACH) {
        uint own[EACH], sum = 0u, tile = first + lane * EACH;
        [[unroll]] for (uint k = 0u; k < EACH; k++)
            own[k] = tile + k < args.tiles ? counts.d[tile + k] : 0u;
        [[unroll]] for (uint k = 0u; k < EACH; k++)
            sum += own[k];
        uint last = sum;
        barrier();
        scanned[lane] = sum;
        [[unroll]] for (uint width = 1u; width < 256u; width <<= 1) {
            barrier();
            uint left = lane >= width ? scanned[lane - width] : 0u;
            barrier();
            sum += left;
            scanned[lane] = sum;
        }
        barrier();
        uint at = before + sum - last;
        before += scanned[255];
        [[unroll]] for (uint k = 0u; k < EACH; k++) {
            if (tile + k < args.tiles)
                counts.d[tile + k] = at;
            at += own[k];
        }
    }
    if (lane == 0u) {
        counts.d[args.tiles] = before;
        result.d[args.out_offset] = uvec2(before, 0u);
    }
}

#elif defined(OP_write)
layout(std430, binding = 0) readonly buffer Bits { uint d[]; } bits;
layout(std430, binding = 1) readonly buffer Counts { uint d[]; } counts;
layout(std430, binding = 2) writeonly buffer Positions { uint d[]; } positions;
shared uint words[WORDS], sums[WORDS];

void main()
{
    uint lane = gl_LocalInvocationIndex, tile = group_number();
    if (tile >= args.tiles)
        return;
    uint first = counts.d[tile];
    if (first >= args.size || first == counts.d[tile + 1u])
        return;
    uint word = lane < WORDS ? bits.d[tile * WORDS + lane] : 0u, own = uint(bitCount(word)), sum = own;
    if (lane < WORDS) {
        words[lane] = word;
        sums[lane] = sum;
    }
    [[unroll]] for (uint width = 1u; width < WORDS; width <<= 1) {
        barrier();
        uint left = lane >= width && lane < WORDS ? sums[lane - width] : 0u;
        barrier();
        sum += left;
        if (lane < WORDS)
            sums[lane] = sum;
    }
    barrier();
    if (lane < WORDS)
        sums[lane] = first + sum - own;
    barrier();
    [[unroll]] for (uint r = 0u; r < ROUNDS; r++) {
        uint at = r * 8u + (lane >> 5), mark = words[at], bit = 1u << (lane & 31u);
        uint to = sums[at] + uint(bitCount(mark & (bit - 1u)));
        if ((mark & bit) != 0u && to < args.size)
            positions.d[to] = tile * TILE + r * 256u + lane;
    }
}

#else
layout(std430, binding = 0) readonly buffer Positions { uint d[]; } positions;
layout(std430, binding = 1) readonly buffer Counts { uint d[]; } counts;
#ifdef OP_indices
layout(std430, binding = 2) writeonly buffer Out { uvec2 d[]; } result;

void main()
{
    uint i = group_number() * 256u + gl_LocalInvocationIndex;
    if (i >= args.size)
        return;
    uvec2 index = uvec2(args.fill0, args.fill1);
    if (i < counts.d[args.tiles])
        index = uvec2(positions.d[i] / args.inner % args.extent, 0u);
    result.d[args.out_offset + i] = index;
}

#else // OP_take
#define S_1 uint8_t
#define S_2 uint16_t
#define S_4 uint
#define S_8 uvec2
#define S_16 uvec4
#define FILL_1 uint8_t(args.fill0)
#define FILL_2 uint16_t(args.fill0)
#define FILL_4 args.fill0
#define FILL_8 uvec2(args.fill0, args.fill1)
#define FILL_16 uvec4(args.fill0, args.fill1, args.fill2, args.fill3)
#define S PASTE(S_, SIZE)
layout(std430, binding = 2) readonly buffer In { S d[]; } source;
layout(std430, binding = 3) writeonly buffer Out { S d[]; } result;

void main()
{
    uint i = group_number() * 256u + gl_LocalInvocationIndex;
    if (i >= args.size * args.inner)
        return;
    uint row = i / args.inner;
    if (row < counts.d[args.tiles])
        result.d[args.out_offset + i] =
            source.d[args.in_offset + positions.d[row] * args.inner + (i - row * args.inner)];
    else
        result.d[args.out_offset + i] = PASTE(FILL_, SIZE);
}
#endif
#endif
