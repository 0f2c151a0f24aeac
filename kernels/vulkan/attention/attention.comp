#version 460
// SPDX-License-Identifier: MIT
// Attention without a matrix of all scores: softmax(q k' * scale) v by tiles of keys, with a
// running greatest score and sum of weights for each row of q (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022). IN: dtype;
// everything is computed in f32. VECTORS: elements are read and written by fours, of which all
// strides, offsets and lengths of rows are multiples.
//
// The queries of the heads that share keys are rows of one matrix. A workgroup computes ROWS of
// its rows. An invocation computes four of these rows against EACH keys of each tile of KEYS keys; the
// scores of one key are a vec4 with a component for each row. Its outputs are PER vectors of four
// columns for each row; where a row of the output needs fewer invocations than LANES, several share a
// column's keys.
//
// A few rows are computed by several workgroups, `splits`, each over a split of the keys: these write
// sums, from which attention_combine.comp makes the output.
#include "program/types.glsl"
#include "program/scalar.glsl"
#include "program/fours.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint GROUP = 256;  // invocations
layout(constant_id = 1) const uint ROWS = 64;    // a multiple of 4
layout(constant_id = 2) const uint KEYS = 64;    // a multiple of GROUP / (ROWS / 4)
layout(constant_id = 3) const uint SLICE = 8;    // vectors of a key in shared memory; a power of 2
layout(constant_id = 4) const uint EACH = 4;     // KEYS / (GROUP / (ROWS / 4))
layout(constant_id = 5) const uint COLUMNS = 16; // invocations of a row of the output
layout(constant_id = 6) const uint TOTALS = 4;   // vectors of the output of an invocation
layout(constant_id = 7) const uint Q_PITCH = 9;  // vectors from row to row of tile_q
layout(constant_id = 8) const uint HAS_Q = 0;    // 1: tile_q has whole rows
layout(constant_id = 9) const uint V_KEYS = 32;  // keys whose values are in shared memory; 0: none
// Vectors of shared memory.
layout(constant_id = 10) const uint Q_SIZE = 576;
layout(constant_id = 11) const uint K_SIZE = 576;
layout(constant_id = 12) const uint P_SIZE = 1088;

layout(std430, binding = 0) readonly buffer Q { ELEMENT d[]; } queries;
layout(std430, binding = 1) readonly buffer K { ELEMENT d[]; } keys;
layout(std430, binding = 2) readonly buffer V { ELEMENT d[]; } values;
layout(std430, binding = 3) readonly buffer Added { PASTE(S_, IN) d[]; } added;
layout(std430, binding = 4) readonly buffer Seen { uint8_t d[]; } seen;
layout(std430, binding = 5) readonly buffer Lengths { uint8_t d[]; } lengths;
layout(std430, binding = 6) writeonly buffer Out { ELEMENT d[]; } result;
layout(std430, binding = 6) writeonly buffer Parts { vec4 d[]; } sums; // in place of Out
// For each axis of batches: extent, then strides of q, k, v and mask.
layout(std430, binding = 7) readonly buffer Batches { uint d[]; } batches;
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
} args;

#ifdef VECTORS
const uint AHEAD = 8u; // values that an invocation loads at a time
#else
const uint AHEAD = 4u;
#endif

const uint Y_LANES = ROWS / 4u;     // stride between the rows of an invocation
const uint LANES = GROUP / Y_LANES; // invocations that share a row
const uint PER = TOTALS / 4u;           // vectors of the output of an invocation, for each row
const uint K_PITCH = SLICE + 1u;
const uint Q_LOADS = (ROWS * SLICE + GROUP - 1u) / GROUP; // loads of q by an invocation, for a slice
const uint P_PITCH = P_SIZE / KEYS;
const uint SHARES = LANES / COLUMNS; // invocations that share the keys of a row and column

shared vec4 tile_q[Q_SIZE];
shared vec4 tile_k[K_SIZE]; // and then V_KEYS values
shared vec4 tile_p[P_SIZE]; // weights: a vector for each key and four rows
shared vec4 exchange[GROUP];

uint lane, lane_x, lane_y;
uint q_offsets[Q_LOADS];
uint first_row;

