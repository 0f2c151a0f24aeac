// SPDX-License-Identifier: MIT
// base.argmax/1 for f32: loops over the rows along the reduced axes.
#include <math.h>
#include "reduce_walk.h"

#define PIECE_ELEMENTS 8192 // least elements of a piece

struct rows {
    struct reduction r;
    const tn_tensor *in, *out;
    int64_t n; // elements of a row
    int64_t in_stride;
};

static void read_rows(const tn_cpu_call *call, uint32_t set, struct rows *rows)
{
    const tn_tensor *in = &call->inputs[0];
    *rows = (struct rows){
        .in = in,
        .out = &call->outputs[0],
        .r = {.kernels = kernel_variant(call),
              .base = first_element(in),
              .dtype = in->layout.dtype,
              .size = cpu_dtype_size(in->layout.dtype)},
    };
    reduction_split(&in->layout, set, &rows->r.kept, &rows->r.reduced);
    rows->n = rows->r.reduced.count;
    rows->in_stride =
        rows->r.reduced.rank > 0 ? rows->r.reduced.stride[rows->r.reduced.rank - 1] : 1;
}

static int64_t grain_of(const struct rows *rows)
{
    return 1 + PIECE_ELEMENTS / (rows->n + 1);
}

static const float *row_start(const struct rows *rows, int64_t i)
{
    return (const float *)(const void *)rows->r.base + axes_offset(&rows->r.kept, i);
}

// --- argmax ----------------------------------------------------------------------------

struct best {
    int64_t (*argmax)(const float *x, int64_t n);
    float value;
    int64_t index, seen; // `seen`: elements of earlier runs
};

static void find_best(void *context, const void *run, int64_t n)
{
    struct best *best = context;
    const float *x = run;
    int64_t i = best->argmax(x, n);
    // NaN counts as the greatest; of equal elements the first wins.
    bool better = x[i] > best->value || (isnan(x[i]) && !isnan(best->value));
    if (best->seen == 0 || better) {
        best->value = x[i];
        best->index = best->seen + i;
    }
    best->seen += n;
}

static void argmax_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct rows *rows = context;
    int64_t *out = first_element(rows->out);
    for (int64_t i = begin; i < end; i++) {
        struct best best = {.argmax = rows->r.kernels->reduce->argmax_f32};
        reduction_walk(&rows->r, (const char *)row_start(rows, i), 0, rows->n, find_best,
                       &best);
        out[i] = best.index;
    }
}

#define ARGMAX_COLUMNS 128 // columns of a unit

// The loop runs over units: tiles of columns. The last kept axis has stride 1.
static void argmax_columns(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct rows *rows = context;
    const struct axes *kept = &rows->r.kept;
    int64_t width = kept->extent[kept->rank - 1];
    int64_t tiles = (width + ARGMAX_COLUMNS - 1) / ARGMAX_COLUMNS;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t column = unit % tiles * ARGMAX_COLUMNS;
        int64_t first = unit / tiles * width + column, left = width - column;
        rows->r.kernels->reduce->argmax_columns_f32(
            (int64_t *)first_element(rows->out) + first, row_start(rows, first), rows->n,
            left < ARGMAX_COLUMNS ? left : ARGMAX_COLUMNS, rows->in_stride);
    }
}

static void run_argmax_columns(const tn_cpu_call *call, struct rows *rows)
{
    const struct axes *kept = &rows->r.kept;
    int64_t width = kept->extent[kept->rank - 1];
    int64_t tiles = (width + ARGMAX_COLUMNS - 1) / ARGMAX_COLUMNS;
    int64_t each = rows->n * (width < ARGMAX_COLUMNS ? width : ARGMAX_COLUMNS);
    call->parallel_for(call, kept->count / width * tiles, 1 + PIECE_ELEMENTS / each,
                       argmax_columns, rows);
}

static bool has_columns(const struct rows *rows)
{
    const struct axes *kept = &rows->r.kept;
    return kept->rank > 0 && kept->count > 0 && kept->stride[kept->rank - 1] == 1 &&
           rows->r.reduced.rank == 1 && rows->in_stride != 1 && rows->n < INT32_MAX;
}

static tn_status argmax(const tn_cpu_call *call)
{
    const tn_argmax_attrs *attrs = call->attrs;
    int32_t rank = call->inputs[0].layout.rank;
    uint32_t all = (UINT32_C(1) << rank) - 1;
    struct rows rows;
    read_rows(call, attrs->axis == TN_NO_AXIS ? all : 1u << tn_axis(attrs->axis, rank),
              &rows);
    if (has_columns(&rows))
        run_argmax_columns(call, &rows);
    else
        call->parallel_for(call, rows.r.kept.count, grain_of(&rows), argmax_rows, &rows);
    return TN_OK;
}

// --- records ---------------------------------------------------------------------------

#define F32 TN_DTYPE_BIT(TN_F32)
static const tn_operand_rule f32_to_index[] = {{F32, TN_NEEDS_ANY}, {0, TN_NEEDS_ANY}};

static const tn_cpu_kernel payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = argmax,
};
const tn_kernel argmax_kernel = {.struct_size = sizeof(tn_kernel),
                                 .primitive = "base.argmax/1",
                                 .family = TN_FAMILY_CPU,
                                 .name = "rows",
                                 .priority = 500,
                                 TN_OPERANDS(f32_to_index),
                                 .payload = &payload};
