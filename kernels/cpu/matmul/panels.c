// SPDX-License-Identifier: MIT
// Products of matrices of floats: blocks of both operands are copied into panels as wide as
// a register tile, in the order in which the tile reads them, and widened there. Compiled
// with contraction, as every product and sum is to round once where the processor can.
#include "elements.h"
#include "variants.h"

// A register tile: ROWS by two vectors. All but a few of the processor's registers are its
// sums.
#define ROWS (LANES == 16 ? 14 : 6)
#define COLUMNS (2 * LANES)

// --- the register tile -----------------------------------------------------------------

// The product of a panel of a and one of b, over `inner`, stored to c or added to it.
INLINE void multiply(int64_t inner, const float *a, const float *b, float *c, int64_t c_row,
                     bool adds)
{
    vector sums[ROWS][2] = {{{0}}};
    for (int64_t p = 0; p < inner; p++, a += ROWS, b += COLUMNS) {
        vector left = *(const vector *)(const void *)b;
        vector right = *(const vector *)(const void *)(b + LANES);
#pragma GCC unroll 14
        for (int i = 0; i < ROWS; i++) {
            sums[i][0] += a[i] * left;
            sums[i][1] += a[i] * right;
        }
    }
#pragma GCC unroll 14
    for (int i = 0; i < ROWS; i++) {
        loose *to = (loose *)(void *)(c + i * c_row);
        loose *next = (loose *)(void *)(c + i * c_row + LANES);
        if (adds) {
            sums[i][0] += *to;
            sums[i][1] += *next;
        }
        *to = sums[i][0];
        *next = sums[i][1];
    }
}

// The same where the tile goes beyond c.
static void multiply_edge(int64_t inner, const float *a, const float *b, float *c,
                          int64_t c_row, bool adds, int64_t rows, int64_t columns)
{
    float block[ROWS * COLUMNS];
    multiply(inner, a, b, block, COLUMNS, false);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            c[i * c_row + j] =
                adds ? c[i * c_row + j] + block[i * COLUMNS + j] : block[i * COLUMNS + j];
}

// --- panels ----------------------------------------------------------------------------

