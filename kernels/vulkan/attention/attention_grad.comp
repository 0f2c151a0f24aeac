#version 460
// SPDX-License-Identifier: MIT
// The derivative of attention without a matrix of all scores (Dao et al., "FlashAttention", 2022):
// of queries, or with OF_keys, which comes second, of keys and values. IN and VECTORS as in
// attention.comp; everything is computed in f32.
//
// The queries of the heads that share keys are rows of one matrix. A workgroup has ROWS rows of its
// own, of queries or of keys, and goes through tiles of OTHERS rows of the other kind. An invocation
// computes four own rows with EACH rows of a tile; scores of own rows are the components of a vec4. Its
// sums are vectors of four columns. With HOLDS shared memory keeps whole own rows, and has whole
// rows of the other kind; else both come by slices of columns.
//
// The weights of queries are found with a running greatest score, as in attention; `states` keeps
// for each query its greatest score, one over the sum of its weights, and the sum of its output
// times the gradient of that, by which OF_keys finds the same weights.
#include "program/types.glsl"
#include "program/scalar.glsl"
#include "program/fours.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint GROUP = 256; // invocations
layout(constant_id = 1) const uint ROWS = 64;   // a multiple of 4; GROUP / (ROWS / 4) is LANES
layout(constant_id = 2) const uint OTHERS = 64; // a multiple of LANES
layout(constant_id = 3) const uint SLICE = 8;   // vectors of a row in shared memory; a multiple of 4
layout(constant_id = 4) const uint EACH = 4;    // OTHERS / LANES
// Vectors of sums of an invocation, and rows of the other kind that are in shared memory at a time
// when they are added up: of columns of q and k, and of v.
layout(constant_id = 5) const uint K_TOTALS = 4;
layout(constant_id = 6) const uint V_TOTALS = 4;
layout(constant_id = 7) const uint K_CHUNK = 32;
layout(constant_id = 8) const uint V_CHUNK = 32;
// Vectors of shared memory.
layout(constant_id = 9) const uint OWN_SIZE = 576;
layout(constant_id = 10) const uint OTHER_SIZE = 576;
layout(constant_id = 11) const uint P_SIZE = 1088;
layout(constant_id = 12) const uint LANES = 16; // invocations of a row
layout(constant_id = 13) const uint HOLDS = 0;
layout(constant_id = 14) const uint HAS_CAP = 1;
layout(constant_id = 15) const uint IS_WHOLE = 0; // q, k and v have SLICE vectors of columns

layout(std430, binding = 0) readonly buffer Q { ELEMENT d[]; } queries;
layout(std430, binding = 1) readonly buffer K { ELEMENT d[]; } keys;
layout(std430, binding = 2) readonly buffer V { ELEMENT d[]; } values;
layout(std430, binding = 3) readonly buffer Added { PASTE(S_, IN) d[]; } added;
layout(std430, binding = 3) readonly buffer Seen { uint8_t d[]; } seen; // in place of Added
layout(std430, binding = 4) readonly buffer Lengths { uint8_t d[]; } lengths;
layout(std430, binding = 5) readonly buffer Gradient { ELEMENT d[]; } gradients;
// For each axis of batches: extent, then strides of q, k, v and mask.
layout(std430, binding = 7) readonly buffer Batches { uint d[]; } batches;
layout(std430, binding = 8) writeonly buffer First { ELEMENT d[]; } result; // of q, or of k
#ifdef OF_keys
layout(std430, binding = 6) readonly buffer States { vec4 d[]; } states;
layout(std430, binding = 9) writeonly buffer Second { ELEMENT d[]; } result_v;
#else
layout(std430, binding = 6) writeonly buffer States { vec4 d[]; } states;
layout(std430, binding = 9) readonly buffer Second { ELEMENT d[]; } outputs;
#endif
layout(push_constant) uniform Args {
    uint heads; // of q, for a head of k
    uint queries, groups, keys, depth, width, num_batch;
    uint q_offset, q_head, q_row, q_element;
    uint k_offset, k_head, k_row, k_element;
    uint v_offset, v_head, v_row, v_element;
    uint mask_offset, mask_head, mask_row, mask_key;
    uint gradient_offset, first_offset, second_offset;
    uint lengths_offset, lengths_stride;
    uint flags;
    int window; // 0: none
    float scale, soft_cap;
} args;

