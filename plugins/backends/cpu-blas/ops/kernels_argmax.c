// SPDX-License-Identifier: MIT
// base.argmax/1 and base.argmin/1: by rows, along the reduced axes; by columns, where
// adjacent outputs are adjacent in memory.
#include <string.h>
#include "reduce_walk.h"

#define PIECE_ELEMENTS 8192 // least elements of a piece
#define COLUMNS_BYTES 512   // of a row of a unit
#define MOST_COLUMNS 512
#define NARROW 4    // rows of which so many fit a unit are folded as one
#define WIDE_ROWS 8 // half floats: so many rows are widened at a time
// Few rows that are long are cut into splits, by sizes alone.
#define SPLIT_ELEMENTS 32768
#define MOST_SPLITS 64 // of all rows

struct cpu_argmax_rows {
    struct reduction_walk r;
    cpu_argmax_row_fn *row;
    cpu_argmax_columns_fn *columns;
    const tn_tensor *in, *out;
    int64_t n; // elements of a row
    int64_t in_stride;
    int64_t width, tile, tiles; // by columns: of a row, of a unit, units across a row
    int64_t most;               // columns that a unit may have
};

static void cpu_argmax_read_rows(const tn_cpu_call *call, uint32_t set, int which,
                                 struct cpu_argmax_rows *rows)
{
    const tn_tensor *in = &call->inputs[0];
    int32_t dtype = in->layout.dtype, loop = reduction_loop_dtype(dtype);
    const struct cpu_kernels *kernels = kernel_variant(call);
    *rows = (struct cpu_argmax_rows){
        .in = in,
        .out = &call->outputs[0],
        .row = kernels->argmax->row[which][loop],
        .columns = kernels->argmax->columns[which][loop],
        .r = {.kernels = kernels,
              .base = first_element(in),
              .dtype = dtype,
              .size = cpu_dtype_size(dtype)},
    };
    reduction_split(&in->layout, set, &rows->r.kept, &rows->r.reduced);
    rows->n = rows->r.reduced.count;
    rows->in_stride =
        rows->r.reduced.rank > 0 ? rows->r.reduced.stride[rows->r.reduced.rank - 1] : 1;
}

static const char *row_start(const struct cpu_argmax_rows *rows, int64_t i)
{
    return rows->r.base + axes_offset(&rows->r.kept, i) * rows->r.size;
}

// --- by rows ---------------------------------------------------------------------------

struct best {
    cpu_argmax_row_fn *row;
    int64_t size;                // bytes of an element
    _Alignas(8) char values[16]; // the best of earlier runs, and that of this one
    int64_t index, seen;         // `seen`: elements of earlier runs
};

static void find_best(void *context, const void *run, int64_t n)
{
    struct best *best = context;
    int64_t i = best->row(run, n), size = best->size;
    memcpy(best->values + size, (const char *)run + i * size, (size_t)size);
    if (best->seen == 0 || best->row(best->values, 2) == 1) {
        memcpy(best->values, best->values + size, (size_t)size);
        best->index = best->seen + i;
    }
    best->seen += n;
}

// Whether each row is one run in memory that the loop takes.
static bool cpu_argmax_is_one_run(const struct cpu_argmax_rows *rows)
{
    return rows->r.reduced.rank <= 1 && rows->in_stride == 1 &&
           reduction_loop_dtype(rows->r.dtype) == rows->r.dtype;
}

static void argmax_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct cpu_argmax_rows *rows = context;
    int64_t *out = first_element(rows->out);
    bool is_run = cpu_argmax_is_one_run(rows);
    for (int64_t i = begin; i < end && is_run; i++)
        out[i] = rows->row(row_start(rows, i), rows->n);
    for (int64_t i = begin; i < end && !is_run; i++) {
        struct best best = {.row = rows->row,
                            .size = cpu_dtype_size(reduction_loop_dtype(rows->r.dtype))};
        reduction_walk(&rows->r, row_start(rows, i), 0, rows->n, find_best, &best);
        out[i] = best.index;
    }
}

// --- by splits of rows ------------------------------------------------------------------

struct cpu_argmax_splits {
    const struct cpu_argmax_rows *rows;
    int64_t each, size; // splits of a row, and elements of a split but of the last one
    struct best best[MOST_SPLITS];
};

