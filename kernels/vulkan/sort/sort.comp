#version 460
// SPDX-License-Identifier: MIT
// A stable sort of indices, as pairs of a key (the index counted from the front; `extent` for an
// index out of range) and a position: equal keys stay in the order of their positions.
//
//   OP_rank   few indices, of dtype INDEX: each counts the pairs that go before it
//   OP_keys   many indices: makes the keys, and the histogram of their lowest digit in each tile
//   OP_write  one digit of a radix sort: moves each tile's pairs to their positions
//
// counts.d[(pass * num_tiles + tile) * 256 + digit] is the histogram of tile `tile` in the order
// that pass `pass` reads. A pass counts the next digit of the pairs that it moves to each tile, by
// atomic adds: sums of integers are the same in any order.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(push_constant) uniform Args {
    uint count, extent, index_offset;
    uint pass, num_passes, digit_bits; // digits lie at pass * digit_bits
    uint tile_shift, num_tiles;
} args;

#ifdef INDEX
layout(std430, binding = 0) readonly buffer Index { PASTE(S_, INDEX) d[]; } indices;
#include "program/index.glsl"
#endif

uint digit_of(uint key, uint pass)
{
    return (key >> (pass * args.digit_bits)) & ((1u << args.digit_bits) - 1u);
}

uint count_at(uint pass, uint tile, uint digit)
{
    return (pass * args.num_tiles + tile) * 256u + digit;
}

#if defined(OP_rank)
layout(std430, binding = 1) writeonly buffer Keys { uint d[]; } keys;
layout(std430, binding = 2) writeonly buffer Positions { uint d[]; } positions;
shared uint all[1024];

void main()
{
    for (uint m = gl_LocalInvocationIndex; m < args.count; m += 256u)
        all[m] = checked_index(m, args.extent);
    barrier();
    uint i = group_number() * 256u + gl_LocalInvocationIndex;
    if (i >= args.count)
        return;
    uint own = all[i], rank = 0u;
    for (uint m = 0u; m < i; m++)
        rank += uint(all[m] <= own);
    for (uint m = i + 1u; m < args.count; m++)
        rank += uint(all[m] < own);
    keys.d[rank] = own;
    positions.d[rank] = i;
}

#elif defined(OP_keys)
layout(std430, binding = 1) writeonly buffer Keys { uint d[]; } keys;
layout(std430, binding = 2) writeonly buffer Counts { uint d[]; } counts;
shared uint bins[256];

void main()
{
    uint tile = group_number(), lane = gl_LocalInvocationIndex;
    if (tile >= args.num_tiles)
        return;
    bins[lane] = 0u;
    barrier();
    for (uint e = lane; e < 1u << args.tile_shift; e += 256u) {
        uint i = (tile << args.tile_shift) + e;
        if (i >= args.count)
            break;
        uint key = checked_index(i, args.extent);
        keys.d[i] = key;
        atomicAdd(bins[digit_of(key, 0u)], 1u);
    }
    barrier();
    counts.d[count_at(0u, tile, lane)] = bins[lane];
    for (uint pass = 1u; pass < args.num_passes; pass++)
        counts.d[count_at(pass, tile, lane)] = 0u;
}

#else // OP_write
layout(std430, binding = 0) readonly buffer OldKeys { uint d[]; } old_keys;
layout(std430, binding = 1) readonly buffer OldPositions { uint d[]; } old_positions;
layout(std430, binding = 2) writeonly buffer Keys { uint d[]; } keys;
layout(std430, binding = 3) writeonly buffer Positions { uint d[]; } positions;
layout(std430, binding = 4) buffer Counts { uint d[]; } counts;

#define ROUNDS 4u // of 256 pairs each; all are fetched together
shared uint next[256];    // by digit: the position of the next pair with this digit
shared uint scanned[256];
shared uint marks[8 * 256]; // by digit, the invocations of a round that have it: 256 bits, of
                            // which word w is at w * 256 + digit

// The position of this tile's first pair with digit `lane`: behind all pairs with a lower digit,
// and behind the pairs of earlier tiles with this digit.
void find_positions(uint tile, uint lane)
{
    uint total = 0u, before = 0u;
    for (uint t = 0u; t < args.num_tiles; t += 32u) {
        uint part[32]; // loads in flight, which hide the latency of memory
        [[unroll]] for (uint i = 0u; i < 32u; i++)
            part[i] = t + i < args.num_tiles ? counts.d[count_at(args.pass, t + i, lane)] : 0u;
        [[unroll]] for (uint i = 0u; i < 32u; i++) {
            total += part[i];
            before += t + i < tile ? part[i] : 0u;
        }
    }
    uint sum = total;
    scanned[lane] = sum;
    for (uint width = 1u; width < 256u; width <<= 1) {
        barrier();
        uint left = lane >= width ? scanned[lane - width] : 0u;
        barrier();
        sum += left;
        scanned[lane] = sum;
    }
    next[lane] = sum - total + before;
}

// The number of the round's pairs before this one that have its digit.
uint rank_in_round(uint digit, uint lane)
{
    uint own = lane >> 5, rank = 0u;
    [[unroll]] for (uint word = 0u; word < 8u; word++) {
        uint mark = marks[word * 256u + digit];
        mark &= word < own ? 0xffffffffu : word > own ? 0u : (1u << (lane & 31u)) - 1u;
        rank += bitCount(mark);
    }
    return rank;
}

// Advances next[lane] by the round's pairs with digit `lane`, and clears the digit's marks.
void end_round(uint lane)
{
    uint n = 0u;
    [[unroll]] for (uint word = 0u; word < 8u; word++) {
        n += bitCount(marks[word * 256u + lane]);
        marks[word * 256u + lane] = 0u;
    }
    next[lane] += n;
}

void put(uint to, uint key, uint position)
{
    keys.d[to] = key;
    positions.d[to] = position;
    if (args.pass + 1u < args.num_passes)
        atomicAdd(counts.d[count_at(args.pass + 1u, to >> args.tile_shift,
                                    digit_of(key, args.pass + 1u))], 1u);
}

void main()
{
    uint tile = group_number(), lane = gl_LocalInvocationIndex;
    if (tile >= args.num_tiles)
        return;
    [[unroll]] for (uint word = 0u; word < 8u; word++)
        marks[word * 256u + lane] = 0u;
    find_positions(tile, lane);
    uint begin = tile << args.tile_shift;
    uint end = min(begin + (1u << args.tile_shift), args.count);
    for (uint first = begin; first < end; first += ROUNDS * 256u) {
        uint key[ROUNDS], position[ROUNDS];
        [[unroll]] for (uint r = 0u; r < ROUNDS; r++) {
            uint i = first + r * 256u + lane, at = min(i, end - 1u);
            key[r] = old_keys.d[at];
            position[r] = args.pass == 0u ? at : old_positions.d[at];
        }
        [[unroll]] for (uint r = 0u; r < ROUNDS; r++) {
            bool has = first + r * 256u + lane < end;
            uint digit = digit_of(key[r], args.pass);
            barrier();
            if (has)
                atomicOr(marks[(lane >> 5) * 256u + digit], 1u << (lane & 31u));
            barrier();
            if (has)
                put(next[digit] + rank_in_round(digit, lane), key[r], position[r]);
            barrier();
            end_round(lane);
        }
    }
}
#endif
