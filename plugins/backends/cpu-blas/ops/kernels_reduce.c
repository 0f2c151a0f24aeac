// SPDX-License-Identifier: MIT
// base.{sum,mean,prod,max,min}/1, over any axes. Complex numbers are summed part by part.
//
// By rows: the elements of each output are folded one after the other. By columns, where
// adjacent outputs are adjacent in memory: whole rows are folded into the accumulators
// of all outputs. Reduced elements are cut into splits by sizes alone, and the splits are
// combined in order: the result does not depend on the number of threads.
#include <math.h>
#include <string.h>
#include <tenon/ops/program.h>
#include "reduce_walk.h"

#define PIECE_ELEMENTS 32768 // elements of a split, and of a piece
#define MAX_PARTS 64
#define FEW_ELEMENTS 64  // so few are reduced without a loop over units
#define COLUMN_TILE 2048 // most columns of a unit
#define COLUMN_WIDTH 64  // elements: narrower columns are folded several rows at a time
// Bytes of rows that a program gives at a time: COLUMN_TILE of the widest elements, or more
// rows than are folded as one.
#define LOADED_BYTES 16384
#define FINISH_OUTPUTS 8192 // partial sums that a piece makes results of
#define SUMS 256            // that are finished side by side
#define LEAST_LOADED 32     // elements that are neighbours, for a program to give them

struct fold {
    struct reduction_walk r;
    cpu_reduce_row_fn *row;
    cpu_reduce_columns_fn *columns;
    union cpu_accumulator start;
    int32_t kind; // CPU_REDUCE_...
    bool mean, few;
    bool takes_complex; // numbers as elements, not part by part
    bool mirrored;      // by columns, which lie in memory in reverse order
    const tn_tensor *out;
    const tn_cpu_call *call;         // not NULL: the input passes through a program
    const tn_cpu_call *to;           // of the results
    union cpu_accumulator *partials; // [outputs][splits]
    int64_t splits, split;           // of the reduced elements: number and size
    int64_t width, rows_each; // by columns: elements of a row, and rows folded as one
    int64_t tile, tiles;      // by columns: columns of a unit, and units across a row
};

// Whether to fold by columns: the last kept axis has stride 1, the last reduced axis has
// not, and elements need no conversion.
static bool by_columns(const struct reduction_walk *r)
{
    const struct axes *kept = &r->kept, *reduced = &r->reduced;
    if (kept->rank == 0 || reduced->rank == 0 || kept->count == 0 || reduced->count == 0 ||
        reduction_loop_dtype(r->dtype) != r->dtype)
        return false;
    return kept->stride[kept->rank - 1] == 1 && reduced->stride[reduced->rank - 1] != 1;
}

static void cpu_reduce_choose_splits(struct fold *f)
{
    int64_t reduced = f->r.reduced.count;
    int64_t units = f->r.kept.count / f->width * f->tiles;
    // Many units keep all threads busy without splits.
    int64_t most = units >= MAX_PARTS / 2 ? 1 : MAX_PARTS / (units + 1) + 1;
    f->split = PIECE_ELEMENTS / f->tile + 1;
    if (f->split * most < reduced)
        f->split = (reduced + most - 1) / most;
    // Parts are whole groups of rows that are folded as one.
    f->split = (f->split + f->rows_each - 1) / f->rows_each * f->rows_each;
    f->splits = reduced > 0 ? (reduced + f->split - 1) / f->split : 1;
}

// Columns that lie in memory in reverse are folded as they lie there.
static void find_mirrored(struct fold *f)
{
    struct axes *kept = &f->r.kept;
    int64_t *stride = &kept->stride[kept->rank > 0 ? kept->rank - 1 : 0];
    if (kept->rank == 0 || *stride != -1)
        return;
    *stride = 1;
    f->mirrored = by_columns(&f->r);
    *stride = f->mirrored ? 1 : -1;
}

