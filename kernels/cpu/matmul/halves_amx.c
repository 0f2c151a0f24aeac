// SPDX-License-Identifier: MIT
// Products of F32 with halves on the tiles of AMX: blocks of 32 rows of w by 32 rows of x,
// with sums in four tiles. A tile of w has 16 of its rows; a row of a tile of x has a pair
// of terms of each of 16 rows. Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 2, TDPBF16PS.
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <tenon/ops/reference.h>
#include "halves.h"
#include "cpu/amx.h"
#include "cpu/squares.h"

#define SIDE CPU_HALVES_ROWS
#define PIECES CPU_HALVES_X_PIECES

// Tile registers.
#define W_0 4
#define W_1 5
#define X_0 6
#define X_1 7

typedef uint32_t words __attribute__((vector_size(64)));
typedef float floats __attribute__((vector_size(64)));
typedef float loose __attribute__((vector_size(64), aligned(4), may_alias));

static int64_t halves_steps(int64_t k)
{
    return (k + CPU_HALVES_TERMS - 1) / CPU_HALVES_TERMS;
}

// --- pieces -----------------------------------------------------------------------------

// The nearest BF16, ties to even, as F32; a NaN stays one.
static inline words halves_amx_nearest(words x)
{
    const words is_nan = (words)((x & 0x7fffffff) > 0x7f800000);
    const words rounded = x + 0x7fff + (x >> 16 & 1);
    return ((is_nan & (x | 0x400000)) | (~is_nan & rounded)) & 0xffff0000;
}

// 32 numbers of BF16, given as F32, as 16 pairs.
static inline words halves_amx_pairs_of(words low, words high)
{
    const words even = __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18,
                                               20, 22, 24, 26, 28, 30);
    const words odd = __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19,
                                              21, 23, 25, 27, 29, 31);
    return even >> 16 | odd;
}

// Makes `count` pieces of each of 32 elements; x keeps the remainders.
static inline void halves_amx_split(floats x[2], int count, words out[])
{
    for (int i = 0; i < count; i++) {
        const words low = halves_amx_nearest((words)x[0]),
                    high = halves_amx_nearest((words)x[1]);
        x[0] -= (floats)low;
        x[1] -= (floats)high;
        out[i] = halves_amx_pairs_of(low, high);
    }
}

// Loads up to 32 floats, with zeros behind them.
static inline void load_floats(const float *from, int64_t left, floats x[2])
{
    float padded[32] = {0};
    if (left < 32) {
        memcpy(padded, from, (size_t)left * sizeof(*from));
        from = padded;
    }
    memcpy(x, from, 32 * sizeof(*from));
}

// Packs one step of 32 rows of x: two tiles for each piece.
static void split_step(const struct cpu_halves *p, int64_t row, int64_t step, uint32_t *to)
{
    const int64_t left = p->k - step * 32;
    for (int64_t i = 0; i < SIDE; i++) {
        floats x[2] = {{0}};
        words pieces[PIECES];
        if (row + i < p->rows)
            load_floats(p->x + (row + i) * p->k + step * 32, left < 32 ? left : 32, x);
        halves_amx_split(x, PIECES, pieces);
        for (int piece = 0; piece < PIECES; piece++)
            for (int pair = 0; pair < 16; pair++)
                to[(piece * 2 + i / 16) * (TILE / 2) + pair * 16 + i % 16] =
                    pieces[piece][pair];
    }
}

static void halves_split(const struct cpu_halves *p, int64_t first, int64_t end)
{
    const int64_t steps = halves_steps(p->k);
    for (int64_t group = first; group < end; group++)
        for (int64_t step = 0; step < steps; step++)
            split_step(p, group * SIDE, step,
                       (uint32_t *)p->pieces +
                           (group * steps + step) * (PIECES * 2 * TILE / 2));
}

// Packs `steps` steps of 32 rows of w, from `row` on: two tiles a step, for F16 four.
static void halves_pack(const struct cpu_halves *p, int64_t row, int64_t step,
                        int64_t steps, uint16_t *to)
{
    const int planes = p->dtype == TN_F16 ? 2 : 1;
    for (int64_t i = 0; i < SIDE; i++)
        for (int64_t s = 0; s < steps; s++) {
            uint16_t *tile = to + (s * planes * 2 + i / 16) * TILE + i % 16 * 32;
            const int64_t at = (step + s) * 32, left = p->k - at < 32 ? p->k - at : 32;
            uint16_t halves[32] = {0};
            if (row + i < p->columns)
                memcpy(halves, p->w + (row + i) * p->k + at, (size_t)left * 2);
            if (planes == 1) {
                memcpy(tile, halves, sizeof(halves));
                continue;
            }
            floats w[2];
            words pieces[2];
            for (int e = 0; e < 2; e++) {
                const __m512 wide = _mm512_cvtph_ps(
                    _mm256_loadu_si256((const __m256i *)(const void *)(halves + 16 * e)));
                memcpy(&w[e], &wide, sizeof(wide));
            }
            halves_amx_split(w, 2, pieces);
            memcpy(tile, &pieces[0], sizeof(words));
            memcpy(tile + 2 * TILE, &pieces[1], sizeof(words));
        }
}

// --- products ---------------------------------------------------------------------------

#define LOAD(tile, from) _tile_loadd(tile, from, 64)
#define MULTIPLY                                                                           \
    _tile_dpbf16ps(SUMS_00, W_0, X_0);                                                     \
    _tile_dpbf16ps(SUMS_01, W_0, X_1);                                                     \
    _tile_dpbf16ps(SUMS_10, W_1, X_0);                                                     \
    _tile_dpbf16ps(SUMS_11, W_1, X_1)

