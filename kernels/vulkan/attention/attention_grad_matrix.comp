#version 460
// SPDX-License-Identifier: MIT
// The derivative of attention of 16-bit floats on cooperative matrices, by tiles as attention_grad.comp has
// it, and with its arguments: OF_queries first, which keeps in `states` those terms of the weights that depend on
// the query; then OF_keys, of keys and values. IN, NUMBER and COLUMNS as in attention_matrix.comp, which
// says how rows are kept as matrices. Rows of all operands are contiguous, and their strides, offsets and lengths multiples of
// eight elements.
//
// Each of SUBGROUPS subgroups computes sixteen own rows, of queries or of keys. All of them share
// OTHERS rows of the other kind in shared memory: of q or k (depth), and of the gradient or v
// (width), and go through them by blocks of BLOCK. There are two such tiles, so that one is written
// while the other one is read.
#include "program/types.glsl"
#include "program/scalar.glsl"
#include "program/fours.glsl"
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#ifdef IS_BF16
#extension GL_EXT_bfloat16 : require
#else
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#define GROUP (SUBGROUPS * 32u)
layout(local_size_x = SUBGROUPS * 32) in;
layout(constant_id = 0) const uint IS_WHOLE = 1; // keys and values have COLUMNS
layout(constant_id = 1) const uint HAS_CAP = 0;
layout(constant_id = 2) const uint HAS_MASK = 0;

layout(std430, binding = 0) readonly buffer Q { uvec4 d[]; } queries;
layout(std430, binding = 1) readonly buffer K { uvec4 d[]; } keys;
layout(std430, binding = 2) readonly buffer V { uvec4 d[]; } values;
layout(std430, binding = 3) readonly buffer Added { PASTE(S_, IN) d[]; } added;
layout(std430, binding = 3) readonly buffer Seen { uint8_t d[]; } seen; // in place of Added
layout(std430, binding = 4) readonly buffer Lengths { uint8_t d[]; } lengths;
layout(std430, binding = 5) readonly buffer Gradient { uvec4 d[]; } gradients;
// State of each query: its shift, which includes the sum of its weights, and the sum of its output
// times the gradient of that.
#ifdef OF_queries
layout(std430, binding = 6) writeonly buffer States { vec2 d[]; } states;
#else
layout(std430, binding = 6) readonly buffer States { vec2 d[]; } states;
#endif
layout(std430, binding = 7) readonly buffer Batches { uint d[]; } batches;
layout(std430, binding = 8) writeonly buffer First { uvec4 d[]; } result; // of q, or of k
#ifdef OF_queries
layout(std430, binding = 9) readonly buffer Second { uvec4 d[]; } outputs;
#else
layout(std430, binding = 9) writeonly buffer Second { uvec4 d[]; } result_v;
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

#define ROWS (SUBGROUPS * 16u)
#define LINES (COLUMNS / 8u)          // of eight elements, of a row
#define PITCH (LINES + 1u)            // in shared memory: one more spreads rows over the banks
#define TILE (OTHERS * PITCH)
#define LOADS (OTHERS * LINES / GROUP) // of an invocation, for a tile
#define PARTS (COLUMNS / 16u)         // matrices of a row
#define P_PITCH 3u                    // lines of a matrix of 16-bit floats
#define F_PITCH 5u                    // and of f32
#define OWN_SIZE (16u * F_PITCH)
// A shift stays until a score is 2^ENOUGH times above it, or above it at all where the weight is to
// change by more than LARGE: the product of both is a 16-bit float.
const float LOG2_E = 1.44269504, LOWEST = -3.0e38, ENOUGH = 4.0, LARGE = 2048.0;

shared uvec4 tiles[4u * TILE];          // twice: depth, width
shared uvec4 own[SUBGROUPS * OWN_SIZE]; // of each subgroup
#ifdef OF_keys
shared float tile_states[4u * OTHERS]; // twice: shifts, sums
#endif

#define MATRIX_A coopmat<NUMBER, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_B coopmat<NUMBER, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define NARROW coopmat<NUMBER, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define SUMS coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

