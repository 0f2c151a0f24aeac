// SPDX-License-Identifier: MIT
// The loop of reductions: each unit of work is a part of the elements that are reduced to one, and has
// LANES invocations of a workgroup, one or a power of two. Splits are chosen so that no part of a
// reduction with elements is empty.
//
// What includes this defines NUM_OUTPUTS, NUM_REDUCED, SPLITS; `accumulator` with combine() and
// neutral_all(); `position`, by position_of(output), and `loaded`, by load(position, output, r);
// taken(position, loaded, r), an accumulator; and write_result(unit, output, accumulator).

shared accumulator lanes[256];

// Loads in flight. They hide the latency of memory: a sum waits for each of its terms.
#define AT_ONCE 8u

void main()
{
    uint number = gl_LocalInvocationIndex;
    uint unit = group_number() * (256u / LANES) + number / LANES;
    uint lane = number % LANES;
    bool is_unit = unit < NUM_OUTPUTS * SPLITS;
    if (LANES == 1u && !is_unit)
        return;
    unit = is_unit ? unit : 0u; // and takes part in barriers
    uint output_index = unit % NUM_OUTPUTS;
    uint split = unit / NUM_OUTPUTS;
    uint chunk = (NUM_REDUCED + SPLITS - 1u) / SPLITS;
    uint begin = split * chunk;
    uint end = min(begin + chunk, NUM_REDUCED);
    position from = position_of(output_index);

    uint r = begin + lane;
    bool has = r < end;
    accumulator a = neutral_all();
    if (has)
        a = taken(from, load(from, output_index, r), r);
    r += LANES;
    uint left = r < end ? (end - r + LANES - 1u) / LANES : 0u;
    for (; left >= AT_ONCE; left -= AT_ONCE, r += AT_ONCE * LANES) {
        loaded x[AT_ONCE];
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++)
            x[i] = load(from, output_index, r + i * LANES);
        [[unroll]] for (uint i = 0u; i < AT_ONCE; i++)
            a = combine(a, taken(from, x[i], r + i * LANES));
    }
    for (; left > 0u; left--, r += LANES)
        a = combine(a, taken(from, load(from, output_index, r), r));
    if (LANES == 1u) {
        write_result(unit, output_index, a);
        return;
    }
    uint count = min(LANES, end - begin);
    lanes[number] = a;
    for (uint width = LANES / 2u; width > 0u; width >>= 1) {
        barrier();
        if (lane < width && lane + width < count)
            lanes[number] = combine(lanes[number], lanes[number + width]);
    }
    if (is_unit && lane == 0u)
        write_result(unit, output_index, lanes[number]);
}
