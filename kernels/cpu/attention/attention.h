// SPDX-License-Identifier: MIT
// Attention of blocks of rows, over blocks of keys. The queries of the heads that share
// keys, a group, are rows of one matrix.
//
// Threads. Everything here is pure: memory that is written is the caller's.
#ifndef KERNELS_CPU_ATTENTION_H
#define KERNELS_CPU_ATTENTION_H

#include <stdbool.h>
#include <tenon/ops/reference.h>
#include "cpu/cpu.h"
#include "cpu/matmul/gemm.h"

#define ATTENTION_ROW_BLOCK 64                     // most rows of a block
#define ATTENTION_KEY_BLOCK 256                    // most keys of a block
#define ATTENTION_PITCH (ATTENTION_KEY_BLOCK + 16) // elements from row to row of scores
// Positions and windows are clamped to it, so that their sums fit into an int64_t.
#define ATTENTION_FAR (INT64_C(1) << 61)

// Arguments of attention, and the layouts of its operands.
struct attention {
    const struct blas *blas;
    const struct cpu_kernels *kernels;
    const struct cpu_tiles_kernels *tiles;       // NULL: BLAS multiplies
    const struct cpu_quant_kernels *quant;       // for keys and values in blocks
    const struct attention_halves_tiles *halves; // NULL: halves become f32
    uint32_t format;                             // of the blocks: one of TN_QUANT_FORMATS
    int32_t stored, dtype;                 // dtype of q and output; dtype of arithmetic
    int32_t kv;                            // dtype of k and v; TN_U8: blocks of q8_0
    int64_t stored_size, element, kv_size; // bytes of an element of these three dtypes
    const tn_tensor *mask, *lengths;       // NULL: not given
    const tn_tensor *sinks;                // an additional score for each head; or NULL
    const tn_tensor *slots;                // indices of k's and v's first axis; or NULL
    int64_t num_slots;                     // extent of k's and v's first axis
    int32_t batch_rank;                    // axes before the axis of heads
    int64_t extent[TN_MAX_RANK], k_stride[TN_MAX_RANK], v_stride[TN_MAX_RANK],
        mask_stride[TN_MAX_RANK]; // of the batch axes
    int64_t batches, groups, per_group, queries, keys, depth, width;
    int64_t k_head, v_head, mask_head, mask_query, mask_key, k_row, v_row;
    double scale, soft_cap;
    int64_t window; // ATTENTION_FAR: none
    bool is_causal;
    const char *q, *k, *v;
    char *out, *scratch, *panels;  // panels: memory for all groups' panels
    int64_t blocks, lanes, splits; // row blocks of a group; lanes of work; splits of keys
};

// State of a row of queries. Position lets it see keys [low, high). `most` is its greatest
// score so far, `sum` the sum of its weights, `sink` its head's sink; no sink: -INFINITY.
struct attention_row {
    int64_t low, high, mask_at;
    double most, sum, sink;
};

// The matrices of a group of heads, and the length of its sequence.
struct attention_unit {
    int64_t group, mask_at, length;
    const char *k, *v;
};

// One split of the keys of a block of rows. q and out have the dtype of arithmetic.
struct attention_block {
    int64_t rows, low, high; // keys that any row sees
    const char *q, *k, *v;
    char *out, *scores, *wide; // wide: ATTENTION_KEY_BLOCK rows of k or v, widened
    struct attention_row *states;
    const float *k_across, *v_along; // panels of the group; NULL: BLAS multiplies
    // Tiles of the group, in place of panels; then q has its stored dtype; q, scores and
    // out have memory for ATTENTION_ROW_BLOCK rows, and `wide` holds the weights' pieces.
    const uint16_t *k_tiles, *v_tiles;
};

// positions.c
// Group `number`, counted over all batches.
struct attention_unit attention_unit(const struct attention *s, int64_t number);
// Number of keys that `lengths` gives for an index of the first axis, clamped to
// +-ATTENTION_FAR; without `lengths` all keys.
int64_t attention_length(const struct attention *s, int64_t index);
// The keys that a query at row `row` of a group sees by its position.
struct attention_row attention_see(const struct attention *s,
                                   const struct attention_unit *unit, int64_t row);