const uint Y_LANES = ROWS / 4u; // stride between the own rows of an invocation
const uint PITCH = SLICE + 1u;
const uint P_PITCH = P_SIZE / OTHERS;
const uint OWN_WIDTH_AT = HOLDS != 0u ? ROWS * PITCH : 0u; // where v or the gradient is in tile_own
const uint K_PER = K_TOTALS / 4u, V_PER = V_TOTALS / 4u; // vectors of a row

shared vec4 tile_own[OWN_SIZE];
shared vec4 tile_other[OTHER_SIZE];
shared vec4 tile_p[P_SIZE]; // a vector for each row of the other kind and four own rows
#ifdef OF_keys
shared vec4 tile_states[OTHERS];
shared ivec4 tile_ranges[OTHERS]; // keys from and to which a query sees, and where its mask begins
#else
shared vec4 exchange[GROUP];
#endif

uint lane, lane_x, lane_y;
uint own_first, first_query; // the first own row, and of all queries the first of this group

#include "attention.glsl"

// --- loading ------------------------------------------------------------------------------

// Loops over the numbers below `count` that are this invocation's; unrolled, so that loads overlap.
#define EACH_OF(i, count)                                                                          \
    [[unroll]] for (uint turn = 0u, i = lane; turn < ((count) + GROUP - 1u) / GROUP;               \
                    turn++, i += GROUP)                                                            \
        if (i < (count))
// Extents of rows in columns; with IS_WHOLE known to the compiler.
#define DEPTH (IS_WHOLE != 0u ? SLICE * 4u : args.depth)
#define WIDTH (IS_WHOLE != 0u ? SLICE * 4u : args.width)

vec4 load_q(uint row, uint column)
{
    vec4 x = LOAD(queries, q_start_of_row(row), args.q_element, column, DEPTH);
    return x * args.scale;
}

vec4 load_k(uint key, uint column)
{
    return LOAD(keys, k_start + key * args.k_row, args.k_element, column, DEPTH);
}

vec4 load_v(uint key, uint column)
{
    return LOAD(values, v_start + key * args.v_row, args.v_element, column, WIDTH);
}

vec4 load_gradient(uint row, uint column)
{
    uint at = args.gradient_offset + (first_query + row) * args.width;
    return LOAD(gradients, at, 1u, column, WIDTH);
}

#ifdef OF_keys
#define OWN_COUNT args.keys
#define OWN_DEPTH(row, column) load_k(row, column)
#define OWN_WIDTH(row, column) load_v(row, column)
#define OTHER_DEPTH(row, column) load_q(row, column)
#define OTHER_WIDTH(row, column) load_gradient(row, column)
#else
#define OWN_COUNT total_rows
#define OWN_DEPTH(row, column) load_q(row, column)
#define OWN_WIDTH(row, column) load_gradient(row, column)
#define OTHER_DEPTH(row, column) load_k(row, column)
#define OTHER_WIDTH(row, column) load_v(row, column)
#endif

// A slice of the columns from `column` on: of q and k, or of v and the gradient, own rows and others. Rows
// behind the last one are zeros.
void load_own_depth(uint column)
{
    EACH_OF(i, ROWS * SLICE) {
        uint row = own_first + i / SLICE, at = i / SLICE * PITCH + i % SLICE;
        tile_own[at] = row < OWN_COUNT ? OWN_DEPTH(row, column + i % SLICE) : vec4(0);
    }
}

