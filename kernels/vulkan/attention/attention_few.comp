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
// over a split of the keys. It has slots of LANES invocations, one for each line of a row. A slot
// takes four keys at a time: its invocations multiply their line with all rows, and then share what
// is to be done for the four keys and each row: an invocation adds the products of one of these
// scores and makes it a weight. All invocations add their line of the values, so weighed. Slots have
// sums and greatest scores of their own, which are combined at the end; until then they need not wait for
// each other, and do not where a subgroup has whole slots. So have splits of the keys: the slots of the
// workgroup that is done last combine them.
//
// APPENDS (without masks, slots and BLOCKS): one query of one sequence, and this launch writes its row
// of keys and of values to the caches too, at a position that is data. `keys` and `values` are the
// caches. All workgroups that see the position take the row from where it comes from, so none waits for
// the one that writes it: the first of each head of the caches. These rows and q are read by elements,
// as they may pass through programs.
//
// One query is a chain of waits for memory, so loads begin as early as their positions are known: q
// beside the length, keys and values of the first tile before q is looked at.
#include "program/types.glsl"
#include "program/scalar.glsl"
#include "program/fours.glsl"
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint GROUP = 128;  // invocations
layout(constant_id = 1) const uint ROWS = 4;     // at most 8
layout(constant_id = 2) const uint LANES = 16;   // invocations of a key: a power of 2, at least 4
layout(constant_id = 3) const uint Q_SIZE = 8;   // ROWS * PER
layout(constant_id = 4) const uint OWN = 1;      // scores of an invocation: STEPS * ROWS / LANES
// Pitches in `products`, in vectors, of LANES products and of a slot, without bank conflicts.
layout(constant_id = 5) const uint P_PITCH = 5;
layout(constant_id = 6) const uint SLOT_PITCH = 84;
layout(constant_id = 7) const uint P_SIZE = 672; // of all slots
layout(constant_id = 8) const uint S_SIZE = 32;  // GROUP / LANES * ROWS
layout(constant_id = 9) const uint BY_SUBGROUP = 0;
layout(constant_id = 10) const uint COMBINES = 0; // 1: there are counters
layout(constant_id = 11) const uint AT_ONCE = 1;  // rows whose sums are added over the slots at a time
layout(constant_id = 12) const uint DIRECT_TILES = 1; // keys of at most this many tiles are one split

#ifdef APPENDS
layout(std430, binding = 0) readonly buffer Q { PASTE(S_, IN) d[]; } queries;
layout(std430, binding = 1) buffer K { uvec4 d[]; } keys;
layout(std430, binding = 2) buffer V { uvec4 d[]; } values;
layout(std430, binding = 3) readonly buffer NewK { PASTE(S_, IN) d[]; } new_keys;
layout(std430, binding = 4) readonly buffer NewV { PASTE(S_, IN) d[]; } new_values;
layout(std430, binding = 10) readonly buffer Start { int d[]; } start;
#else
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
#endif
layout(std430, binding = 5) readonly buffer Lengths { uint8_t d[]; } lengths;
layout(std430, binding = 6) coherent buffer Parts { vec4 d[]; } sums;
layout(std430, binding = 7) readonly buffer Batches { uint d[]; } batches;
layout(std430, binding = 8) writeonly buffer Out { ELEMENT d[]; } result;
// Counters of each block of rows: workgroups that are done with their split; 0 before and behind the
// launch.
layout(std430, binding = 9) coherent buffer Counters { uint d[]; } counters;
layout(push_constant) uniform Args {
    uint heads; // of q, for a head of k
    uint queries, groups, keys, depth, width, splits, num_batch;
    uint q_offset, q_head, q_row, q_element;
    uint k_offset, k_head, k_row, k_element;
    uint v_offset, v_head, v_row, v_element;
    uint mask_offset, mask_head, mask_row, mask_key;
    uint out_offset, lengths_offset, lengths_stride;
    uint flags;
    int window; // 0: none
    float scale, soft_cap;
    uint units; // batches of groups
} args;

#ifdef APPENDS
// Words that one query without a mask does not need.
#define START_OFFSET q_row
#define NEW_K_OFFSET mask_offset
#define NEW_K_HEAD mask_head
#define NEW_V_OFFSET mask_row
#define NEW_V_HEAD mask_key
#endif

