#version 460
// SPDX-License-Identifier: MIT
// The first k elements along an axis, of many (select.glsl), in several launches:
//
//   PHASE 0  clears `counts`
//   PHASE 1  counts the elements of a part of a row by digit `level`, once those before are learnt
//   PHASE 2  all digits are known: collects the keys and positions of the first k, in any order, which
//            argsort.comp sorts
//   PHASE 3  fetches the values of sorted positions
//
// counts.d[(row * levels + level) * BINS + digit], and behind these the elements of each row that
// are collected. Sums of integers are the same in any order.
#include "select.glsl"
layout(constant_id = 0) const uint PHASE = 0;
layout(constant_id = 4) const uint LEVELS = 0;
layout(std430, binding = 0) readonly buffer In { PASTE(S_, BITS) d[]; } source;
layout(std430, binding = 1) buffer Counts { uint d[]; } counts;
layout(std430, binding = 2) writeonly buffer Keys { KEY d[]; } keys;
layout(std430, binding = 3) writeonly buffer Positions { uint d[]; } positions;
layout(std430, binding = 4) readonly buffer Indices { int64_t d[]; } indices;
layout(std430, binding = 5) writeonly buffer Values { PASTE(S_, BITS) d[]; } values;

#define COUNT 0u
#define MEASURE 1u
#define COLLECT 2u
shared uint num_listed, first_listed;

// Counts the elements of a part by their next digit; or counts those that are of the first k; or
// collects these.
void visit(uint row, uint begin, uint end, uint what)
{
    uint lane = gl_LocalInvocationIndex, base = base_of(row, args.n), mine = 0u;
    for (uint first = begin + lane; first < end; first += AT_ONCE * LANES) {
        KEY key[AT_ONCE];
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++) {
            uint e = min(first + i * LANES, end - 1u);
            key[i] = key_of(KEY(source.d[args.in_offset + base + e * args.inner]));
        }
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++) {
            uint e = first + i * LANES;
            uint side = side_of(key[i], e < end ? e : NONE);
            if (what == COUNT) {
                if (side == 1u)
                    atomicAdd(bins[digit_of(key[i], e)], 1u);
            } else if (side < 2u) {
                mine++;
                if (what == COLLECT) {
                    uint at = row * args.k + first_listed + atomicAdd(num_listed, 1u);
                    keys.d[at] = key[i];
                    positions.d[at] = e;
                }
            }
        }
    }
    if (what == MEASURE)
        atomicAdd(num_listed, mine);
}

// Learns `levels` digits of a row, or fewer when the first k elements are known. True: they are.
bool learn_counted(uint row, uint levels)
{
    uint before = 0u, left = args.n;
    for (uint level = 0u; level < levels && before + left > args.k; level++) {
        uint digits = next_digits();
        [[unroll]] for (uint i = 0u; i < BINS_EACH; i++) {
            uint bin = i * LANES + gl_LocalInvocationIndex;
            bins[bin] = counts.d[(row * LEVELS + level) * BINS + bin];
        }
        find_digit(args.k - before);
        before += found[1];
        left = found[2];
        learn(digits);
    }
    return before + left == args.k;
}

void count(uint row, uint begin, uint end, uint level)
{
    if (learn_counted(row, level))
        return;
    clear_bins();
    barrier();
    visit(row, begin, end, COUNT);
    barrier();
    [[unroll]] for (uint i = 0u; i < BINS_EACH; i++) {
        uint bin = i * LANES + gl_LocalInvocationIndex;
        if (bins[bin] > 0u)
            atomicAdd(counts.d[(row * LEVELS + level) * BINS + bin], bins[bin]);
    }
}

void collect(uint row, uint begin, uint end)
{
    learn_counted(row, LEVELS);
    if (gl_LocalInvocationIndex == 0u)
        num_listed = 0u;
    barrier();
    visit(row, begin, end, MEASURE);
    barrier();
    if (gl_LocalInvocationIndex == 0u) {
        first_listed = atomicAdd(counts.d[args.rows * LEVELS * BINS + row], num_listed);
        num_listed = 0u;
    }
    barrier();
    visit(row, begin, end, COLLECT);
}

void main()
{
    uint lane = gl_LocalInvocationIndex, unit = group_number(), at = unit * LANES + lane;
    if (PHASE == 0u) {
        if (at < args.rows * (LEVELS * BINS + 1u))
            counts.d[at] = 0u;
        return;
    }
    if (PHASE == 3u) {
        if (at >= args.rows * args.k)
            return;
        uint outer = at / (args.k * args.inner), in_row = at % args.inner;
        uint position = uint(indices.d[args.indices_offset + at]);
        uint from = (outer * args.n + position) * args.inner + in_row;
        values.d[args.values_offset + at] = PASTE(S_, BITS)(KEY(source.d[args.in_offset + from]));
        return;
    }
    if (unit >= args.rows * args.parts)
        return;
    uint row = unit / args.parts, begin = (unit - row * args.parts) * args.part;
    uint end = min(begin + args.part, args.n);
    position_shift = findMSB(args.n) + 1u;
    if (PHASE == 1u)
        count(row, begin, end, args.most);
    else
        collect(row, begin, end);
}
