// SPDX-License-Identifier: MIT
// Runs prepared programs.
#include "program.h"

#include <string.h>

static int64_t row_length(const tn_layout *layout)
{
    return layout->rank > 0 ? layout->extent[layout->rank - 1] : 1;
}

// A walk over the rows of a layout, from element `first` (row-major) on.
struct walk {
    const tn_layout *layout;
    int64_t index[TN_MAX_RANK];
    int64_t offset; // of the element, in elements
};

static void walk_begin(struct walk *walk, const tn_layout *layout, int64_t first)
{
    walk->layout = layout;
    walk->offset = 0;
    for (int32_t i = layout->rank - 1; i >= 0; i--) {
        int64_t extent = layout->extent[i], quotient = first / extent;
        walk->index[i] = first - quotient * extent;
        walk->offset += walk->index[i] * layout->stride[i];
        first = quotient;
    }
}

// Moves on by `n` elements, which end with the row at most.
static void walk_advance(struct walk *walk, int64_t n)
{
    const tn_layout *layout = walk->layout;
    int32_t i = layout->rank - 1;
    if (i < 0)
        return;
    walk->index[i] += n;
    walk->offset += n * layout->stride[i];
    for (; i > 0 && walk->index[i] == layout->extent[i]; i--) {
        walk->offset += layout->stride[i - 1] - walk->index[i] * layout->stride[i];
        walk->index[i] = 0;
        walk->index[i - 1]++;
    }
}

// Copies elements [first, first + n) between an operand and a register.
static void move_rows(cpu_copy_fn *copy, const tn_layout *layout, unsigned char *base,
                      unsigned char *block, int64_t first, int64_t n, uint32_t size_log2,
                      bool gather)
{
    struct walk walk;
    int64_t length = row_length(layout);
    int64_t stride = layout->rank > 0 ? layout->stride[layout->rank - 1] : 0;

    walk_begin(&walk, layout, first);
    while (n > 0) {
        int64_t left = layout->rank > 0 ? length - walk.index[layout->rank - 1] : 1;
        int64_t m = n < left ? n : left;
        unsigned char *at = base + walk.offset * (1 << size_log2);
        if (gather)
            copy(block, 1, at, stride, m);
        else
            copy(at, stride, block, 1, m);
        walk_advance(&walk, m);
        block += m << size_log2;
        n -= m;
    }
}

static void run_map(const struct program_op *op, unsigned char *const *places, int64_t n)
{
    const void *in[CPU_MAX_OPERANDS];
    for (uint32_t k = 0; k < op->num_in; k++)
        in[k] = places[op->in[k]];
    op->map(places[op->out], in, n, op->scalars);
}

static void number_elements(int64_t *out, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = first + i;
}

static void run_op(const struct program *program, const struct program_op *op,
                   unsigned char *const *places, int64_t first, int64_t n)
{
    cpu_copy_fn *copy = program->kernels->copy[op->size_log2];
    switch (op->action) {
    case ACTION_MAP:
        run_map(op, places, n);
        break;
    case ACTION_FILL:
    case ACTION_SPREAD:
        copy(places[op->out], 1, places[op->in[0]], 0, n);
        break;
    case ACTION_GATHER:
        move_rows(copy, &program->layouts[op->operand], program->bases[op->operand],
                  places[op->out], first, n, op->size_log2, true);
        break;
    case ACTION_SCATTER:
        move_rows(copy, &program->layouts[op->operand], program->bases[op->operand],
                  places[op->in[0]], first, n, op->size_log2, false);
        break;
    default:
        number_elements((int64_t *)(void *)places[op->out], first, n);
        break;
    }
}

static void run_blocks(const struct program *program, unsigned char **places, int64_t begin,
                       int64_t end)
{
    for (uint32_t i = 0; i < program->num_fills; i++)
        run_op(program, &program->fills[i], places, 0, program->block);
    for (int64_t first = begin; first < end; first += program->block) {
        int64_t n = end - first < program->block ? end - first : program->block;
        for (uint32_t i = 0; i < program->num_pointers; i++) {
            const struct program_pointer *p = &program->pointers[i];
            places[p->place] = program->bases[p->operand] + first * p->step;
        }
        for (uint32_t i = 0; i < program->num_ops; i++) {
            const struct program_op *op = &program->ops[i];
            if (op->action == ACTION_MAP)
                run_map(op, places, n);
            else
                run_op(program, op, places, first, n);
        }
    }
}

struct run {
    tn_device *device;
    const struct program *program;
};

// The places of a thread are those of thread 0, with registers of its own.
static void run_piece(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct run *run = context;
    const struct program *program = run->program;
    unsigned char *places[PROGRAM_MAX_PLACES];

    memcpy(places, program->places, program->num_places * sizeof(places[0]));
    unsigned char *registers =
        run->device->registers + (uint64_t)worker * CPU_REGISTER_BYTES;
    for (uint32_t i = 0; i < program->num_registers; i++)
        places[program->registers[i].place] =
            registers + (uint64_t)program->registers[i].number * program->register_bytes;
    run_blocks(program, places, begin, end);
}

void program_run(tn_device *device, struct program *program)
{
    if (program->count == 0)
        return;
    if (program->transposition) {
        program_transpose(device, program);
        return;
    }
    if (program->num_once > 0 || program->num_fills > 0) {
        for (uint32_t i = 0; i < program->num_pointers; i++) {
            const struct program_pointer *p = &program->pointers[i];
            program->places[p->place] = program->bases[p->operand];
        }
        for (uint32_t i = 0; i < program->num_once; i++)
            run_map(&program->once[i], program->places, 1);
    }
    if (program->count < 2 * program->grain) {
        run_blocks(program, program->places, 0, program->count);
        return;
    }
    struct run run = {device, program};
    pool_run(device->pool, program->count, program->grain, run_piece, &run);
}
