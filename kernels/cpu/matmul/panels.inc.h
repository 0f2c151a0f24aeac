// SPDX-License-Identifier: MIT
// Blocks of products: decides which operands are copied, and the order of tiles. Included
// behind tile.inc.h.
//
// A copied block of b consists of panels, as wide as two vectors of columns. A copied block
// of a keeps its rows, at a pitch that spreads them over the cache.

// Lines of an operand: rows of a, columns of b, or inner elements of either.
struct panel_lines {
    const char *from;
    int64_t line, step; // bytes between lines, and between elements of a line
    int64_t count, length;
};

static const struct panel_packing {
    // Copies lines to lines of adjacent elements, `pitch` elements apart.
    void (*rows)(const struct panel_lines *l, int64_t pitch, T *to);
    // Copies lines to panels, each of COLUMNS lines side by side.
    void (*columns)(const struct panel_lines *l, T *to);
    int64_t size; // bytes of an element
} packings[TN_NUM_DTYPES];

// Elements from line to line for lines of `length`: whole cache lines, no multiple of 1
// KiB.
static int64_t pitch_of(int64_t length)
{
    const int64_t line = 64 / (int64_t)sizeof(T), pitch = (length + line - 1) / line * line;
    return pitch % (16 * line) == 0 ? pitch + line : pitch;
}

// A block of rows by columns, over tile.inner elements, with operands as the tiles read
// them.
struct panel_block {
    struct panel_tile tile; // the tile of the block's first element
    int64_t panel;          // elements of b from one panel to the next
    int64_t rows, columns;
    int64_t most; // rows of a tile
    bool along_rows;
};

// Multiplies a tile of `rows` rows and of the columns from j on.
static void multiply_at(const struct panel_block *block, struct panel_tile *t, int64_t rows,
                        int64_t j)
{
    const int64_t left = block->columns - j;
    const int vectors = left > LANES ? 2 : 1;
    t->last = left - (vectors - 1) * LANES;
    tiles[rows - 1][vectors - 1][t->last < LANES](t);
}

// Goes through tiles down the columns, or along the rows where b is small. All tiles have
// about the same height: a tile of few rows would take as long as one of some more.
static void multiply_block(const struct panel_block *block)
{
    struct panel_tile t = block->tile;
    const int64_t count = (block->rows + block->most - 1) / block->most;
    const bool is_dense = t.a_step == 1 && t.a_row == t.inner;
    t.next = t.a;
    if (block->along_rows) {
        for (int64_t i = 0, row = 0, end; i < count; i++, row = end) {
            end = block->rows * (i + 1) / count;
            t.a = block->tile.a + row * t.a_row;
            if (is_dense)
                t.next = block->tile.a + end * t.a_row, t.next_step = end - row;
            for (int64_t j = 0; j < block->columns; j += COLUMNS) {
                t.b = block->tile.b + j / COLUMNS * block->panel;
                t.c = block->tile.c + row * t.c_row + j;
                multiply_at(block, &t, end - row, j);
                t.next_step = 0;
            }
        }
        return;
    }
    for (int64_t j = 0; j < block->columns; j += COLUMNS) {
        t.b = block->tile.b + j / COLUMNS * block->panel;
        for (int64_t i = 0, row = 0, end; i < count; i++, row = end) {
            end = block->rows * (i + 1) / count;
            t.a = block->tile.a + row * t.a_row;
            t.c = block->tile.c + row * t.c_row + j;
            if (is_dense && j == 0)
                t.next = block->tile.a + end * t.a_row, t.next_step = end - row;
            multiply_at(block, &t, end - row, j);
        }
        t.next_step = 0;
    }
}

// The size, at most `most`, of about equal parts of `extent`; a multiple of `unit` unless
// it is `most`.
static int64_t part_of(int64_t extent, int64_t most, int64_t unit)
{
    int64_t parts = (extent + most - 1) / most;
    int64_t part = (extent + parts - 1) / parts;
    part = (part + unit - 1) / unit * unit;
    return part < most ? part : most;
}

// Most bytes of a block of b, in the second-level cache beside all else, for which tiles go
// along rows: c is then written in whole cache lines, page by page.
#define ALONG_BYTES (512 << 10)

struct panel_plan {
    const struct panel_packing *packing;
    T *a, *b; // memory for copies
    int64_t rows, columns, inner;
    int64_t most; // rows of a tile
    bool copies_a, copies_b, along_rows;
};

// Whether the distance of rows is a multiple of 4 KiB: such rows share few lines of a
// cache.
static bool collides(int64_t row)
{
    const int64_t bytes = row * (int64_t)sizeof(T) % 4096;
    return bytes == 0;
}

// Inner elements of a block where b is copied.
static int64_t inner_of(int64_t k)
{
    const int64_t inner = part_of(k, CPU_PANELS_INNER, 16);
    return inner < k ? inner : k;
}

