// SPDX-License-Identifier: MIT
// quant.quantized_matmul with weights of f16 or bf16, which stay so in memory. x and sums
// are f32: no element of x is rounded, and none of the weights.
//
// Few rows of x are multiplied in the time of reading the weights, which become f32 in
// registers (kernels/cpu/matmul/few_rows.h). More rows are multiplied on the tiles of AMX,
// as sums of floats of 16 bits (kernels/cpu/matmul/halves.h). Without those some columns'
// weights become f32 in the worker's scratch memory, which BLAS reads.
#include <limits.h>
#include <string.h>
#include "blas.h"
#include "ops/kernels.h"

#define PIECE_WORK 65536      // multiplications of a piece of a loop, at least
#define WIDENED_BYTES 8388608 // of weights as f32, of one worker
#define COLUMN_ALIGN 16       // columns: a multiple of OpenBLAS' register block
#define TILED_ROWS 512        // of x, that are in pieces at a time

// A launch: x is rows by k, w columns by k.
struct halves_run {
    const struct cpu_kernels *kernels;
    const struct blas *blas;
    const float *x;
    const char *w;
    float *out;
    int64_t rows, columns, k;
    int64_t columns_each; // of a piece
    tn_dtype dtype;       // of w
    char *scratch;
    int64_t part; // bytes of scratch memory of each worker
    const struct cpu_halves_kernels *tiles;
    int64_t first_row; // of those that are in pieces
};

static int64_t count_rows(const tn_layout *x)
{
    int64_t rows = 1;
    for (int32_t i = 0; i < x->rank - 1; i++)
        rows *= x->extent[i];
    return rows;
}

// The most columns whose weights become f32 together.
static int64_t most_columns(int64_t k)
{
    int64_t most = WIDENED_BYTES / (int64_t)sizeof(float) / (k > 0 ? k : 1);
    return most < COLUMN_ALIGN ? COLUMN_ALIGN : most / COLUMN_ALIGN * COLUMN_ALIGN;
}

// Columns whose weights become f32 together, so that each thread has some.
static int64_t cpu_halves_widened_columns(const struct halves_run *r, int64_t threads)
{
    int64_t most = most_columns(r->k);
    int64_t own = (r->columns / threads + COLUMN_ALIGN) / COLUMN_ALIGN * COLUMN_ALIGN;
    return own < most ? own : most;
}

// --- few rows ---------------------------------------------------------------------------

// Pieces of columns_each columns.
static void cpu_halves_multiply_few(void *context, int64_t begin, int64_t end,
                                    uint32_t worker)
{
    const struct halves_run *r = context;
    int64_t first = begin * r->columns_each, last = end * r->columns_each;
    (void)worker;
    last = last < r->columns ? last : r->columns;
    r->kernels->few->by_rows(&(struct cpu_few_rows){
        .a = r->x,
        .b = r->w + first * r->k * 2,
        .c = r->out + first,
        .m = r->rows,
        .n = last - first,
        .k = r->k,
        .a_row = r->k,
        .b_row = r->k,
        .c_row = r->columns,
        .scale = 1,
        .kind = cpu_few_kind(r->dtype),
    });
}

static tn_status cpu_halves_launch_few(const tn_cpu_call *call, struct halves_run *r)
{
    r->columns_each = COLUMN_ALIGN;
    int64_t work = r->rows * r->k * r->columns_each;
    call->parallel_for(call, (r->columns + COLUMN_ALIGN - 1) / COLUMN_ALIGN,
                       1 + PIECE_WORK / (work + 1), cpu_halves_multiply_few, r);
    return TN_OK;
}

// --- many rows --------------------------------------------------------------------------

static void cpu_halves_multiply_widened(void *context, int64_t begin, int64_t end,
                                        uint32_t worker)
{
    const struct halves_run *r = context;
    char *values = r->scratch + worker * r->part;
    cpu_map_fn *widen = r->kernels->cast[r->dtype][TN_F32];
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t first = piece * r->columns_each, left = r->columns - first;
        int64_t count = left < r->columns_each ? left : r->columns_each;
        const void *from = r->w + first * r->k * 2;
        widen(values, &from, count * r->k, 0);
        r->blas->sgemm(BLAS_ROW_MAJOR, BLAS_NO_TRANS, BLAS_TRANS, (int)r->rows, (int)count,
                       (int)r->k, 1, r->x, (int)r->k, (const float *)(const void *)values,
                       (int)r->k, 0, r->out + first, (int)r->columns);
    }
}

static tn_status cpu_halves_launch_many(const tn_cpu_call *call, struct halves_run *r)
{
    tn_status status = blas_enter(call, &r->blas);
    if (status != TN_OK)
        return status;
    r->columns_each = cpu_halves_widened_columns(r, call->num_threads);
    r->part = r->columns_each * r->k * (int64_t)sizeof(float);
    r->scratch = call->scratch;
    int64_t pieces = (r->columns + r->columns_each - 1) / r->columns_each;
    int64_t work = r->rows * r->k * r->columns_each;
    if (blas_is_threaded())
        cpu_halves_multiply_widened(r, 0, pieces, 0);
    else
        call->parallel_for(call, pieces, 1 + PIECE_WORK / (work + 1),
                           cpu_halves_multiply_widened, r);
    blas_leave();
    return TN_OK;
}

// --- many rows, on tiles -----------------------------------------------------------------

static int64_t tiled_rows(int64_t rows)
{
    return rows < TILED_ROWS ? rows : TILED_ROWS;
}

static struct cpu_halves tiled_rows_of(const struct halves_run *r)
{
    return (struct cpu_halves){.x = r->x + r->first_row * r->k,
                               .pieces = r->scratch,
                               .rows = tiled_rows(r->rows - r->first_row),
                               .k = r->k,
                               .out_row = r->columns,
                               .dtype = r->dtype};
}

