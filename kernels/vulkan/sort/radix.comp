#version 460
// SPDX-License-Identifier: MIT
// A stable radix sort along an axis of outer x n x inner elements, NaN as the greatest: by digits
// of 8 bits, the lowest first. Elements move with their bits as they are, or with POSITIONS with
// their positions, and each pass makes the digits of the keys of keys.glsl anew.
//
//   OP_row    sorts rows of at most TILE elements, each by a workgroup that reads and writes it once
//   OP_count  counts the digits of each tile of TILE elements of longer rows
//   OP_scan   turns the counts of a row's digit into sums over the tiles before
//   OP_write  moves each tile's elements to where the counts say
//
// Counts lie in scratch memory by row; digit `digit` of tile `tile` is at tile * tile_step +
// digit * digit_step. Without OP_scan, OP_write adds the counts of a few tiles itself; with it,
// totals follow the counts. Between passes elements lie row by row in scratch memory.
// BITS: an unsigned dtype as wide as the elements, WIDTH bits. KEY: as in keys.glsl.
#extension GL_KHR_shader_subgroup_basic : require
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(push_constant) uniform Args {
    uint rows, n, inner; // rows: outer times inner
    uint tiles, shift;   // tiles of a row; the lowest bit of the digit
    uint tile_step, digit_step, totals; // totals: of OP_scan, where they begin; 0: none
    uint in_offset, out_offset;
} args;

uint count_at(uint row, uint tile, uint digit)
{
    return row * args.tiles * 256u + tile * args.tile_step + digit * args.digit_step;
}

#ifdef OP_scan
layout(std430, binding = 0) buffer Counts { uint d[]; } counts;
shared uint scanned[256];

// A workgroup for each digit of each row; each invocation has some successive tiles.
void main()
{
    uint unit = group_number(), lane = gl_LocalInvocationIndex;
    if (unit >= args.rows * 256u)
        return;
    uint row = unit >> 8, digit = unit & 255u;
    uint each = (args.tiles + 255u) / 256u, begin = min(lane * each, args.tiles);
    uint end = min(begin + each, args.tiles), own = 0u;
    for (uint tile = begin; tile < end; tile++)
        own += counts.d[count_at(row, tile, digit)];
    uint sum = own;
    scanned[lane] = sum;
    for (uint width = 1u; width < 256u; width <<= 1) {
        barrier();
        uint left = lane >= width ? scanned[lane - width] : 0u;
        barrier();
        sum += left;
        scanned[lane] = sum;
    }
    if (lane == 255u)
        counts.d[args.totals + row * 256u + digit] = sum;
    uint before = sum - own;
    for (uint tile = begin; tile < end; tile++) {
        uint at = count_at(row, tile, digit), count = counts.d[at];
        counts.d[at] = before;
        before += count;
    }
}

#else
#include "keys.glsl"
layout(constant_id = 0) const uint ROUNDS = 8;       // elements of an invocation
layout(constant_id = 4) const uint FIRST = 0;        // reads elements, not scratch memory
layout(constant_id = 5) const uint LAST = 0;         // writes results
layout(constant_id = 6) const uint POSITIONS = 0;       // 1: results are positions
layout(constant_id = 7) const uint BY_SUBGROUP = 0;  // 1: 32 successive invocations are one subgroup
layout(constant_id = 8) const uint STAGED = 2048;    // TILE, and at least 8 * 256
layout(std430, binding = 0) readonly buffer In { PASTE(S_, BITS) d[]; } source;

#define MOST_ROUNDS 8u
#define TILE (256u * ROUNDS)
#define FOR_ROUNDS(r) [[unroll]] for (uint r = 0u; r < MOST_ROUNDS; r++) if (r < ROUNDS)

uint lane, warp, in_warp; // a warp: 32 successive invocations

uint base_of(uint row)
{
    uint first = row / args.inner;
    return first * args.n * args.inner + (row - first * args.inner);
}

KEY element_at(uint row, uint i)
{
    return KEY(source.d[args.in_offset + base_of(row) + i * args.inner]);
}

uint digit_of(KEY bits, uint shift)
{
    return uint(key_of(bits) >> shift) & 255u;
}

#ifdef OP_count
layout(std430, binding = 1) readonly buffer OldKeys { KEY d[]; } old_keys;
layout(std430, binding = 2) writeonly buffer Counts { uint d[]; } counts;
shared uint bins[8 * 256]; // of each warp

