// SPDX-License-Identifier: MIT
// Row programs whose rows are short and lie side by side: each operation takes a group of
// rows at a time, so that a row costs no calls of its own. A value of a row has an element
// for each row of the group, and is repeated over a register where elements are computed of
// it; sums are those of rows one by one, bit for bit.
#include "program_prepare.h"

#include <string.h>

// Elements of a group, and bytes of its registers: what a first-level cache holds.
#define GROUP_ELEMENTS 1024
// Longer rows are run one by one: a value of a row is one element for all of it, then,
// which is quicker than to repeat it.
#define LONGEST_ROW 128
#define GROUP_BYTES 32768

// --- preparing -------------------------------------------------------------------------

// Whether adjacent rows are `step` elements apart, all of them.
static bool has_row_step(const tn_layout *layout, int64_t step)
{
    for (int32_t i = layout->rank - 2; i >= 0; i--) {
        if (layout->extent[i] != 1 && layout->stride[i] != step)
            return false;
        step *= layout->extent[i];
    }
    return true;
}

// Whether the operand is one row for all.
bool prepare_is_repeated(const struct prepare *p, const tn_layout *layout)
{
    return layout->extent[layout->rank - 1] == p->row &&
           layout->stride[layout->rank - 1] == 1 && has_row_step(layout, 0);
}

static bool is_grouped(const struct prepare *p, const tn_layout *layout, bool is_output)
{
    int64_t extent = layout->extent[layout->rank - 1],
            stride = layout->stride[layout->rank - 1];
    if (prepare_is_uniform(layout))
        return !is_output;
    if (extent != p->row || stride == 0) // an element a row
        return has_row_step(layout, 1);
    return stride == 1 &&
           (has_row_step(layout, p->row) || (!is_output && prepare_is_repeated(p, layout)));
}

int64_t prepare_group(const struct prepare *p)
{
    const tn_step *step = p->step;
    const tn_layout *shape = &tn_step_output(step, 0)->layout;
    int64_t registers = p->num_registers + p->num_residents, rows = 1;
    int64_t bytes = (registers + 1) * p->row * prepare_width(p); // of a row
    if (p->row > LONGEST_ROW)
        return 1;
    for (uint32_t i = 0; i < step->num_inputs; i++)
        if (!is_grouped(p, &tn_step_input(step, i)->layout, false))
            return 1;
    for (uint32_t i = 0; i < step->num_outputs; i++)
        if (!is_grouped(p, &tn_step_output(step, i)->layout, true))
            return 1;
    for (uint32_t i = 0; i < p->num_locations; i++)
        bytes += p->kinds[i] == LOCATION_LINE ? 8 : 0;
    for (int32_t i = 0; i < shape->rank - 1; i++)
        rows *= shape->extent[i];
    int64_t most = GROUP_ELEMENTS / p->row;
    most = GROUP_BYTES / bytes < most ? GROUP_BYTES / bytes : most;
    most = most < rows ? most : rows;
    return most > 1 ? most : 1;
}

// --- programs without reductions -------------------------------------------------------

// Shorter rows are not worth an operation each.
#define SHORT_ROW 32

// Whether a program that reduces nothing is run as one of rows: where an input has one
// element for each of many rows, which otherwise fills a register, and nothing has gaps.
bool prepare_has_values_of_rows(const struct prepare *p)
{
    const tn_step *step = p->step;
    const tn_layout *shape = &tn_step_output(step, 0)->layout;
    bool has_values = false, has_operation = false; // a copy has other ways
    int32_t last = shape->rank - 1;
    int64_t rows = 1, row = last < 0 ? 0 : shape->extent[last];
    for (int32_t i = 0; i < last; i++)
        rows *= shape->extent[i];
    if (row < SHORT_ROW || rows < 4 * (int64_t)p->device->num_threads)
        return false;
    for (uint32_t i = 0; i < p->source->num_insns; i++) {
        has_operation |= p->source->insns[i].op != TN_EXPR_LOAD;
        if (tn_is_complex(p->source->insns[i].dtype)) // wider than a value of a row may be
            return false;
    }
    for (uint32_t i = 0; i < step->num_inputs; i++) {
        const tn_layout *layout = &tn_step_input(step, i)->layout;
        int64_t stride = layout->stride[last];
        bool is_uniform = prepare_is_uniform(layout);
        if (tn_step_input(step, i)->flags & TN_VALUE_FUSED ||
            (!is_uniform && stride != 0 && stride != 1))
            return false;
        has_values |= !is_uniform && stride == 0;
    }
    for (uint32_t i = 0; i < step->num_outputs; i++)
        if (tn_step_output(step, i)->flags & TN_VALUE_FUSED ||
            !prepare_is_contiguous(&tn_step_output(step, i)->layout))
            return false;
    return has_values && has_operation;
}

// --- running ---------------------------------------------------------------------------

// The rows that a thread works on.
struct row_group {
    const struct program *program;
    unsigned char *const *bases;
    unsigned char **locations;
    int64_t first, rows;
    int64_t step[TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS]; // elements from row to row
};