#define STEPS 4u // keys that a slot takes at a time: components of a vector
#define COUNTER_PITCH 32u // counters have cache lines of their own
#define AHEAD 3u // splits of a row that a slot loads at a time
const uint LINE = 4u * uint(PER); // elements of a line
const uint SLOTS = GROUP / LANES;
const uint SLOT_FOURS = (SLOTS + 3u) / 4u;
const uint COLUMNS = LANES * uint(PER); // vectors of a row

shared vec4 products[P_SIZE]; // for each slot and score, LANES numbers
shared vec4 scores[S_SIZE], slot_weights[S_SIZE]; // for each slot and row, of the slot's four keys
shared float scales[S_SIZE];                      // for each slot and row, the factor of its sums so far
// At the end: each row's greatest score by slot, four slots in a vector; the sum of weights.
shared vec4 greatest[SLOT_FOURS * ROWS];
shared float sums_of_weights[S_SIZE];
shared uint num_done;

#ifdef BLOCKS
const uint Q_LINES = ROWS * 2u;
#else
const uint Q_LINES = ROWS;
#endif
uint lane, slot, first_row, num_splits; // num_splits: splits that have keys, where this launch adds them
uvec4 q_lines[Q_LINES];
vec4 q[Q_SIZE], totals[Q_SIZE];
float most[OWN], weight_sum[OWN];
ivec3 own_ranges[OWN]; // the keys that a row sees by position, and where its mask begins
uvec4 k_lines[STEPS], v_lines[STEPS];

#ifdef APPENDS
uint position;               // the position, in the caches
uvec4 new_key, new_value; // lines of the new rows, in workgroups that see or write them
#else
#define SHARED_CACHES
#endif
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
#ifdef APPENDS
#define IS_IN_MEMORY(key) (key != position)
#else
#define IS_IN_MEMORY(key) true
#endif
#define LOAD_LINES(lines, source, start, row, count, begin, end)                                   \
    [[unroll]] for (uint i = 0u; i < STEPS; i++) {                                                 \
        uint key = (begin) + i * SLOTS + slot;                                                     \
        lines[i] = uvec4(0u);                                                                      \
        if (key < (end) && lane * LINE < (count) && IS_IN_MEMORY(key))                             \
            LINE_AT(source, (start) + key * (row), lines[i])                                       \
    }

#ifdef APPENDS
// Replaces the line at `position`, which is not in memory yet, by the new row's line.
#define TAKE_NEW(lines, begin, line)                                                               \
    [[unroll]] for (uint i = 0u; i < STEPS; i++)                                                   \
        if ((begin) + i * SLOTS + slot == position)                                                   \
            lines[i] = line;

// The position, as base.dynamic_slice_update has it: negative ones count from the end, and others
// outside are the first or the last.
uint start_position()
{
    int at = start.d[args.START_OFFSET], count = int(args.keys);
    return uint(clamp(at < 0 ? max(at, -count) + count : at, 0, count - 1));
}

// The line of this invocation of row `r` in `products`.
uvec4 new_line(uint r)
{
    uint at = (r * LANES + lane) * uint(PER);
#if PER == 1
    return floatBitsToUint(products[at]);
#else
    vec4 a = products[at], b = products[at + 1u];
    return uvec4(packHalf2x16(a.xy), packHalf2x16(a.zw), packHalf2x16(b.xy), packHalf2x16(b.zw));
#endif
}

#define VALUE(word) PASTE(FROM_, IN)(PASTE(W_, IN)(word))
#define OF_ROW (LANES * LINE)

// Brings rows of q to `products`, reading each element once, since a program may compute it. Positions
// out of bounds are clamped rather than skipped: without branches all loads are in flight together.
void share_rows()
{
    [[unroll]] for (uint n = 0u; n < ROWS * OF_ROW; n += GROUP) {
        uint i = n + slot * LANES + lane, row = first_row + i / OF_ROW, c = i % OF_ROW;
        float x = VALUE(queries.d[q_start + min(row, total_rows - 1u) * args.q_head +
                                  min(c, args.depth - 1u)]);
        if (i < ROWS * OF_ROW)
            products[i / 4u][i % 4u] = row < total_rows && c < args.depth ? x : 0.0;
    }
}