static void read_fold(const tn_layout *in, const tn_reduce_attrs *attrs, int32_t kind,
                      struct fold *f)
{
    tn_dtype dtype = tn_dtype_real(in->dtype);
    *f = (struct fold){.kind = kind, .start = reduction_start(kind, dtype)};
    f->r.dtype = dtype;
    f->r.size = cpu_dtype_size(dtype);
    (tn_is_complex(in->dtype) ? reduction_split_parts : reduction_split)(
        in, tn_axis_set(&attrs->axis, in->rank), &f->r.kept, &f->r.reduced);
    f->width = f->tile = f->tiles = f->rows_each = 1;
    find_mirrored(f);
    if (by_columns(&f->r)) {
        const struct axes *reduced = &f->r.reduced;
        int64_t run = reduced->extent[reduced->rank - 1];
        f->width = f->r.kept.extent[f->r.kept.rank - 1];
        f->tile = f->width < COLUMN_TILE ? f->width : COLUMN_TILE;
        f->tiles = (f->width + f->tile - 1) / f->tile;
        // Adjacent rows: several of them are folded as one long row.
        if (reduced->stride[reduced->rank - 1] == f->width)
            while (f->rows_each * f->width < COLUMN_WIDTH && run % (f->rows_each * 2) == 0)
                f->rows_each *= 2;
    }
    cpu_reduce_choose_splits(f);
}

static uint64_t fold_scratch(const tn_kernel_query *query)
{
    struct fold f;
    read_fold(&query->inputs[0], query->attrs, CPU_REDUCE_SUM, &f);
    uint64_t of_split =
        tn_saturated_multiply((uint64_t)f.r.kept.count, sizeof(union cpu_accumulator));
    return tn_saturated_multiply(of_split, (uint64_t)f.splits);
}

// --- by rows ---------------------------------------------------------------------------

struct row_fold {
    cpu_reduce_row_fn *row;
    union cpu_accumulator *acc;
};

static void cpu_reduce_fold_run(void *context, const void *run, int64_t n)
{
    const struct row_fold *fold = context;
    fold->row(fold->acc, run, n);
}

// Folds reduced elements [begin, end) of the output whose first element has the number
// `first`, as the input's program gives them. Runs have stride 1: see reduce_accepts.
static void fold_loaded(const struct fold *f, int64_t first, int64_t begin, int64_t end,
                        union cpu_accumulator *acc, uint32_t worker)
{
    _Alignas(64) char block[REDUCE_BLOCK * 8], wide[REDUCE_BLOCK * 4];
    const struct axes *axes = &f->r.reduced;
    int32_t loop = reduction_loop_dtype(f->r.dtype);
    int64_t length = axes->rank > 0 ? axes->extent[axes->rank - 1] : 1;
    while (begin < end) {
        int64_t left = length - begin % length;
        int64_t n = end - begin < left ? end - begin : left;
        n = n < REDUCE_BLOCK ? n : REDUCE_BLOCK;
        const void *in = block;
        f->call->load(f->call, 0, first + axes_offset(axes, begin), n, block, worker);
        if (loop != f->r.dtype && !f->r.takes_halves) {
            f->r.kernels->cast[f->r.dtype][loop](wide, &in, n, 0);
            in = wide;
        }
        f->row(acc, in, n);
        begin += n;
    }
}

// Whether the reduced elements of each output are one run in memory that the loop takes.
static bool cpu_reduce_is_one_run(const struct fold *f)
{
    const struct axes *reduced = &f->r.reduced;
    return !f->call && f->splits == 1 && reduced->count > 0 &&
           (f->r.takes_halves || reduction_loop_dtype(f->r.dtype) == f->r.dtype) &&
           (reduced->rank == 0 || (reduced->rank == 1 && reduced->stride[0] == 1));
}