#define SHARED_CACHES
#include "attention.glsl"

// --- loading ------------------------------------------------------------------------------

vec4 load_q(uint at, uint column)
{
    vec4 x = LOAD(queries, at, args.q_element, column, args.depth);
    return x * args.scale;
}

vec4 load_k(uint key, uint column)
{
    return LOAD(keys, k_start + key * args.k_row, args.k_element, column, args.depth);
}

vec4 load_v(uint key, uint column)
{
    return LOAD(values, v_start + key * args.v_row, args.v_element, column, args.width);
}

// Whole rows; rows behind the last one are zeros.
void load_rows()
{
    const uint count = Q_PITCH - 1u;
    for (uint i = lane; i < ROWS * count; i += GROUP) {
        uint row = i / count, at = i - row * count;
        bool is_row = first_row + row < total_rows;
        tile_q[row * Q_PITCH + at] =
            is_row ? load_q(q_start_of_row(first_row + row), at) : vec4(0);
    }
}

// Loads a slice of q: an invocation loads from the same rows each time and keeps their positions.
void load_queries(uint column)
{
    [[unroll]] for (uint i = 0u; i < Q_LOADS; i++) {
        uint at = lane + i * GROUP, row = at / SLICE, part = at % SLICE;
        if (row < ROWS)
            tile_q[row * Q_PITCH + part] =
                first_row + row < total_rows ? load_q(q_offsets[i], column + part) : vec4(0);
    }
}

void load_keys(uint first, uint end, uint column)
{
    [[unroll]] for (uint i = 0u; i < KEYS * SLICE / GROUP; i++) {
        uint at = lane + i * GROUP, key = at / SLICE, part = at % SLICE;
        tile_k[key * K_PITCH + part] =
            first + key < end ? load_k(first + key, column + part) : vec4(0);
    }
}

void load_values(uint first, uint end)
{
    const uint columns = COLUMNS * PER;
    [[unroll]] for (uint i = 0u; i < V_KEYS * columns / GROUP; i++) {
        uint at = lane + i * GROUP, key = at / columns, column = at % columns;
        tile_k[at] = first + key < end ? load_v(first + key, column) : vec4(0);
    }
}

// --- rows ---------------------------------------------------------------------------------

// State of the rows, each in a component: the greatest score, and the sum of weights over this
// invocation's keys. [low, high): keys that a row sees by position.
struct state {
    vec4 most, sum;
    ivec4 low, high;
    uvec4 mask;
};

state begin_rows(int length)
{
    state s;
    s.most = vec4(-infinity());
    s.sum = vec4(0);
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        uint row = first_row + lane_y + i * Y_LANES;
        uint head = row / args.queries, query = row - head * args.queries;
        ivec2 seen_keys = row < total_rows ? key_range(query, length) : ivec2(0);
        s.low[i] = seen_keys.x;
        s.high[i] = seen_keys.y;
        s.mask[i] = mask_start + head * args.mask_head + query * args.mask_row;
    }
    return s;
}

// The scores of a key for the rows of an invocation.
vec4 masked(state s, int key, vec4 scores)
{
    ivec4 position = ivec4(key);
    bvec4 hidden = bvec4(ivec4(lessThan(position, s.low)) | ivec4(greaterThanEqual(position, s.high)));
    if (args.soft_cap > 0.0)
        scores = capped(scores);
    if ((args.flags & (HAS_ADDED | HAS_SEEN)) != 0u) {
        bool is_added = (args.flags & HAS_ADDED) != 0u;
        uvec4 at = s.mask + uint(key) * args.mask_key;
        [[unroll]] for (uint i = 0u; i < 4u; i++) {
            if (!hidden[i] && is_added)
                scores[i] += PASTE(FROM_, IN)(PASTE(W_, IN)(added.d[at[i]]));
            else if (!hidden[i])
                hidden[i] = uint(seen.d[at[i]]) == 0u;
        }
    }
    return mix(scores, vec4(-infinity()), hidden);
}