// Rows [first, first + count) of k or v, `width` elements each, in the dtype of
// arithmetic: where they lie, or converted in `wide` if they are stored in another dtype.
// *row: elements between rows of `rows` (bytes for blocks), set to those of the result.
const void *attention_read_rows(const struct attention *s, char *wide, const char *rows,
                                int64_t first, int64_t count, int64_t width, int64_t *row);

static inline bool attention_is_half(const struct attention *s)
{
    return s->stored != s->dtype;
}

// Whether k and v are stored in another dtype than that of arithmetic.
static inline bool attention_is_widened(const struct attention *s)
{
    return s->kv != s->dtype;
}

// Bytes of a range of scratch memory, rounded up to keep the next range aligned.
static inline int64_t attention_round_up(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

// rows.c
// Sums the values of a block, weighed, over the keys that any of its rows sees.
void attention_sum_block(const struct attention *s, const struct attention_block *b);
// Adds the sums of a row's splits into the sums of its first split. Sums of consecutive
// splits lie `pitch` bytes apart, and so do the row's states.
void attention_add_splits(const struct attention *s, struct attention_row *state, char *out,
                          int64_t pitch);
// Divides the sums of a row by the sum of its weights.
void attention_divide(const struct attention *s, const struct attention_row *state,
                      char *out);

// products.c: products of f32 in register tiles.
//
// Both functions copy rows [first, first + count) of keys or values into panels, which are
// as wide as a tile. "Across": a panel has an element of each of `width` rows side by side,
// and `first` is a multiple of CPU_TILES_MOST. "Along": `width` elements of each row.
void attention_pack_across(const struct attention *s, const float *rows, int64_t row,
                           int64_t first, int64_t count, int64_t depth, float *panels);
void attention_pack_along(const struct attention *s, const float *rows, int64_t row,
                          int64_t first, int64_t count, int64_t columns, float *panels);

// Number of floats of a group's panels.
static inline int64_t attention_across_floats(const struct attention *s, int64_t depth)
{
    return (s->keys + CPU_TILES_MOST - 1) / CPU_TILES_MOST * CPU_TILES_MOST * depth;
}
static inline int64_t attention_along_floats(const struct attention *s, int64_t columns)
{
    return (columns + CPU_TILES_MOST - 1) / CPU_TILES_MOST * CPU_TILES_MOST * s->keys;
}

// to[i][j] = rows[i] . (row first + j of the panels), for n rows and `count` keys. With
// `states` only scores of keys that rows of the same tile see are written.
void attention_multiply(const struct attention *s, const float *across, int64_t depth,
                        const float *rows, int64_t n, const struct attention_row *states,
                        int64_t first, int64_t count, float *to, int64_t pitch);

// to[i] += the sum of weights[i][j] times row first + j of the panels, over keys that rows
// of the same tile see.
void attention_add_along(const struct attention *s, const float *along, int64_t columns,
                         const float *weights, int64_t pitch, int64_t n,
                         const struct attention_row *states, int64_t first, int64_t count,
                         float *to);

// to[first + j] += the sum of weights[i][j] times rows[i]; `columns` is a multiple of a
// vector's elements.
void attention_add_rows(const struct attention *s, const float *weights, int64_t pitch,
                        int64_t n, const struct attention_row *states, int64_t first,
                        int64_t count, const float *rows, int64_t columns, float *to);

// halves_tiles.c: `multiply` writes the scaled scores of a block's rows and `count` keys,
// `add` adds the weighed values of these keys to `out`. `first` is a multiple of
// ATTENTION_TILE_ROWS.
void attention_multiply_halves(const struct attention *s, const struct attention_block *b,
                               int64_t first, int64_t count);
void attention_add_halves(const struct attention *s, const struct attention_block *b,
                          int64_t first, int64_t count);

#endif // KERNELS_CPU_ATTENTION_H