// The loop runs over units: a split of one output.
static void cpu_reduce_fold_rows(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct fold *f = context;
    int64_t count = f->r.reduced.count;
    bool is_run = cpu_reduce_is_one_run(f); // walking takes longer than ten elements
    for (int64_t unit = begin; unit < end && is_run; unit++) {
        f->partials[unit] = f->start;
        f->row(&f->partials[unit], f->r.base + axes_offset(&f->r.kept, unit) * f->r.size,
               count);
    }
    if (is_run)
        return;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t output = unit / f->splits, first = (unit - output * f->splits) * f->split;
        struct row_fold fold = {f->row, &f->partials[unit]};
        int64_t end_of_split = first + f->split < count ? first + f->split : count;
        *fold.acc = f->start;
        if (f->call)
            fold_loaded(f, axes_offset(&f->r.kept, output), first, end_of_split, fold.acc,
                        worker);
        else
            reduction_walk(&f->r, f->r.base + axes_offset(&f->r.kept, output) * f->r.size,
                           first, end_of_split, cpu_reduce_fold_run, &fold);
    }
}

// --- by columns ------------------------------------------------------------------------

// Folds reduced elements [begin, end), each a row of `columns`, into acc.
// `first` is the number of the split's first element.
static void fold_split(const struct fold *f, int64_t first, int64_t columns, int64_t begin,
                       int64_t end, union cpu_accumulator *acc, uint32_t worker)
{
    _Alignas(64) char block[LOADED_BYTES];
    const struct axes *reduced = &f->r.reduced;
    int64_t length = reduced->extent[reduced->rank - 1];
    int64_t stride = reduced->stride[reduced->rank - 1];
    int64_t loaded = LOADED_BYTES / (columns * f->r.size); // rows
    if (stride != columns)
        loaded = 1;
    loaded = loaded / f->rows_each * f->rows_each;
    while (begin < end) {
        int64_t left = length - begin % length;
        int64_t n = end - begin < left ? end - begin : left;
        int64_t at = first + axes_offset(reduced, begin);
        const char *rows = block;
        if (f->call) {
            n = n < loaded ? n : loaded;
            f->call->load(f->call, 0, at, n * columns, block, worker);
        } else {
            rows = f->r.base + at * f->r.size;
        }
        f->columns(acc, rows, n / f->rows_each, columns * f->rows_each,
                   (f->call ? columns : stride) * f->rows_each);
        begin += n;
    }
}

static void add_accumulator(const struct fold *f, union cpu_accumulator *to,
                            const union cpu_accumulator *from);

static void fold_unit(const struct fold *f, int64_t unit, uint32_t worker)
{
    union cpu_accumulator wide[2 * COLUMN_WIDTH];
    int64_t split = unit % f->splits, tile = unit / f->splits % f->tiles;
    int64_t row = unit / f->splits / f->tiles, column = tile * f->tile;
    int64_t left = f->width - column, columns = left < f->tile ? left : f->tile;
    int64_t from = split * f->split, to = from + f->split, count = f->r.reduced.count;
    int64_t first = axes_offset(&f->r.kept, row * f->width) + column;
    union cpu_accumulator *out =
        &f->partials[(row * f->splits + split) * f->width + column];
    union cpu_accumulator *acc = f->rows_each > 1 ? wide : out;

    for (int64_t i = 0; i < columns * f->rows_each; i++)
        acc[i] = f->start;
    fold_split(f, first, columns, from, to < count ? to : count, acc, worker);
    bool is_sum = f->kind == CPU_REDUCE_SUM && tn_is_float(f->r.dtype);
    for (int64_t k = 1; is_sum && k < f->rows_each; k++) // without a call for each
        for (int64_t i = 0; i < columns; i++)
            wide[i].f += wide[k * columns + i].f;
    for (int64_t i = 0; f->rows_each > 1 && is_sum && i < columns; i++)
        out[i] = wide[i];
    for (int64_t i = 0; f->rows_each > 1 && !is_sum && i < columns; i++) {
        out[i] = wide[i];
        for (int64_t k = 1; k < f->rows_each; k++)
            add_accumulator(f, &out[i], &wide[k * columns + i]);
    }
}