// The greatest value over all invocations of a row.
vec4 greatest(vec4 own)
{
    const uint first = lane_y * LANES;
    exchange[lane] = own;
    barrier();
    if (LANES > 16u) {
        if (lane_x < 16u) {
            for (uint i = 16u; i < LANES; i += 16u)
                own = max(own, exchange[lane + i]);
            exchange[lane] = own;
        }
        barrier();
    }
    own = exchange[first];
    [[unroll]] for (uint i = 1u; i < min(LANES, 16u); i++)
        own = max(own, exchange[first + i]);
    return own;
}

// --- tiles --------------------------------------------------------------------------------

// Adds the values of keys [begin, end) to the sums of this invocation's rows: sums[c * 4 + i] is
// vector c of row i.
void add_values(uint begin, uint end, uint share, uint column, inout vec4 total[TOTALS])
{
    for (uint k = share; k < end - begin; k += SHARES * AHEAD) {
        vec4 v[AHEAD];
        [[unroll]] for (uint i = 0u; i < AHEAD; i++) {
            uint key = k + i * SHARES;
            v[i] = begin + key < end ? load_v(begin + key, column) : vec4(0);
        }
        [[unroll]] for (uint i = 0u; i < AHEAD; i++) {
            uint key = k + i * SHARES;
            if (begin + key < end) {
                vec4 p = tile_p[key * P_PITCH + lane_y];
                [[unroll]] for (uint row = 0u; row < 4u; row++)
                    total[row] += p[row] * v[i];
            }
        }
    }
}

// add_values() by way of shared memory, for tiles where many rows read each value.
void add_shared_values(uint begin, uint end, inout vec4 total[TOTALS])
{
    for (uint first = 0u; first < end - begin; first += V_KEYS) {
        barrier();
        load_values(begin + first, end);
        barrier();
        for (uint some = 0u; some < V_KEYS; some += 4u) {
            [[unroll]] for (uint step = 0u; step < 4u; step++) {
                uint k = some + step;
                vec4 p = tile_p[(first + k) * P_PITCH + lane_y];
                [[unroll]] for (uint c = 0u; c < PER; c++) {
                    vec4 v = tile_k[k * COLUMNS * PER + c * COLUMNS + lane_x];
                    [[unroll]] for (uint row = 0u; row < 4u; row++)
                        total[c * 4u + row] += p[row] * v;
                }
            }
        }
    }
}

// Scores of keys [begin, begin + KEYS), of which those from `end` on are zeros.
void multiply_keys(uint begin, uint end, out vec4 scores[EACH])
{
    [[unroll]] for (uint j = 0u; j < EACH; j++)
        scores[j] = vec4(0);
    for (uint column = 0u; column * 4u < args.depth; column += SLICE) {
        barrier();
        load_keys(begin, end, column);
        if (HAS_Q == 0u)
            load_queries(column);
        barrier();
        uint from = lane_y * Q_PITCH + (HAS_Q != 0u ? column : 0u);
        for (uint some = 0u; some < SLICE; some += 4u) {
            [[unroll]] for (uint step = 0u; step < 4u; step++) {
                uint d = some + step;
                vec4 q[4];
                [[unroll]] for (uint i = 0u; i < 4u; i++)
                    q[i] = tile_q[from + i * Y_LANES * Q_PITCH + d];
                [[unroll]] for (uint j = 0u; j < EACH; j++) {
                    vec4 k = tile_k[(lane_x + LANES * j) * K_PITCH + d];
                    [[unroll]] for (uint i = 0u; i < 4u; i++)
                        scores[j][i] = add_dot(scores[j][i], q[i], k);
                }
            }
        }
    }
}

// Turns scores into weights, in tile_p, and scales the rows' sums so far.
void weigh(uint begin, vec4 scores[EACH], inout state s, inout vec4 total[TOTALS])
{
    vec4 own = vec4(-infinity());
    [[unroll]] for (uint j = 0u; j < EACH; j++) {
        int key = int(begin + lane_x + LANES * j);
        scores[j] = masked(s, key, scores[j]);
        own = max(own, scores[j]);
    }
    vec4 most = max(s.most, greatest(own)), shift;
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        shift[i] = most[i] == -infinity() ? 0.0 : most[i];
    vec4 scale = weights(s.most, shift);
    s.most = most;
    s.sum *= scale;
    [[unroll]] for (uint j = 0u; j < EACH; j++) {
        vec4 p = weights(scores[j], shift);
        s.sum += p;
        tile_p[(lane_x + LANES * j) * P_PITCH + lane_y] = p;
    }
    [[unroll]] for (uint c = 0u; c < PER; c++)
        [[unroll]] for (uint i = 0u; i < 4u; i++)
            total[c * 4u + i] *= scale[i];
}