static struct panel_plan make_plan(const struct cpu_panels *p)
{
    const struct panel_packing *packing = &packings[p->dtype];
    struct panel_plan plan = {.packing = packing, .most = ROWS};
    const bool is_wide = packing->size == sizeof(T);
    const int64_t b_bytes = p->k * p->n * (int64_t)sizeof(T);
    // Each row of tiles reads all of b, so a copy pays for many rows.
    plan.copies_b = !p->packed && (!is_wide || (p->n > 1 && p->b_column != 1) ||
                                   (p->m > DIRECT_ROWS && b_bytes > DIRECT_BYTES));
    plan.copies_a = !is_wide || (p->a_row != 1 && p->a_column != 1) ||
                    (p->n > DIRECT_COLUMNS && (p->a_row == 1 || collides(p->a_row)));
    if (!plan.copies_a && p->a_column == 1 && collides(p->a_row) && ROWS > 8)
        plan.most = 8;
    const bool is_direct = !plan.copies_b && !p->packed;
    plan.inner = inner_of(p->k);
    if (is_direct && b_bytes > DIRECT_BYTES && p->k > CPU_PANELS_THIN_INNER)
        plan.inner = part_of(p->k, CPU_PANELS_THIN_INNER, 16);
    plan.rows = part_of(p->m, CPU_PANELS_ROWS, 1);
    // With one block of a, panels of b are multiplied while they are in the cache.
    const int64_t columns =
        plan.rows < p->m ? CPU_PANELS_COLUMNS : CPU_PANELS_COLUMNS_BESIDE;
    plan.columns = plan.copies_b ? part_of(p->n, columns, COLUMNS) : p->n;
    plan.along_rows = plan.columns * plan.inner * (int64_t)sizeof(T) <=
                      (is_direct ? DIRECT_BYTES : ALONG_BYTES);
    plan.b = p->scratch;
    plan.a = plan.b + (plan.copies_b ? plan.columns * plan.inner : 0);
    return plan;
}

static void set_b(const struct cpu_panels *p, const struct panel_plan *plan, int64_t q,
                  int64_t j, struct panel_block *block)
{
    const int64_t size = plan->packing->size, depth = block->tile.inner;
    block->tile.b_step = COLUMNS;
    block->tile.ahead = 8 * COLUMNS;
    block->panel = COLUMNS * depth;
    if (p->packed) {
        const int64_t columns = (p->packed_columns + COLUMNS - 1) / COLUMNS * COLUMNS;
        block->tile.b = (const T *)p->packed + q * columns + (p->packed_first + j) * depth;
        return;
    }
    const char *from = (const char *)p->b + (q * p->b_row + j * p->b_column) * size;
    if (!plan->copies_b) {
        block->tile.b = (const T *)(const void *)from;
        block->tile.b_step = p->b_row;
        block->tile.ahead = block->panel = COLUMNS;
        return;
    }
    plan->packing->columns(&(struct panel_lines){.from = from,
                                                 .line = p->b_column * size,
                                                 .step = p->b_row * size,
                                                 .count = block->columns,
                                                 .length = depth},
                           plan->b);
    block->tile.b = plan->b;
}

static void set_a(const struct cpu_panels *p, const struct panel_plan *plan, int64_t q,
                  int64_t i, struct panel_block *block)
{
    const int64_t size = plan->packing->size, inner = block->tile.inner;
    const char *from = (const char *)p->a + (i * p->a_row + q * p->a_column) * size;
    if (!plan->copies_a) {
        block->tile.a = (const T *)(const void *)from;
        block->tile.a_row = p->a_row;
        block->tile.a_step = p->a_column;
        return;
    }
    block->tile.a = plan->a;
    block->tile.a_row = pitch_of(inner);
    block->tile.a_step = 1;
    plan->packing->rows(&(struct panel_lines){.from = from,
                                              .line = p->a_row * size,
                                              .step = p->a_column * size,
                                              .count = block->rows,
                                              .length = inner},
                        block->tile.a_row, plan->a);
}

static void multiply_all(const struct cpu_panels *p)
{
    const struct panel_plan plan = make_plan(p);
    struct panel_block block = {
        .most = plan.most, .along_rows = plan.along_rows, .tile.c_row = p->c_row};
    for (int64_t q = 0; q < p->k; q += plan.inner)
        for (int64_t j = 0; j < p->n; j += plan.columns) {
            block.tile.inner = p->k - q < plan.inner ? p->k - q : plan.inner;
            block.tile.adds = q > 0;
            block.columns = p->n - j < plan.columns ? p->n - j : plan.columns;
            set_b(p, &plan, q, j, &block);
            for (int64_t i = 0; i < p->m; i += plan.rows) {
                block.rows = p->m - i < plan.rows ? p->m - i : plan.rows;
                if (j == 0 || plan.rows < p->m)
                    set_a(p, &plan, q, i, &block);
                block.tile.c = (T *)p->c + i * p->c_row + j;
                multiply_block(&block);
            }
        }
}

static void pack_b(const struct cpu_panels *p, int64_t first, int64_t end, T *to)
{
    const struct panel_packing *packing = &packings[p->dtype];
    const int64_t size = packing->size, inner = inner_of(p->k);
    const int64_t columns = (p->n + COLUMNS - 1) / COLUMNS * COLUMNS;
    for (int64_t q = 0; q < p->k; q += inner) {
        const int64_t depth = p->k - q < inner ? p->k - q : inner;
        packing->columns(
            &(struct panel_lines){.from = (const char *)p->b +
                                          (q * p->b_row + first * p->b_column) * size,
                                  .line = p->b_column * size,
                                  .step = p->b_row * size,
                                  .count = end - first,
                                  .length = depth},
            to + q * columns + first * depth);
    }
}

static void multiply_or_clear(const struct cpu_panels *p)
{
    if (p->m == 0 || p->n == 0)
        return;
    if (p->k > 0)
        multiply_all(p);
    for (int64_t i = 0; i < p->m && p->k == 0; i++)
        memset((T *)p->c + i * p->c_row, 0, (size_t)p->n * sizeof(T));
}