// The loop runs over units: a split of a tile of one row of outputs.
static void cpu_reduce_fold_columns(void *context, int64_t begin, int64_t end,
                                    uint32_t worker)
{
    for (int64_t unit = begin; unit < end; unit++)
        fold_unit(context, unit, worker);
}

// --- results ---------------------------------------------------------------------------

static void add_accumulator(const struct fold *f, union cpu_accumulator *to,
                            const union cpu_accumulator *from)
{
    int32_t dtype = f->r.dtype;
    if (f->kind == CPU_REDUCE_SUM && tn_is_float(dtype))
        to->f += from->f;
    else if (f->kind == CPU_REDUCE_SUM)
        to->i = (int64_t)((uint64_t)to->i + (uint64_t)from->i);
    else
        f->r.kernels->reduce->row[f->kind][reduction_total(dtype)](to, from, 1);
}

// Writes an output's element from an accumulator, converted.
static void cpu_reduce_store(const struct fold *f, char *out,
                             const union cpu_accumulator *acc)
{
    const struct cpu_kernels *kernels = f->r.kernels;
    int32_t to = tn_dtype_real(f->out->layout.dtype), from = reduction_total(f->r.dtype);
    union cpu_accumulator value = *acc;
    const void *in = &value;
    float narrow;

    if (from == TN_F64 && to == TN_F32) { // without the call
        narrow = (float)(f->mean ? acc->f / (double)f->r.reduced.count : acc->f);
        memcpy(out, &narrow, sizeof(narrow));
        return;
    }
    if (f->mean) {
        double sum = from == TN_F64   ? acc->f
                     : from == TN_U64 ? (double)(uint64_t)acc->i
                                      : (double)acc->i;
        value.f = sum / (double)f->r.reduced.count;
        from = TN_F64;
    }
    int32_t computed = tn_dtype_computed(to);
    if (computed != to) {
        kernels->cast[from][computed](&narrow, &in, 1, 0);
        in = &narrow;
        from = computed;
    }
    kernels->cast[from][to](out, &in, 1, 0);
}

// Adds the splits of outputs [first, first + n), which are in one row, to f32, as
// finish_range does of each.
static void finish_sums(const struct fold *f, float *out, int64_t first, int64_t n)
{
    double total[SUMS];
    int64_t row = f->splits > 1 ? first / f->width : 0;
    const union cpu_accumulator *from =
        f->partials + row * f->splits * f->width + (first - row * f->width);
    double count = f->mean ? (double)f->r.reduced.count : 1;
    for (int64_t i = 0; i < n; i++)
        total[i] = from[i].f;
    for (int64_t k = 1; k < f->splits; k++) {
        from += f->width;
        for (int64_t i = 0; i < n; i++)
            total[i] += from[i].f;
    }
    for (int64_t i = 0; i < n && f->mean; i++)
        total[i] /= count;
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)total[i];
}

static bool are_sums_of_f32(const struct fold *f)
{
    return f->kind == CPU_REDUCE_SUM && !f->mirrored &&
           reduction_total(f->r.dtype) == TN_F64 && f->out->layout.dtype == TN_F32;
}

// Writes outputs [begin, end) to `out`.
static void finish_range(const struct fold *f, char *out, int64_t begin, int64_t end)
{
    for (int64_t n; begin < end && are_sums_of_f32(f); begin += n, out += n * 4) {
        int64_t left = f->splits > 1 ? f->width - begin % f->width : end - begin;
        n = left < end - begin ? left : end - begin;
        n = n < SUMS ? n : SUMS;
        finish_sums(f, (float *)(void *)out, begin, n);
    }
    int64_t width = f->width, size = cpu_dtype_size(tn_dtype_real(f->out->layout.dtype));
    for (int64_t i = begin; i < end; i++, out += size) {
        int64_t row = f->splits > 1 || f->mirrored ? i / width : 0,
                column = i - row * width;
        column = f->mirrored ? width - 1 - column : column;
        int64_t at = row * f->splits * width + column;
        union cpu_accumulator acc = f->partials[at];
        for (int64_t k = 1; k < f->splits; k++)
            add_accumulator(f, &acc, &f->partials[at + k * width]);
        cpu_reduce_store(f, out, &acc);
    }
}

