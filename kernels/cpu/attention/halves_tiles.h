// SPDX-License-Identifier: MIT
// Attention of BF16 on the tiles of AMX, 32 rows of queries at a time. Queries and keys are
// multiplied as BF16. Weights, which are F32, become the sum of two numbers of BF16, which
// hold the first 16 bits of the significand. Sums are F32; subnormal numbers are zeros.
#ifndef KERNELS_CPU_ATTENTION_HALVES_TILES_H
#define KERNELS_CPU_ATTENTION_HALVES_TILES_H

#include <stdint.h>

#define ATTENTION_TILE_ROWS 32  // queries that are multiplied at a time; keys likewise
#define ATTENTION_TILE_TERMS 32 // depth and width are multiples of it
// Elements from row to row of the weights' pieces: whole cache lines, but no power of 2,
// with which all rows would share few sets of the cache.
#define ATTENTION_TILE_PITCH 288

// Packed keys and values: blocks of ATTENTION_TILE_ROWS rows in order, the last one padded
// with zeros. So the block that begins with row `first` is at first * (elements of a row).
struct attention_halves_tiles {
    void (*pack_keys)(uint16_t *tiles, const uint16_t *rows, int64_t row, int64_t count,
                      int64_t depth);
    void (*pack_values)(uint16_t *tiles, const uint16_t *rows, int64_t row, int64_t count,
                        int64_t width);
    // Scores of 32 queries, whose rows are adjacent, and of `count` keys; writes up to 31
    // scores more a row.
    void (*multiply)(float *scores, int64_t pitch, const uint16_t *q, const uint16_t *keys,
                     int64_t count, int64_t depth);
    // high + low = weights, n of them, a multiple of 32.
    void (*split)(uint16_t *high, uint16_t *low, const float *weights, int64_t n);
    // Adds the weighed values of `count` keys to 32 adjacent rows of `out`; reads up to 31
    // weights and values more. Rows of high and low are `pitch` elements apart.
    void (*add)(float *out, const uint16_t *high, const uint16_t *low, int64_t pitch,
                const uint16_t *values, int64_t count, int64_t width);
};
extern const struct attention_halves_tiles attention_halves_amx; // in builds with AMX alone

// The kernels for processors with CPU_HAS_AMX; NULL: this build has none.
const struct attention_halves_tiles *attention_halves_pick(void);

#endif // KERNELS_CPU_ATTENTION_HALVES_TILES_H
