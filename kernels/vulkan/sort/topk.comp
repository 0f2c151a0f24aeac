#version 460
// SPDX-License-Identifier: MIT
// The first k elements along an axis, of few (select.glsl). A workgroup takes one part of a row. It
// learns digits until few elements are left that may be among the first k, and sorts these by a
// bitonic network. Short rows are sorted as they are, several in a workgroup. Of a row in several
// parts, the first k pairs of a key and a position of each part are the elements of the next launch
// (FROM_PAIRS, TO_PAIRS).
#include "select.glsl"
layout(constant_id = 0) const uint FROM_PAIRS = 0;
layout(constant_id = 4) const uint TO_PAIRS = 0;
layout(std430, binding = 0) readonly buffer In { PASTE(S_, BITS) d[]; } source;
layout(std430, binding = 1) readonly buffer OldKeys { KEY d[]; } old_keys;
layout(std430, binding = 2) readonly buffer OldPositions { uint d[]; } old_positions;
layout(std430, binding = 3) writeonly buffer Keys { KEY d[]; } keys;
layout(std430, binding = 4) writeonly buffer Positions { uint d[]; } positions;
layout(std430, binding = 5) writeonly buffer Values { PASTE(S_, BITS) d[]; } values;
layout(std430, binding = 6) writeonly buffer Indices { int64_t d[]; } indices;

#define LISTED 1024u // elements of the list
shared KEY list_keys[LISTED];
shared uint list_positions[LISTED];
shared uint list_count;

// Element e of a row whose elements begin at `base`, or whose pairs do.
void fetch(uint base, uint e, out KEY key, out uint position)
{
    if (FROM_PAIRS != 0u) {
        key = old_keys.d[base + e];
        position = old_positions.d[base + e];
    } else {
        key = key_of(KEY(source.d[args.in_offset + base + e * args.inner]));
        position = e;
    }
}

void put(uint at, KEY key, uint position)
{
    list_keys[at] = key;
    list_positions[at] = position;
}

// Counts the elements begin .. end - 1 that are looked at by their next digit, or lists them and
// those before.
void visit(uint base, uint begin, uint end, bool lists)
{
    uint lane = gl_LocalInvocationIndex;
    for (uint first = begin + lane; first < end; first += AT_ONCE * LANES) {
        KEY key[AT_ONCE];
        uint position[AT_ONCE];
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++) {
            uint e = first + i * LANES;
            fetch(base, min(e, end - 1u), key[i], position[i]);
            position[i] = e < end ? position[i] : NONE;
        }
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++) {
            uint side = side_of(key[i], position[i]);
            if (lists) {
                if (side < 2u)
                    put(atomicAdd(list_count, 1u), key[i], position[i]);
            } else if (side == 1u) {
                atomicAdd(bins[digit_of(key[i], position[i])], 1u);
            }
        }
    }
}

// Learns digits until at most `most` elements are at or before what is looked at. A whole key and
// position is one element's, and k are fewer than `most`.
void narrow(uint base, uint begin, uint end)
{
    uint before = 0u, left = end - begin;
    while (before + left > args.most && key_shift + position_shift > 0u) {
        uint digits = next_digits();
        clear_bins();
        barrier();
        visit(base, begin, end, false);
        find_digit(args.k - before);
        before += found[1];
        left = found[2];
        learn(digits);
    }
}

// Exchanges two elements that are not in ascending, or descending, order.
void exchange(uint a, uint b, bool ascending)
{
    KEY p = list_keys[a], q = list_keys[b];
    uint i = list_positions[a], k = list_positions[b];
    bool is_after = p > q || (p == q && i > k);
    if (is_after != ascending)
        return;
    put(a, q, k);
    put(b, p, i);
}

// Sorts each `width` elements of the first `size`, both powers of two.
void sort(uint width, uint size)
{
    uint lane = gl_LocalInvocationIndex;
    for (uint k = 2u; k <= width; k <<= 1)
        for (uint j = k >> 1; j > 0u; j >>= 1) {
            barrier();
            for (uint p = lane; p < size >> 1; p += LANES) {
                uint low = 2u * p - (p & (j - 1u));
                exchange(low, low + j, (low & k & (width - 1u)) == 0u);
            }
        }
    barrier();
}

// Writes element i of a row's first k.
void give(uint row, uint base, uint i, uint position)
{
    uint to = base_of(row, args.k) + i * args.inner;
    KEY bits = KEY(source.d[args.in_offset + base + position * args.inner]);
    values.d[args.values_offset + to] = PASTE(S_, BITS)(bits);
    indices.d[args.indices_offset + to] = int64_t(position);
}

// Rows of up to `width` elements: neighbours along the axis, or else adjacent rows, are
// fetched by adjacent invocations.
void take_short_rows(uint first)
{
    uint lane = gl_LocalInvocationIndex, rows = LISTED / args.width;
    bool across = args.inner > 1u;
    for (uint at = lane; at < LISTED; at += LANES) {
        uint row = across ? at % rows : at / args.width;
        uint e = across ? at / rows : at % args.width;
        KEY key = ONES;
        uint position = NONE;
        if (e < args.n && first + row < args.rows)
            fetch(base_of(first + row, args.n), e, key, position);
        put(row * args.width + e, key, position);
    }
    sort(args.width, LISTED);
    uint count = min(rows, args.rows - first) * args.k;
    uint many = across ? min(rows, args.rows - first) : args.k;
    for (uint at = lane; at < count; at += LANES) {
        uint high = at / many, low = at - high * many;
        uint row = across ? low : high, i = across ? high : low;
        give(first + row, base_of(first + row, args.n), i, list_positions[row * args.width + i]);
    }
}

void main()
{
    uint lane = gl_LocalInvocationIndex, unit = group_number();
    if (args.width > 0u) {
        uint rows = LISTED / args.width;
        if (unit * rows < args.rows)
            take_short_rows(unit * rows);
        return;
    }
    if (unit >= args.rows * args.parts)
        return;
    uint row = unit / args.parts, begin = (unit - row * args.parts) * args.part;
    uint end = min(begin + args.part, args.count);
    uint own = base_of(row, args.n), base = FROM_PAIRS != 0u ? row * args.count : own;
    position_shift = findMSB(args.n) + 1u;
    if (lane == 0u)
        list_count = 0u;
    narrow(base, begin, end);
    barrier();
    visit(base, begin, end, true);
    barrier();
    uint count = list_count, size = 1u;
    while (size < count)
        size <<= 1;
    for (uint i = count + lane; i < size; i += LANES)
        put(i, ONES, NONE);
    sort(size, size);
    for (uint i = lane; i < args.k; i += LANES) {
        if (TO_PAIRS != 0u) {
            keys.d[unit * args.k + i] = i < count ? list_keys[i] : ONES;
            positions.d[unit * args.k + i] = i < count ? list_positions[i] : NONE;
        } else {
            give(row, own, i, list_positions[i]);
        }
    }
}
