#version 460
// SPDX-License-Identifier: MIT
// Attention of few rows of q for each head of k, as texts are written word by word: keys and values
// are read once, from memory into registers, and never by less than sixteen bytes at a time. IN:
// dtype; PER: vectors of four in a line of sixteen bytes. Strides, offsets and lengths of rows of q,
// k and v are whole lines, those of the output vectors of four, which are written by elements since
// they may pass through a program. Everything is computed in f32. BLOCKS: keys and values are blocks
// of q8_0, whose strides and offsets are even bytes, and a line is eight of their elements; q is f32.
//
// The queries of the heads that share keys are rows of one matrix; a workgroup computes ROWS of them
// over a part of the keys. It has slots of LANES invocations, one for each line of a row. A slot
// takes four keys at a time: its invocations multiply their line with all rows, and then share what
// is to be done for the four keys and each row: an invocation adds the products of one of these
// scores and makes it a weight. All invocations add their line of the values, so weighed. Slots have
// sums and greatest scores of their own, which meet at the end; until then they need not wait for
// each other, and do not where a subgroup has whole slots.
#include "types.glsl"
#include "scalar.glsl"
#include "fours.glsl"
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint GROUP = 128;  // invocations
layout(constant_id = 1) const uint ROWS = 4;     // at most 8
layout(constant_id = 2) const uint LANES = 16;   // invocations of a key: a power of 2, at least 4
layout(constant_id = 3) const uint Q_SIZE = 8;   // ROWS * PER
layout(constant_id = 4) const uint OWN = 1;      // scores of an invocation: STEPS * ROWS / LANES
// Vectors of LANES products, and of all of a slot: so many that they are spread over the banks.
layout(constant_id = 5) const uint P_PITCH = 5;
layout(constant_id = 6) const uint SLOT_PITCH = 84;
layout(constant_id = 7) const uint P_SIZE = 672; // of all slots
layout(constant_id = 8) const uint S_SIZE = 32;  // GROUP / LANES * ROWS
layout(constant_id = 9) const uint BY_SUBGROUP = 0;
layout(constant_id = 10) const uint COMBINES = 0; // 1: there are counters

layout(std430, binding = 0) readonly buffer Q { uvec4 d[]; } queries;
#ifdef BLOCKS
layout(std430, binding = 1) readonly buffer K { uint16_t d[]; } keys;
layout(std430, binding = 2) readonly buffer V { uint16_t d[]; } values;
#else
layout(std430, binding = 1) readonly buffer K { uvec4 d[]; } keys;
layout(std430, binding = 2) readonly buffer V { uvec4 d[]; } values;
#endif
layout(std430, binding = 3) readonly buffer Added { PASTE(S_, IN) d[]; } added;
layout(std430, binding = 4) readonly buffer Seen { uint8_t d[]; } seen;
layout(std430, binding = 5) readonly buffer Lengths { uint8_t d[]; } lengths;
layout(std430, binding = 6) coherent buffer Parts { vec4 d[]; } sums;
layout(std430, binding = 7) readonly buffer Batches { uint d[]; } batches;
layout(std430, binding = 8) writeonly buffer Out { ELEMENT d[]; } result;
// Of a block of rows: the workgroups that are done with their part; 0 before and behind the launch.
layout(std430, binding = 9) coherent buffer Counters { uint d[]; } counters;
layout(push_constant) uniform Args {
    uint heads; // of q, for a head of k
    uint queries, groups, keys, depth, width, parts, num_batch;
    uint q_offset, q_head, q_row, q_element;
    uint k_offset, k_head, k_row, k_element;
    uint v_offset, v_head, v_row, v_element;
    uint mask_offset, mask_head, mask_row, mask_key;
    uint out_offset, lengths_offset, lengths_stride;
    uint flags;
    int window; // 0: none
    float scale, soft_cap;
} args;

#define STEPS 4u // keys that a slot takes at a time: components of a vector
#define AHEAD 8u // parts of a row that are loaded at a time
const uint LINE = 4u * uint(PER); // elements of a line
const uint SLOTS = GROUP / LANES;

shared vec4 products[P_SIZE]; // of a slot and score: LANES numbers
shared vec4 scores[S_SIZE], slot_weights[S_SIZE]; // of a slot and row: of its keys
shared float scales[S_SIZE];                      // by how much its sums so far change
shared vec2 states[S_SIZE];    // in the end: the greatest score, the sum of weights
shared uint num_done;
shared ivec4 row_places[ROWS]; // the keys that a row sees by place, and where its mask begins

