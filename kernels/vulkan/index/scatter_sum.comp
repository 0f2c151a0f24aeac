#version 460
// SPDX-License-Identifier: MIT
// result[outer, key, inner] += updates[outer, position, inner] for sorted pairs of a key and
// a position. Updates of one key are added in the order of positions, without atomics, so the
// result has the reference's bits.
//
// The updates of a row are adjacent among the sorted pairs. The invocations at the first
// pair of a row walk along its pairs, a few columns each. Rows of more than LONG_ROW
// updates are left to workgroups of their own, the first `long_groups` of the dispatch: all
// their invocations fetch updates ahead, and a few of them sum. IN: a dtype.
#include "program/types.glsl"
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer Keys { uint d[]; } keys;
layout(std430, binding = 1) readonly buffer Positions { uint d[]; } positions;
layout(std430, binding = 2) readonly buffer Updates { PASTE(S_, IN) d[]; } updates;
layout(std430, binding = 3) buffer Out { PASTE(S_, IN) d[]; } result;
layout(push_constant) uniform Args {
    uint count;         // of sorted pairs
    uint first;         // added to a position
    uint num_updates;   // along the axis
    uint extent, inner; // of the result; a key of `extent` or more is dropped
    uint update_offset, out_offset;
    uint row_shift;  // log2 of the invocations of a row
    uint chunks;     // parts of a row, COLUMNS << row_shift columns each
    uint row_groups; // workgroups that the pairs of one column need
    uint long_groups, short_groups;
    uint strip_shift; // log2 of the columns of a long row that a workgroup sums
    uint strips;      // of a row
    uint blocks;      // of BLOCK pairs
} args;

#include "scatter.glsl"

#define COLUMNS 4u
#define AT_ONCE 4u // updates in flight for each invocation
#define LONG_ROW 64u
#define BLOCK_CANDIDATES 32u
#ifndef TILE
#define TILE 2048u // elements of a long row that are fetched at once: 8 KiB
#endif
#define LOADS (TILE / 256u)
#define NONE 0xffffffffu
#ifndef AHEAD
#define AHEAD 8u // elements of a tile that are read before they are added
#endif

shared uint long_rows[BLOCK_CANDIDATES];
shared SUM tile[TILE];

uint result_at(uint outer, uint key, uint column)
{
    return args.out_offset + (outer * args.extent + key) * args.inner + column;
}

uint update_at(uint outer, uint position, uint column)
{
    uint m = outer * args.num_updates + args.first + position;
    return args.update_offset + m * args.inner + column;
}

// Whether the row whose first pair is `begin` has more than LONG_ROW updates.
bool is_long(uint begin, uint key)
{
    uint at = begin + LONG_ROW, other = keys.d[min(at, args.count - 1u)];
    return at < args.count && other == key;
}

// --- rows of a few updates ---------------------------------------------------------------

// The keys and positions of AT_ONCE pairs; pairs past the end have a key that no row has.
void fetch_pairs(uint first, out uint key[AT_ONCE], out uint position[AT_ONCE])
{
    [[unroll]] for (uint i = 0u; i < AT_ONCE; i++) {
        uint at = min(first + i, args.count - 1u);
        key[i] = keys.d[at];
        position[i] = positions.d[at];
    }
    [[unroll]] for (uint i = 0u; i < AT_ONCE; i++)
        key[i] = first + i < args.count ? key[i] : NONE;
}

// Sums the rows of at most LONG_ROW updates. All keys and positions that this invocation may need
// are loaded before the first one is tested, so that their latencies overlap.
void add_short(uint group)
{
    uint chunk = group % args.chunks, rest = group / args.chunks;
    uint outer = rest / args.row_groups, row_group = rest - outer * args.row_groups;
    uint lane = gl_LocalInvocationIndex, lanes = 1u << args.row_shift;
    uint slot = (row_group << (8u - args.row_shift)) + (lane >> args.row_shift);
    uint column = chunk * (COLUMNS << args.row_shift) + (lane & (lanes - 1u));
    uint key[AT_ONCE], position[AT_ONCE];
    fetch_pairs(slot, key, position);
    uint own = key[0], last = args.count - 1u;
    uint before = keys.d[max(min(slot, last), 1u) - 1u];
    bool is_first = slot == 0u || before != own, long_row = is_long(slot, own);
    if (own >= args.extent || !is_first || long_row)
        return;
    SUM sum[COLUMNS];
    [[unroll]] for (uint k = 0u; k < COLUMNS; k++)
        if (column + k * lanes < args.inner)
            sum[k] = LOADED(result.d[result_at(outer, own, column + k * lanes)]);
    for (uint first = slot; key[0] == own; first += AT_ONCE) {
        SUM x[AT_ONCE * COLUMNS];
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++) {
            uint from = update_at(outer, position[i], column);
            [[unroll]] for (uint k = 0u; k < COLUMNS; k++)
                if (key[i] == own && column + k * lanes < args.inner)
                    x[i * COLUMNS + k] = LOADED(updates.d[from + k * lanes]);
        }
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++)
            [[unroll]] for (uint k = 0u; k < COLUMNS; k++)
                if (key[i] == own)
                    sum[k] = plus(sum[k], x[i * COLUMNS + k]);
        if (key[AT_ONCE - 1u] != own)
            break;
        fetch_pairs(first + AT_ONCE, key, position);
    }
    [[unroll]] for (uint k = 0u; k < COLUMNS; k++)
        if (column + k * lanes < args.inner)
            result.d[result_at(outer, own, column + k * lanes)] = STORED(sum[k]);
}

