// SPDX-License-Identifier: MIT
// nn.recurrence_steps/1 and nn.recurrence_grad/1 of f32: all positions in one launch.
//
// The weights are packed once, into panels of the register tiles of convolutions
// (cpu/conv/tiles.h); few rows of few positions read them where they lie
// (cpu/matmul/few_rows.h). Rows do not depend on each other: blocks of rows go through all
// positions by themselves. Where there is one block, the products of a position are dealt
// to the threads.
#include <string.h>
#include <tenon/ops/nn_attrs.h>
#include "kernels.h"

#define BLOCK_ROWS 112  // at most: their sums stay in a cache
#define LEAST_ROWS 14   // of a block, for more than one
#define DEALT (1 << 20) // products of a position from which its columns are dealt
#define LEAST_LENGTH 8  // for which few rows have w packed
#define FEW_COLUMNS 64  // of a part, of few rows

struct recurrence_run {
    const tn_cpu_call *call;
    const struct cpu_kernels *kernels;
    int64_t kind, reverse, gates, length, rows, units;
    int64_t block; // rows of a block
    int is_few, is_dealt;
    float *panels, *sums, *bias;
    const float *w;
    // Forwards.
    const float *input_products, *h_first, *c_first;
    float *out, *c, *cells, *all_gates;
    // Backwards.
    const float *gradient, *of_gates, *of_cells, *of_out;
    float *slopes, *dh, *dc, *hidden_candidate;
};

// A product of rows by panels, or by columns of w: to = from w', or to += from w.
struct recurrence_product {
    const struct recurrence_run *of;
    const float *from, *panels, *w;
    float *to;
    int64_t from_row, to_row, rows, inner, columns;
    int is_transposed, adds; // backwards
};

static void read_recurrence(const tn_recurrence_attrs *attrs, const tn_layout *first,
                            const tn_layout *w, uint32_t threads, struct recurrence_run *r)
{
    r->kind = attrs->kind;
    r->reverse = attrs->reverse;
    r->gates = attrs->kind == TN_RECURRENCE_LSTM  ? 4
               : attrs->kind == TN_RECURRENCE_GRU ? 3
                                                  : 1;
    r->length = first->extent[0];
    r->rows = first->extent[1];
    r->units = w->extent[1];
    r->is_few = r->rows <= CPU_FEW_ROWS && r->length < LEAST_LENGTH;
    int64_t blocks = (r->rows + LEAST_ROWS - 1) / LEAST_ROWS;
    blocks = blocks < threads ? blocks : threads;
    blocks = blocks > 0 && !r->is_few ? blocks : 1;
    r->block = (r->rows + blocks - 1) / blocks;
    r->block = r->block < BLOCK_ROWS ? r->block : BLOCK_ROWS;
    r->is_dealt = threads > 1 && r->block == r->rows &&
                  r->rows * r->gates * r->units >= DEALT / (r->units + 1);
}

// Memory: panels of w, sums of a block for each thread, a bias.
static int64_t rounded_to(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static int64_t panel_floats(const struct recurrence_run *r, int is_back)
{
    int64_t lines = r->gates * r->units;
    return r->is_few ? 0
           : is_back ? rounded_to(r->units, CPU_TILES_MOST) * lines
                     : rounded_to(lines, CPU_TILES_MOST) * r->units;
}

static int64_t sum_floats(const struct recurrence_run *r)
{
    return rounded_to(r->block * r->gates * r->units, 16);
}

// --- products ---------------------------------------------------------------------------

static void pack_forwards(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct recurrence_run *r = context;
    const struct cpu_tiles_kernels *tiles = r->kernels->tiles;
    int64_t lines = r->gates * r->units;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i * tiles->width, left = lines - first;
        tiles->pack(r->panels + first * r->units, r->w + first * r->units, r->units,
                    left < tiles->width ? left : tiles->width, r->units);
    }
}

static void pack_backwards(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct recurrence_run *r = context;
    const int64_t width = r->kernels->tiles->width, lines = r->gates * r->units;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i * width, left = r->units - first;
        int64_t columns = left < width ? left : width;
        float *to = r->panels + first * lines;
        for (int64_t line = 0; line < lines; line++, to += width) {
            memcpy(to, r->w + line * r->units + first, (size_t)columns * sizeof(*to));
            memset(to + columns, 0, (size_t)(width - columns) * sizeof(*to));
        }
    }
}

// Columns in units of a panel, or of FEW_COLUMNS.
static int64_t column_unit(const struct recurrence_run *r)
{
    return r->is_few ? FEW_COLUMNS : r->kernels->tiles->width;
}