// The loop runs over outputs, which pass through a program.
static void store_results(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    _Alignas(64) char block[REDUCE_BLOCK * 8];
    const struct fold *f = context;
    for (int64_t i = begin; i < end; i += REDUCE_BLOCK) {
        int64_t n = end - i < REDUCE_BLOCK ? end - i : REDUCE_BLOCK;
        finish_range(f, block, i, i + n);
        f->to->store(f->to, 0, i, n, block, worker);
    }
}

// The loop runs over outputs, which are in memory.
static void finish_results(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct fold *f = context;
    char *out = first_element(f->out);
    (void)worker;
    out += begin * (int64_t)cpu_dtype_size(tn_dtype_real(f->out->layout.dtype));
    finish_range(f, out, begin, end);
}

static void cpu_reduce_write_results(struct fold *f, const tn_cpu_call *call)
{
    int64_t count = f->r.kept.count;
    f->to = call;
    if (f->out->data)
        call->parallel_for(call, count, 1 + FINISH_OUTPUTS / f->splits, finish_results, f);
    else
        call->parallel_for(call, count, REDUCE_BLOCK, store_results, f);
}

// --- a few elements --------------------------------------------------------------------

// Whether the reduction is of a few f32 elements, along at most one kept and one reduced
// axis: the general way costs more than the elements.
static bool cpu_reduce_is_few(const struct reduction_walk *r, const tn_layout *out)
{
    return r->dtype == TN_F32 && out->dtype == TN_F32 && r->kept.rank <= 1 &&
           r->reduced.rank <= 1 && r->kept.count * r->reduced.count <= FEW_ELEMENTS;
}

static void reduce_few(const struct fold *f, const float *from, float *to)
{
    const struct axes *kept = &f->r.kept, *reduced = &f->r.reduced;
    int64_t step = reduced->rank ? reduced->stride[0] : 0,
            next = kept->rank ? kept->stride[0] : 0;
    int32_t kind = f->kind;
    for (int64_t i = 0; i < kept->count; i++, from += next) {
        double acc = f->start.f;
        for (int64_t k = 0; k < reduced->count; k++) {
            double x = (double)from[k * step];
            if (kind == CPU_REDUCE_SUM)
                acc += x;
            else if (kind == CPU_REDUCE_PROD)
                acc *= x;
            else if (x != x || (kind == CPU_REDUCE_MAX ? x > acc : x < acc))
                acc = x; // a NaN stays, since comparisons with it are false
        }
        to[i] = (float)(f->mean ? acc / (double)reduced->count : acc);
    }
}

// --- complex numbers as elements -------------------------------------------------------

struct complex_fold {
    struct reduction_walk r;
    const tn_tensor *out;
    cpu_complex_fold_fn *fold;
    tn_complex128 start;
    double divisor; // of the result
};

struct complex_run {
    const struct complex_fold *f;
    tn_complex128 *total;
};

static void complex_fold_run(void *context, const void *run, int64_t n)
{
    const struct complex_run *of = context;
    of->f->fold(of->total, run, n);
}

// The loop runs over outputs.
static void complex_fold_all(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct complex_fold *f = context;
    for (int64_t i = begin; i < end; i++) {
        const char *first = f->r.base + axes_offset(&f->r.kept, i) * f->r.size;
        tn_complex128 total = f->start;
        struct complex_run run = {f, &total};
        reduction_walk(&f->r, first, 0, f->r.reduced.count, complex_fold_run, &run);
        total.re /= f->divisor;
        total.im /= f->divisor;
        tn_set_complex(f->out, f->out->layout.offset + i, total);
    }
}

