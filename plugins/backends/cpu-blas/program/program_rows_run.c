// SPDX-License-Identifier: MIT
// Runs row programs: row by row, phase by phase, in blocks.
#include "program.h"

#include <string.h>

// The row that a thread works on.
struct cpu_run_row {
    const struct program *program;
    unsigned char *const *bases;
    unsigned char **locations;
    int64_t number;
    int64_t index[TN_MAX_RANK];                               // over the outer axes
    int64_t offset[TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS]; // of operands, in elements
};

static void row_begin(struct cpu_run_row *row, int64_t number)
{
    const struct program *program = row->program;
    const tn_layout *shape = &program->layouts[0];
    row->number = number;
    for (uint32_t k = 0; k < program->num_operands; k++)
        row->offset[k] = 0;
    for (int32_t i = shape->rank - 2; i >= 0; i--) {
        row->index[i] = number % shape->extent[i];
        number /= shape->extent[i];
        for (uint32_t k = 0; k < program->num_operands; k++)
            row->offset[k] += row->index[i] * program->layouts[k].stride[i];
    }
}

static void row_next(struct cpu_run_row *row)
{
    const struct program *program = row->program;
    const tn_layout *shape = &program->layouts[0];
    row->number++;
    for (int32_t i = shape->rank - 2; i >= 0; i--) {
        bool carries = ++row->index[i] == shape->extent[i];
        int64_t by = carries ? 1 - shape->extent[i] : 1;
        for (uint32_t k = 0; k < program->num_operands; k++)
            row->offset[k] += by * program->layouts[k].stride[i];
        if (!carries)
            return;
        row->index[i] = 0;
    }
}

// Points at element `first` of the row.
static void set_pointers(const struct cpu_run_row *row, int64_t first)
{
    const struct program *program = row->program;
    for (uint32_t i = 0; i < program->num_pointers; i++) {
        const struct program_pointer *p = &program->pointers[i];
        int64_t size = cpu_dtype_size(program->layouts[p->operand].dtype);
        row->locations[p->location] =
            row->bases[p->operand] + row->offset[p->operand] * size + first * p->step;
    }
    const struct program_register *residents =
        program->registers + program->num_registers + program->num_lines;
    for (uint32_t i = 0; i < program->num_residents; i++)
        row->locations[residents[i].location] =
            row->locations[program->residents] +
            (uint64_t)residents[i].number * program->resident_bytes +
            first * program->resident_width;
}

static void move_part(const struct cpu_run_row *row, const struct program_op *op,
                      int64_t first, int64_t n)
{
    const tn_layout *layout = &row->program->layouts[op->operand];
    int64_t stride = layout->stride[layout->rank - 1];
    cpu_copy_fn *copy = row->program->kernels->copy[op->size_log2];
    unsigned char *at = row->bases[op->operand] +
                        (row->offset[op->operand] + first * stride) * (1 << op->size_log2);
    if (op->action == ACTION_GATHER)
        copy(row->locations[op->out], 1, at, stride, n);
    else
        copy(at, stride, row->locations[op->in[0]], 1, n);
}

static void cpu_rows_run_fold(const struct cpu_run_row *row, const struct program_op *op,
                              int64_t first, int64_t n)
{
    union cpu_accumulator *acc = (void *)row->locations[op->out];
    if (first == 0)
        memcpy(acc, row->locations[op->start], sizeof(*acc));
    if (op->num_in == 1)
        op->fold(acc, row->locations[op->in[0]], n);
    else
        op->sum(acc, row->locations[op->in[0]], row->locations[op->in[1]], n);
    if (op->single == NO_LOCATION || first + n < row->program->row)
        return;
    float single = (float)acc->f;
    memcpy(row->locations[op->single], &single, sizeof(single));
}

static void cpu_rows_run_op(const struct cpu_run_row *row, const struct program_op *op,
                            int64_t first, int64_t n)
{
    unsigned char *const *locations = row->locations;
    const void *in[CPU_MAX_OPERANDS];
    int64_t *numbers;
    switch (op->action) {
    case ACTION_MAP:
        for (uint32_t k = 0; k < op->num_in; k++)
            in[k] = locations[op->in[k]];
        op->map(locations[op->out], in, op->once_a_row ? 1 : n, op->scalars);
        break;
    case ACTION_REDUCE:
        cpu_rows_run_fold(row, op, first, n);
        break;
    case ACTION_FILL:
    case ACTION_SPREAD:
        row->program->kernels->copy[op->size_log2](locations[op->out], 1,
                                                   locations[op->in[0]], 0, n);
        break;
    case ACTION_STREAM:
        row->program->kernels->stream(locations[op->out], locations[op->in[0]],
                                      (uint64_t)n << op->size_log2);
        break;
    case ACTION_GATHER:
    case ACTION_SCATTER:
        move_part(row, op, first, n);
        break;
    default:
        numbers = (int64_t *)(void *)locations[op->out];
        for (int64_t i = 0; i < n; i++)
            numbers[i] = row->number * row->program->row + first + i;
        break;
    }
}

static void run_phase(const struct cpu_run_row *row, const struct program_phase *phase)
{
    const struct program *program = row->program;
    const struct program_op *op = program->ops + phase->first;
    const struct program_op *block = op + phase->num_row_ops, *end = op + phase->num_ops;
    for (; op < block; op++)
        cpu_rows_run_op(row, op, 0, 1);
    if (block == end)
        return;
    for (int64_t first = 0; first < program->row; first += program->block) {
        int64_t left = program->row - first;
        if (program->row > program->block && first > 0)
            set_pointers(row, first);
        for (op = block; op < end; op++)
            cpu_rows_run_op(row, op, first, left < program->block ? left : program->block);
    }
}

void program_run_rows(const struct program *program, unsigned char *const *bases,
                      unsigned char **locations, int64_t begin, int64_t end)
{
    struct cpu_run_row row = {.program = program, .bases = bases, .locations = locations};
    for (uint32_t i = 0; i < program->num_fills; i++)
        cpu_rows_run_op(&row, &program->fills[i], 0, program->block);
    for (row_begin(&row, begin); row.number < end; row_next(&row))
        for (uint32_t i = 0; i < program->num_phases; i++) {
            if (i == 0 || program->row > program->block)
                set_pointers(&row, 0);
            run_phase(&row, &program->phases[i]);
        }
    if (program->streams)
        program->kernels->fence();
}
