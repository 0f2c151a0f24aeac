// SPDX-License-Identifier: MIT
// Products of matrices of BF16 on the tiles of AMX: 32 rows by 32 columns of sums in four
// tiles, from two tiles of a and two of b, in which pairs of inner elements are adjacent.
// Operands are copied into tiles, padded with zeros, which change no sum: padded rows and
// columns have sums of their own, and padded inner elements are zeros in both operands.
// TDPBF16PS takes subnormal operands and sums for zeros, and rounds to nearest (Intel 64
// and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS).
#include "elements.h"
#include "panels.h"
#include "cpu/amx.h"

#define SIDE 32  // rows and columns of a block of four tiles
#define PAIRS 16 // pairs of inner elements in a tile

// Tile registers.
#define A_0 4
#define A_1 5
#define B_0 6
#define B_1 7

// 32 rows of a, packed or where they lie. Strides are in elements.
struct amx_rows {
    const uint16_t *from;
    int64_t row, step, half; // between rows, steps of 32 inner elements, and the two tiles
};

// Computes the product of 32 rows and 32 columns, `steps` tiles of each, and adds it to
// `sums` if `adds`, else stores it.
static void panels_amx_multiply(const struct amx_rows *rows, const uint16_t *b,
                                int64_t steps, float *sums, int64_t row, bool adds)
{
    const int64_t bytes = row * (int64_t)sizeof(float), a_bytes = 2 * rows->row;
    const uint16_t *a = rows->from, *below = a + rows->half;
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
    _tile_loadd(A_0, a, a_bytes);
    _tile_loadd(B_0, b, 64);
    _tile_loadd(A_1, below, a_bytes);
    _tile_loadd(B_1, b + TILE, 64);
    for (int64_t s = 1; s < steps; s++) { // loads each tile right after its last use
        a += rows->step, below += rows->step, b += 2 * TILE;
        _tile_dpbf16ps(SUMS_00, A_0, B_0);
        _tile_dpbf16ps(SUMS_10, A_1, B_0);
        _tile_loadd(B_0, b, 64);
        _tile_dpbf16ps(SUMS_01, A_0, B_1);
        _tile_loadd(A_0, a, a_bytes);
        _tile_dpbf16ps(SUMS_11, A_1, B_1);
        _tile_loadd(A_1, below, a_bytes);
        _tile_loadd(B_1, b + TILE, 64);
    }
    _tile_dpbf16ps(SUMS_00, A_0, B_0);
    _tile_dpbf16ps(SUMS_10, A_1, B_0);
    _tile_dpbf16ps(SUMS_01, A_0, B_1);
    _tile_dpbf16ps(SUMS_11, A_1, B_1);
    _tile_stored(SUMS_00, sums, bytes);
    _tile_stored(SUMS_01, sums + 16, bytes);
    _tile_stored(SUMS_10, sums + 16 * row, bytes);
    _tile_stored(SUMS_11, sums + 16 * row + 16, bytes);
    MEMORY;
}

// Stores the product of 32 rows and 16 columns; the second tiles of columns are not read.
static void panels_amx_multiply_narrow(const struct amx_rows *rows, const uint16_t *b,
                                       int64_t steps, float *sums, int64_t row)
{
    const int64_t bytes = row * (int64_t)sizeof(float), a_bytes = 2 * rows->row;
    const uint16_t *a = rows->from, *below = a + rows->half;
    MEMORY;
    _tile_zero(SUMS_00);
    _tile_zero(SUMS_10);
    for (int64_t s = 0; s < steps; s++, b += 2 * TILE) {
        _tile_loadd(B_0, b, 64);
        _tile_loadd(A_0, a + s * rows->step, a_bytes);
        _tile_dpbf16ps(SUMS_00, A_0, B_0);
        _tile_loadd(A_1, below + s * rows->step, a_bytes);
        _tile_dpbf16ps(SUMS_10, A_1, B_0);
    }
    _tile_stored(SUMS_00, sums, bytes);
    _tile_stored(SUMS_10, sums + 16 * row, bytes);
    MEMORY;
}

// A range of an operand: rows of a, or columns of b, by inner elements. Strides are in
// elements.
struct amx_lines {
    const uint16_t *from;
    int64_t line, step;
    int64_t count, inner;
};

// Packs rows into tiles of 16 rows by 32 inner elements: for each 32 rows, two tiles a
// step.
static void panels_amx_pack_rows(const struct amx_lines *p, uint16_t *to)
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

// Packs 16 adjacent columns of two rows of b as pairs.
static void pack_pairs(const uint16_t *even, const uint16_t *odd, uint16_t *to)
{
    typedef uint32_t words __attribute__((vector_size(64)));
    const words low = (words)x86_widen_16_bf16(even) >> 16;
    const words high = (words)x86_widen_16_bf16(odd);
    const words pairs = low | high;
    memcpy(to, &pairs, sizeof(pairs));
}