static tn_status complex_reduce(const tn_cpu_call *call, const struct fold *prepared)
{
    const tn_reduce_attrs *attrs = call->attrs;
    const tn_layout *in = &call->inputs[0].layout;
    bool is_sum = prepared->kind == CPU_REDUCE_SUM, is_wide = in->dtype == TN_COMPLEX128;
    struct complex_fold f = {.r = {.kernels = kernel_variant(call),
                                   .base = first_element(&call->inputs[0]),
                                   .dtype = in->dtype,
                                   .size = cpu_dtype_size(in->dtype)},
                             .out = &call->outputs[0],
                             .start = {is_sum ? 0 : 1, 0}};
    const struct cpu_reduce_kernels *kernels = f.r.kernels->reduce;
    f.fold = (is_sum ? kernels->complex_sum : kernels->complex_product)[is_wide];
    reduction_split(in, tn_axis_set(&attrs->axis, in->rank), &f.r.kept, &f.r.reduced);
    f.divisor = prepared->mean ? (double)f.r.reduced.count : 1;
    int64_t each = PIECE_ELEMENTS / (is_sum ? 2 : 8);
    call->parallel_for(call, f.r.kept.count, 1 + each / (f.r.reduced.count + 1),
                       complex_fold_all, &f);
    return TN_OK;
}

// Whether the sums are those of one run of complex numbers each; part by part a row has two
// columns. Longer runs are shared by threads.
static bool are_complex_rows(const struct fold *f)
{
    const struct axes *reduced = &f->r.reduced;
    return f->kind == CPU_REDUCE_SUM && f->splits == 1 && !f->mirrored &&
           reduced->rank == 1 && reduced->stride[0] == 2 && reduced->count >= 32;
}

// --- stages ----------------------------------------------------------------------------

// The state of a step: the fold, but for what differs from launch to launch. How the axes
// are walked costs as much to find out as a short sum.
static tn_status cpu_reduce_prepare(const tn_cpu_call *call, int32_t kind, bool mean,
                                    void **out_state)
{
    const tn_layout *in = &call->inputs[0].layout;
    struct fold *f = call->host->alloc(call->host, sizeof(*f), 64);
    if (!f)
        return TN_ERR_MEMORY;
    read_fold(in, call->attrs, kind, f);
    int32_t loop = reduction_loop_dtype(f->r.dtype);
    f->r.kernels = kernel_variant(call);
    f->r.takes_halves =
        loop != f->r.dtype && f->r.kernels->reduce->row[kind][f->r.dtype] != NULL;
    f->row = f->r.kernels->reduce->row[kind][f->r.takes_halves ? f->r.dtype : loop];
    f->columns = f->r.kernels->reduce->columns[kind][loop];
    f->mean = mean;
    f->few = cpu_reduce_is_few(&f->r, &call->outputs[0].layout) && !f->mirrored;
    f->takes_complex =
        tn_is_complex(in->dtype) && (kind == CPU_REDUCE_PROD || are_complex_rows(f));
    *out_state = f;
    return TN_OK;
}

static void cpu_reduce_finish(const tn_host *host, void *state)
{
    host->free(host, state);
}