void load_own_width(uint column)
{
    EACH_OF(i, ROWS * SLICE) {
        uint row = own_first + i / SLICE, at = OWN_WIDTH_AT + i / SLICE * PITCH + i % SLICE;
        tile_own[at] = row < OWN_COUNT ? OWN_WIDTH(row, column + i % SLICE) : vec4(0);
    }
}

void load_depth(uint first, uint end, uint column)
{
    EACH_OF(i, OTHERS * SLICE) {
        uint row = first + i / SLICE, at = i / SLICE * PITCH + i % SLICE;
        tile_other[at] = row < end ? OTHER_DEPTH(row, column + i % SLICE) : vec4(0);
    }
}

void load_width(uint first, uint end, uint column)
{
    EACH_OF(i, OTHERS * SLICE) {
        uint row = first + i / SLICE, at = i / SLICE * PITCH + i % SLICE;
        tile_other[at] = row < end ? OTHER_WIDTH(row, column + i % SLICE) : vec4(0);
    }
}

// --- products -----------------------------------------------------------------------------

// Adds a slice's part of the products of own rows and others.
void multiply_slice(uint own_at, inout vec4 products[EACH])
{
    for (uint some = 0u; some < SLICE; some += 4u) {
        [[unroll]] for (uint step = 0u; step < 4u; step++) {
            uint d = some + step;
            vec4 own[4];
            [[unroll]] for (uint i = 0u; i < 4u; i++)
                own[i] = tile_own[own_at + (lane_y + i * Y_LANES) * PITCH + d];
            [[unroll]] for (uint j = 0u; j < EACH; j++) {
                vec4 other = tile_other[(lane_x + LANES * j) * PITCH + d];
                [[unroll]] for (uint i = 0u; i < 4u; i++)
                    products[j][i] = add_dot(products[j][i], own[i], other);
            }
        }
    }
}

// Scores are products of q and k; changes of weights are products of v and the gradient.
void multiply_depth(uint first, uint end, out vec4 products[EACH])
{
    [[unroll]] for (uint j = 0u; j < EACH; j++)
        products[j] = vec4(0);
    for (uint column = 0u; column * 4u < args.depth; column += SLICE) {
        barrier();
        if (HOLDS == 0u)
            load_own_depth(column);
        load_depth(first, end, column);
        barrier();
        multiply_slice(0u, products);
    }
}

void multiply_width(uint first, uint end, out vec4 products[EACH])
{
    [[unroll]] for (uint j = 0u; j < EACH; j++)
        products[j] = vec4(0);
    for (uint column = 0u; column * 4u < args.width; column += SLICE) {
        barrier();
        if (HOLDS == 0u)
            load_own_width(column);
        load_width(first, end, column);
        barrier();
        multiply_slice(OWN_WIDTH_AT, products);
    }
}

// Adds rows [first, end) of q or k, weighed by tile_p: totals[c * 4 + i] is vector c of own row i.
void add_depth(uint first, uint end, inout vec4 totals[K_TOTALS])
{
    const uint columns = K_PER * LANES, pitch = HOLDS != 0u ? PITCH : columns;
    for (uint begin = 0u; begin < end - first; begin += K_CHUNK) {
        barrier();
        EACH_OF(i, K_CHUNK * K_PER * LANES) {
            uint row = first + begin + i / columns, at = i / columns * pitch + i % columns;
            tile_other[at] = row < end ? OTHER_DEPTH(row, i % columns) : vec4(0);
        }
        barrier();
        for (uint some = 0u; some < K_CHUNK; some += 4u) {
            [[unroll]] for (uint step = 0u; step < 4u; step++) {
                uint at = some + step;
                vec4 p = tile_p[(begin + at) * P_PITCH + lane_y];
                [[unroll]] for (uint c = 0u; c < K_PER; c++) {
                    vec4 x = tile_other[at * pitch + c * LANES + lane_x];
                    [[unroll]] for (uint i = 0u; i < 4u; i++)
                        totals[c * 4u + i] += p[i] * x;
                }
            }
        }
    }
}