static void cpu_recurrence_multiply_columns(void *context, int64_t begin, int64_t end,
                                            uint32_t worker)
{
    (void)worker;
    const struct recurrence_product *p = context;
    const struct recurrence_run *r = p->of;
    const int64_t unit = column_unit(r), first = begin * unit;
    int64_t last = end * unit < p->columns ? end * unit : p->columns;
    if (r->is_few) {
        const struct cpu_few_rows few = {.a = p->from,
                                         .b = p->w +
                                              (p->is_transposed ? first : first * r->units),
                                         .c = p->to + first,
                                         .m = p->rows,
                                         .n = last - first,
                                         .k = p->inner,
                                         .a_row = p->from_row,
                                         .b_row = r->units,
                                         .c_row = p->to_row,
                                         .scale = 1,
                                         .kind = CPU_FEW_F32};
        if (p->is_transposed)
            r->kernels->few->by_columns(&few);
        else
            r->kernels->few->by_rows(&few);
        return;
    }
    const int64_t panel = p->is_transposed ? r->gates * r->units : r->units;
    if (r->rows == 1) {
        r->kernels->recurrence_row(
            &(struct cpu_recurrence_row){.from = p->from,
                                         .panels = p->panels + first * panel,
                                         .to = p->to + first,
                                         .inner = p->inner,
                                         .stride = panel * unit,
                                         .columns = last - first,
                                         .adds = p->adds});
        return;
    }
    for (int64_t at = first; at < last; at += unit)
        r->kernels->tiles->rows(&(struct cpu_tiles_rows){
            .from = p->from,
            .weights = p->panels + at * panel,
            .to = p->to + at,
            .rows = 1,
            .pixels = p->rows,
            .columns = p->columns - at < unit ? p->columns - at : unit,
            .taps_y = 1,
            .taps_x = 1,
            .run = p->inner,
            .pixel = p->from_row,
            .to_pixel = p->to_row,
            .adds = p->adds});
}

static void cpu_recurrence_multiply_rows(struct recurrence_product *p)
{
    const struct recurrence_run *r = p->of;
    const int64_t unit = column_unit(r), units = (p->columns + unit - 1) / unit;
    if (r->is_dealt)
        r->call->parallel_for(r->call, units, 1, cpu_recurrence_multiply_columns, p);
    else
        cpu_recurrence_multiply_columns(p, 0, units, 0);
}

// --- forwards ---------------------------------------------------------------------------

static void cpu_recurrence_position(const struct recurrence_run *r, int64_t at,
                                    int64_t before, int64_t first, int64_t rows,
                                    float *sums)
{
    const int64_t units = r->units, wide = r->gates * units, row = at * r->rows + first;
    const int64_t old = before * r->rows + first;
    const float *h = before < 0 ? r->h_first + first * units : r->out + old * units;
    const float *c = r->c;
    if (r->kind == TN_RECURRENCE_LSTM)
        c = before < 0 ? r->c_first + first * units
            : r->cells ? r->cells + old * units
                       : r->c + first * units;
    cpu_recurrence_multiply_rows(&(struct recurrence_product){.of = r,
                                                              .from = h,
                                                              .panels = r->panels,
                                                              .w = r->w,
                                                              .to = sums,
                                                              .from_row = units,
                                                              .to_row = wide,
                                                              .rows = rows,
                                                              .inner = units,
                                                              .columns = wide});
    r->kernels->recurrence->rows[r->kind](&(struct cpu_recurrence_rows){
        .rows = rows,
        .units = units,
        .input_products = r->input_products + row * wide,
        .hidden_products = sums,
        .bias = r->bias,
        .h_before = h,
        .c_before = c,
        .h = r->out + row * units,
        .c = r->cells ? r->cells + row * units
             : r->c   ? r->c + first * units
                      : NULL,
        .gates = r->all_gates ? r->all_gates + row * wide : NULL,
        .hidden_candidate =
            r->hidden_candidate ? r->hidden_candidate + row * units : NULL});
}

// The loop runs over blocks of rows.
static void run_forwards(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct recurrence_run *r = context;
    float *sums = r->sums + worker * sum_floats(r);
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i * r->block, left = r->rows - first, before = -1;
        int64_t rows = left < r->block ? left : r->block;
        for (int64_t n = 0; n < r->length; n++) {
            int64_t at = r->reverse ? r->length - 1 - n : n;
            cpu_recurrence_position(r, at, before, first, rows, sums);
            before = at;
        }
    }
}