uint lane, slot, first_row;
vec4 q[Q_SIZE], totals[Q_SIZE];
float most[OWN], weight_sum[OWN];
uvec4 k_lines[STEPS], v_lines[STEPS];

#define SHARED_CACHES
#include "attention.glsl"

// --- loading ------------------------------------------------------------------------------

// Vector `i` of a line.
vec4 widened(uvec4 line, uint i)
{
#ifdef BLOCKS
    int word = int(i == 0u ? line.x : line.y);
    return vec4(bitfieldExtract(word, 0, 8), bitfieldExtract(word, 8, 8),
                bitfieldExtract(word, 16, 8), bitfieldExtract(word, 24, 8)) *
           unpackHalf2x16(line.z).x;
#elif PER == 1
    return uintBitsToFloat(line);
#else
    uvec2 words = i == 0u ? line.xy : line.zw;
    return PASTE(WIDEN_, IN)(words);
#endif
}

#ifdef BLOCKS
// A quarter of a block: eight bytes, and the scale.
#define LINE_AT(source, at, out)                                                                   \
    {                                                                                              \
        uint block = (at) / 2u + lane / 4u * 17u, first = block + 1u + lane % 4u * 4u;             \
        out = uvec4(uint(source.d[first]) | uint(source.d[first + 1u]) << 16,                      \
                    uint(source.d[first + 2u]) | uint(source.d[first + 3u]) << 16,                 \
                    uint(source.d[block]), 0u);                                                    \
    }
#else
#define LINE_AT(source, at, out) out = source.d[(at) / LINE + lane];
#endif
#define LOAD_LINES(lines, source, start, row, count, begin, end)                                   \
    [[unroll]] for (uint i = 0u; i < STEPS; i++) {                                                 \
        uint key = (begin) + i * SLOTS + slot;                                                     \
        lines[i] = uvec4(0u);                                                                      \
        if (key < (end) && lane * LINE < (count))                                                  \
            LINE_AT(source, (start) + key * (row), lines[i])                                       \
    }

void load_rows(int length)
{
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        uint row = first_row + r;
        bool is_there = row < total_rows && lane * LINE < args.depth;
#ifdef BLOCKS
        uint at = place_of_row(row) / 4u + lane * 2u;
        q[r * 2u] = is_there ? uintBitsToFloat(queries.d[at]) * args.scale : vec4(0);
        q[r * 2u + 1u] = is_there ? uintBitsToFloat(queries.d[at + 1u]) * args.scale : vec4(0);
#else
        uvec4 line = uvec4(0u);
        if (is_there)
            line = queries.d[place_of_row(row) / LINE + lane];
        [[unroll]] for (uint c = 0u; c < uint(PER); c++)
            q[r * uint(PER) + c] = widened(line, c) * args.scale;
#endif
    }
    if (gl_LocalInvocationIndex < ROWS) {
        uint row = first_row + gl_LocalInvocationIndex;
        uint head = row / args.queries, query = row - head * args.queries;
        row_places[gl_LocalInvocationIndex] =
            ivec4(row < total_rows ? places(query, length) : ivec2(0),
                  int(mask_start + head * args.mask_head + query * args.mask_row), 0);
    }
}

// --- keys ---------------------------------------------------------------------------------

void wait_for_slot()
{
    if (BY_SUBGROUP != 0u)
        subgroupBarrier();
    else
        barrier();
}

void multiply_keys()
{
    [[unroll]] for (uint i = 0u; i < STEPS; i++) {
        vec4 k[PER];
        [[unroll]] for (uint c = 0u; c < uint(PER); c++)
            k[c] = widened(k_lines[i], c);
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            float sum = 0.0;
            [[unroll]] for (uint c = 0u; c < uint(PER); c++)
                sum = add_dot(sum, q[r * uint(PER) + c], k[c]);
            products[slot * SLOT_PITCH + (i * ROWS + r) * P_PITCH + lane / 4u][lane % 4u] = sum;
        }
    }
}

float masked(ivec4 place, int key, float score)
{
    if (key < place.x || key >= place.y)
        return -infinity();
    if (args.soft_cap > 0.0)
        score = capped(vec4(score)).x;
    uint at = uint(place.z) + uint(key) * args.mask_key;
    if ((args.flags & HAS_ADDED) != 0u)
        score += PASTE(FROM_, IN)(PASTE(W_, IN)(added.d[at]));
    else if ((args.flags & HAS_SEEN) != 0u && uint(seen.d[at]) == 0u)
        score = -infinity();
    return score;
}

