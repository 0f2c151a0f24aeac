// SPDX-License-Identifier: MIT
// Attention of BF16 in AMX instructions: see halves_tiles.h. Tiles of queries and weights
// are loaded from their rows. Tiles of keys and values are packed, pairs of terms side by
// side: two elements of a key, or one element of two values. Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 2, TDPBF16PS.
#include "halves_tiles.h"
#include <string.h>
#include "cpu/amx.h"

// Tile registers of the operands.
#define A_0 4
#define A_1 5
#define B_0 6
#define B_1 7

typedef uint16_t halves __attribute__((vector_size(64)));
typedef uint32_t words __attribute__((vector_size(64)));
typedef float floats __attribute__((vector_size(64)));

#define MULTIPLY                                                                           \
    _tile_dpbf16ps(SUMS_00, A_0, B_0);                                                     \
    _tile_dpbf16ps(SUMS_01, A_0, B_1);                                                     \
    _tile_dpbf16ps(SUMS_10, A_1, B_0);                                                     \
    _tile_dpbf16ps(SUMS_11, A_1, B_1)

// --- tiles ------------------------------------------------------------------------------

// Packs blocks of 32 keys: for each 32 elements two tiles, of 16 keys each.
static void amx_pack_keys(uint16_t *tiles, const uint16_t *rows, int64_t row, int64_t count,
                          int64_t depth)
{
    const int64_t padded = (count + 31) / 32 * 32;
    for (int64_t key = 0; key < padded; key++)
        for (int64_t e = 0; e < depth; e += 32) {
            uint32_t pairs[16] = {0};
            uint16_t *tile = tiles + key / 32 * 32 * depth + e * 32 + key / 16 % 2 * TILE;
            if (key < count)
                memcpy(pairs, rows + key * row + e, sizeof(pairs));
            for (int pair = 0; pair < 16; pair++)
                memcpy(tile + (pair * 16 + key % 16) * 2, &pairs[pair], sizeof(pairs[0]));
        }
}

// Packs the values of blocks of 32 keys: a tile for each 16 elements.
static void amx_pack_values(uint16_t *tiles, const uint16_t *rows, int64_t row,
                            int64_t count, int64_t width)
{
    const int64_t padded = (count + 31) / 32 * 32;
    for (int64_t key = 0; key < padded; key += 2)
        for (int64_t e = 0; e < width; e += 16) {
            uint16_t *to = tiles + key / 32 * 32 * width + e * 32 + key % 32 / 2 * 32;
            uint16_t pair[2][16] = {{0}};
            for (int i = 0; i < 2; i++)
                if (key + i < count)
                    memcpy(pair[i], rows + (key + i) * row + e, sizeof(pair[i]));
            for (int i = 0; i < 16; i++) {
                to[2 * i] = pair[0][i];
                to[2 * i + 1] = pair[1][i];
            }
        }
}

// --- products ---------------------------------------------------------------------------

static void amx_multiply_keys(float *scores, int64_t pitch, const uint16_t *q,
                              const uint16_t *keys, int64_t count, int64_t depth)
{
    const int64_t bytes = pitch * (int64_t)sizeof(*scores);
    amx_begin();
    for (int64_t key = 0; key < count; key += 32, keys += 32 * depth) {
        float *to = scores + key;
        MEMORY;
        _tile_zero(SUMS_00);
        _tile_zero(SUMS_01);
        _tile_zero(SUMS_10);
        _tile_zero(SUMS_11);
        for (int64_t e = 0; e < depth; e += 32) {
            _tile_loadd(A_0, q + e, depth * 2);
            _tile_loadd(A_1, q + 16 * depth + e, depth * 2);
            _tile_loadd(B_0, keys + e * 32, 64);
            _tile_loadd(B_1, keys + e * 32 + TILE, 64);
            MULTIPLY;
        }
        _tile_stored(SUMS_00, to, bytes);
        _tile_stored(SUMS_01, to + 16, bytes);
        _tile_stored(SUMS_10, to + 16 * pitch, bytes);
        _tile_stored(SUMS_11, to + 16 * pitch + 16, bytes);
        MEMORY;
    }
    _tile_release();
}

static void amx_split_weights(uint16_t *high, uint16_t *low, const float *weights,
                              int64_t n)
{
    for (int64_t i = 0; i < n; i += 32) {
        floats x[2];
        halves pieces[2];
        memcpy(x, weights + i, sizeof(x));
        for (int piece = 0; piece < 2; piece++) {
            pieces[piece] = __builtin_shufflevector(
                (halves)x[0], (halves)x[1], 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25,
                27, 29, 31, 33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63);
            for (int k = 0; k < 2; k++)
                x[k] -= (floats)((words)x[k] & 0xffff0000);
        }
        memcpy(high + i, &pieces[0], sizeof(pieces[0]));
        memcpy(low + i, &pieces[1], sizeof(pieces[1]));
    }
}

static void amx_add_values(float *out, const uint16_t *high, const uint16_t *low,
                           int64_t pitch, const uint16_t *values, int64_t count,
                           int64_t width)
{
    const int64_t bytes = width * (int64_t)sizeof(*out), rows = pitch * 2;
    amx_begin();
    for (int64_t e = 0; e < width; e += 32) {
        float *to = out + e;
        MEMORY;
        _tile_loadd(SUMS_00, to, bytes);
        _tile_loadd(SUMS_01, to + 16, bytes);
        _tile_loadd(SUMS_10, to + 16 * width, bytes);
        _tile_loadd(SUMS_11, to + 16 * width + 16, bytes);
        for (int64_t key = 0; key < count; key += 32) {
            const uint16_t *tiles = values + key * width + e * 32;
            _tile_loadd(B_0, tiles, 64);
            _tile_loadd(B_1, tiles + TILE, 64);
            _tile_loadd(A_0, high + key, rows);
            _tile_loadd(A_1, high + key + 16 * pitch, rows);
            MULTIPLY;
            _tile_loadd(A_0, low + key, rows);
            _tile_loadd(A_1, low + key + 16 * pitch, rows);
            MULTIPLY;
        }
        _tile_stored(SUMS_00, to, bytes);
        _tile_stored(SUMS_01, to + 16, bytes);
        _tile_stored(SUMS_10, to + 16 * width, bytes);
        _tile_stored(SUMS_11, to + 16 * width + 16, bytes);
        MEMORY;
    }
    _tile_release();
}

const struct attention_halves_tiles attention_halves_amx = {
    amx_pack_keys, amx_pack_values, amx_multiply_keys, amx_split_weights, amx_add_values};