static int64_t count_row_blocks(const struct recurrence_run *r)
{
    return r->block > 0 ? (r->rows + r->block - 1) / r->block : 0;
}

static void run_row_blocks(const struct recurrence_run *r,
                           void (*body)(void *context, int64_t begin, int64_t end,
                                        uint32_t worker))
{
    if (r->is_dealt)
        body((void *)(uintptr_t)r, 0, 1, 0);
    else
        r->call->parallel_for(r->call, count_row_blocks(r), 1, body, (void *)(uintptr_t)r);
}

static float *output_floats(const tn_cpu_call *call, uint32_t i)
{
    return i < call->num_outputs ? first_element(&call->outputs[i]) : NULL;
}

static const float *given_floats(const tn_cpu_call *call, uint32_t i)
{
    return i < call->num_inputs && call->inputs[i].layout.dtype
               ? first_element(&call->inputs[i])
               : NULL;
}

static void begin_run(const tn_cpu_call *call, int is_back, struct recurrence_run *r)
{
    *r = (struct recurrence_run){.call = call,
                                 .kernels = kernel_variant(call),
                                 .panels = call->scratch,
                                 .w = given_floats(call, 1)};
    read_recurrence(call->attrs, &call->inputs[0].layout, &call->inputs[1].layout,
                    call->num_threads, r);
    if (r->panels) { // few rows backwards have no memory of their own
        r->sums = r->panels + panel_floats(r, is_back);
        r->bias = r->sums + (is_back ? 0 : sum_floats(r) * call->num_threads);
    }
    if (r->is_few || r->rows == 0)
        return;
    int64_t lines = is_back ? r->units : r->gates * r->units, unit = column_unit(r);
    call->parallel_for(call, (lines + unit - 1) / unit, 1,
                       is_back ? pack_backwards : pack_forwards, r);
}

static tn_status recurrence_steps(const tn_cpu_call *call)
{
    struct recurrence_run r;
    begin_run(call, 0, &r);
    const size_t state = (size_t)(r.rows * r.units) * sizeof(float);
    const float *bias = given_floats(call, 4);
    r.input_products = given_floats(call, 0);
    r.h_first = given_floats(call, 2);
    r.out = output_floats(call, 0);
    if (r.kind == TN_RECURRENCE_LSTM) {
        r.c_first = given_floats(call, 3);
        r.c = output_floats(call, 1);
        r.cells = output_floats(call, 2);
        r.all_gates = output_floats(call, 3);
    } else if (r.kind == TN_RECURRENCE_GRU) {
        r.hidden_candidate = output_floats(call, 1);
        r.all_gates = output_floats(call, 2);
    }
    const int64_t biases = r.kind == TN_RECURRENCE_GRU ? 4 * r.units : r.gates * r.units;
    for (int64_t i = 0; i < biases; i++)
        r.bias[i] = bias ? bias[i] : 0;
    run_row_blocks(&r, run_forwards);
    if (r.c && r.length == 0)
        memcpy(r.c, r.c_first, state);
    else if (r.c && r.cells)
        memcpy(r.c, r.cells + (r.reverse ? 0 : r.length - 1) * r.rows * r.units, state);
    return TN_OK;
}

// --- backwards --------------------------------------------------------------------------

// dh = w times the gradients of gates: of a GRU those of r and z, and that of
// `hidden_candidate`.
static void hand_back(const struct recurrence_run *r, int64_t row, int64_t first,
                      int64_t rows)
{
    const int64_t units = r->units, wide = r->gates * units;
    int is_gru = r->kind == TN_RECURRENCE_GRU;
    struct recurrence_product p = {.of = r,
                                   .from = r->slopes + row * wide,
                                   .panels = r->panels,
                                   .w = r->w,
                                   .to = r->dh + first * units,
                                   .from_row = wide,
                                   .to_row = units,
                                   .rows = rows,
                                   .inner = is_gru ? 2 * units : wide,
                                   .columns = units,
                                   .is_transposed = 1,
                                   .adds = is_gru};
    cpu_recurrence_multiply_rows(&p);
    if (!is_gru)
        return;
    p.from = r->hidden_candidate + row * units;
    p.from_row = units;
    p.inner = units;
    p.w += 2 * units * units;
    if (p.panels)
        p.panels += 2 * units * r->kernels->tiles->width;
    cpu_recurrence_multiply_rows(&p);
}