// Adds the products of the scores of this invocation, which are lane, lane + LANES, ...
void add_products(uint begin)
{
    [[unroll]] for (uint n = 0u; n < OWN; n++) {
        uint i = lane + n * LANES, step = i / ROWS, r = i - step * ROWS;
        if (i >= STEPS * ROWS)
            break;
        uint at = slot * SLOT_PITCH + i * P_PITCH;
        vec4 sum = products[at];
        [[unroll]] for (uint j = 1u; j < LANES / 4u; j++)
            sum += products[at + j];
        int key = int(begin + step * SLOTS + slot);
        scores[slot * ROWS + r][step] =
            masked(row_places[r], key, (sum.x + sum.y) + (sum.z + sum.w));
    }
}

// Makes them weights.
void weigh()
{
    [[unroll]] for (uint n = 0u; n < OWN; n++) {
        uint i = lane + n * LANES, step = i / ROWS, r = i - step * ROWS;
        if (i >= STEPS * ROWS)
            break;
        vec4 x = scores[slot * ROWS + r];
        float now = max(max(most[n], max(x.x, x.y)), max(x.z, x.w));
        float shift = now == -infinity() ? 0.0 : now, scale = weight(most[n], shift);
        float p = weight(x[step], shift);
        most[n] = now;
        weight_sum[n] = weight_sum[n] * scale + p;
        slot_weights[slot * ROWS + r][step] = p;
        if (step == 0u)
            scales[slot * ROWS + r] = scale;
    }
}

void add_values()
{
    vec4 p[ROWS];
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        float scale = scales[slot * ROWS + r];
        p[r] = slot_weights[slot * ROWS + r];
        [[unroll]] for (uint c = 0u; c < uint(PER); c++)
            totals[r * uint(PER) + c] *= scale;
    }
    [[unroll]] for (uint i = 0u; i < STEPS; i++)
        [[unroll]] for (uint c = 0u; c < uint(PER); c++) {
            vec4 v = widened(v_lines[i], c);
            [[unroll]] for (uint r = 0u; r < ROWS; r++)
                totals[r * uint(PER) + c] += p[r][i] * v;
        }
}

// --- the output ---------------------------------------------------------------------------

void write_output(uint row, uint column, vec4 x)
{
    uint at = args.out_offset + row * args.width + column * 4u;
    STORE(at, at + 4u, x);
}

// Vector `own` of a row, or with several parts of what part `part` has of it.
void write_vector(uint row, uint part, uint own, vec2 state, vec4 x)
{
    uint columns = args.width / 4u, at = (row * args.parts + part) * (columns + 1u);
    if (args.parts > 1u) {
        if (own < columns)
            sums.d[at + own] = x;
        if (own == 0u)
            sums.d[at + columns] = vec4(state, 0, 0);
    } else if (own < columns) {
        x = state.y == 0.0 ? vec4(0) : x / state.y;
        write_output(row, own, x);
    }
}

// The greatest score of each slot and row, and the sum of its weights.
void keep_states()
{
    [[unroll]] for (uint n = 0u; n < OWN; n++) {
        uint i = lane + n * LANES, step = i / ROWS, r = i - step * ROWS;
        if (i >= STEPS * ROWS)
            break;
        scores[slot * ROWS + r][step] = weight_sum[n];
        if (step == 0u)
            states[slot * ROWS + r].x = most[n];
    }
    barrier();
    for (uint i = lane; i < ROWS; i += LANES) {
        vec4 sum = scores[slot * ROWS + i];
        states[slot * ROWS + i].y = (sum.x + sum.y) + (sum.z + sum.w);
    }
    barrier();
}

// Adds what the slots have, a row at a time.
void finish(uint unit, uint part)
{
    const uint count = LANES * uint(PER);
    uint own = slot * LANES + lane;
    keep_states();
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        vec2 all = vec2(-infinity(), 0);
        for (uint i = 0u; i < SLOTS; i++)
            all.x = max(all.x, states[i * ROWS + r].x);
        float shift = all.x == -infinity() ? 0.0 : all.x;
        for (uint i = 0u; i < SLOTS; i++) {
            vec2 state = states[i * ROWS + r];
            all.y += state.y * (is_nan(state.y) ? 1.0 : weight(state.x, shift));
        }
        float scale = weight(states[slot * ROWS + r].x, shift);
        [[unroll]] for (uint c = 0u; c < uint(PER); c++)
            products[own * uint(PER) + c] = totals[r * uint(PER) + c] * scale;
        barrier();
        uint row = first_row + r;
        if (own < count && row < total_rows) {
            vec4 x = products[own];
            for (uint i = 1u; i < SLOTS; i++)
                x += products[i * count + own];
            write_vector(unit * total_rows + row, part, own, all, x);
        }
        if (COMBINES != 0u)
            memoryBarrierBuffer();
        barrier();
    }
}

