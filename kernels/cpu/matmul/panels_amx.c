// SPDX-License-Identifier: MIT
// Products of matrices of BF16 on the tiles of AMX: 32 rows by 32 columns of sums in four
// tiles, from two tiles of a and two of b, whose elements lie in pairs of inner ones. Both
// operands are copied into tiles, with zeros behind their ends, which add nothing: a tile's
// rows and columns are apart, and inner elements are zeros in both. TDPBF16PS takes
// subnormal numbers for zeros, operands and sums, and rounds to nearest (Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 2, TDPBF16PS).
#include <immintrin.h>
#include "elements.h"
#include "panels.h"

#define SIDE 32  // rows and columns of a block of four tiles
#define PAIRS 16 // of inner elements in a tile
#define TILE 512 // elements of a tile: 1024 bytes

// Tile registers.
#define SUMS_00 0
#define SUMS_01 1
#define SUMS_10 2
#define SUMS_11 3
#define A_0 4
#define A_1 5
#define B_0 6
#define B_1 7

// gcc 12 does not know that tiles are loaded from memory and stored to it.
#define MEMORY __asm__ volatile("" ::: "memory")

struct amx_panels_config { // as the processor loads it
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

// The registers of a thread are zeros behind a call: nobody else has to save them.
static void begin_tiles(void)
{
    static const struct amx_panels_config config = {
        .palette = 1,
        .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
        .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _Static_assert(sizeof(config) == 64, "what LDTILECFG reads");
    _tile_loadconfig(&config);
}

// Adds the product of 32 rows and 32 columns, `steps` tiles of each, to `sums`, or sets it.
static void multiply(const uint16_t *a, const uint16_t *b, int64_t steps, float *sums,
                     int64_t row, bool adds)
{
    const int64_t bytes = row * (int64_t)sizeof(float);
    MEMORY;
    if (adds) {
        _tile_loadd(SUMS_00, sums, bytes);
        _tile_loadd(SUMS_01, sums + 16, bytes);
        _tile_loadd(SUMS_10, sums + 16 * row, bytes);
        _tile_loadd(SUMS_11, sums + 16 * row + 16, bytes);
    } else {
        _tile_zero(SUMS_00);
        _tile_zero(SUMS_01);
        _tile_zero(SUMS_10);
        _tile_zero(SUMS_11);
    }
    for (int64_t s = 0; s < steps; s++, a += 2 * TILE, b += 2 * TILE) {
        _tile_loadd(A_0, a, 64);
        _tile_loadd(B_0, b, 64);
        _tile_dpbf16ps(SUMS_00, A_0, B_0);
        _tile_loadd(B_1, b + TILE, 64);
        _tile_dpbf16ps(SUMS_01, A_0, B_1);
        _tile_loadd(A_1, a + TILE, 64);
        _tile_dpbf16ps(SUMS_10, A_1, B_0);
        _tile_dpbf16ps(SUMS_11, A_1, B_1);
    }
    _tile_stored(SUMS_00, sums, bytes);
    _tile_stored(SUMS_01, sums + 16, bytes);
    _tile_stored(SUMS_10, sums + 16 * row, bytes);
    _tile_stored(SUMS_11, sums + 16 * row + 16, bytes);
    MEMORY;
}

// Part of an operand: rows of a, or columns of b, by inner elements; strides in elements.
struct amx_lines {
    const uint16_t *from;
    int64_t line, step;
    int64_t count, inner;
};

// Rows, in tiles of 16 rows by 32 inner elements: two tiles one behind the other for each
// step of 32 rows.
static void pack_rows(const struct amx_lines *p, uint16_t *to)
{
    const int64_t steps = (p->inner + 31) / 32;
    for (int64_t i = 0; i < (p->count + SIDE - 1) / SIDE * SIDE; i++)
        for (int64_t s = 0; s < steps; s++) {
            uint16_t *row =
                to + ((i / SIDE * steps + s) * 2 + i / 16 % 2) * TILE + i % 16 * 32;
            const uint16_t *from = p->from + i * p->line + s * 32 * p->step;
            const int64_t left = i < p->count ? p->inner - s * 32 : 0;
            if (left >= 32 && p->step == 1)
                memcpy(row, from, 64);
            else
                for (int64_t e = 0; e < 32; e++)
                    row[e] = e < left ? from[e * p->step] : 0;
        }
}

// 16 pairs of two rows of b: adjacent columns.
static void pack_pairs(const uint16_t *even, const uint16_t *odd, uint16_t *to)
{
    typedef uint32_t words __attribute__((vector_size(64)));
    const words low = (words)x86_widen_16_bf16(even) >> 16;
    const words high = (words)x86_widen_16_bf16(odd);
    const words pairs = low | high;
    memcpy(to, &pairs, sizeof(pairs));
}

// Columns, in tiles of 16 pairs of inner elements by 16 columns.
static void pack_columns(const struct amx_lines *p, uint16_t *to)
{
    const int64_t steps = (p->inner + 31) / 32;
    for (int64_t j = 0; j < p->count; j += 16)
        for (int64_t k = 0; k < steps * PAIRS; k++) {
            uint16_t *row = to + ((j / SIDE * steps + k / PAIRS) * 2 + j / 16 % 2) * TILE +
                            k % PAIRS * 32;
            const uint16_t *even = p->from + j * p->line + 2 * k * p->step;
            const int64_t left = p->inner - 2 * k, columns = p->count - j;
            if (left >= 2 && columns >= 16 && p->line == 1) {
                pack_pairs(even, even + p->step, row);
                continue;
            }
            for (int64_t i = 0; i < 16; i++) {
                row[2 * i] = i < columns && left > 0 ? even[i * p->line] : 0;
                row[2 * i + 1] = i < columns && left > 1 ? even[i * p->line + p->step] : 0;
            }
        }
    // The second tile of the last block, where there are no columns for it.
    if ((p->count + 15) / 16 % 2)
        for (int64_t s = 0; s < steps; s++)
            memset(to + ((p->count / SIDE * steps + s) * 2 + 1) * TILE, 0, 2 * TILE);
}

// A block of packed rows by one of packed columns, into c.
static void multiply_block(const uint16_t *a, const uint16_t *b, const struct cpu_panels *p,
                           float *c, int64_t rows, int64_t columns, int64_t steps,
                           bool adds)
{
    float edge[SIDE * SIDE];
    for (int64_t j = 0; j < columns; j += SIDE)
        for (int64_t i = 0; i < rows; i += SIDE) {
            const uint16_t *x = a + i / SIDE * steps * 2 * TILE,
                           *y = b + j / SIDE * steps * 2 * TILE;
            float *to = c + i * p->c_row + j;
            if (rows - i >= SIDE && columns - j >= SIDE) {
                multiply(x, y, steps, to, p->c_row, adds);
                continue;
            }
            multiply(x, y, steps, edge, SIDE, false);
            for (int64_t r = 0; r < SIDE && r < rows - i; r++)
                for (int64_t q = 0; q < SIDE && q < columns - j; q++)
                    to[r * p->c_row + q] =
                        edge[r * SIDE + q] + (adds ? to[r * p->c_row + q] : 0);
        }
}

static void multiply_all(const struct cpu_panels *p)
{
    const int64_t most = CPU_PANELS_AMX_INNER;
    const int64_t columns = p->n < CPU_PANELS_COLUMNS ? p->n : CPU_PANELS_COLUMNS;
    const int64_t inner = p->k < most ? p->k : most;
    uint16_t *b = p->scratch;
    uint16_t *a = b + (columns + SIDE - 1) / SIDE * SIDE * ((inner + 31) / 32 * 32);
    for (int64_t j = 0; j < p->n; j += CPU_PANELS_COLUMNS)
        for (int64_t q = 0; q < p->k; q += most) {
            const int64_t depth = p->k - q < most ? p->k - q : most;
            const int64_t width =
                p->n - j < CPU_PANELS_COLUMNS ? p->n - j : CPU_PANELS_COLUMNS;
            pack_columns(
                &(struct amx_lines){(const uint16_t *)p->b + q * p->b_row + j * p->b_column,
                                    p->b_column, p->b_row, width, depth},
                b);
            for (int64_t i = 0; i < p->m; i += CPU_PANELS_AMX_ROWS) {
                const int64_t height =
                    p->m - i < CPU_PANELS_AMX_ROWS ? p->m - i : CPU_PANELS_AMX_ROWS;
                pack_rows(&(struct amx_lines){(const uint16_t *)p->a + i * p->a_row +
                                                  q * p->a_column,
                                              p->a_row, p->a_column, height, depth},
                          a);
                multiply_block(a, b, p, (float *)p->c + i * p->c_row + j, height, width,
                               (depth + 31) / 32, q > 0);
            }
        }
}

cpu_panels_fn cpu_panels_amx, cpu_panels_avx512;

void cpu_panels_amx(const struct cpu_panels *p)
{
    if (p->dtype != TN_BF16 || p->k < 1 || p->m <= CPU_PANELS_FEW ||
        p->n <= CPU_PANELS_FEW) {
        cpu_panels_avx512(p);
        return;
    }
    begin_tiles();
    multiply_all(p);
    _tile_release();
}