static void position_back(const struct recurrence_run *r, int64_t at, int64_t before,
                          int64_t first, int64_t rows)
{
    const int64_t units = r->units, wide = r->gates * units, row = at * r->rows + first;
    const int64_t old = before * r->rows + first;
    const float *all = r->kind == TN_RECURRENCE_LSTM ? r->of_cells : r->of_out;
    const float *start = r->kind == TN_RECURRENCE_LSTM ? r->c_first : r->h_first;
    r->kernels->recurrence->slopes[r->kind](&(struct cpu_recurrence_slopes){
        .rows = rows,
        .units = units,
        .gradient = r->gradient + row * units,
        .gates = r->of_gates ? r->of_gates + row * wide : NULL,
        .cells = r->of_cells ? r->of_cells + row * units : NULL,
        .before = before < 0 ? start + first * units : all + old * units,
        .h = r->of_out + row * units,
        .dh = r->dh + first * units,
        .dc = r->dc ? r->dc + first * units : NULL,
        .slopes = r->slopes + row * wide,
        .hidden_candidate =
            r->hidden_candidate ? r->hidden_candidate + row * units : NULL});
    hand_back(r, row, first, rows);
}

static void run_backwards(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct recurrence_run *r = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i * r->block, left = r->rows - first;
        int64_t rows = left < r->block ? left : r->block;
        for (int64_t n = 0; n < r->length; n++) {
            int64_t at = r->reverse ? n : r->length - 1 - n;
            int64_t before = n + 1 == r->length ? -1 : r->reverse ? at + 1 : at - 1;
            position_back(r, at, before, first, rows);
        }
    }
}

static tn_status recurrence_grad(const tn_cpu_call *call)
{
    struct recurrence_run r;
    begin_run(call, 1, &r);
    const size_t state = (size_t)(r.rows * r.units) * sizeof(float);
    const float *gradient_c = given_floats(call, 7);
    r.gradient = given_floats(call, 0);
    r.of_out = given_floats(call, 2);
    r.h_first = given_floats(call, 3);
    r.of_gates = given_floats(call, 4);
    r.of_cells = given_floats(call, 5);
    r.c_first = given_floats(call, 6);
    r.slopes = output_floats(call, 0);
    r.dh = output_floats(call, 1);
    if (state > 0)
        memset(r.dh, 0, state);
    if (r.kind == TN_RECURRENCE_LSTM) {
        r.dc = output_floats(call, 2);
        if (state > 0 && gradient_c)
            memcpy(r.dc, gradient_c, state);
        else if (state > 0)
            memset(r.dc, 0, state);
    } else if (r.kind == TN_RECURRENCE_GRU) {
        r.hidden_candidate = output_floats(call, 2);
    }
    run_row_blocks(&r, run_backwards);
    return TN_OK;
}

// --- the records ------------------------------------------------------------------------

static uint64_t cpu_recurrence_scratch_of(const tn_kernel_query *query, int is_back)
{
    struct recurrence_run r = {0};
    read_recurrence(query->attrs, &query->inputs[0], &query->inputs[1], query->num_workers,
                    &r);
    int64_t floats = panel_floats(&r, is_back);
    // Blocks of a launch with fewer threads are larger.
    r.block = r.rows < BLOCK_ROWS || r.is_few ? r.rows : BLOCK_ROWS;
    if (!is_back)
        floats += sum_floats(&r) * query->num_workers + 4 * r.units;
    return (uint64_t)floats * sizeof(float);
}

static uint64_t recurrence_scratch(const tn_kernel_query *query)
{
    return cpu_recurrence_scratch_of(query, 0);
}

static uint64_t recurrence_grad_scratch(const tn_kernel_query *query)
{
    return cpu_recurrence_scratch_of(query, 1);
}

#define F32 (TN_DTYPE_BIT(TN_F32))
static const tn_operand_rule rules[] = {{F32, TN_NEEDS_CONTIGUOUS, 0, 0}};
static const tn_cpu_kernel payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = recurrence_steps,
};
static const tn_cpu_kernel grad_payload = {
    .struct_size = sizeof(tn_cpu_kernel),
    .launch = recurrence_grad,
};
const tn_kernel recurrence_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "nn.recurrence_steps/1",
    .family = TN_FAMILY_CPU,
    .name = "rows",
    .priority = 500,
    TN_OPERANDS(rules),
    .scratch_size = recurrence_scratch,
    .payload = &payload,
};
const tn_kernel recurrence_grad_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "nn.recurrence_grad/1",
    .family = TN_FAMILY_CPU,
    .name = "rows",
    .priority = 500,
    TN_OPERANDS(rules),
    .scratch_size = recurrence_grad_scratch,
    .payload = &grad_payload,
};
