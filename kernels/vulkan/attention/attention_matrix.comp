#version 460
// SPDX-License-Identifier: MIT
// Attention of 16-bit floats on cooperative matrices (of 16x16x16, sums in f32), by
// tiles of keys as attention.comp has it, and with its arguments. IN: dtype; NUMBER: its type in a
// matrix; COLUMNS: the most of keys and of
// values, 64 or 128. Rows of q, k, v and of the
// output are contiguous, and their strides, offsets and lengths multiples of eight elements.
//
// Each of SUBGROUPS subgroups computes sixteen rows; all of them share KEYS keys, and then these keys'
// values, in shared memory. What comes next travels to registers meanwhile.
//
// No rule says which invocation has which element of a matrix, but all matrices of a type have the
// same. So what each row has (the shift of its scores, the sum of its weights) is a matrix as well,
// and is used element by element. A row's greatest score alone needs its elements side by side, in
// shared memory. Any shift near the greatest score makes the same weights once they are divided by
// their sum, so that a shift stays until a score is 2^ENOUGH times above it.
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
layout(std430, binding = 4) readonly buffer Seen { uint8_t d[]; } seen;
layout(std430, binding = 5) readonly buffer Lengths { uint8_t d[]; } lengths;
layout(std430, binding = 6) writeonly buffer Out { uvec4 d[]; } result;
layout(std430, binding = 6) writeonly buffer Parts { vec4 d[]; } sums; // in place of Out
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

#define ROWS (SUBGROUPS * 16u)
#define LINES (COLUMNS / 8u)         // of eight elements, of a row
#define PITCH (LINES + 1u)           // in shared memory: one more spreads rows over the banks
#define TILE (KEYS * PITCH)
#define LOADS (KEYS * LINES / GROUP) // of an invocation, for a tile
#define PARTS (COLUMNS / 16u)        // matrices of a row
#define P_PITCH 3u                   // lines of a matrix of 16-bit floats
#define F_PITCH 5u                   // and of f32
#define OWN_SIZE (16u * F_PITCH)
const float LOG2_E = 1.44269504, LOWEST = -3.0e38, ENOUGH = 8.0;

shared uvec4 tiles[2u * TILE];          // keys; values
shared uvec4 own[SUBGROUPS * OWN_SIZE]; // of each subgroup

#define MATRIX_A coopmat<NUMBER, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define MATRIX_B coopmat<NUMBER, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define NARROW coopmat<NUMBER, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define SUMS coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

MATRIX_A q[PARTS];
SUMS scores[KEYS / 16], totals[PARTS];
SUMS shift, weight_sum; // the row's shift; each element's share of the row's sum
uvec4 next[LOADS];
uint lane, own_start, own_at, own_row, first_row;
// For row lane / 2 of the subgroup: its shift, the keys that it sees by position, where its mask begins.
float row_shift;
ivec2 row_range;
uint row_mask;
ivec2 all_see; // keys that all rows of the subgroup see by position
float factor;  // of scores, which become powers of two

#define SHARED_CACHES
#include "attention.glsl"

// --- loading ------------------------------------------------------------------------------

// All lines of this invocation lie in one column. Behind the last key, that key is loaded again: no
// row sees its copies.
#define LOAD_TILE(source, start, row, first, last, count)                                          \
    {                                                                                              \
        uint column = gl_LocalInvocationIndex % LINES, key = gl_LocalInvocationIndex / LINES;      \
        uint begin_line = (start) / 8u + column, row_lines = (row) / 8u;                           \
        [[unroll]] for (uint i = 0u; i < LOADS; i++) {                                             \
            uint at = min((first) + key + i * (GROUP / LINES), last);                              \
            next[i] = uvec4(0u);                                                                   \
            if (IS_WHOLE != 0u || column * 8u < (count))                                           \
                next[i] = source.d[begin_line + at * row_lines];                                   \
        }                                                                                          \
    }

void keep_tile(uint start)
{
    uint at = start + gl_LocalInvocationIndex / LINES * PITCH + gl_LocalInvocationIndex % LINES;
    [[unroll]] for (uint i = 0u; i < LOADS; i++)
        tiles[at + i * (GROUP / LINES) * PITCH] = next[i];
}