void main()
{
    lane = gl_LocalInvocationIndex;
    warp = lane >> 5;
    uint unit = group_number();
    if (unit >= args.rows * args.tiles)
        return;
    uint row = unit / args.tiles, tile = unit - row * args.tiles, begin = tile * TILE;
    uint count = min(TILE, args.n - begin);
    [[unroll]] for (uint w = 0u; w < 8u; w++)
        bins[w * 256u + lane] = 0u;
    KEY key[MOST_ROUNDS];
    FOR_ROUNDS(r) {
        uint i = begin + min(r * 256u + lane, count - 1u);
        key[r] = FIRST != 0u ? element_at(row, i) : old_keys.d[row * args.n + i];
    }
    barrier();
    FOR_ROUNDS(r) {
        if (r * 256u + lane < count)
            atomicAdd(bins[warp * 256u + digit_of(key[r], args.shift)], 1u);
    }
    barrier();
    uint sum = 0u;
    [[unroll]] for (uint w = 0u; w < 8u; w++)
        sum += bins[w * 256u + lane];
    counts.d[count_at(row, tile, lane)] = sum;
}

#else // OP_row, OP_write
layout(std430, binding = 1) writeonly buffer Out { PASTE(S_, BITS) d[]; } result;
layout(std430, binding = 2) writeonly buffer OutPositions { int64_t d[]; } result_positions;

shared uint staged[STAGED];    // elements on their way; while they are ranked, by warp and digit,
                               // the invocations of a round that have it
shared uint counters[8 * 128]; // by warp and digit, two in a word
shared uvec2 scanned[256];

// Elements in the order of their numbers: warp, round, invocation.
KEY key[MOST_ROUNDS];
uint position[MOST_ROUNDS], rank[MOST_ROUNDS], moved[MOST_ROUNDS];

void wait_for_warp()
{
    if (BY_SUBGROUP != 0u)
        subgroupBarrier();
    else
        barrier();
}

uint number_of(uint r)
{
    return (warp * ROUNDS + r) * 32u + in_warp;
}

// Exclusive sums over the invocations before.
uvec2 scan(uvec2 own)
{
    uvec2 sum = own;
    scanned[lane] = sum;
    [[unroll]] for (uint width = 1u; width < 32u; width <<= 1) {
        wait_for_warp();
        uvec2 left = in_warp >= width ? scanned[lane - width] : uvec2(0u);
        wait_for_warp();
        sum += left;
        scanned[lane] = sum;
    }
    barrier();
    for (uint w = 0u; w < warp; w++)
        sum += scanned[w * 32u + 31u];
    barrier();
    return sum - own;
}

// rank[]: positions of elements in the tile's order by a digit. `total`: elements with digit `lane` in the row;
// `before`: those in the tiles before. scanned[digit].y: the difference of position in the row and rank.
void rank_elements(uint count, uint shift, uint total, uint before)
{
    [[unroll]] for (uint w = 0u; w < 8u; w++)
        staged[w * 256u + lane] = 0u;
    [[unroll]] for (uint w = 0u; w < 4u; w++)
        counters[w * 256u + lane] = 0u;
    barrier();
    FOR_ROUNDS(r) {
        uint digit = digit_of(key[r], shift), at = warp * 256u + digit;
        uint counter = warp * 128u + (digit >> 1), half_shift = 16u * (digit & 1u);
        bool has = number_of(r) < count;
        if (has)
            atomicOr(staged[at], 1u << in_warp);
        wait_for_warp();
        uint mark = staged[at], first = (counters[counter] >> half_shift) & 0xffffu;
        uint ahead = bitCount(mark & ((1u << in_warp) - 1u));
        rank[r] = first + ahead;
        wait_for_warp();
        if (has && ahead == 0u) {
            staged[at] = 0u;
            atomicAdd(counters[counter], uint(bitCount(mark)) << half_shift);
        }
        wait_for_warp();
    }
    barrier();
    if (lane < 128u) {
        uint sums = 0u;
        [[unroll]] for (uint w = 0u; w < 8u; w++) {
            uint own = counters[w * 128u + lane];
            counters[w * 128u + lane] = sums;
            sums += own;
        }
        staged[lane] = sums;
    }
    barrier();
    uint own = (staged[lane >> 1] >> (16u * (lane & 1u))) & 0xffffu;
    uvec2 start = scan(uvec2(own, total));
    scanned[lane] = uvec2(start.x, start.y + before - start.x);
    barrier();
    FOR_ROUNDS(r) {
        uint digit = digit_of(key[r], shift);
        rank[r] += scanned[digit].x +
                   ((counters[warp * 128u + (digit >> 1)] >> (16u * (digit & 1u))) & 0xffffu);
    }
}

// Moves moved[] to the order of the ranks: to numbers, or with `by_rounds` so that the invocations
// of a round have successive ones.
void exchange(uint count, bool by_rounds)
{
    barrier();
    FOR_ROUNDS(r) {
        if (number_of(r) < count)
            staged[rank[r]] = moved[r];
    }
    barrier();
    FOR_ROUNDS(r)
        moved[r] = staged[by_rounds ? r * 256u + lane : number_of(r)];
}