// Whether this workgroup is the last one of those that share the block's rows: then all parts are
// in memory. Behind finish(), whose writes are visible to others.
bool is_last(uint block)
{
    if (gl_LocalInvocationIndex == 0u) {
        num_done = atomicAdd(counters.d[block], 1u) + 1u;
        if (num_done == args.parts)
            counters.d[block] = 0u;
    }
    barrier();
    memoryBarrierBuffer();
    return num_done == args.parts;
}

// By how much what was weighed with the greatest score `before` counts under `greatest`.
float share_of(float before, float greatest)
{
    return before == greatest ? 1.0 : weight(before, greatest);
}

// Makes the block's rows of their parts: `first` is the number of the first one, of `count`. An
// invocation has a vector of a row.
void combine(uint first, uint count)
{
    uint columns = args.width / 4u, pitch = columns + 1u;
    for (uint i = gl_LocalInvocationIndex; i < count * columns; i += GROUP) {
        uint column = i % columns, row = first + i / columns;
        float most = -infinity(), sum = 0.0;
        vec4 total = vec4(0);
        for (uint begin = 0u; begin < args.parts; begin += AHEAD) {
            vec4 values[AHEAD];
            vec2 state[AHEAD];
            float greatest = most;
            [[unroll]] for (uint n = 0u; n < AHEAD; n++) {
                uint at = (row * args.parts + min(begin + n, args.parts - 1u)) * pitch;
                state[n] = sums.d[at + columns].xy;
                values[n] = sums.d[at + column];
                greatest = max(greatest, state[n].x);
            }
            float scale = share_of(most, greatest);
            sum *= scale;
            total *= scale;
            most = greatest;
            [[unroll]] for (uint n = 0u; n < AHEAD; n++) {
                // A part without keys has no say, and one whose sum is no number has.
                if (begin + n < args.parts && state[n].y != 0.0) {
                    scale = is_nan(state[n].y) ? 1.0 : share_of(state[n].x, most);
                    sum += state[n].y * scale;
                    total += values[n] * scale;
                }
            }
        }
        total = sum == 0.0 ? vec4(0) : total / sum;
        write_output(row, column, total);
    }
}

// Workgroups that share keys are neighbours.
void main()
{
    uint own = gl_LocalInvocationIndex;
    if (BY_SUBGROUP != 0u)
        own = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    lane = own % LANES;
    slot = own / LANES;
    total_rows = args.heads * args.queries;
    uint blocks = (total_rows + ROWS - 1u) / ROWS, number = group_number();
    uint block = number % blocks, part = number / blocks % args.parts;
    uint unit = number / blocks / args.parts, group = unit % args.groups;
    uint num_units = args.groups;
    for (uint axis = 0u; axis < args.num_batch; axis++)
        num_units *= batches.d[axis * 5u];
    if (unit >= num_units)
        return;
    first_row = block * ROWS;
    int length = length_of(start_batch(unit / args.groups, group));
    uvec2 seen_keys = visible_keys(first_row, ROWS, length);
    const uint keys_at_once = SLOTS * STEPS;
    uint tiles = (max(seen_keys.y, seen_keys.x) - seen_keys.x + keys_at_once - 1u) / keys_at_once;
    uint of_part = (tiles + args.parts - 1u) / args.parts * keys_at_once;
    uint begin = seen_keys.x + part * of_part, end = min(begin + of_part, seen_keys.y);
    load_rows(length);
    [[unroll]] for (uint i = 0u; i < OWN; i++) {
        most[i] = -infinity();
        weight_sum[i] = 0.0;
    }
    [[unroll]] for (uint i = 0u; i < Q_SIZE; i++)
        totals[i] = vec4(0);
    barrier(); // for row_places
    LOAD_LINES(k_lines, keys, k_start, args.k_row, args.depth, begin, end)
    for (; begin < end; begin += keys_at_once) {
        LOAD_LINES(v_lines, values, v_start, args.v_row, args.width, begin, end)
        multiply_keys();
        wait_for_slot();
        LOAD_LINES(k_lines, keys, k_start, args.k_row, args.depth, begin + keys_at_once, end)
        add_products(begin);
        wait_for_slot();
        weigh();
        wait_for_slot();
        add_values();
    }
    barrier();
    finish(unit, part);
    if (COMBINES != 0u && is_last(unit * blocks + block))
        combine(unit * total_rows + first_row, min(ROWS, total_rows - first_row));
}
