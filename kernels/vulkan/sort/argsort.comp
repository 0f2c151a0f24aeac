#version 460
// SPDX-License-Identifier: MIT
// The order of elements along an axis of outer x n x inner elements: stable, NaN as the greatest.
//
//   OP_block  makes keys, and sorts blocks of 1024 of a row by a bitonic network over keys and
//             positions
//   OP_merge  merges sorted runs of `width` in pairs: each element finds its position in the other
//             run by bisection
//
// Keys and positions of a row lie side by side in scratch memory, FROM_PAIRS before the first pass,
// too; the last pass (LAST) writes positions to the result. BITS: an unsigned dtype as wide as the
// elements. KEY: as in keys.glsl.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint LAST = 0;
layout(push_constant) uniform Args {
    uint rows, n, inner; // rows: outer times inner
    uint blocks, width;
    uint in_offset, out_offset;
} args;

uint base_of(uint row)
{
    uint first = row / args.inner;
    return first * args.n * args.inner + (row - first * args.inner);
}

#ifdef OP_block
#include "keys.glsl"
layout(constant_id = 4) const uint FROM_PAIRS = 0;
layout(std430, binding = 0) readonly buffer In { PASTE(S_, BITS) d[]; } source;
layout(std430, binding = 1) writeonly buffer Keys { KEY d[]; } keys;
layout(std430, binding = 2) writeonly buffer Positions { uint d[]; } positions;
layout(std430, binding = 3) writeonly buffer Out { int64_t d[]; } result;
layout(std430, binding = 4) readonly buffer OldKeys { KEY d[]; } old_keys;
layout(std430, binding = 5) readonly buffer OldPositions { uint d[]; } old_positions;

#define BLOCK 1024u
shared KEY block_keys[BLOCK];
shared uint block_positions[BLOCK];

// Exchanges two elements that are not in ascending, or descending, order. Positions differ, so no
// two elements are equal.
void exchange(uint a, uint b, bool ascending)
{
    KEY p = block_keys[a], q = block_keys[b];
    uint i = block_positions[a], k = block_positions[b];
    bool is_after = p > q || (p == q && i > k);
    if (is_after != ascending)
        return;
    block_keys[a] = q;
    block_keys[b] = p;
    block_positions[a] = k;
    block_positions[b] = i;
}

void sort_block(uint size)
{
    uint lane = gl_LocalInvocationIndex;
    for (uint k = 2u; k <= size; k <<= 1)
        for (uint j = k >> 1; j > 0u; j >>= 1) {
            barrier();
            for (uint p = lane; p < size >> 1; p += 256u) {
                uint low = 2u * p - (p & (j - 1u));
                exchange(low, low + j, (low & k) == 0u);
            }
        }
    barrier();
}

void main()
{
    uint lane = gl_LocalInvocationIndex, unit = group_number();
    if (unit >= args.rows * args.blocks)
        return;
    uint row = unit / args.blocks, begin = (unit - row * args.blocks) * BLOCK;
    uint count = min(BLOCK, args.n - begin), base = base_of(row), size = 1u;
    while (size < count)
        size <<= 1;
    for (uint e = lane; e < size; e += 256u) {
        KEY key = ONES; // behind the end: with the highest positions, the last
        uint position = FROM_PAIRS != 0u ? 0xffffffffu : begin + e;
        if (e < count && FROM_PAIRS != 0u) {
            key = old_keys.d[row * args.n + begin + e];
            position = old_positions.d[row * args.n + begin + e];
        } else if (e < count) {
            key = key_of(KEY(source.d[args.in_offset + base + (begin + e) * args.inner]));
        }
        block_keys[e] = key;
        block_positions[e] = position;
    }
    sort_block(size);
    for (uint e = lane; e < count; e += 256u) {
        if (LAST != 0u) {
            result.d[args.out_offset + base + (begin + e) * args.inner] =
                int64_t(block_positions[e]);
        } else {
            keys.d[row * args.n + begin + e] = block_keys[e];
            positions.d[row * args.n + begin + e] = block_positions[e];
        }
    }
}

#else // OP_merge
layout(std430, binding = 0) readonly buffer OldKeys { KEY d[]; } old_keys;
layout(std430, binding = 1) readonly buffer OldPositions { uint d[]; } old_positions;
layout(std430, binding = 2) writeonly buffer Keys { KEY d[]; } keys;
layout(std430, binding = 3) writeonly buffer Positions { uint d[]; } positions;
layout(std430, binding = 4) writeonly buffer Out { int64_t d[]; } result;

// The number of elements in low .. high - 1 of a row that come before a key and position.
uint count_before(uint row, uint low, uint high, KEY key, uint position)
{
    uint begin = low;
    while (low < high) {
        uint middle = low + (high - low) / 2u;
        KEY other = old_keys.d[row * args.n + middle];
        if (other < key || (other == key && old_positions.d[row * args.n + middle] < position))
            low = middle + 1u;
        else
            high = middle;
    }
    return low - begin;
}

void main()
{
    uint element = group_number() * 256u + gl_LocalInvocationIndex;
    if (element >= args.rows * args.n)
        return;
    uint row = element / args.n, i = element - row * args.n;
    uint begin = i / args.width / 2u * 2u * args.width; // of the first run
    uint middle = args.n - begin > args.width ? begin + args.width : args.n;
    uint end = args.n - middle > args.width ? middle + args.width : args.n;
    KEY key = old_keys.d[element];
    uint own = old_positions.d[element];
    uint to = i < middle ? i + count_before(row, middle, end, key, own)
                         : begin + (i - middle) + count_before(row, begin, middle, key, own);
    if (LAST != 0u) {
        result.d[args.out_offset + base_of(row) + to * args.inner] = int64_t(own);
    } else {
        keys.d[row * args.n + to] = key;
        positions.d[row * args.n + to] = own;
    }
}
#endif