static void split_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct cpu_halves p = tiled_rows_of(context);
    (void)worker;
    ((const struct halves_run *)context)->tiles->split(&p, begin, end);
}

static void multiply_tiles(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct halves_run *r = context;
    struct cpu_halves p = tiled_rows_of(r);
    p.scratch =
        r->scratch + cpu_halves_pieces(tiled_rows(r->rows), r->k) + worker * r->part;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t first = piece * r->columns_each, left = r->columns - first;
        p.w = (const uint16_t *)(const void *)r->w + first * r->k;
        p.out = r->out + r->first_row * r->columns + first;
        p.columns = left < r->columns_each ? left : r->columns_each;
        r->tiles->multiply(&p);
    }
}

// Columns of a piece: as many as are fast, or fewer, so that each thread has some.
static int64_t tiled_columns(const struct halves_run *r, int64_t threads)
{
    int64_t own = (r->columns + threads - 1) / threads;
    own = (own + CPU_HALVES_ROWS - 1) / CPU_HALVES_ROWS * CPU_HALVES_ROWS;
    return own < CPU_HALVES_COLUMNS ? own : CPU_HALVES_COLUMNS;
}

static tn_status cpu_halves_launch_tiles(const tn_cpu_call *call, struct halves_run *r)
{
    r->columns_each = tiled_columns(r, call->num_threads);
    r->part = cpu_halves_scratch(tiled_rows(r->rows));
    r->scratch = call->scratch;
    for (; r->first_row < r->rows; r->first_row += TILED_ROWS) {
        call->parallel_for(call, cpu_halves_groups(tiled_rows(r->rows - r->first_row)), 1,
                           split_rows, r);
        call->parallel_for(call, (r->columns + r->columns_each - 1) / r->columns_each, 1,
                           multiply_tiles, r);
    }
    return TN_OK;
}

// 512 x 4096 x 4096 takes 16 threads of a Xeon (Emerald Rapids) 13 ms of bf16 and 16 of
// f16, BLAS 22; one thread 68 ms of bf16, BLAS 155. Of f16 there are more pieces, and one
// thread is not faster.
static bool takes_tiles(const tn_cpu_call *call, const struct halves_run *r)
{
    return r->tiles && (r->dtype == TN_BF16 || call->num_threads > 1);
}

static uint64_t cpu_halves_tiles_scratch(int64_t rows, int64_t k, uint64_t workers)
{
    return tn_saturated_add(
        (uint64_t)cpu_halves_pieces(tiled_rows(rows), k),
        tn_saturated_multiply(workers, (uint64_t)cpu_halves_scratch(tiled_rows(rows))));
}

// --- the kernel -------------------------------------------------------------------------

static tn_status halves_matmul(const tn_cpu_call *call)
{
    const tn_layout *x = &call->inputs[0].layout, *w = &call->inputs[1].layout;
    struct halves_run r = {.kernels = kernel_variant(call),
                           .x = first_element(&call->inputs[0]),
                           .w = first_element(&call->inputs[1]),
                           .out = first_element(&call->outputs[0]),
                           .rows = count_rows(x),
                           .columns = w->extent[0],
                           .k = w->extent[1],
                           .dtype = w->dtype,
                           .tiles = halves_variant(call)};
    if (r.rows == 0 || r.columns == 0)
        return TN_OK;
    if (r.k == 0)
        memset(r.out, 0, (size_t)(r.rows * r.columns) * sizeof(float));
    else if (r.rows <= CPU_FEW_ROWS)
        return cpu_halves_launch_few(call, &r);
    else
        return takes_tiles(call, &r) ? cpu_halves_launch_tiles(call, &r)
                                     : cpu_halves_launch_many(call, &r);
    return TN_OK;
}

// All threads' together have no more columns than there are, but for COLUMN_ALIGN each.
static uint64_t halves_scratch(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0], *w = &query->inputs[1];
    uint64_t workers = query->num_workers, columns = (uint64_t)w->extent[0];
    uint64_t most = tn_saturated_multiply(workers, (uint64_t)most_columns(w->extent[1]));
    if (count_rows(x) <= CPU_FEW_ROWS)
        return 0;
    columns = tn_saturated_add(columns, workers * COLUMN_ALIGN);
    uint64_t widened = tn_saturated_multiply(
        tn_saturated_multiply(columns < most ? columns : most, (uint64_t)w->extent[1]),
        sizeof(float));
    uint64_t tiles = cpu_halves_tiles_scratch(count_rows(x), w->extent[1], workers);
    return widened > tiles ? widened : tiles;
}

static int32_t halves_accepts(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0], *w = &query->inputs[1];
    return count_rows(x) <= CPU_FEW_ROWS ||
           (blas_open() && count_rows(x) <= INT_MAX && w->extent[0] <= INT_MAX &&
            w->extent[1] <= INT_MAX);
}

static const tn_operand_rule rules[] = {
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16), TN_NEEDS_CONTIGUOUS},
    {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS}};
static const tn_cpu_kernel payload = {.struct_size = sizeof(tn_cpu_kernel),
                                      .launch = halves_matmul};
const tn_kernel quant_halves_kernel = {.struct_size = sizeof(tn_kernel),
                                       .primitive = "quant.quantized_matmul/1",
                                       .family = TN_FAMILY_CPU,
                                       .name = "quant_halves",
                                       .priority = 700,
                                       TN_OPERANDS(rules),
                                       .payload = &payload,
                                       .accepts = halves_accepts,
                                       .scratch_size = halves_scratch};
