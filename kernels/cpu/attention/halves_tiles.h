// SPDX-License-Identifier: MIT
// Attention of BF16 on the tiles of AMX, 32 rows of queries at a time. Queries and keys are
// multiplied as they are. Weights, which are F32, become the sum of two numbers of BF16,
// cut off behind 16 bits. Sums are F32; subnormal numbers count as zeros.
#ifndef KERNELS_CPU_ATTENTION_HALVES_TILES_H
#define KERNELS_CPU_ATTENTION_HALVES_TILES_H

#include <stdint.h>

#define ATTENTION_TILE_ROWS 32  // queries, and keys: what is multiplied at a time
#define ATTENTION_TILE_TERMS 32 // elements of a query or of a value: a multiple of it
// Elements from row to row of the pieces of weights: whole lines of the cache, but no power
// of 2, which would have all rows share few of its sets.
#define ATTENTION_TILE_PITCH 288

// Keys and values lie as their rows do, by ATTENTION_TILE_ROWS of them, zeros behind the
// last: so element i of the tiles of rows from `first` on is at first * (elements of a
// row).
struct attention_halves_tiles {
    void (*pack_keys)(uint16_t *tiles, const uint16_t *rows, int64_t row, int64_t count,
                      int64_t depth);
    void (*pack_values)(uint16_t *tiles, const uint16_t *rows, int64_t row, int64_t count,
                        int64_t width);
    // Scores of 32 queries, adjacent, and of `count` keys, or up to 31 more.
    void (*multiply)(float *scores, int64_t pitch, const uint16_t *q, const uint16_t *keys,
                     int64_t count, int64_t depth);
    // high + low = weights, n of them, a multiple of 32.
    void (*split)(uint16_t *high, uint16_t *low, const float *weights, int64_t n);
    // Adds to 32 rows of `out`, adjacent, the values of `count` keys, or up to 31 more,
    // weighed; rows of high and low are `pitch` elements apart.
    void (*add)(float *out, const uint16_t *high, const uint16_t *low, int64_t pitch,
                const uint16_t *values, int64_t count, int64_t width);
};
extern const struct attention_halves_tiles attention_halves_amx; // of builds with tiles

// NULL: the build has none. For processors with CPU_HAS_AMX.
const struct attention_halves_tiles *attention_halves_pick(void);

#endif // KERNELS_CPU_ATTENTION_HALVES_TILES_H