// Transposes the pairs of 16 lines of 32 adjacent elements: row p gets pair p of each line.
static void transpose_pairs(const uint16_t *from, int64_t line, uint16_t *to)
{
    const char *at = (const char *)from;
    line *= 2;
    for (int q = 0; q < 4; q++, at += 16) { // 4 pairs at a time
        __m512i x[4];
        for (int i = 0; i < 4; i++) {
            const __m128i *parts[4];
            for (int h = 0; h < 4; h++)
                parts[h] = (const __m128i *)(const void *)(at + (i + 4 * h) * line);
            x[i] = _mm512_castsi128_si512(_mm_loadu_si128(parts[0]));
            x[i] = _mm512_inserti32x4(x[i], _mm_loadu_si128(parts[1]), 1);
            x[i] = _mm512_inserti32x4(x[i], _mm_loadu_si128(parts[2]), 2);
            x[i] = _mm512_inserti32x4(x[i], _mm_loadu_si128(parts[3]), 3);
        }
        const __m512i a = _mm512_unpacklo_epi32(x[0], x[1]),
                      b = _mm512_unpackhi_epi32(x[0], x[1]),
                      c = _mm512_unpacklo_epi32(x[2], x[3]),
                      d = _mm512_unpackhi_epi32(x[2], x[3]);
        _mm512_storeu_si512(to + (4 * q + 0) * 32, _mm512_unpacklo_epi64(a, c));
        _mm512_storeu_si512(to + (4 * q + 1) * 32, _mm512_unpackhi_epi64(a, c));
        _mm512_storeu_si512(to + (4 * q + 2) * 32, _mm512_unpacklo_epi64(b, d));
        _mm512_storeu_si512(to + (4 * q + 3) * 32, _mm512_unpackhi_epi64(b, d));
    }
}

// Packs a tile of up to 16 columns and 32 inner elements, with any strides.
static void pack_tile(const struct amx_lines *p, uint16_t *to)
{
    for (int64_t k = 0; k < PAIRS; k++)
        for (int64_t i = 0; i < 16; i++)
            for (int64_t e = 0; e < 2; e++)
                to[k * 32 + 2 * i + e] = i < p->count && 2 * k + e < p->inner
                                             ? p->from[i * p->line + (2 * k + e) * p->step]
                                             : 0;
}

// Packs up to 16 columns from j on, at step s of `steps` steps of inner elements.
static void pack_step(const struct amx_lines *p, int64_t j, int64_t s, int64_t steps,
                      uint16_t *to)
{
    uint16_t *tile = to + ((j / SIDE * steps + s) * 2 + j / 16 % 2) * TILE;
    const uint16_t *from = p->from + j * p->line + s * 32 * p->step;
    const int64_t left = p->inner - s * 32, columns = p->count - j;
    if (left < 32 || columns < 16 || (p->line != 1 && p->step != 1))
        pack_tile(&(struct amx_lines){from, p->line, p->step, columns, left}, tile);
    else if (p->step == 1)
        transpose_pairs(from, p->line, tile);
    else
        for (int64_t k = 0; k < PAIRS; k++)
            pack_pairs(from + 2 * k * p->step, from + (2 * k + 1) * p->step, tile + k * 32);
}

// Packs columns into tiles of 16 pairs of inner elements by 16 columns: for each 32
// columns, two tiles a step of 32 inner elements. The order of tiles follows the operand's
// adjacent elements.
static void pack_columns(const struct amx_lines *p, uint16_t *to)
{
    const int64_t steps = (p->inner + 31) / 32, all = (p->count + SIDE - 1) / SIDE * SIDE;
    if (p->step == 1)
        for (int64_t j = 0; j < all; j += 16)
            for (int64_t s = 0; s < steps; s++)
                pack_step(p, j, s, steps, to);
    else
        for (int64_t s = 0; s < steps; s++)
            for (int64_t j = 0; j < all; j += 16)
                pack_step(p, j, s, steps, to);
}

// The product of a block of rows and a block of packed columns, into c. Rows before
// `direct`, a multiple of SIDE, are read where they lie, the others are packed.
struct amx_block {
    const uint16_t *from, *packed, *b;
    float *c;
    int64_t from_row, c_row;
    int64_t rows, direct, columns, steps;
    bool adds;
};

static void panels_amx_multiply_block(const struct amx_block *p)
{
    float edge[SIDE * SIDE];
    for (int64_t j = 0; j < p->columns; j += SIDE)
        for (int64_t i = 0; i < p->rows; i += SIDE) {
            const struct amx_rows lying = {p->from + i * p->from_row, p->from_row, 32,
                                           16 * p->from_row};
            const struct amx_rows packed = {p->packed + (i - p->direct) * p->steps * 32, 32,
                                            2 * TILE, TILE};
            const struct amx_rows *x = i < p->direct ? &lying : &packed;
            const uint16_t *y = p->b + j * p->steps * 32;
            float *to = p->c + i * p->c_row + j;
            if (p->rows - i >= SIDE && p->columns - j >= SIDE) {
                panels_amx_multiply(x, y, p->steps, to, p->c_row, p->adds);
                continue;
            }
            if (p->columns - j <= 16)
                panels_amx_multiply_narrow(x, y, p->steps, edge, SIDE);
            else
                panels_amx_multiply(x, y, p->steps, edge, SIDE, false);
            for (int64_t r = 0; r < SIDE && r < p->rows - i; r++)
                for (int64_t q = 0; q < SIDE && q < p->columns - j; q++)
                    to[r * p->c_row + q] =
                        edge[r * SIDE + q] + (p->adds ? to[r * p->c_row + q] : 0);
        }
}