// The loop runs over the splits of all rows.
static void argmax_splits(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    struct cpu_argmax_splits *splits = context;
    const struct cpu_argmax_rows *rows = splits->rows;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t first = unit % splits->each * splits->size, last = first + splits->size;
        struct best best = {.row = rows->row,
                            .size = cpu_dtype_size(reduction_loop_dtype(rows->r.dtype))};
        reduction_walk(&rows->r, row_start(rows, unit / splits->each), first,
                       last < rows->n ? last : rows->n, find_best, &best);
        best.index += first;
        splits->best[unit] = best;
    }
}

// Parts of a row; 1: rows are not cut.
static int64_t argmax_count_splits(const struct cpu_argmax_rows *rows)
{
    int64_t most = MOST_SPLITS / rows->r.kept.count, wanted = rows->n / SPLIT_ELEMENTS;
    int64_t splits = wanted < most ? wanted : most;
    return splits > 1 ? splits : 1;
}

// Joins the splits: of equal elements the one of the earlier split is kept.
static void argmax_run_splits(const tn_cpu_call *call, const struct cpu_argmax_rows *rows,
                              int64_t each)
{
    struct cpu_argmax_splits splits = {
        .rows = rows, .each = each, .size = (rows->n + each - 1) / each};
    int64_t *out = first_element(rows->out);
    call->parallel_for(call, rows->r.kept.count * each, 1, argmax_splits, &splits);
    for (int64_t unit = 0; unit < rows->r.kept.count * each; unit++) {
        struct best *best = &splits.best[unit / each * each], *next = &splits.best[unit];
        memcpy(best->values + best->size, next->values, (size_t)best->size);
        if (next != best && best->row(best->values, 2) == 1) {
            memcpy(best->values, next->values, (size_t)best->size);
            best->index = next->index;
        }
        out[unit / each] = best->index;
    }
}

// --- by columns ------------------------------------------------------------------------

struct columns_best {
    _Alignas(64) char value[COLUMNS_BYTES * 2]; // half floats are widened
    int32_t at[MOST_COLUMNS];
};

// Folds `n` rows of `columns` elements, `stride` elements apart.
static void cpu_argmax_fold_rows(const struct cpu_argmax_rows *rows, const char *x,
                                 int32_t n, int64_t columns, int64_t stride,
                                 struct columns_best *best)
{
    _Alignas(64) float wide[WIDE_ROWS * COLUMNS_BYTES / 2];
    int32_t dtype = rows->r.dtype, loop = reduction_loop_dtype(dtype);
    if (loop == dtype) {
        rows->columns(best->value, best->at, x, 0, n, columns, stride);
        return;
    }
    for (int32_t i = 0; i < n; i += WIDE_ROWS) {
        int32_t m = n - i < WIDE_ROWS ? n - i : WIDE_ROWS;
        for (int32_t k = 0; k < m; k++) {
            const void *row = x + (i + k) * stride * rows->r.size;
            rows->r.kernels->cast[dtype][loop](wide + k * columns, &row, columns, 0);
        }
        rows->columns(best->value, best->at, wide, i, m, columns, columns);
    }
}

// Takes element `from` over, which stands in row `row`, where it is better than element
// `to`, or as good and in an earlier row.
static void take_better(const struct cpu_argmax_rows *rows, struct columns_best *best,
                        int64_t to, const struct columns_best *other, int64_t from,
                        int32_t row)
{
    _Alignas(8) char pair[16];
    size_t size = (size_t)cpu_dtype_size(reduction_loop_dtype(rows->r.dtype));
    char *mine = best->value + (size_t)to * size;
    const char *its = other->value + (size_t)from * size;
    memcpy(pair, mine, size);
    memcpy(pair + size, its, size);
    bool better = rows->row(pair, 2) == 1;
    memcpy(pair, its, size);
    memcpy(pair + size, mine, size);
    bool worse = rows->row(pair, 2) == 1;
    if (!better && (worse || row > best->at[to]))
        return;
    memcpy(mine, its, size);
    best->at[to] = row;
}

// Adjacent narrow rows: several of them are folded as one long row, and what is left over.
static void fold_narrow(const struct cpu_argmax_rows *rows, const char *x,
                        struct columns_best *best)
{
    struct columns_best rest;
    int32_t each = (int32_t)(rows->most / rows->width), n = (int32_t)rows->n;
    int32_t whole = n / each, width = (int32_t)rows->width, left = n - whole * each;
    cpu_argmax_fold_rows(rows, x, whole, (int64_t)width * each, (int64_t)width * each,
                         best);
    for (int32_t i = 0; i < width * each; i++)
        best->at[i] = best->at[i] * each + i / width;
    for (int32_t i = width; i < width * each; i++)
        take_better(rows, best, i % width, best, i, best->at[i]);
    if (left > 0)
        cpu_argmax_fold_rows(rows, x + (int64_t)(n - left) * width * rows->r.size, left,
                             width, width, &rest);
    for (int32_t i = 0; i < width && left > 0; i++)
        take_better(rows, best, i, &rest, i, n - left + rest.at[i]);
}