static void begin_sums(const float *sums, int64_t bytes, bool adds)
{
    if (adds) {
        _tile_loadd(SUMS_00, sums, bytes);
        _tile_loadd(SUMS_01, sums + 16, bytes);
        _tile_loadd(SUMS_10, (const char *)sums + 16 * bytes, bytes);
        _tile_loadd(SUMS_11, (const char *)(sums + 16) + 16 * bytes, bytes);
    } else {
        _tile_zero(SUMS_00);
        _tile_zero(SUMS_01);
        _tile_zero(SUMS_10);
        _tile_zero(SUMS_11);
    }
}

static void end_sums(float *sums, int64_t bytes)
{
    _tile_stored(SUMS_00, sums, bytes);
    _tile_stored(SUMS_01, sums + 16, bytes);
    _tile_stored(SUMS_10, (char *)sums + 16 * bytes, bytes);
    _tile_stored(SUMS_11, (char *)(sums + 16) + 16 * bytes, bytes);
}

static void multiply_bf16(const uint16_t *w, const uint16_t *x, int64_t steps)
{
    for (int64_t s = 0; s < steps; s++, w += 2 * TILE) {
        LOAD(W_0, w);
        LOAD(W_1, w + TILE);
        for (int piece = 0; piece < PIECES; piece++, x += 2 * TILE) {
            LOAD(X_0, x);
            LOAD(X_1, x + TILE);
            MULTIPLY;
        }
    }
}

// The product of x's last piece and w's lesser piece is left out: it is below the precision
// of sums in F32.
static void multiply_f16(const uint16_t *w, const uint16_t *x, int64_t steps)
{
    for (int64_t s = 0; s < steps; s++, w += 4 * TILE)
        for (int piece = 0; piece < PIECES; piece++, x += 2 * TILE) {
            LOAD(X_0, x);
            LOAD(X_1, x + TILE);
            LOAD(W_0, w);
            LOAD(W_1, w + TILE);
            MULTIPLY;
            if (piece < PIECES - 1) {
                LOAD(W_0, w + 2 * TILE);
                LOAD(W_1, w + 3 * TILE);
                MULTIPLY;
            }
        }
}

// Computes an element in F32, for operands with NaN or infinity, which have no pieces.
static float exact_sum(const struct cpu_halves *p, int64_t row, int64_t column)
{
    float sum = 0;
    for (int64_t i = 0; i < p->k; i++) {
        const uint16_t w = p->w[column * p->k + i];
        sum += p->x[row * p->k + i] *
               (p->dtype == TN_F16 ? tn_f32_of_f16(w) : tn_f32_of_bf16(w));
    }
    return sum;
}

// Transposes 8 by 8 sums, of columns by rows, to out.
static void store_block(const struct cpu_halves *p, const float *sums, int64_t pitch,
                        int64_t row, int64_t column)
{
    square_row x[8];
    for (int i = 0; i < 8; i++)
        x[i] = *(const square_loose *)(const void *)(sums + i * pitch);
    square_transpose(x);
    const int64_t rows = p->rows - row < 8 ? p->rows - row : 8;
    const int64_t columns = p->columns - column < 8 ? p->columns - column : 8;
    for (int64_t i = 0; i < rows; i++) {
        float *to = p->out + (row + i) * p->out_row + column;
        if (columns == 8)
            *(square_loose *)(void *)to = x[i];
        else
            memcpy(to, &x[i], (size_t)columns * sizeof(*to));
        const square_row none = x[i] - x[i]; // 0, or NaN
        for (int64_t j = 0; j < columns; j++)
            if (none[j] != 0)
                to[j] = exact_sum(p, row + i, column + j);
    }
}

static void amx_halves_multiply(const struct cpu_halves *p)
{
    const int64_t groups = cpu_halves_groups(p->rows), steps = halves_steps(p->k);
    const int64_t pitch = groups * SIDE, bytes = pitch * (int64_t)sizeof(float);
    const bool is_f16 = p->dtype == TN_F16;
    float *sums = p->scratch;
    uint16_t *w = (uint16_t *)(void *)(sums + CPU_HALVES_COLUMNS * pitch);
    amx_begin();
    for (int64_t step = 0; step < steps; step += CPU_HALVES_STEPS) {
        const int64_t left = steps - step,
                      count = left < CPU_HALVES_STEPS ? left : CPU_HALVES_STEPS;
        const int64_t block = count * (is_f16 ? 4 : 2) * TILE; // elements of 32 rows of w
        for (int64_t i = 0; i < p->columns; i += SIDE)
            halves_pack(p, i, step, count, w + i / SIDE * block);
        for (int64_t group = 0; group < groups; group++) {
            const uint16_t *x =
                (const uint16_t *)p->pieces + (group * steps + step) * (PIECES * 2 * TILE);
            for (int64_t i = 0; i < p->columns; i += SIDE) {
                float *to = sums + i * pitch + group * SIDE;
                MEMORY;
                begin_sums(to, bytes, step > 0);
                (is_f16 ? multiply_f16 : multiply_bf16)(w + i / SIDE * block, x, count);
                end_sums(to, bytes);
                MEMORY;
            }
        }
    }
    _tile_release();
    for (int64_t row = 0; row < p->rows; row += 8)
        for (int64_t column = 0; column < p->columns; column += 8)
            store_block(p, sums + column * pitch + row, pitch, row, column);
}

const struct cpu_halves_kernels cpu_halves_amx = {halves_split, amx_halves_multiply};
