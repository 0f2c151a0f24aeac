// SPDX-License-Identifier: MIT
// Convolutions of BF16 on the tiles of AMX: see tiles.h. A block is 32 outputs by 32
// filters, whose sums are in four tiles. A tile of the input is 16 outputs by 32 adjacent
// elements of a tap, loaded where they lie; a tile of weights has pairs of elements.
//
// Where the input rows of consecutive output rows follow each other in memory, all rows are
// computed as one, and the outputs between two rows are thrown away: so narrow rows fill
// blocks too. Reads up to 31 outputs beyond the last. As in products of matrices
// (matmul/panels_amx.c), subnormal numbers are taken for zeros.
#include "tiles.h"
#include "cpu/amx.h"
#include "cpu/variant.h"
#include "cpu/x86.h"

#define SIDE 32 // outputs and filters of a block
#define INNER CPU_TILES_AMX

// Tile registers.
#define A_0 4
#define A_1 5
#define B_0 6
#define B_1 7

#define INLINE static inline __attribute__((always_inline))
typedef float loose __attribute__((vector_size(64), aligned(4), may_alias));

// Computes the sums of a block: two tiles of outputs if `tall`, two of filters if `wide`,
// else one.
INLINE void sum_block(const struct cpu_tiles_rows *p, const uint16_t *from, float *sums,
                      const bool tall, const bool wide)
{
    const int64_t pitch = p->pixel * 2, next = 16 * p->pixel;
    MEMORY;
    _tile_zero(SUMS_00);
    _tile_zero(SUMS_01);
    _tile_zero(SUMS_10);
    _tile_zero(SUMS_11);
    for (int64_t y = 0; y < p->taps_y; y++)
        for (int64_t x = 0; x < p->taps_x; x++) {
            const uint16_t *a = from + y * p->tap_y + x * p->tap_x;
            const uint16_t *b =
                (const uint16_t *)p->weights + y * p->weight_y + x * p->weight_x;
            for (int64_t e = 0; e < p->run; e += INNER, a += INNER, b += 2 * TILE) {
                _tile_loadd(A_0, a, pitch);
                _tile_loadd(B_0, b, 64);
                _tile_dpbf16ps(SUMS_00, A_0, B_0);
                if (wide) {
                    _tile_loadd(B_1, b + TILE, 64);
                    _tile_dpbf16ps(SUMS_01, A_0, B_1);
                }
                if (tall) {
                    _tile_loadd(A_1, a + next, pitch);
                    _tile_dpbf16ps(SUMS_10, A_1, B_0);
                }
                if (tall && wide)
                    _tile_dpbf16ps(SUMS_11, A_1, B_1);
            }
        }
    _tile_stored(SUMS_00, sums, SIDE * 4);
    if (wide)
        _tile_stored(SUMS_01, sums + 16, SIDE * 4);
    if (tall)
        _tile_stored(SUMS_10, sums + 16 * SIDE, SIDE * 4);
    if (tall && wide)
        _tile_stored(SUMS_11, sums + 16 * SIDE + 16, SIDE * 4);
    MEMORY;
}

// Stores one output: `columns` sums plus p->start.
INLINE void store_output(const struct cpu_tiles_rows *p, const float *sums, float *to)
{
    for (int64_t c = 0; c < p->columns; c += 16) {
        const int64_t n = p->columns - c < 16 ? p->columns - c : 16;
        loose x = *(const loose *)(const void *)(sums + c);
        if (p->start)
            x += *(const loose *)(const void *)(p->start + c);
        if (p->adds)
            x += x86_load_some(to + c, n);
        x86_store_some(to + c, x, n);
    }
}

// Computes `count` outputs side by side. In each `period` of them only the first
// p->pixels are outputs of a row; the others are not stored.
static void sum_line(const struct cpu_tiles_rows *p, const uint16_t *from, float *to,
                     int64_t count, int64_t period)
{
    _Alignas(64) float sums[SIDE * SIDE];
    int64_t at = 0;
    for (int64_t q = 0; q < count; q += SIDE) {
        const bool tall = count - q > 16, wide = p->columns > 16;
        const uint16_t *first = from + q * p->pixel;
        if (tall && wide)
            sum_block(p, first, sums, true, true);
        else if (tall)
            sum_block(p, first, sums, true, false);
        else if (wide)
            sum_block(p, first, sums, false, true);
        else
            sum_block(p, first, sums, false, false);
        for (int64_t i = 0; i < SIDE && q + i < count; i++) {
            if (at < p->pixels)
                store_output(p, sums + i * SIDE, to + at * p->to_pixel);
            if (++at == period) {
                at = 0;
                to += p->to_row;
            }
        }
    }
}

static void tiles_rows(const struct cpu_tiles_rows *p)
{
    const uint16_t *from = p->from;
    const int64_t period = p->pixel > 0 ? p->row / p->pixel : 0;
    if (p->rows < 1 || p->pixels < 1)
        return;
    amx_begin();
    if (period * p->pixel == p->row && period >= p->pixels && period <= 2 * p->pixels)
        sum_line(p, from, p->to, (p->rows - 1) * period + p->pixels, period);
    else
        for (int64_t y = 0; y < p->rows; y++)
            sum_line(p, from + y * p->row, p->to + y * p->to_row, p->pixels, p->pixels);
    _tile_release();
}

static void tiles_pack(uint16_t *to, const uint16_t *from, int64_t line, int64_t step,
                       int64_t lines, int64_t inner)
{
    for (int64_t e = 0; e < inner; e += INNER, to += 2 * TILE)
        for (int64_t k = 0; k < INNER; k++)
            for (int64_t i = 0; i < SIDE; i++)
                to[i / 16 * TILE + k / 2 * 32 + i % 16 * 2 + k % 2] =
                    e + k < inner && i < lines ? from[i * line + (e + k) * step] : 0;
}

const struct cpu_tiles_amx cpu_tiles_amx = {.rows = tiles_rows, .pack = tiles_pack};