static void cpu_argmax_fold_columns(const struct cpu_argmax_rows *rows, const char *x,
                                    int64_t columns, struct columns_best *best)
{
    if (rows->width == rows->in_stride && rows->width * NARROW <= rows->most &&
        rows->n >= MOST_COLUMNS)
        fold_narrow(rows, x, best);
    else
        cpu_argmax_fold_rows(rows, x, (int32_t)rows->n, columns, rows->in_stride, best);
}

// The loop runs over units: tiles of columns. The last kept axis has stride 1.
static void argmax_columns(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct cpu_argmax_rows *rows = context;
    struct columns_best best;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t column = unit % rows->tiles * rows->tile, left = rows->width - column;
        int64_t first = unit / rows->tiles * rows->width + column;
        int64_t columns = left < rows->tile ? left : rows->tile;
        int64_t *out = (int64_t *)first_element(rows->out) + first;
        cpu_argmax_fold_columns(rows, row_start(rows, first), columns, &best);
        for (int64_t i = 0; i < columns; i++)
            out[i] = best.at[i];
    }
}

static void cpu_argmax_run_columns(const tn_cpu_call *call, struct cpu_argmax_rows *rows)
{
    const struct axes *kept = &rows->r.kept;
    rows->width = kept->extent[kept->rank - 1];
    rows->most = COLUMNS_BYTES / rows->r.size;
    rows->tile = rows->width < rows->most ? rows->width : rows->most;
    rows->tiles = (rows->width + rows->tile - 1) / rows->tile;
    call->parallel_for(call, kept->count / rows->width * rows->tiles,
                       1 + PIECE_ELEMENTS / (rows->n * rows->tile), argmax_columns, rows);
}

static bool cpu_argmax_has_columns(const struct cpu_argmax_rows *rows)
{
    const struct axes *kept = &rows->r.kept;
    return kept->rank > 0 && kept->count > 0 && kept->stride[kept->rank - 1] == 1 &&
           rows->r.reduced.rank == 1 && rows->in_stride != 1 && rows->n < INT32_MAX;
}

// --- records ---------------------------------------------------------------------------

// `which`: 0 for the greatest, 1 for the least.
static tn_status cpu_argmax_find(const tn_cpu_call *call, int which)
{
    const tn_argmax_attrs *attrs = call->attrs;
    int32_t rank = call->inputs[0].layout.rank;
    uint32_t all = (UINT32_C(1) << rank) - 1;
    struct cpu_argmax_rows rows;
    cpu_argmax_read_rows(call,
                         attrs->axis == TN_NO_AXIS ? all : 1u << tn_axis(attrs->axis, rank),
                         which, &rows);
    if (rows.r.kept.count == 0)
        return TN_OK;
    if (cpu_argmax_has_columns(&rows))
        cpu_argmax_run_columns(call, &rows);
    else if (argmax_count_splits(&rows) > 1)
        argmax_run_splits(call, &rows, argmax_count_splits(&rows));
    else
        call->parallel_for(call, rows.r.kept.count, 1 + PIECE_ELEMENTS / (rows.n + 1),
                           argmax_rows, &rows);
    return TN_OK;
}

static const tn_operand_rule to_index[] = {{TN_FIRST_DTYPES, TN_NEEDS_ANY},
                                           {0, TN_NEEDS_ANY}};

#define KERNEL(id, which)                                                                  \
    static tn_status id(const tn_cpu_call *call)                                           \
    {                                                                                      \
        return cpu_argmax_find(call, which);                                               \
    }                                                                                      \
    static const tn_cpu_kernel id##_payload = {                                            \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = id,                                                                      \
    };                                                                                     \
    const tn_kernel id##_kernel = {.struct_size = sizeof(tn_kernel),                       \
                                   .primitive = "base." #id "/1",                          \
                                   .family = TN_FAMILY_CPU,                                \
                                   .name = "rows",                                         \
                                   .priority = 500,                                        \
                                   TN_OPERANDS(to_index),                                  \
                                   .payload = &id##_payload}
KERNEL(argmax, 0);
KERNEL(argmin, 1);