static tn_status cpu_reduce(const tn_cpu_call *call)
{
    const tn_tensor *in = &call->inputs[0], *out = &call->outputs[0];
    const struct fold *prepared = call->state;
    if (prepared->takes_complex)
        return complex_reduce(call, prepared);
    if (prepared->few && in->data && out->data) {
        reduce_few(prepared, first_element(in), first_element(out));
        return TN_OK;
    }
    struct fold f = *prepared;
    f.call = in->data ? NULL : call;
    f.r.base = in->data ? first_element(in) : NULL;
    if (f.mirrored)
        f.r.base -= (f.width - 1) * f.r.size;
    f.out = out;
    f.partials = call->scratch;
    if (f.r.kept.count == 0)
        return TN_OK;
    int64_t units = f.r.kept.count / f.width * f.tiles * f.splits;
    int64_t each = (f.split < f.r.reduced.count ? f.split : f.r.reduced.count) * f.tile;
    call->parallel_for(call, units, 1 + PIECE_ELEMENTS / (each + 1),
                       by_columns(&f.r) ? cpu_reduce_fold_columns : cpu_reduce_fold_rows,
                       &f);
    cpu_reduce_write_results(&f, call);
    return TN_OK;
}

// A program gives elements of the input as quickly as memory does where neighbours are
// folded one after the other. Parts of complex numbers are no elements of it.
static int32_t reduce_accepts(const tn_kernel_query *query)
{
    struct fold f;
    if (query->fused && tn_is_complex(query->inputs[0].dtype))
        return 0;
    if (!(query->fused & 1))
        return 1;
    read_fold(&query->inputs[0], query->attrs, CPU_REDUCE_SUM, &f);
    if (f.mirrored)
        return 0;
    const struct axes *reduced = &f.r.reduced;
    return by_columns(&f.r)
               ? f.tile >= LEAST_LOADED
               : reduced->rank > 0 && reduced->stride[reduced->rank - 1] == 1 &&
                     reduced->extent[reduced->rank - 1] >= LEAST_LOADED;
}

// Defines the stages and the record of a reduction.
#define REDUCTION(id, kind, is_mean, rules)                                                \
    static tn_status id##_prepare(const tn_cpu_call *call, void **out_state)               \
    {                                                                                      \
        return cpu_reduce_prepare(call, kind, is_mean, out_state);                         \
    }                                                                                      \
    static const tn_cpu_kernel id##_payload = {                                            \
        .struct_size = sizeof(tn_cpu_kernel),                                              \
        .launch = cpu_reduce,                                                              \
        .prepare = id##_prepare,                                                           \
        .finish = cpu_reduce_finish,                                                       \
    };                                                                                     \
    const tn_kernel id##_kernel = {                                                        \
        .struct_size = sizeof(tn_kernel),                                                  \
        .primitive = "base." #id "/1",                                                     \
        .family = TN_FAMILY_CPU,                                                           \
        .name = "blocked",                                                                 \
        .priority = 500,                                                                   \
        TN_OPERANDS(rules),                                                                \
        .accepts = reduce_accepts,                                                         \
        .scratch_size = fold_scratch,                                                      \
        .payload = &id##_payload,                                                          \
    }
static const tn_operand_rule numbers[] = {
    {TN_FIRST_DTYPES | TN_COMPLEX_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
// Sums wrap in 64 bits, where the mean's are in f64: it is decomposed for wide integers.
#define WIDE_INTEGERS (TN_DTYPE_BIT(TN_I64) | TN_DTYPE_BIT(TN_U64))
static const tn_operand_rule averaged[] = {
    {(TN_FIRST_DTYPES & ~WIDE_INTEGERS) | TN_COMPLEX_DTYPES, TN_NEEDS_ANY,
     TN_OPERAND_FUSES}};
static const tn_operand_rule ordered[] = {
    {TN_FIRST_DTYPES, TN_NEEDS_ANY, TN_OPERAND_FUSES}};
REDUCTION(sum, CPU_REDUCE_SUM, false, numbers);
REDUCTION(mean, CPU_REDUCE_SUM, true, averaged);
REDUCTION(prod, CPU_REDUCE_PROD, false, numbers);
REDUCTION(max, CPU_REDUCE_MAX, false, ordered);
REDUCTION(min, CPU_REDUCE_MIN, false, ordered);
#undef REDUCTION