MATRIX_A own_depth[PARTS];
SUMS weights_of[BLOCK / 16];
MATRIX_A own_width[PARTS];
SUMS changes[BLOCK / 16], depth_totals[PARTS];
#ifdef OF_keys
SUMS width_totals[PARTS];
#endif
uvec4 next_depth[LOADS], next_width[LOADS];
uint lane, own_start, own_at, own_row, own_first, first_query;
int key_count; // number of keys, by `lengths`
float factor;  // of scores, which become powers of two
#ifdef OF_queries
SUMS shift, weight_sum, outs; // the row's shift; each element's share of the row's sums
float row_shift;              // the shift of row lane / 2 of the subgroup
ivec2 all_see;                // keys that all rows of the subgroup see by position
#else
vec2 next_state;
#endif

#include "attention.glsl"

// --- loading ------------------------------------------------------------------------------

#define Q_LINE(row) queries.d[q_start_of_row(row) / 8u + column]
#define G_LINE(row) gradients.d[(args.gradient_offset + (first_query + (row)) * args.width) / 8u + column]
#define K_LINE(key) keys.d[(k_start + (key) * args.k_row) / 8u + column]
#define V_LINE(key) values.d[(v_start + (key) * args.v_row) / 8u + column]
#ifdef OF_queries
#define OWN_COUNT total_rows
#define OWN_DEPTH(row) Q_LINE(row)
#define OWN_WIDTH(row) G_LINE(row)
#define OTHER_DEPTH(row) K_LINE(row)
#define OTHER_WIDTH(row) V_LINE(row)
#else
#define OWN_COUNT args.keys
#define OWN_DEPTH(row) K_LINE(row)
#define OWN_WIDTH(row) V_LINE(row)
#define OTHER_DEPTH(row) Q_LINE(row)
#define OTHER_WIDTH(row) G_LINE(row)
#endif

// All lines of this invocation lie in one column. Behind the last row, that row is loaded again: its
// copies are masked out.
void load_tile(uint first, uint last)
{
    uint column = gl_LocalInvocationIndex % LINES, row = gl_LocalInvocationIndex / LINES;
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {
        uint at = min(first + row + i * (GROUP / LINES), last);
        next_depth[i] = next_width[i] = uvec4(0u);
        if (IS_WHOLE != 0u || column * 8u < args.depth)
            next_depth[i] = OTHER_DEPTH(at);
        if (IS_WHOLE != 0u || column * 8u < args.width)
            next_width[i] = OTHER_WIDTH(at);
    }
#ifdef OF_keys
    if (gl_LocalInvocationIndex < OTHERS)
        next_state = states.d[first_query + min(first + gl_LocalInvocationIndex, last)];
#endif
}

// Stores the loaded lines in tile 0 or 1 of shared memory.
void keep_tile(uint tile)
{
    uint at = tile * (2u * TILE) + gl_LocalInvocationIndex / LINES * PITCH +
              gl_LocalInvocationIndex % LINES;
    [[unroll]] for (uint i = 0u; i < LOADS; i++) {
        tiles[at + i * (GROUP / LINES) * PITCH] = next_depth[i];
        tiles[at + TILE + i * (GROUP / LINES) * PITCH] = next_width[i];
    }
#ifdef OF_keys
    if (gl_LocalInvocationIndex < OTHERS) {
        tile_states[tile * (2u * OTHERS) + gl_LocalInvocationIndex] = next_state.x;
        tile_states[tile * (2u * OTHERS) + OTHERS + gl_LocalInvocationIndex] = next_state.y;
    }
#endif
}

// Makes a matrix of sixteen columns, a line of each invocation, by way of the subgroup's own memory.
MATRIX_A through_own(uvec4 line)
{
    MATRIX_A m;
    own[own_start + lane / 2u * P_PITCH + lane % 2u] = line;
    subgroupBarrier();
    coopMatLoad(m, own, own_start, P_PITCH, gl_CooperativeMatrixLayoutRowMajor);
    subgroupBarrier();
    return m;
}

void load_own()
{
    uint row = own_first + own_row + lane / 2u;
    bool is_row = row < OWN_COUNT;
    uint sign = args.scale < 0.0 ? 0x80008000u : 0u; // of both elements of a word
    [[unroll]] for (uint c = 0u; c < PARTS; c++) {
        uint column = c * 2u + lane % 2u;
        uvec4 line = uvec4(0u);
        if (is_row && column * 8u < args.depth)
            line = OWN_DEPTH(row) ^ sign;
        own_depth[c] = through_own(line);
        line = uvec4(0u);
        if (is_row && column * 8u < args.width)
            line = OWN_WIDTH(row);
        own_width[c] = through_own(line);
    }
}