static void find_steps(struct row_group *g)
{
    for (uint32_t k = 0; k < g->program->num_operands; k++) {
        const tn_layout *layout = &g->program->layouts[k];
        g->step[k] = 0;
        for (int32_t i = 0; i < layout->rank - 1; i++)
            if (layout->extent[i] != 1)
                g->step[k] = layout->stride[i]; // the innermost one's
    }
}

static void begin_group(struct row_group *g, int64_t first, int64_t end)
{
    const struct program *program = g->program;
    g->first = first;
    g->rows = end - first < program->group ? end - first : program->group;
    for (uint32_t i = 0; i < program->num_pointers; i++) {
        const struct program_pointer *p = &program->pointers[i];
        int64_t size = cpu_dtype_size(program->layouts[p->operand].dtype);
        g->locations[p->location] =
            g->bases[p->operand] + first * g->step[p->operand] * size;
    }
}

static void set_residents(const struct row_group *g)
{
    const struct program *program = g->program;
    const struct program_register *residents =
        program->registers + program->num_registers + program->num_lines;
    for (uint32_t i = 0; i < program->num_residents; i++)
        g->locations[residents[i].location] =
            g->locations[program->residents] +
            (uint64_t)residents[i].number * program->resident_bytes;
}

// Folds each row into an accumulator of its own.
static void cpu_groups_fold(const struct row_group *g, const struct program_op *op)
{
    union cpu_accumulator *acc = (void *)g->locations[op->out], start;
    const unsigned char *x = g->locations[op->in[0]], *y = g->locations[op->in[1]];
    int64_t row = g->program->row, bytes = row << op->size_log2;
    int64_t step = op->scalars   ? 0
                   : op->by_rows ? 1
                                 : row; // elements of y, from row to row
    memcpy(&start, g->locations[op->start], sizeof(start));
    if (op->action == ACTION_SUM_ROWS)
        op->rows(acc, x, y, step, g->rows, row);
    for (int64_t i = 0; i < g->rows && op->action == ACTION_REDUCE; i++, x += bytes) {
        acc[i] = start;
        if (op->num_in == 1)
            op->fold(&acc[i], x, row);
        else
            op->sum(&acc[i], x, y + (i * step << op->size_log2), row);
    }
    float *singles = op->single == NO_LOCATION ? NULL : (void *)g->locations[op->single];
    for (int64_t i = 0; i < g->rows && singles; i++)
        singles[i] = (float)acc[i].f;
}

static void repeat_row(const struct row_group *g, const struct program_op *op)
{
    int64_t row = g->program->row;
    for (int64_t i = 0; i < g->rows; i++)
        memcpy(g->locations[op->out] + (i * row << op->size_log2), g->bases[op->operand],
               (size_t)row << op->size_log2);
}

static void cpu_groups_number_elements(const struct row_group *g, int64_t *numbers,
                                       int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        numbers[i] = g->first * g->program->row + i;
}

static void cpu_groups_run_op(const struct row_group *g, const struct program_op *op)
{
    const struct cpu_kernels *kernels = g->program->kernels;
    unsigned char *const *locations = g->locations;
    const void *in[CPU_MAX_OPERANDS];
    int64_t n = g->rows * g->program->row;
    switch (op->action) {
    case ACTION_MAP:
        for (uint32_t k = 0; k < op->num_in; k++)
            in[k] = locations[op->in[k]];
        op->map(locations[op->out], in, op->once_a_row ? g->rows : n, op->scalars);
        break;
    case ACTION_REDUCE:
    case ACTION_SUM_ROWS:
        cpu_groups_fold(g, op);
        break;
    case ACTION_REPEAT:
        repeat_row(g, op);
        break;
    case ACTION_STREAM:
        kernels->stream(locations[op->out], locations[op->in[0]],
                        (uint64_t)n << op->size_log2);
        break;
    case ACTION_INDEX:
        cpu_groups_number_elements(g, (int64_t *)(void *)locations[op->out], n);
        break;
    default: // FILL, SPREAD
        if (op->by_rows)
            kernels->spread[op->size_log2](locations[op->out], locations[op->in[0]],
                                           g->rows, g->program->row);
        else
            kernels->copy[op->size_log2](locations[op->out], 1, locations[op->in[0]], 0, n);
    }
}

void program_run_groups(const struct program *program, unsigned char *const *bases,
                        unsigned char **locations, int64_t begin, int64_t end)
{
    struct row_group g = {.program = program, .bases = bases, .locations = locations};
    if (begin >= end)
        return;
    find_steps(&g);
    set_residents(&g);
    begin_group(&g, begin, end);
    for (uint32_t i = 0; i < program->num_fills; i++)
        cpu_groups_run_op(&g, &program->fills[i]);
    for (int64_t first = begin; first < end; first += program->group) {
        begin_group(&g, first, end);
        for (uint32_t i = 0; i < program->num_ops; i++)
            cpu_groups_run_op(&g, &program->ops[i]);
    }
    if (program->streams)
        program->kernels->fence();
}