// Sets the block's rows to [first, first + block->rows) of a, from inner element q on, and
// packs those that are not read where they lie.
static void set_rows(const struct cpu_panels *p, int64_t first, int64_t q, int64_t depth,
                     uint16_t *packed, struct amx_block *block)
{
    block->from = (const uint16_t *)p->a + first * p->a_row + q * p->a_column;
    block->from_row = p->a_row;
    block->packed = packed;
    // Rows whose distance is a multiple of 4 KiB share few lines of the cache, which
    // matters if tiles are loaded again, for more columns.
    const bool stays = p->a_row % 2048 != 0 || p->n <= 16;
    const bool lies = p->a_column == 1 && depth % 32 == 0 && stays;
    block->direct = lies ? block->rows / SIDE * SIDE : 0;
    if (block->direct < block->rows)
        panels_amx_pack_rows(&(struct amx_lines){block->from + block->direct * p->a_row,
                                                 p->a_row, p->a_column,
                                                 block->rows - block->direct, depth},
                             packed);
}

static int64_t panels_amx_least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

// Inner elements of a block for few columns: long, so that processors prefetch along the
// rows. Scratch memory for CPU_PANELS_ROWS rows has room for such a block of SIDE rows.
#define NARROW_INNER 4096

struct amx_extents {
    int64_t rows, inner;
};

static struct amx_extents panels_amx_extents(const struct cpu_panels *p)
{
    if (!p->packed && p->n <= SIDE && p->m >= CPU_PANELS_ROWS)
        return (struct amx_extents){SIDE, panels_amx_least(p->k, NARROW_INNER)};
    return (struct amx_extents){CPU_PANELS_AMX_ROWS,
                                panels_amx_least(p->k, CPU_PANELS_AMX_INNER)};
}

static void panels_amx_multiply_all(const struct cpu_panels *p)
{
    const int64_t most = p->packed ? p->n : CPU_PANELS_COLUMNS;
    const struct amx_extents each = panels_amx_extents(p);
    const int64_t inner = each.inner;
    const int64_t all = (p->packed_columns + SIDE - 1) / SIDE * SIDE;
    uint16_t *b = p->scratch;
    uint16_t *a = b + (p->packed ? 0
                                 : (panels_amx_least(p->n, most) + SIDE - 1) / SIDE * SIDE *
                                       ((inner + 31) / 32 * 32));
    for (int64_t j = 0; j < p->n; j += most)
        for (int64_t q = 0; q < p->k; q += inner) {
            const int64_t depth = panels_amx_least(p->k - q, inner),
                          steps = (depth + 31) / 32;
            struct amx_block block = {.b = b,
                                      .c_row = p->c_row,
                                      .columns = panels_amx_least(p->n - j, most),
                                      .steps = steps,
                                      .adds = q > 0};
            if (p->packed)
                block.b =
                    (const uint16_t *)p->packed + q * all + p->packed_first * steps * 32;
            else
                pack_columns(&(struct amx_lines){(const uint16_t *)p->b + q * p->b_row +
                                                     j * p->b_column,
                                                 p->b_column, p->b_row, block.columns,
                                                 depth},
                             b);
            for (int64_t i = 0; i < p->m; i += each.rows) {
                block.rows = panels_amx_least(p->m - i, each.rows);
                block.c = (float *)p->c + i * p->c_row + j;
                set_rows(p, i, q, depth, a, &block);
                panels_amx_multiply_block(&block);
            }
        }
}

cpu_panels_fn cpu_panels_amx, cpu_panels_avx512;
cpu_pack_panels_fn cpu_pack_panels_amx, cpu_pack_panels_avx512;

void cpu_panels_amx(const struct cpu_panels *p)
{
    const bool is_few = p->m <= CPU_PANELS_FEW || p->n <= CPU_PANELS_FEW;
    if (p->dtype != TN_BF16 || p->k < 1 || (is_few && !p->packed)) {
        cpu_panels_avx512(p);
        return;
    }
    amx_begin();
    panels_amx_multiply_all(p);
    _tile_release();
}

void cpu_pack_panels_amx(const struct cpu_panels *p, int64_t first, int64_t end, void *to)
{
    if (p->dtype != TN_BF16) {
        cpu_pack_panels_avx512(p, first, end, to);
        return;
    }
    const int64_t inner = panels_amx_least(p->k, CPU_PANELS_AMX_INNER);
    const int64_t all = (p->n + SIDE - 1) / SIDE * SIDE;
    for (int64_t q = 0; q < p->k; q += inner) {
        const int64_t depth = panels_amx_least(p->k - q, inner);
        pack_columns(
            &(struct amx_lines){(const uint16_t *)p->b + q * p->b_row + first * p->b_column,
                                p->b_column, p->b_row, end - first, depth},
            (uint16_t *)to + q * all + first * ((depth + 31) / 32 * 32));
    }
}