#define PAIR(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
// Element i of x[j] becomes element j of x[i].
INLINE void transpose(v8f x[8])
{
    v8f t[8], u[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = PAIR(x[2 * i], x[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[2 * i + 1] = PAIR(x[2 * i], x[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++)
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            v8f low = t[4 * h + i], high = t[4 * h + i + 2];
            u[4 * h + 2 * i] = PAIR(low, high, 0, 1, 8, 9, 4, 5, 12, 13);
            u[4 * h + 2 * i + 1] = PAIR(low, high, 2, 3, 10, 11, 6, 7, 14, 15);
        }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        x[i] = PAIR(u[i], u[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        x[i + 4] = PAIR(u[i], u[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
#undef PAIR

// Lines of an operand that become a panel: rows of a, or columns of b.
struct lines {
    const char *from;
    int64_t line, step; // bytes between lines, and between elements of one
    int64_t count, inner;
};

// Panels of `width` lines each: element [p][i] of one is element p of its line i, or 0
// behind the last line.
#define PACK(KIND, SIZE)                                                                   \
    INLINE void eight_lines_##KIND(const char *from, int64_t line, int64_t inner,          \
                                   int64_t width, float *to)                               \
    {                                                                                      \
        int64_t p = 0;                                                                     \
        for (; p + 8 <= inner; p += 8) {                                                   \
            v8f x[8];                                                                      \
            for (int i = 0; i < 8; i++)                                                    \
                x[i] = eight_##KIND(from + i * line + p * SIZE);                           \
            transpose(x);                                                                  \
            for (int i = 0; i < 8; i++)                                                    \
                *(v8f_loose *)(void *)(to + (p + i) * width) = x[i];                       \
        }                                                                                  \
        for (; p < inner; p++)                                                             \
            for (int i = 0; i < 8; i++)                                                    \
                to[p * width + i] = one_##KIND(from + i * line + p * SIZE);                \
    }                                                                                      \
    INLINE void side_by_side_##KIND(const char *from, int64_t step, int64_t inner,         \
                                    int64_t width, float *to)                              \
    {                                                                                      \
        for (int64_t p = 0; p < inner; p++, to += width, from += step) {                   \
            int64_t i = 0;                                                                 \
            for (; i + 8 <= width; i += 8)                                                 \
                *(v8f_loose *)(void *)(to + i) = eight_##KIND(from + i * SIZE);            \
            for (; i < width; i++)                                                         \
                to[i] = one_##KIND(from + i * SIZE);                                       \
        }                                                                                  \
    }                                                                                      \
    INLINE void any_##KIND(const struct lines *l, const char *from, int64_t first,         \
                           int64_t count, int64_t width, float *to)                        \
    {                                                                                      \
        for (int64_t p = 0; p < l->inner; p++)                                             \
            for (int64_t i = first; i < width; i++)                                        \
                to[p * width + i] =                                                        \
                    i < count ? one_##KIND(from + i * l->line + p * l->step) : 0;          \
    }                                                                                      \
    INLINE void pack_##KIND(const struct lines *l, int64_t width, float *to)               \
    {                                                                                      \
        for (int64_t at = 0; at < l->count; at += width, to += width * l->inner) {         \
            const char *from = l->from + at * l->line;                                     \
            int64_t count = l->count - at, i = 0;                                          \
            if (count >= width && l->line == SIZE) {                                       \
                side_by_side_##KIND(from, l->step, l->inner, width, to);                   \
                continue;                                                                  \
            }                                                                              \
            if (l->step == SIZE && count >= width)                                         \
                for (; i + 8 <= width; i += 8)                                             \
                    eight_lines_##KIND(from + i * l->line, l->line, l->inner, width,       \
                                       to + i);                                            \
            /* Of 14 lines the last 8 overlap with the first 8. */                         \
            if (i > 0 && i < width) {                                                      \
                i = width - 8;                                                             \
                eight_lines_##KIND(from + i * l->line, l->line, l->inner, width, to + i);  \
                i = width;                                                                 \
            }                                                                              \
            any_##KIND(l, from, i, count, width, to);                                      \
        }                                                                                  \
    }                                                                                      \
    static void pack_rows_##KIND(const struct lines *l, float *to)                         \
    {                                                                                      \
        pack_##KIND(l, ROWS, to);                                                          \
    }                                                                                      \
    static void pack_columns_##KIND(const struct lines *l, float *to)                      \
    {                                                                                      \
        pack_##KIND(l, COLUMNS, to);                                                       \
    }
PACK(f32, 4)
PACK(bf16, 2)
PACK(f16, 2)

static const struct packing {
    void (*rows)(const struct lines *l, float *to);
    void (*columns)(const struct lines *l, float *to);
    int64_t size; // bytes of an element
} packings[TN_NUM_DTYPES] = {
    [TN_F32] = {pack_rows_f32, pack_columns_f32, 4},
    [TN_BF16] = {pack_rows_bf16, pack_columns_bf16, 2},
    [TN_F16] = {pack_rows_f16, pack_columns_f16, 2},
};

// --- blocks ----------------------------------------------------------------------------

// The product of a packed block of rows and one of columns: rows * columns of c.
static void multiply_block(const float *a, const float *b, float *c, int64_t c_row,
                           int64_t rows, int64_t columns, int64_t inner, bool adds)
{
    for (int64_t j = 0; j < columns; j += COLUMNS)
        for (int64_t i = 0; i < rows; i += ROWS) {
            const float *x = a + i * inner, *y = b + j * inner;
            float *to = c + i * c_row + j;
            int64_t left = rows - i, width = columns - j;
            if (left < ROWS || width < COLUMNS)
                multiply_edge(inner, x, y, to, c_row, adds, left < ROWS ? left : ROWS,
                              width < COLUMNS ? width : COLUMNS);
            else if (adds)
                multiply(inner, x, y, to, c_row, true);
            else
                multiply(inner, x, y, to, c_row, false);
        }
}

// Parts of `extent`, of at most `most` and about equal: multiples of `unit`, or all.
static int64_t part_of(int64_t extent, int64_t most, int64_t unit)
{
    int64_t parts = (extent + most - 1) / most;
    int64_t part = parts > 0 ? (extent + parts - 1) / parts : 0;
    part = (part + unit - 1) / unit * unit;
    return part < most ? part : most;
}

static void multiply_all(const struct cpu_panels *p, const struct packing *packing)
{
    const int64_t size = packing->size;
    const int64_t rows = part_of(p->m, CPU_PANELS_ROWS, ROWS),
                  columns = part_of(p->n, CPU_PANELS_COLUMNS, COLUMNS),
                  inner = part_of(p->k, CPU_PANELS_INNER, 1);
    float *b = p->scratch, *a = b + (columns * inner + 15) / 16 * 16;
    for (int64_t j = 0; j < p->n; j += columns)
        for (int64_t q = 0; q < p->k; q += inner) {
            int64_t depth = p->k - q < inner ? p->k - q : inner;
            int64_t width = p->n - j < columns ? p->n - j : columns;
            packing->columns(
                &(struct lines){.from = (const char *)p->b +
                                        (q * p->b_row + j * p->b_column) * size,
                                .line = p->b_column * size,
                                .step = p->b_row * size,
                                .count = width,
                                .inner = depth},
                b);
            for (int64_t i = 0; i < p->m; i += rows) {
                int64_t height = p->m - i < rows ? p->m - i : rows;
                packing->rows(
                    &(struct lines){.from = (const char *)p->a +
                                            (i * p->a_row + q * p->a_column) * size,
                                    .line = p->a_row * size,
                                    .step = p->a_column * size,
                                    .count = height,
                                    .inner = depth},
                    a);
                multiply_block(a, b, p->c + i * p->c_row + j, p->c_row, height, width,
                               depth, q > 0);
            }
        }
}

void V(cpu_panels)(const struct cpu_panels *p)
{
    if (V(cpu_panels_few)(p))
        return;
    if (p->k > 0) {
        multiply_all(p, &packings[p->dtype]);
        return;
    }
    for (int64_t i = 0; i < p->m && p->n > 0; i++)
        memset(p->c + i * p->c_row, 0, (size_t)p->n * sizeof(*p->c));
}