// Brings the new rows of the caches to `products`, behind the rows of q.
void share_new_rows(uint group)
{
    [[unroll]] for (uint n = 0u; n < OF_ROW; n += GROUP) {
        uint i = n + slot * LANES + lane, k = ROWS * OF_ROW + i, v = k + OF_ROW;
        float key = VALUE(new_keys.d[args.NEW_K_OFFSET + group * args.NEW_K_HEAD +
                                     min(i, args.depth - 1u)]);
        float value = VALUE(new_values.d[args.NEW_V_OFFSET + group * args.NEW_V_HEAD +
                                         min(i, args.width - 1u)]);
        if (i < OF_ROW) {
            products[k / 4u][k % 4u] = i < args.depth ? key : 0.0;
            products[v / 4u][v % 4u] = i < args.width ? value : 0.0;
        }
    }
}

// Takes rows from `products`: q, and if `has_new` the new rows of the caches, which the workgroup
// writes to the caches if it `writes`.
void take_rows(bool has_new, bool writes)
{
    barrier();
    [[unroll]] for (uint i = 0u; i < Q_SIZE; i++) {
        q[i] = products[(i / uint(PER) * LANES + lane) * uint(PER) + i % uint(PER)] * args.scale;
        totals[i] = vec4(0);
    }
    if (has_new) {
        new_key = new_line(ROWS);
        new_value = new_line(ROWS + 1u);
    }
    barrier(); // `products` are free
    if (!writes || slot != 0u)
        return;
    if (lane * LINE < args.depth)
        keys.d[(k_start + position * args.k_row) / LINE + lane] = new_key;
    if (lane * LINE < args.width)
        values.d[(v_start + position * args.v_row) / LINE + lane] = new_value;
}
#else
#define TAKE_NEW(lines, begin, line)

// Rows of q as they are in memory.
void load_rows()
{
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        uint row = first_row + r;
        bool is_there = row < total_rows && lane * LINE < args.depth;
#ifdef BLOCKS
        uint at = q_start_of_row(row) / 4u + lane * 2u;
        q_lines[r * 2u] = is_there ? queries.d[at] : uvec4(0u);
        q_lines[r * 2u + 1u] = is_there ? queries.d[at + 1u] : uvec4(0u);
#else
        q_lines[r] = uvec4(0u);
        if (is_there)
            q_lines[r] = queries.d[q_start_of_row(row) / LINE + lane];
#endif
    }
}

void widen_rows()
{
    [[unroll]] for (uint i = 0u; i < Q_SIZE; i++) {
#ifdef BLOCKS
        q[i] = uintBitsToFloat(q_lines[i]) * args.scale;
#else
        q[i] = widened(q_lines[i / uint(PER)], i % uint(PER)) * args.scale;
#endif
        totals[i] = vec4(0);
    }
}
#endif