#ifdef OF_keys
// add_depth() for the gradient, which with HOLDS multiply_width() has left in tile_other.
void add_width(uint first, uint end, inout vec4 totals[V_TOTALS])
{
    const uint columns = V_PER * LANES, pitch = HOLDS != 0u ? PITCH : columns;
    for (uint begin = 0u; begin < end - first; begin += V_CHUNK) {
        if (HOLDS == 0u) {
            barrier();
            EACH_OF(i, V_CHUNK * V_PER * LANES) {
                uint row = first + begin + i / columns;
                tile_other[i] = row < end ? OTHER_WIDTH(row, i % columns) : vec4(0);
            }
            barrier();
        }
        for (uint some = 0u; some < V_CHUNK; some += 4u) {
            [[unroll]] for (uint step = 0u; step < 4u; step++) {
                uint at = some + step;
                vec4 p = tile_p[(begin + at) * P_PITCH + lane_y];
                [[unroll]] for (uint c = 0u; c < V_PER; c++) {
                    vec4 x = tile_other[at * pitch + c * LANES + lane_x];
                    [[unroll]] for (uint i = 0u; i < 4u; i++)
                        totals[c * 4u + i] += p[i] * x;
                }
            }
        }
    }
}
#endif

// --- scores -------------------------------------------------------------------------------

// Scores of own rows with soft cap and mask, minus infinity where a query does not see the key:
// keys from `low` to `high` are seen by position, the mask of a query and key is at `at`. `slopes`,
// where there is a soft cap: the derivatives of scores by products.
void mask_scores(ivec4 low, ivec4 high, ivec4 key, uvec4 at, inout vec4 scores, out vec4 slopes)
{
    bvec4 hidden = bvec4(ivec4(lessThan(key, low)) | ivec4(greaterThanEqual(key, high)));
    slopes = vec4(1);
    if (HAS_CAP != 0u) {
        scores = capped(scores);
        vec4 part = scores / args.soft_cap;
        slopes -= part * part;
    }
    if ((args.flags & (HAS_ADDED | HAS_SEEN)) != 0u) {
        bool is_added = (args.flags & HAS_ADDED) != 0u;
        [[unroll]] for (uint i = 0u; i < 4u; i++) {
            if (!hidden[i] && is_added)
                scores[i] += PASTE(FROM_, IN)(PASTE(W_, IN)(added.d[at[i]]));
            else if (!hidden[i])
                hidden[i] = uint(seen.d[at[i]]) == 0u;
        }
    }
    scores = mix(scores, vec4(-infinity()), hidden);
}

// Position of query `row`: its first key, its last one, and where its mask begins.
ivec3 seen_range_of(uint row, int length)
{
    uint head = head_of(row), query = row - head * args.queries;
    return ivec3(row < total_rows ? key_range(query, length) : ivec2(0),
                 int(mask_start + head * args.mask_head + query * args.mask_row));
}

// The change of a weight of 0 is 0, even where `by` is NaN.
vec4 change(vec4 weights, vec4 by, vec4 slopes)
{
    return mix(weights * by * slopes, vec4(0), equal(weights, vec4(0)));
}

#ifdef OF_keys

void load_states(uint first, int length)
{
    for (uint i = lane; i < OTHERS; i += GROUP) {
        uint row = first + i;
        tile_states[i] = row < total_rows ? states.d[first_query + row] : vec4(0);
        tile_ranges[i] = ivec4(seen_range_of(row, length), 0);
    }
}