// --- rows ---------------------------------------------------------------------------------

// The sum of row lane / 2 of a matrix, or its greatest element.
float of_row(SUMS x, bool is_sum)
{
    coopMatStore(x, own, own_start, F_PITCH, gl_CooperativeMatrixLayoutRowMajor);
    subgroupBarrier();
    vec4 a = uintBitsToFloat(own[own_at]), b = uintBitsToFloat(own[own_at + 1u]);
    subgroupBarrier();
    a = is_sum ? a + b : max(a, b);
    float half_row = is_sum ? a.x + a.y + (a.z + a.w) : max(max(a.x, a.y), max(a.z, a.w));
    float other = subgroupShuffleXor(half_row, 1u);
    return is_sum ? half_row + other : max(half_row, other);
}

// The matrix of which row lane / 2 is x.
SUMS spread(float x)
{
    SUMS m;
    own[own_at] = own[own_at + 1u] = uvec4(floatBitsToUint(x));
    subgroupBarrier();
    coopMatLoad(m, own, own_start, F_PITCH, gl_CooperativeMatrixLayoutRowMajor);
    subgroupBarrier();
    return m;
}

#ifdef OF_queries
// Sums the output of row lane / 2 times the gradient.
float sum_outputs()
{
    uint row = own_first + own_row + lane / 2u;
    float sum = 0.0;
    for (uint column = lane % 2u; row < total_rows && column * 8u < args.width; column += 2u) {
        uvec4 x = outputs.d[(args.second_offset + (first_query + row) * args.width) / 8u + column];
        uvec4 y = G_LINE(row);
        sum = add_dot(sum, PASTE(WIDEN_, IN)(x.xy), PASTE(WIDEN_, IN)(y.xy));
        sum = add_dot(sum, PASTE(WIDEN_, IN)(x.zw), PASTE(WIDEN_, IN)(y.zw));
    }
    return sum + subgroupShuffleXor(sum, 1u);
}

void begin_rows()
{
    uint row = own_first + own_row + lane / 2u;
    ivec2 seen_range = key_range(row % args.queries, key_count);
    bool is_row = row < total_rows;
    all_see = ivec2(subgroupMax(is_row ? seen_range.x : 0), subgroupMin(is_row ? seen_range.y : FAR));
}
#endif

// Whether all own rows of the subgroup see, or are seen by, the BLOCK rows from `first` on.
bool is_in_key_range(uint first)
{
#ifdef OF_queries
    return int(first) >= all_see.x && int(first + BLOCK) <= all_see.y;
#else
    uint last = first + BLOCK - 1u, begin = first % args.queries, end = last % args.queries;
    if (last >= total_rows)
        return false;
    if (first / args.queries != last / args.queries) {
        begin = 0u;
        end = args.queries - 1u;
    }
    int low = key_range(end, key_count).x, high = key_range(begin, key_count).y;
    return int(own_first + own_row) >= low && int(own_first + own_row + 16u) <= high;
#endif
}

// The term to add to a score: the mask, or minus infinity where the key is not seen.
float more_of(uint row, uint key)
{
    uint head = row / args.queries, query = row - head * args.queries;
    ivec2 seen_range = row < total_rows ? key_range(query, key_count) : ivec2(0);
    if (int(key) < seen_range.x || int(key) >= seen_range.y)
        return -infinity();
    if (HAS_MASK == 0u)
        return 0.0;
    uint at = mask_start + head * args.mask_head + query * args.mask_row + key * args.mask_key;
    if ((args.flags & HAS_ADDED) != 0u)
        return PASTE(FROM_, IN)(PASTE(W_, IN)(added.d[at])) * LOG2_E;
    return uint(seen.d[at]) == 0u ? -infinity() : 0.0;
}

// --- tiles --------------------------------------------------------------------------------