// Begins the state of this invocation: positions, greatest scores and sums of weights.
void start_scores(int length)
{
    [[unroll]] for (uint n = 0u; n < OWN; n++) {
        uint row = first_row + (lane + n * LANES) % ROWS;
        uint head = row / args.queries, query = row - head * args.queries;
        own_ranges[n] =
            ivec3(row < total_rows ? key_range(query, length) : ivec2(0),
                  int(mask_start + head * args.mask_head + query * args.mask_row));
        most[n] = -infinity();
        weight_sum[n] = 0.0;
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

float masked(ivec3 range, int key, float score)
{
    if (key < range.x || key >= range.y)
        return -infinity();
    if (args.soft_cap > 0.0)
        score = capped(vec4(score)).x;
#ifndef APPENDS
    uint at = uint(range.z) + uint(key) * args.mask_key;
    if ((args.flags & HAS_ADDED) != 0u)
        score += PASTE(FROM_, IN)(PASTE(W_, IN)(added.d[at]));
    else if ((args.flags & HAS_SEEN) != 0u && uint(seen.d[at]) == 0u)
        score = -infinity();
#endif
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
            masked(own_ranges[n], key, (sum.x + sum.y) + (sum.z + sum.w));
    }
}

// Turns the scores of this invocation into weights.
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

// Tells all slots this one's greatest score of row `r`.
void set_state(uint r, float greatest_score)
{
    greatest[r * SLOT_FOURS + slot / 4u][slot % 4u] = greatest_score;
    if (SLOTS % 4u != 0u && slot == 0u)
        for (uint i = SLOTS % 4u; i < 4u; i++)
            greatest[r * SLOT_FOURS + SLOTS / 4u][i] = -infinity();
}

// Tells the greatest score of each row, and the sum of its weights.
void keep_states()
{
    [[unroll]] for (uint n = 0u; n < OWN; n++) {
        uint i = lane + n * LANES, step = i / ROWS, r = i - step * ROWS;
        if (i >= STEPS * ROWS)
            break;
        scores[slot * ROWS + r][step] = weight_sum[n];
        if (step == 0u)
            set_state(r, most[n]);
    }
    wait_for_slot();
    for (uint i = lane; i < ROWS; i += LANES) {
        vec4 sum = scores[slot * ROWS + i];
        sums_of_weights[slot * ROWS + i] = (sum.x + sum.y) + (sum.z + sum.w);
    }
}

float greatest_of(uint r)
{
    vec4 all = greatest[r * SLOT_FOURS];
    [[unroll]] for (uint i = 1u; i < SLOT_FOURS; i++)
        all = max(all, greatest[r * SLOT_FOURS + i]);
    return max(max(all.x, all.y), max(all.z, all.w));
}

// Scales a slot's sums of AT_ONCE rows from `first` on to the greatest score of all slots.
void share_sums(uint first)
{
    [[unroll]] for (uint n = 0u; n < AT_ONCE; n++) {
        uint r = first + n;
        if (r >= ROWS)
            break;
        float all = greatest_of(r), shift = all == -infinity() ? 0.0 : all;
        float scale = weight(greatest[r * SLOT_FOURS + slot / 4u][slot % 4u], shift);
        [[unroll]] for (uint c = 0u; c < uint(PER); c++)
            products[(n * SLOTS + slot) * COLUMNS + lane * uint(PER) + c] =
                totals[r * uint(PER) + c] * scale;
        if (lane == 0u) {
            float sum = sums_of_weights[slot * ROWS + r];
            sums_of_weights[slot * ROWS + r] = is_nan(sum) ? sum : sum * scale;
        }
    }
}

// Adds vector `column` of row `r` over the slots; the row is the n-th of those in shared memory, and
// row `number` in memory. is_split: of this split of the keys alone.
void add_slots(uint n, uint r, uint column, uint number, uint split, bool is_split)
{
    uint columns = args.width / 4u, at = (number * args.splits + split) * (columns + 1u);
    float sum = sums_of_weights[r];
    vec4 x = products[n * SLOTS * COLUMNS + column];
    [[unroll]] for (uint i = 1u; i < SLOTS; i++) {
        x += products[(n * SLOTS + i) * COLUMNS + column];
        sum += sums_of_weights[i * ROWS + r];
    }
    if (is_split && column == 0u)
        sums.d[at + columns] = vec4(greatest_of(r), sum, 0, 0);
    if (column >= columns)
        return;
    if (is_split)
        sums.d[at + column] = x;
    else
        write_output(number, column, sum == 0.0 ? vec4(0) : x / sum);
}

// Adds over the slots, and writes rows of the output, or with `is_split` the sums of this split.
void finish(uint first_number, uint split, bool is_split)
{
    uint own = slot * LANES + lane;
    barrier();
    [[unroll]] for (uint first = 0u; first < ROWS; first += AT_ONCE) {
        if (first > 0u)
            barrier();
        share_sums(first);
        barrier();
        for (uint i = own; i < AT_ONCE * COLUMNS; i += GROUP) {
            uint n = i / COLUMNS, r = first + n;
            if (r < ROWS && first_row + r < total_rows)
                add_slots(n, r, i - n * COLUMNS, first_number + r, split, is_split);
        }
    }
    if (is_split)
        memoryBarrierBuffer();
}

// Whether this workgroup is the last one of those that share the block's rows: then all splits are
// in memory. Behind finish(), which makes its writes visible to others.
bool is_last(uint block)
{
    barrier();
    if (gl_LocalInvocationIndex == 0u)
        num_done = atomicAdd(counters.d[block * COUNTER_PITCH], 1u) + 1u;
    barrier();
    memoryBarrierBuffer();
    return num_done == num_splits;
}

// The factor that turns weights under the greatest score `before` into weights under `greatest`.
float share_of(float before, float greatest)
{
    return before == greatest ? 1.0 : weight(before, greatest);
}

// Reads the sums of all splits of the block's rows, the first of which is `number`, as sums of slots:
// each slot takes every SLOTS-th split.
void add_splits(uint number)
{
    uint columns = args.width / 4u, pitch = columns + 1u;
    float top[ROWS], sum[ROWS];
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        top[r] = -infinity();
        sum[r] = 0.0;
    }
    [[unroll]] for (uint i = 0u; i < Q_SIZE; i++)
        totals[i] = vec4(0);
    for (uint begin = slot; begin < num_splits; begin += SLOTS * AHEAD)
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            uint row = number + min(r, total_rows - 1u - first_row);
            vec4 values[AHEAD * uint(PER)];
            vec2 state[AHEAD];
            [[unroll]] for (uint n = 0u; n < AHEAD; n++) {
                uint split = min(begin + n * SLOTS, num_splits - 1u);
                uint at = (row * args.splits + split) * pitch;
                state[n] = sums.d[at + columns].xy;
                [[unroll]] for (uint c = 0u; c < uint(PER); c++)
                    values[n * uint(PER) + c] =
                        sums.d[at + min(lane * uint(PER) + c, columns)];
            }
            [[unroll]] for (uint n = 0u; n < AHEAD; n++) {
                // A split without keys does not count; a split whose sum is NaN does.
                bool counts = begin + n * SLOTS < num_splits && state[n].y != 0.0;
                float now = counts ? max(top[r], state[n].x) : top[r];
                float before = share_of(top[r], now);
                float scale = is_nan(state[n].y) ? 1.0 : share_of(state[n].x, now);
                top[r] = now;
                sum[r] = counts ? sum[r] * before + state[n].y * scale : sum[r];
                [[unroll]] for (uint c = 0u; c < uint(PER); c++) {
                    uint i = r * uint(PER) + c;
                    totals[i] = counts ? totals[i] * before + values[n * uint(PER) + c] * scale
                                       : totals[i];
                }
            }
        }
    if (lane == 0u)
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            set_state(r, top[r]);
            sums_of_weights[slot * ROWS + r] = sum[r];
        }
}