// Turns scores into weights, and keeps the slopes.
void weigh(inout vec4 scores[EACH], out vec4 slopes[EACH])
{
    [[unroll]] for (uint j = 0u; j < EACH; j++) {
        uint other = lane_x + LANES * j;
        vec4 state = tile_states[other];
        ivec4 seen_range = tile_ranges[other];
        ivec4 key = int(own_first + lane_y) + int(Y_LANES) * ivec4(0, 1, 2, 3);
        mask_scores(ivec4(seen_range.x), ivec4(seen_range.y), key, uint(seen_range.z) + uvec4(key) * args.mask_key,
                    scores[j], slopes[j]);
        scores[j] = weights(scores[j], vec4(state.x)) * state.y;
    }
}

void write_p(vec4 x[EACH])
{
    [[unroll]] for (uint j = 0u; j < EACH; j++)
        tile_p[(lane_x + LANES * j) * P_PITCH + lane_y] = x[j];
}

void add_tile(uint first, inout vec4 k_totals[K_TOTALS], inout vec4 v_totals[V_TOTALS])
{
    vec4 shares[EACH], slopes[EACH], changes[EACH];
    multiply_depth(first, total_rows, shares);
    weigh(shares, slopes);
    write_p(shares);
    multiply_width(first, total_rows, changes);
    [[unroll]] for (uint j = 0u; j < EACH; j++)
        changes[j] = change(shares[j], changes[j] - tile_states[lane_x + LANES * j].z, slopes[j]);
    uint end = min(first + OTHERS, total_rows);
    add_width(first, end, v_totals);
    barrier();
    write_p(changes);
    add_depth(first, end, k_totals);
}

void finish(uint unit, vec4 k_totals[K_TOTALS], vec4 v_totals[V_TOTALS])
{
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        uint key = own_first + lane_y + i * Y_LANES;
        if (key >= args.keys)
            break;
        key += unit * args.keys;
        uint k_at = args.first_offset + key * args.depth;
        uint v_at = args.second_offset + key * args.width;
        [[unroll]] for (uint c = 0u; c < K_PER; c++) {
            uint column = (lane_x + c * LANES) * 4u;
            if (column < args.depth)
                STORE(k_at + column, k_at + args.depth, k_totals[c * 4u + i]);
        }
        [[unroll]] for (uint c = 0u; c < V_PER; c++) {
            uint column = (lane_x + c * LANES) * 4u;
            if (column < args.width)
                STORE_TO(result_v, v_at + column, v_at + args.width, v_totals[c * 4u + i]);
        }
    }
}

void add_all(uint unit, int length)
{
    vec4 k_totals[K_TOTALS], v_totals[V_TOTALS];
    [[unroll]] for (uint i = 0u; i < K_TOTALS; i++)
        k_totals[i] = vec4(0);
    [[unroll]] for (uint i = 0u; i < V_TOTALS; i++)
        v_totals[i] = vec4(0);
    for (uint first = 0u; first < total_rows; first += OTHERS) {
        uvec2 seen_keys = visible_keys(first, OTHERS, length);
        if (seen_keys.y <= own_first || seen_keys.x >= own_first + ROWS)
            continue;
        barrier();
        load_states(first, length);
        add_tile(first, k_totals, v_totals);
    }
    finish(unit, k_totals, v_totals);
}

#else

// The greatest value, or the sum, over all invocations of a row.
vec4 gather(vec4 own, bool is_sum)
{
    barrier();
    exchange[lane] = own;
    barrier();
    own = exchange[lane_y * LANES];
    [[unroll]] for (uint i = 1u; i < LANES; i++) {
        vec4 other = exchange[lane_y * LANES + i];
        own = is_sum ? own + other : max(own, other);
    }
    return own;
}

// Sums each own row's output times the gradient.
vec4 sum_outputs()
{
    vec4 sum = vec4(0);
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        uint row = own_first + lane_y + i * Y_LANES;
        uint at = args.second_offset + (first_query + row) * args.width;
        for (uint c = lane_x; row < total_rows && c * 4u < args.width; c += LANES)
            sum[i] = add_dot(sum[i], LOAD(outputs, at, 1u, c, args.width),
                             load_gradient(row, c));
    }
    return gather(sum, true);
}