// start: position of the block in `tiles`.
void multiply_block(uint start)
{
    [[unroll]] for (uint j = 0u; j < BLOCK / 16u; j++)
        weights_of[j] = SUMS(0.0);
    [[unroll]] for (uint c = 0u; c < PARTS; c++)
        [[unroll]] for (uint j = 0u; j < BLOCK / 16u; j++) {
            MATRIX_B b;
            coopMatLoad(b, tiles, start + j * 16u * PITCH + c * 2u, PITCH,
                        gl_CooperativeMatrixLayoutColumnMajor);
            weights_of[j] = coopMatMulAdd(own_depth[c], b, weights_of[j]);
        }
    [[unroll]] for (uint j = 0u; j < BLOCK / 16u; j++)
        changes[j] = SUMS(0.0);
    [[unroll]] for (uint c = 0u; c < PARTS; c++)
        [[unroll]] for (uint j = 0u; j < BLOCK / 16u; j++) {
            MATRIX_B b;
            coopMatLoad(b, tiles, start + TILE + j * 16u * PITCH + c * 2u, PITCH,
                        gl_CooperativeMatrixLayoutColumnMajor);
            changes[j] = coopMatMulAdd(own_width[c], b, changes[j]);
        }
}

void mask_scores(uint first)
{
    [[unroll]] for (uint j = 0u; j < BLOCK / 16u; j++) {
        uint other = first + j * 16u + lane % 2u * 8u, self = own_first + own_row + lane / 2u;
        [[dont_unroll]] for (uint i = 0u; i < 8u; i++) {
#ifdef OF_queries
            float more = more_of(self, other + i);
#else
            float more = more_of(other + i, self);
#endif
            own[own_at + i / 4u][i % 4u] = floatBitsToUint(more);
        }
        subgroupBarrier();
        SUMS x = weights_of[j], more;
        coopMatLoad(more, own, own_start, F_PITCH, gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        [[unroll]] for (uint i = 0u; i < x.length(); i++)
            x[i] = more[i] == -infinity() ? more[i] : x[i] + more[i];
        weights_of[j] = x;
    }
}

#ifdef OF_queries
// Rows get their greatest scores so far as shifts.
void raise_shift(SUMS most)
{
    row_shift = max(row_shift, of_row(most, false) * factor);
    SUMS now = spread(row_shift), change = shift;
    [[unroll]] for (uint i = 0u; i < change.length(); i++)
        change[i] = exp2(change[i] - now[i]);
    shift = now;
    weight_sum = weight_sum * change;
    [[unroll]] for (uint c = 0u; c < PARTS; c++)
        depth_totals[c] = depth_totals[c] * change;
}

void choose_shift()
{
    SUMS most = weights_of[0];
    bool is_above = false;
    [[unroll]] for (uint i = 0u; i < most.length(); i++) {
        float widest = abs(changes[0][i]);
        [[unroll]] for (uint j = 1u; j < BLOCK / 16u; j++) {
            most[i] = max(most[i], weights_of[j][i]);
            widest = max(widest, abs(changes[j][i]));
        }
        float above = most[i] * factor - shift[i];
        is_above = is_above || above > (widest > LARGE ? 0.0 : ENOUGH);
    }
    if (subgroupAny(is_above))
        raise_shift(most);
}
#endif

// Rounds an element that becomes a bf16: a conversion may truncate.
float rounded(float x)
{
#ifdef IS_BF16
    return is_nan(x) ? x : uintBitsToFloat((floatBitsToUint(x) + 0x8000u) & 0xffff0000u);
#else
    return x;
#endif
}

// Turns scores into weights, and changes of weights into changes of scores.
// tile_start: position of the block's states in `tile_states`.
void weigh(uint tile_start, uint first)
{
    [[unroll]] for (uint j = 0u; j < BLOCK / 16u; j++) {
#ifdef OF_queries
        changes[j] = changes[j] - outs;
#else
        SUMS sums_of;
        coopMatLoad(sums_of, tile_states, tile_start + OTHERS + j * 16u, 0u,
                    gl_CooperativeMatrixLayoutRowMajor);
        changes[j] = changes[j] - sums_of;
#endif
    }
    if (HAS_CAP != 0u)
        [[unroll]] for (uint j = 0u; j < BLOCK / 16u; j++) {
            SUMS x = weights_of[j];
            SUMS by = changes[j];
            [[unroll]] for (uint i = 0u; i < x.length(); i++) {
                float y = capped(vec4(x[i] * abs(args.scale))).x;
                x[i] = y * LOG2_E;
                y /= args.soft_cap;
                by[i] -= by[i] * y * y;
            }
            weights_of[j] = x;
            changes[j] = by;
        }
    else if (HAS_MASK != 0u)
        [[unroll]] for (uint j = 0u; j < BLOCK / 16u; j++)
            weights_of[j] = weights_of[j] * (abs(args.scale) * LOG2_E);
    if (HAS_MASK != 0u || !is_in_key_range(first))
        mask_scores(first);
#ifdef OF_queries
    choose_shift();
#endif
    [[unroll]] for (uint j = 0u; j < BLOCK / 16u; j++) {
        SUMS x = weights_of[j];
#ifdef OF_keys
        SUMS shift;
        coopMatLoad(shift, tile_states, tile_start + j * 16u, 0u,
                    gl_CooperativeMatrixLayoutRowMajor);
#endif
        [[unroll]] for (uint i = 0u; i < x.length(); i++)
            x[i] = exp2(x[i] * factor - shift[i]);
#ifdef OF_queries
        weight_sum = weight_sum + x;
#endif
        // The change of a weight of 0 is 0, even where `changes` is NaN.
        SUMS by = changes[j];
        [[unroll]] for (uint i = 0u; i < x.length(); i++)
            by[i] = x[i] == 0.0 ? 0.0 : rounded(x[i] * by[i]);
        changes[j] = by;
#ifdef OF_keys
        [[unroll]] for (uint i = 0u; i < x.length(); i++)
            x[i] = rounded(x[i]);
        weights_of[j] = x;
#endif
    }
}

// Turns sums into an operand of a product by way of the subgroup's own memory.
MATRIX_A operand_of(SUMS x)
{
    MATRIX_A p;
    coopMatStore(NARROW(x), own, own_start, P_PITCH, gl_CooperativeMatrixLayoutRowMajor);
    subgroupBarrier();
    coopMatLoad(p, own, own_start, P_PITCH, gl_CooperativeMatrixLayoutRowMajor);
    subgroupBarrier();
    return p;
}

void add_block(uint start)
{
    [[unroll]] for (uint j = 0u; j < BLOCK / 16u; j++) {
#ifdef OF_keys
        MATRIX_A p = operand_of(weights_of[j]);
        [[unroll]] for (uint c = 0u; c < PARTS; c++) {
            MATRIX_B b;
            coopMatLoad(b, tiles, start + TILE + j * 16u * PITCH + c * 2u, PITCH,
                        gl_CooperativeMatrixLayoutRowMajor);
            width_totals[c] = coopMatMulAdd(p, b, width_totals[c]);
        }
#endif
        MATRIX_A change = operand_of(changes[j]);
        [[unroll]] for (uint c = 0u; c < PARTS; c++) {
            MATRIX_B b;
            coopMatLoad(b, tiles, start + j * 16u * PITCH + c * 2u, PITCH,
                        gl_CooperativeMatrixLayoutRowMajor);
            depth_totals[c] = coopMatMulAdd(change, b, depth_totals[c]);
        }
    }
}

// --- the output ---------------------------------------------------------------------------

// This invocation's line of sixteen columns.
uvec4 line_of(SUMS x, float part)
{
    coopMatStore(x, own, own_start, F_PITCH, gl_CooperativeMatrixLayoutRowMajor);
    subgroupBarrier();
    vec4 low = uintBitsToFloat(own[own_at]) * part, high = uintBitsToFloat(own[own_at + 1u]) * part;
    subgroupBarrier();
    return uvec4(PASTE(PACK_, IN)(low), PASTE(PACK_, IN)(high));
}

#define WRITE(to, totals, c, width, part)                                                          \
    {                                                                                              \
        uvec4 line = line_of(totals[c], part);                                                     \
        if (is_row && (c * 2u + lane % 2u) * 8u < (width))                                         \
            to.d[at + c * 2u + lane % 2u] = line;                                                  \
    }
// Columns by name and not by a loop: a driver may move an array that a loop indexes to memory.
#if COLUMNS == 128
#define WRITE_ALL(to, totals, width, part)                                                         \
    WRITE(to, totals, 0u, width, part)                                                             \
    WRITE(to, totals, 1u, width, part)                                                             \
    WRITE(to, totals, 2u, width, part)                                                             \
    WRITE(to, totals, 3u, width, part)                                                             \
    WRITE(to, totals, 4u, width, part)                                                             \
    WRITE(to, totals, 5u, width, part)                                                             \
    WRITE(to, totals, 6u, width, part)                                                             \
    WRITE(to, totals, 7u, width, part)
#else
#define WRITE_ALL(to, totals, width, part)                                                         \
    WRITE(to, totals, 0u, width, part)                                                             \
    WRITE(to, totals, 1u, width, part)                                                             \
    WRITE(to, totals, 2u, width, part)                                                             \
    WRITE(to, totals, 3u, width, part)
#endif

void finish(uint unit)
{
    uint row = own_first + own_row + lane / 2u, at;
    bool is_row = row < OWN_COUNT;
#ifdef OF_queries
    float sum = of_row(weight_sum, true), part = sum == 0.0 ? 0.0 : args.scale / sum;
    float of_outs = of_row(outs, false), end_shift = sum == 0.0 ? -LOWEST : row_shift + log2(sum);
    if (is_row && lane % 2u == 0u)
        states.d[first_query + row] = vec2(end_shift, of_outs);
#else
    const float part = args.scale;
#endif
    at = (args.first_offset + (unit * OWN_COUNT + row) * args.depth) / 8u;
    WRITE_ALL(result, depth_totals, args.depth, part)
#ifdef OF_keys
    at = (args.second_offset + (unit * OWN_COUNT + row) * args.width) / 8u;
    WRITE_ALL(result_v, width_totals, args.width, 1.0)
#endif
}

// The first tile from `first` on that concerns own rows; `count` or more: none does.
uint next_tile(uint first, uint count)
{
#ifdef OF_keys
    for (; first < count; first += OTHERS) {
        uvec2 seen_keys = visible_keys(first, OTHERS, key_count);
        if (seen_keys.y > own_first && seen_keys.x < own_first + ROWS)
            break;
    }
#endif
    return first;
}

void add_tiles(uint first, uint count)
{
    uint tile = 0u;
    first = next_tile(first, count);
    if (first < count)
        load_tile(first, count - 1u);
    while (first < count) {
        uint next = next_tile(first + OTHERS, count);
        keep_tile(tile);
        barrier();
        if (next < count)
            load_tile(next, count - 1u);
        for (uint block = 0u; block < OTHERS; block += BLOCK) {
            uint start = tile * (2u * TILE) + block * PITCH;
            multiply_block(start);
            weigh(tile * (2u * OTHERS) + block, first + block);
            add_block(start);
        }
        first = next;
        tile = 1u - tile;
    }
}

// Workgroups that share keys have successive numbers; of queries those with the most keys
// (IS_CAUSAL) come first, and of keys those with the most queries.
void main()
{
    lane = gl_SubgroupInvocationID;
    own_row = gl_SubgroupID * 16u;
    own_start = gl_SubgroupID * OWN_SIZE;
    own_at = own_start + lane / 2u * F_PITCH + lane % 2u * 2u;
    total_rows = args.heads * args.queries;
    factor = HAS_CAP != 0u || HAS_MASK != 0u ? 1.0 : abs(args.scale) * LOG2_E;
    uint blocks = (OWN_COUNT + ROWS - 1u) / ROWS, number = group_number();
    uint num_units = args.groups;
    for (uint axis = 0u; axis < args.num_batch; axis++)
        num_units *= batches.d[axis * 5u];
#ifdef OF_queries // as in attention_matrix.comp
    uint of_head = args.queries % ROWS == 0u ? args.queries / ROWS : blocks;
    uint others = blocks / of_head * num_units, block_row = number / others;
    uint other = number - block_row * others, head = other % (blocks / of_head);
    uint unit = other / (blocks / of_head), block = blocks - 1u - (head * of_head + block_row);
    if (block_row >= of_head)
        return;
#else
    uint unit = number % num_units, block = number / num_units;
    if (block >= blocks)
        return;
#endif
    own_first = block * ROWS;
    first_query = unit * total_rows;
    key_count = length_of(start_batch(unit / args.groups, unit % args.groups));
    load_own();
    [[unroll]] for (uint c = 0u; c < PARTS; c++)
        depth_totals[c] = SUMS(0.0);
#ifdef OF_keys
    [[unroll]] for (uint c = 0u; c < PARTS; c++)
        width_totals[c] = SUMS(0.0);
#endif
#ifdef OF_queries
    begin_rows();
    outs = spread(sum_outputs());
    row_shift = LOWEST;
    shift = SUMS(LOWEST);
    weight_sum = SUMS(0.0);
    uvec2 seen_keys = visible_keys(own_first, ROWS, key_count);
    add_tiles(seen_keys.x, seen_keys.y);
#else
    add_tiles(0u, total_rows);
#endif
    finish(unit);
}