// Workgroups that share keys have successive numbers.
void main()
{
    uint own = gl_LocalInvocationIndex;
    if (BY_SUBGROUP != 0u)
        own = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    lane = own % LANES;
    slot = own / LANES;
    total_rows = args.heads * args.queries;
    uint blocks = (total_rows + ROWS - 1u) / ROWS, workgroup = group_number();
    // The last workgroups have the last splits, which may have no keys.
    uint block = workgroup % blocks, unit = workgroup / blocks % args.units;
    uint split = workgroup / blocks / args.units, group = unit % args.groups;
    if (split >= args.splits)
        return;
    first_row = block * ROWS;
    int length = length_of(start_batch(unit / args.groups, group));
#ifdef APPENDS
    position = start_position();
    share_rows();
#else
    load_rows();
#endif
    uvec2 seen_keys = visible_keys(first_row, ROWS, length);
    const uint keys_at_once = SLOTS * STEPS;
    uint tiles = (max(seen_keys.y, seen_keys.x) - seen_keys.x + keys_at_once - 1u) / keys_at_once;
    uint tiles_each = max((tiles + args.splits - 1u) / args.splits, 1u);
    if (COMBINES != 0u && tiles <= DIRECT_TILES)
        tiles_each = DIRECT_TILES;
    num_splits = COMBINES != 0u ? max((tiles + tiles_each - 1u) / tiles_each, 1u) : args.splits;
    if (split >= num_splits)
        return;
    uint of_split = tiles_each * keys_at_once;
    uint begin = seen_keys.x + split * of_split, end = min(begin + of_split, seen_keys.y);
    LOAD_LINES(k_lines, keys, k_start, args.k_row, args.depth, begin, end)
    start_scores(length);
#ifdef APPENDS
    bool writes = block == 0u && split == 0u, has_new = writes || (position >= begin && position < end);
    if (has_new)
        share_new_rows(group);
    take_rows(has_new, writes);
#else
    widen_rows();
#endif
    TAKE_NEW(k_lines, begin, new_key)
    while (begin < end) {
        LOAD_LINES(v_lines, values, v_start, args.v_row, args.width, begin, end)
        TAKE_NEW(v_lines, begin, new_value)
        multiply_keys();
        wait_for_slot();
        add_products(begin);
        wait_for_slot();
        weigh();
        wait_for_slot();
        add_values();
        begin += keys_at_once;
        LOAD_LINES(k_lines, keys, k_start, args.k_row, args.depth, begin, end)
        TAKE_NEW(k_lines, begin, new_key)
    }
    keep_states();
    uint first_number = unit * total_rows + first_row;
    finish(first_number, split, num_splits > 1u);
    if (COMBINES != 0u && num_splits > 1u && is_last(unit * blocks + block)) {
        add_splits(first_number);
        finish(first_number, 0u, false);
        if (gl_LocalInvocationIndex == 0u)
            counters.d[(unit * blocks + block) * COUNTER_PITCH] = 0u;
    }
}