void exchange_keys(uint count, bool by_rounds)
{
#if WIDTH == 64
    uint low[MOST_ROUNDS];
    FOR_ROUNDS(r)
        moved[r] = uint(key[r]);
    exchange(count, by_rounds);
    FOR_ROUNDS(r) {
        low[r] = moved[r];
        moved[r] = uint(key[r] >> 32);
    }
    exchange(count, by_rounds);
    FOR_ROUNDS(r)
        key[r] = packUint2x32(uvec2(low[r], moved[r]));
#else
    FOR_ROUNDS(r)
        moved[r] = key[r];
    exchange(count, by_rounds);
    FOR_ROUNDS(r)
        key[r] = moved[r];
#endif
}

void exchange_positions(uint count, bool by_rounds)
{
    FOR_ROUNDS(r)
        moved[r] = position[r];
    exchange(count, by_rounds);
    FOR_ROUNDS(r)
        position[r] = moved[r];
}

void begin_lane()
{
    lane = gl_LocalInvocationIndex;
    warp = lane >> 5;
    in_warp = lane & 31u;
}

#ifdef OP_row
void main()
{
    begin_lane();
    uint row = group_number(), n = args.n;
    if (row >= args.rows)
        return;
    FOR_ROUNDS(r) {
        position[r] = number_of(r);
        key[r] = element_at(row, min(position[r], n - 1u));
    }
    for (uint shift = 0u; shift < WIDTH; shift += 8u) {
        bool is_last = shift + 8u == WIDTH;
        rank_elements(n, shift, 0u, 0u);
        if (POSITIONS == 0u || !is_last)
            exchange_keys(n, is_last);
        if (POSITIONS != 0u)
            exchange_positions(n, is_last);
        barrier();
    }
    uint to = args.out_offset + base_of(row);
    FOR_ROUNDS(r) {
        uint i = r * 256u + lane;
        if (i < n) {
            if (POSITIONS != 0u)
                result_positions.d[to + i * args.inner] = int64_t(position[r]);
            else
                result.d[to + i * args.inner] = PASTE(S_, BITS)(key[r]);
        }
    }
}

#else // OP_write
layout(std430, binding = 3) readonly buffer OldKeys { KEY d[]; } old_keys;
layout(std430, binding = 4) readonly buffer OldPositions { uint d[]; } old_positions;
layout(std430, binding = 5) writeonly buffer Keys { KEY d[]; } keys;
layout(std430, binding = 6) writeonly buffer Positions { uint d[]; } positions;
layout(std430, binding = 7) readonly buffer Counts { uint d[]; } counts;

// The row's elements with digit `lane`, and those of them in the tiles before.
uvec2 find_counts(uint row, uint tile)
{
    if (args.totals != 0u)
        return uvec2(counts.d[args.totals + row * 256u + lane], counts.d[count_at(row, tile, lane)]);
    uvec2 sums = uvec2(0u);
    for (uint t = 0u; t < args.tiles; t++) {
        uint count = counts.d[count_at(row, t, lane)];
        sums += uvec2(count, t < tile ? count : 0u);
    }
    return sums;
}

void main()
{
    begin_lane();
    uint unit = group_number();
    if (unit >= args.rows * args.tiles)
        return;
    uint row = unit / args.tiles, tile = unit - row * args.tiles, begin = tile * TILE;
    uint count = min(TILE, args.n - begin), old = row * args.n + begin;
    FOR_ROUNDS(r) {
        uint i = min(number_of(r), count - 1u);
        key[r] = FIRST != 0u ? element_at(row, begin + i) : old_keys.d[old + i];
        if (POSITIONS != 0u)
            position[r] = FIRST != 0u ? begin + i : old_positions.d[old + i];
    }
    uvec2 sums = find_counts(row, tile);
    rank_elements(count, args.shift, sums.x, sums.y);
    exchange_keys(count, true);
    uint to[MOST_ROUNDS];
    FOR_ROUNDS(r)
        to[r] = r * 256u + lane + scanned[digit_of(key[r], args.shift)].y;
    if (POSITIONS != 0u)
        exchange_positions(count, true);
    uint out_base = args.out_offset + base_of(row);
    FOR_ROUNDS(r) {
        if (r * 256u + lane < count) {
            uint at = LAST != 0u ? out_base + to[r] * args.inner : row * args.n + to[r];
            if (LAST == 0u)
                keys.d[at] = key[r];
            if (LAST == 0u && POSITIONS != 0u)
                positions.d[at] = position[r];
            if (LAST != 0u && POSITIONS != 0u)
                result_positions.d[at] = int64_t(position[r]);
            if (LAST != 0u && POSITIONS == 0u)
                result.d[at] = PASTE(S_, BITS)(key[r]);
        }
    }
}
#endif
#endif
#endif
