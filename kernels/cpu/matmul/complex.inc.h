// SPDX-License-Identifier: MIT
// Products of matrices of complex numbers, of two T each. Real and imaginary parts of a
// become separate rows, those of b adjacent columns. A tile multiplies these matrices of T,
// which gives rows x = re(a) b and y = im(a) b; then c = x + i y, where i y is y with its
// parts exchanged and the new real parts negated. Included behind copies.inc.h, with
// COLUMNS_OF_PARTS defined, which copies columns of T.

#if LANES == 16
#define EXCHANGE(x)                                                                        \
    __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)
#elif LANES == 8
#define EXCHANGE(x) __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6)
#elif LANES == 4
#define EXCHANGE(x) __builtin_shufflevector(x, x, 1, 0, 3, 2)
#else
#define EXCHANGE(x) __builtin_shufflevector(x, x, 1, 0)
#endif

// Copies rows of a block of a: each becomes a row of real and a row of imaginary parts.
static void split_rows(const struct panel_lines *l, int64_t pitch, T *to)
{
    for (int64_t i = 0; i < l->count; i++, to += 2 * pitch) {
        const T *from = (const T *)(const void *)(l->from + i * l->line);
        const int64_t step = l->step / (int64_t)sizeof(T);
        if (step == 2)
            for (int64_t p = 0; p < l->length; p++)
                to[p] = from[2 * p], to[pitch + p] = from[2 * p + 1];
        else
            for (int64_t p = 0; p < l->length; p++)
                to[p] = from[step * p], to[pitch + p] = from[step * p + 1];
    }
}

// Copies columns that are not adjacent as panels of COLUMNS parts.
static void pair_columns(const struct panel_lines *l, T *to)
{
    const int64_t width = COLUMNS / 2, pair = 2 * (int64_t)sizeof(T);
    for (int64_t j = 0; j < l->count; j += width, to += COLUMNS * l->length) {
        const int64_t count = l->count - j < width ? l->count - j : width;
        for (int64_t p = 0; p < l->length; p++)
            for (int64_t i = 0; i < count; i++)
                memcpy(to + p * COLUMNS + 2 * i, l->from + (j + i) * l->line + p * l->step,
                       (size_t)pair);
    }
}

// Stores a tile of `rows` rows and `count` parts of columns to c, or adds it.
static void join_parts(const T *sums, int64_t rows, int64_t count, T *c, int64_t c_row,
                       bool adds)
{
    vector sign = {0};
    for (int i = 0; i < LANES; i++)
        sign[i] = i % 2 ? 1 : -1;
    for (int64_t i = 0; i < rows; i++, sums += 2 * COLUMNS, c += c_row)
        for (int64_t j = 0; j < count; j += LANES) {
            const int64_t n = count - j < LANES ? count - j : LANES;
            const vector x = *(const loose *)(const void *)(sums + j);
            const vector y = *(const loose *)(const void *)(sums + COLUMNS + j);
            vector z = x + sign * EXCHANGE(y);
            if (n < LANES) {
                store_some(c + j, adds ? z + load_some(c + j, n) : z, n);
                continue;
            }
            if (adds)
                z += *(const loose *)(const void *)(c + j);
            *(loose *)(void *)(c + j) = z;
        }
}

// Multiplies a block: pairs of rows by parts of columns.
static void multiply_pairs(const struct panel_block *block)
{
    T sums[ROWS * 2 * LANES] __attribute__((aligned(64)));
    struct panel_tile t = block->tile;
    const int64_t most = ROWS / 2, count = (block->rows + most - 1) / most;
    t.next = t.a;
    t.adds = false;
    t.c = sums;
    t.c_row = COLUMNS;
    for (int64_t j = 0; j < block->columns; j += COLUMNS) {
        const int64_t left = block->columns - j, width = left < COLUMNS ? left : COLUMNS;
        t.b = block->tile.b + j / COLUMNS * block->panel;
        for (int64_t i = 0, row = 0, end; i < count; i++, row = end) {
            end = block->rows * (i + 1) / count;
            t.a = block->tile.a + 2 * row * t.a_row;
            multiply_at(block, &t, 2 * (end - row), j);
            join_parts(sums, end - row, width, block->tile.c + row * block->tile.c_row + j,
                       block->tile.c_row, block->tile.adds);
        }
    }
}

// Strides of p are in complex numbers, those of a block in elements of T.
static void multiply_complex(const struct cpu_panels *p)
{
    if (p->m == 0 || p->n == 0)
        return;
    for (int64_t i = 0; i < p->m && p->k == 0; i++)
        memset((T *)p->c + 2 * i * p->c_row, 0, (size_t)p->n * 2 * sizeof(T));
    if (p->k == 0)
        return;
    const int64_t pair = 2 * (int64_t)sizeof(T), inner = inner_of(p->k);
    const int64_t rows = part_of(p->m, CPU_PANELS_ROWS / 2, 1);
    const int64_t columns = part_of(p->n, CPU_PANELS_COLUMNS / 2, COLUMNS / 2);
    T *b = p->scratch, *a = b + 2 * columns * inner;
    struct panel_block block = {.tile = {.a = a,
                                         .b = b,
                                         .a_step = 1,
                                         .b_step = COLUMNS,
                                         .c_row = 2 * p->c_row,
                                         .ahead = 8 * COLUMNS}};
    for (int64_t j = 0; j < p->n; j += columns)
        for (int64_t q = 0; q < p->k; q += inner) {
            const int64_t depth = p->k - q < inner ? p->k - q : inner;
            const int64_t count = p->n - j < columns ? p->n - j : columns;
            const struct panel_lines lines = {
                (const char *)p->b + (q * p->b_row + j * p->b_column) * pair,
                p->b_column * pair, p->b_row * pair, count, depth};
            if (p->b_column == 1)
                COLUMNS_OF_PARTS(&(struct panel_lines){lines.from, sizeof(T), lines.step,
                                                       2 * count, depth},
                                 b);
            else
                pair_columns(&lines, b);
            block.columns = 2 * count;
            block.panel = COLUMNS * depth;
            block.tile.inner = depth;
            block.tile.a_row = pitch_of(depth);
            block.tile.adds = q > 0;
            for (int64_t i = 0; i < p->m; i += rows) {
                block.rows = p->m - i < rows ? p->m - i : rows;
                split_rows(
                    &(struct panel_lines){
                        (const char *)p->a + (i * p->a_row + q * p->a_column) * pair,
                        p->a_row * pair, p->a_column * pair, block.rows, depth},
                    block.tile.a_row, a);
                block.tile.c = (T *)p->c + (i * p->c_row + j) * 2;
                multiply_pairs(&block);
            }
        }
}