// --- rows of many updates ----------------------------------------------------------------

// The first pair of the long row whose first multiple of LONG_ROW is `candidate`, or NONE:
// a long row has such a multiple.
uint begin_of_long_row(uint candidate)
{
    if (candidate >= args.count)
        return NONE;
    uint key = keys.d[candidate];
    if (key >= args.extent)
        return NONE;
    uint low = 0u, high = candidate;
    if (candidate >= LONG_ROW) {
        low = candidate - LONG_ROW;
        if (keys.d[low] == key)
            return NONE;
        low++;
    }
    while (low < high) {
        uint middle = (low + high) / 2u;
        if (keys.d[middle] == key)
            high = middle;
        else
            low = middle + 1u;
    }
    return is_long(low, key) ? low : NONE;
}

// The number of the first pair behind those of `key`, by bisection. The pair at `low` has the key.
uint end_of_row(uint low, uint key)
{
    uint high = args.count;
    while (high - low > 1u) {
        uint middle = low + (high - low) / 2u;
        if (keys.d[middle] == key)
            low = middle;
        else
            high = middle;
    }
    return high;
}

// The elements that `fetch` loaded. A variable of the module, since a driver may copy an array that
// is a parameter.
SUM ahead[LOADS];

// Fetches elements lane, lane + 256, ... of the tile whose first update is that of pair `first`.
void fetch(uint first, uint end, uint outer, uint column)
{
    uint member = gl_LocalInvocationIndex >> args.strip_shift;
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {
        uint at = min(first + member + i * (256u >> args.strip_shift), end - 1u);
        ahead[i] = LOADED(updates.d[update_at(outer, positions.d[at], column)]);
    }
}

// Adds the invocation's column of the tile, in order.
SUM plus_tile(SUM sum, uint size)
{
    uint m = 0u, lane = gl_LocalInvocationIndex;
    for (; m + AHEAD <= size; m += AHEAD) {
        SUM x[AHEAD];
        [[unroll]] for (uint i = 0u; i < AHEAD; i++)
            x[i] = tile[((m + i) << args.strip_shift) + lane];
        [[unroll]] for (uint i = 0u; i < AHEAD; i++)
            sum = plus(sum, x[i]);
    }
    for (; m < size; m++)
        sum = plus(sum, tile[(m << args.strip_shift) + lane]);
    return sum;
}

// Called by whole workgroups: all invocations fetch, and the first few sum a column each.
void add_long(uint begin, uint outer, uint strip)
{
    uint lane = gl_LocalInvocationIndex, width = 1u << args.strip_shift;
    uint own = (strip << args.strip_shift) + (lane & (width - 1u));
    uint column = min(own, args.inner - 1u);
    uint key = keys.d[begin], end = end_of_row(begin + LONG_ROW, key);
    uint tile_size = TILE >> args.strip_shift;
    bool sums = lane < width && own < args.inner;
    SUM sum = LOADED(result.d[result_at(outer, key, column)]);
    fetch(begin, end, outer, column);
    for (uint first = begin; first < end; first += tile_size) {
        [[unroll]] for (uint i = 0u; i < LOADS; i++)
            tile[lane + i * 256u] = ahead[i];
        barrier();
        if (first + tile_size < end) // the next tile, while other invocations sum this one
            fetch(first + tile_size, end, outer, column);
        if (sums)
            sum = plus_tile(sum, min(tile_size, end - first));
        barrier();
    }
    if (sums)
        result.d[result_at(outer, key, column)] = STORED(sum);
}

void add_long_rows(uint group)
{
    uint strip = group % args.strips, rest = group / args.strips;
    uint outer = rest / args.blocks, block = rest - outer * args.blocks;
    uint lane = gl_LocalInvocationIndex;
    if (lane < BLOCK_CANDIDATES)
        long_rows[lane] = begin_of_long_row((block * BLOCK_CANDIDATES + lane) * LONG_ROW);
    barrier();
    for (uint i = 0u; i < BLOCK_CANDIDATES; i++)
        if (long_rows[i] != NONE)
            add_long(long_rows[i], outer, strip);
}

void main()
{
    uint group = group_number();
    if (group < args.long_groups)
        add_long_rows(group);
    else if (group - args.long_groups < args.short_groups)
        add_short(group - args.long_groups);
}