// Loads q by sixteen columns, a line of each invocation, by way of the subgroup's own memory.
void load_queries()
{
    uint row = first_row + own_row + lane / 2u, start = q_start_of_row(row) / 8u;
    uint sign = args.scale < 0.0 ? 0x80008000u : 0u; // of both elements of a word
    uvec4 lines[PARTS];
    [[unroll]] for (uint c = 0u; c < PARTS; c++) {
        uint column = c * 2u + lane % 2u;
        lines[c] = uvec4(0u);
        if (row < total_rows && column * 8u < args.depth)
            lines[c] = queries.d[start + column] ^ sign;
    }
    [[unroll]] for (uint c = 0u; c < PARTS; c++) {
        own[own_start + lane / 2u * P_PITCH + lane % 2u] = lines[c];
        subgroupBarrier();
        coopMatLoad(q[c], own, own_start, P_PITCH, gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
    }
}

// --- rows ---------------------------------------------------------------------------------

// Finds the keys that each row sees by position, and the keys that all rows see.
void begin_rows(int length)
{
    uint row = first_row + own_row + lane / 2u;
    uint head = row / args.queries, query = row - head * args.queries;
    bool is_row = row < total_rows;
    row_range = is_row ? key_range(query, length) : ivec2(0);
    row_mask = mask_start + head * args.mask_head + query * args.mask_row;
    all_see = ivec2(subgroupMax(is_row ? row_range.x : 0),
                    subgroupMin(is_row ? row_range.y : FAR));
}

// The greatest element of row lane / 2 of a matrix, or the sum of the row.
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

// --- tiles --------------------------------------------------------------------------------

void multiply_keys()
{
    [[unroll]] for (uint j = 0u; j < KEYS / 16u; j++)
        scores[j] = SUMS(0.0);
    [[unroll]] for (uint c = 0u; c < PARTS; c++)
        [[unroll]] for (uint j = 0u; j < KEYS / 16u; j++) {
            MATRIX_B b;
            coopMatLoad(b, tiles, j * 16u * PITCH + c * 2u, PITCH,
                        gl_CooperativeMatrixLayoutColumnMajor);
            scores[j] = coopMatMulAdd(q[c], b, scores[j]);
        }
}

// Adds the mask to the scores, or minus infinity where a row does not see the key.
void mask_scores(uint begin)
{
    bool is_added = (args.flags & HAS_ADDED) != 0u;
    [[unroll]] for (uint j = 0u; j < KEYS / 16u; j++) {
        uint first = begin + j * 16u + lane % 2u * 8u;
        [[dont_unroll]] for (uint i = 0u; i < 8u; i++) {
            int key = int(first + i);
            float more = 0.0;
            if (key < row_range.x || key >= row_range.y) {
                more = -infinity();
            } else if (HAS_MASK != 0u) {
                uint at = row_mask + uint(key) * args.mask_key;
                if (is_added)
                    more = PASTE(FROM_, IN)(PASTE(W_, IN)(added.d[at])) * LOG2_E;
                else if (uint(seen.d[at]) == 0u)
                    more = -infinity();
            }
            own[own_at + i / 4u][i % 4u] = floatBitsToUint(more);
        }
        subgroupBarrier();
        SUMS x = scores[j], more;
        coopMatLoad(more, own, own_start, F_PITCH, gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        [[unroll]] for (uint i = 0u; i < x.length(); i++)
            x[i] = more[i] == -infinity() ? more[i] : x[i] + more[i];
        scores[j] = x;
    }
}

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
        totals[c] = totals[c] * change;
}

// Turns scores into weights.
void weigh(uint begin)
{
    if (HAS_CAP != 0u)
        [[unroll]] for (uint j = 0u; j < KEYS / 16u; j++) {
            SUMS x = scores[j];
            [[unroll]] for (uint i = 0u; i < x.length(); i++)
                x[i] = capped(vec4(x[i] * abs(args.scale))).x * LOG2_E;
            scores[j] = x;
        }
    else if (HAS_MASK != 0u)
        [[unroll]] for (uint j = 0u; j < KEYS / 16u; j++)
            scores[j] = scores[j] * (abs(args.scale) * LOG2_E);
    if (HAS_MASK != 0u || int(begin) < all_see.x || int(begin + KEYS) > all_see.y)
        mask_scores(begin);
    SUMS most = scores[0];
    bool is_above = false;
    [[unroll]] for (uint i = 0u; i < most.length(); i++) {
        [[unroll]] for (uint j = 1u; j < KEYS / 16u; j++)
            most[i] = max(most[i], scores[j][i]);
        is_above = is_above || most[i] * factor - shift[i] > ENOUGH;
    }
    if (subgroupAny(is_above))
        raise_shift(most);
    [[unroll]] for (uint j = 0u; j < KEYS / 16u; j++) {
        SUMS x = scores[j];
        [[unroll]] for (uint i = 0u; i < x.length(); i++)
            x[i] = exp2(x[i] * factor - shift[i]);
        weight_sum = weight_sum + x;
#ifdef IS_BF16
        // Rounded here: a conversion may truncate.
        [[unroll]] for (uint i = 0u; i < x.length(); i++)
            x[i] = uintBitsToFloat((floatBitsToUint(x[i]) + 0x8000u) & 0xffff0000u);
#endif
        scores[j] = x;
    }
}

// Weights become operands of a product through the subgroup's own memory.
void add_values()
{
    [[unroll]] for (uint j = 0u; j < KEYS / 16u; j++) {
        coopMatStore(NARROW(scores[j]), own, own_start, P_PITCH,
                     gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        MATRIX_A p;
        coopMatLoad(p, own, own_start, P_PITCH, gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint c = 0u; c < PARTS; c++) {
            MATRIX_B b;
            coopMatLoad(b, tiles, TILE + j * 16u * PITCH + c * 2u, PITCH,
                        gl_CooperativeMatrixLayoutRowMajor);
            totals[c] = coopMatMulAdd(p, b, totals[c]);
        }
        subgroupBarrier();
    }
}

// --- the output ---------------------------------------------------------------------------

// Writes sixteen columns of rows: of the output, or with several splits of the split's sums.
void write_columns(uint c, uint to, float factor, bool is_row)
{
    uint column = c * 2u + lane % 2u;
    coopMatStore(totals[c], own, own_start, F_PITCH, gl_CooperativeMatrixLayoutRowMajor);
    subgroupBarrier();
    vec4 low = uintBitsToFloat(own[own_at]), high = uintBitsToFloat(own[own_at + 1u]);
    subgroupBarrier();
    if (is_row && column * 8u < args.width && args.splits > 1u) {
        sums.d[to + column * 2u] = low;
        sums.d[to + column * 2u + 1u] = high;
    } else if (is_row && column * 8u < args.width) {
        low *= factor;
        high *= factor;
        result.d[to + column] = uvec4(PASTE(PACK_, IN)(low), PASTE(PACK_, IN)(high));
    }
}

// Columns by name and not by a loop: a driver may move an array that a loop indexes to memory.
void finish(uint unit, uint split)
{
    float sum = of_row(weight_sum, true), of_sum = sum == 0.0 ? 0.0 : 1.0 / sum;
    uint row = first_row + own_row + lane / 2u, at = unit * total_rows + row;
    uint vectors = args.width / 4u, to = (args.out_offset + at * args.width) / 8u;
    bool is_row = row < total_rows;
    if (args.splits > 1u) {
        to = (at * args.splits + split) * (vectors + 1u);
        if (is_row && lane % 2u == 0u)
            sums.d[to + vectors] = vec4(row_shift / LOG2_E, sum, 0, 0);
    }
    write_columns(0u, to, of_sum, is_row);
    write_columns(1u, to, of_sum, is_row);
    write_columns(2u, to, of_sum, is_row);
    write_columns(3u, to, of_sum, is_row);
#if COLUMNS == 128
    write_columns(4u, to, of_sum, is_row);
    write_columns(5u, to, of_sum, is_row);
    write_columns(6u, to, of_sum, is_row);
    write_columns(7u, to, of_sum, is_row);
#endif
}

void add_tiles(uint begin, uint end)
{
    LOAD_TILE(keys, k_start, args.k_row, begin, end - 1u, args.depth)
    for (; begin < end; begin += KEYS) {
        keep_tile(0u);
        barrier();
        LOAD_TILE(values, v_start, args.v_row, begin, end - 1u, args.width)
        multiply_keys();
        weigh(begin);
        keep_tile(TILE);
        barrier();
        LOAD_TILE(keys, k_start, args.k_row, begin + KEYS, end - 1u, args.depth)
        add_values();
    }
}

// Rows that see as many keys by position follow each other, those with the most (IS_CAUSAL)
// come first.
void main()
{
    lane = gl_SubgroupInvocationID;
    own_row = gl_SubgroupID * 16u;
    own_start = gl_SubgroupID * OWN_SIZE;
    own_at = own_start + lane / 2u * F_PITCH + lane % 2u * 2u;
    factor = HAS_CAP != 0u || HAS_MASK != 0u ? 1.0 : abs(args.scale) * LOG2_E;
    total_rows = args.heads * args.queries;
    uint blocks = (total_rows + ROWS - 1u) / ROWS, number = group_number();
    uint num_units = args.groups;
    for (uint axis = 0u; axis < args.num_batch; axis++)
        num_units *= batches.d[axis * 5u];
    uint of_head = args.queries % ROWS == 0u ? args.queries / ROWS : blocks;
    uint others = blocks / of_head * args.splits * num_units, position = number / others;
    uint other = number - position * others, head = other % (blocks / of_head);
    other /= blocks / of_head;
    uint split = other % args.splits, unit = other / args.splits, group = unit % args.groups;
    uint block = head * of_head + position;
    if (position >= of_head)
        return;
    first_row = (blocks - 1u - block) * ROWS;
    int length = length_of(start_batch(unit / args.groups, group));
    uvec2 seen_keys = visible_keys(first_row, ROWS, length);
    uint count = (max(seen_keys.y, seen_keys.x) - seen_keys.x + KEYS - 1u) / KEYS;
    uint of_split = (count + args.splits - 1u) / args.splits * KEYS;
    uint begin = seen_keys.x + split * of_split;
    begin_rows(length);
    load_queries();
    row_shift = LOWEST;
    shift = SUMS(LOWEST);
    weight_sum = SUMS(0.0);
    [[unroll]] for (uint c = 0u; c < PARTS; c++)
        totals[c] = SUMS(0.0);
    uint end = min(begin + of_split, seen_keys.y);
    if (begin < end)
        add_tiles(begin, end);
    finish(unit, split);
}