void add_all(uint unit, int length)
{
    vec4 totals[K_TOTALS], scores[EACH], slopes[EACH], changes[EACH];
    vec4 most = vec4(-infinity()), sum = vec4(0), outs = sum_outputs();
    ivec4 low, high, start;
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        ivec3 seen_range = seen_range_of(own_first + lane_y + i * Y_LANES, length);
        low[i] = seen_range.x;
        high[i] = seen_range.y;
        start[i] = seen_range.z;
    }
    [[unroll]] for (uint i = 0u; i < K_TOTALS; i++)
        totals[i] = vec4(0);
    uvec2 seen_keys = visible_keys(own_first, ROWS, length);
    for (uint first = seen_keys.x; first < seen_keys.y; first += OTHERS) {
        multiply_depth(first, seen_keys.y, scores);
        vec4 own = most, shift, scale;
        [[unroll]] for (uint j = 0u; j < EACH; j++) {
            uint key = first + lane_x + LANES * j;
            mask_scores(low, high, ivec4(key), uvec4(start) + key * args.mask_key, scores[j],
                        slopes[j]);
            own = max(own, scores[j]);
        }
        own = gather(own, false);
        [[unroll]] for (uint i = 0u; i < 4u; i++)
            shift[i] = own[i] == -infinity() ? 0.0 : own[i];
        scale = weights(most, shift);
        most = own;
        sum *= scale;
        [[unroll]] for (uint c = 0u; c < K_PER; c++)
            [[unroll]] for (uint i = 0u; i < 4u; i++)
                totals[c * 4u + i] *= scale[i];
        multiply_width(first, seen_keys.y, changes);
        [[unroll]] for (uint j = 0u; j < EACH; j++) {
            vec4 p = weights(scores[j], shift);
            sum += p;
            tile_p[(lane_x + LANES * j) * P_PITCH + lane_y] =
                change(p, changes[j] - outs, slopes[j]);
        }
        add_depth(first, min(first + OTHERS, seen_keys.y), totals);
    }
    sum = gather(sum, true);
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        uint row = own_first + lane_y + i * Y_LANES;
        if (row >= total_rows)
            break;
        float part = sum[i] == 0.0 ? 0.0 : 1.0 / sum[i];
        uint at = args.first_offset + (first_query + row) * args.depth;
        if (lane_x == 0u)
            states.d[first_query + row] =
                vec4(most[i] == -infinity() ? 0.0 : most[i], part, outs[i], 0);
        [[unroll]] for (uint c = 0u; c < K_PER; c++) {
            uint column = (lane_x + c * LANES) * 4u;
            vec4 x = totals[c * 4u + i] * (args.scale * part);
            if (column < args.depth)
                STORE(at + column, at + args.depth, x);
        }
    }
}

#endif

// Workgroups that share keys have successive numbers; of queries those with the most keys
// (IS_CAUSAL) come first, and of keys those with the most queries.
void main()
{
    lane = gl_LocalInvocationIndex;
    lane_x = lane % LANES;
    lane_y = lane / LANES;
    total_rows = args.heads * args.queries;
    uint blocks = (OWN_COUNT + ROWS - 1u) / ROWS, number = group_number();
    uint block = number % blocks, unit = number / blocks, num_units = args.groups;
    for (uint axis = 0u; axis < args.num_batch; axis++)
        num_units *= batches.d[axis * 5u];
    if (unit >= num_units)
        return;
#ifndef OF_keys
    block = blocks - 1u - block;
#endif
    own_first = block * ROWS;
    first_query = unit * total_rows;
    int length = length_of(start_batch(unit / args.groups, unit % args.groups));
    if (HOLDS != 0u) {
        load_own_depth(0u);
        load_own_width(0u);
    }
    add_all(unit, length);
}