// The sum over the invocations of a row: over all, or over those that share a column.
vec4 sum_shares(vec4 own, uint distance)
{
    barrier();
    exchange[lane] = own;
    barrier();
    own = vec4(0);
    for (uint i = lane_x % distance; i < LANES; i += distance)
        own += exchange[lane_y * LANES + i];
    return own;
}

// Writes rows of the output, or with several splits the sums of split `split`.
void finish(uint unit, uint split, uint share, uint column, state s, vec4 total[TOTALS])
{
    vec4 sum = sum_shares(s.sum, 1u);
    if (SHARES > 1u)
        [[unroll]] for (uint i = 0u; i < 4u; i++)
            total[i] = sum_shares(total[i], COLUMNS);
    if (share != 0u)
        return;
    uint columns = (args.width + 3u) / 4u;
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        uint row = first_row + lane_y + i * Y_LANES;
        if (row >= total_rows)
            break;
        row += unit * total_rows;
        uint at = (row * args.splits + split) * (columns + 1u);
        if (args.splits > 1u && column == 0u)
            sums.d[at + columns] = vec4(s.most[i], sum[i], 0, 0);
        [[unroll]] for (uint c = 0u; c < PER; c++) {
            uint own = column + c * COLUMNS;
            vec4 x = total[c * 4u + i];
            if (own >= columns)
                break;
            if (args.splits > 1u) {
                sums.d[at + own] = x;
                continue;
            }
            x = sum[i] == 0.0 ? vec4(0) : x / sum[i];
            uint to = args.out_offset + row * args.width;
            STORE(to + own * 4u, to + args.width, x);
        }
    }
}

// Workgroups that share keys have successive numbers, those with the most keys (IS_CAUSAL)
// come first.
void main()
{
    lane = gl_LocalInvocationIndex;
    lane_x = lane % LANES;
    lane_y = lane / LANES;
    total_rows = args.heads * args.queries;
    uint blocks = (total_rows + ROWS - 1u) / ROWS, number = group_number();
    uint block = number % blocks, split = number / blocks % args.splits;
    uint unit = number / blocks / args.splits, group = unit % args.groups;
    uint num_units = args.groups;
    for (uint axis = 0u; axis < args.num_batch; axis++)
        num_units *= batches.d[axis * 5u];
    if (unit >= num_units)
        return;
    first_row = (blocks - 1u - block) * ROWS;
    int length = length_of(start_batch(unit / args.groups, group));
    uint column = lane_x % COLUMNS, share = lane_x / COLUMNS;
    uvec2 seen_keys = visible_keys(first_row, ROWS, length);
    uint tiles = (max(seen_keys.y, seen_keys.x) - seen_keys.x + KEYS - 1u) / KEYS;
    uint of_split = (tiles + args.splits - 1u) / args.splits * KEYS;
    uint begin = seen_keys.x + split * of_split, end = min(begin + of_split, seen_keys.y);
    state s = begin_rows(length);
    vec4 total[TOTALS], scores[EACH];
    [[unroll]] for (uint i = 0u; i < TOTALS; i++)
        total[i] = vec4(0);
    if (HAS_Q != 0u)
        load_rows();
    else
        [[unroll]] for (uint i = 0u; i < Q_LOADS; i++)
            q_offsets[i] = q_start_of_row(first_row + (lane + i * GROUP) / SLICE);
    for (; begin < end; begin += KEYS) {
        multiply_keys(begin, end, scores);
        weigh(begin, scores, s, total);
        uint tile_end = min(begin + KEYS, end);
        if (V_KEYS != 0u) {
            add_shared_values(begin, tile_end, total);
        } else {
            barrier();
            add_values(begin, tile_end, share, column, total);
        }
    }
    finish(unit, split, share, column, s, total);
}
