// SPDX-License-Identifier: MIT
// Copies that permute axes: as transposed matrices instead of element by element. Copies of
// short rows: along another axis.
#include "program.h"

#define BAND 64          // columns of the input in a unit of work
#define SHORT_ROW 8      // elements: so few are not copied one row after the other
#define SHORT_BAND 512   // columns, whose result stays in the first-level cache
#define LEAST_COLUMNS 16 // of short rows: more are no better
#define MANY_COLUMNS 64
#define LINE 64              // bytes
#define PIECE_ELEMENTS 16384 // least elements of a piece
#define LEAST_EXTENT 4       // least rows and columns of a matrix

struct axis {
    int64_t extent, in, out; // strides
};

// Lists the axes of more than one element, with adjacent ones merged that both layouts can
// step through as one.
static int32_t cpu_transpose_merge_axes(const tn_layout *in, const tn_layout *out,
                                        struct axis *axes)
{
    int32_t rank = 0;
    for (int32_t i = 0; i < out->rank; i++) {
        struct axis axis = {out->extent[i], in->stride[i], out->stride[i]};
        struct axis *last = rank > 0 ? &axes[rank - 1] : NULL;
        if (axis.extent == 1)
            continue;
        if (last && last->in == axis.in * axis.extent &&
            last->out == axis.out * axis.extent)
            *last = (struct axis){last->extent * axis.extent, axis.in, axis.out};
        else
            axes[rank++] = axis;
    }
    return rank;
}

// The axis on which the input has stride 1, if that is not the output's last one; else -1.
static int32_t find_row(const struct axis *axes, int32_t rank)
{
    const struct axis *last = &axes[rank - 1];
    if (rank < 2 || last->out != 1 || last->in == 0 || last->in == 1 ||
        last->extent < LEAST_EXTENT)
        return -1;
    for (int32_t i = 0; i < rank - 1; i++)
        if (axes[i].in == 1 && axes[i].extent >= LEAST_EXTENT)
            return i;
    return -1;
}

// The axis along which rows of the last one are copied when they are short; else -1. Its
// neighbours in the output are within a cache line, which is then written at a time.
static int32_t find_columns(const struct axis *axes, int32_t rank, int64_t size)
{
    int32_t found = -1;
    if (rank < 2 || axes[rank - 1].extent > SHORT_ROW)
        return -1;
    for (int32_t i = rank - 2; i >= 0; i--) {
        int64_t least = found < 0 ? LEAST_COLUMNS : axes[found].extent + 1;
        if (axes[i].extent >= least && axes[i].out * size <= LINE)
            found = i;
        if (found >= 0 && axes[found].extent >= MANY_COLUMNS)
            break;
    }
    return found;
}

// Whether the step copies one input to its only output, without conversion.
static bool is_copy(const tn_step *step, uint32_t *out_input)
{
    const tn_expr_program *program = step->program;
    const tn_expr_insn *insn = &program->insns[program->outputs[0]];
    *out_input = insn->a;
    return program->num_outputs == 1 && insn->op == TN_EXPR_LOAD &&
           tn_step_input(step, insn->a)->layout.dtype ==
               tn_step_output(step, 0)->layout.dtype;
}

tn_status program_find_transposition(struct cpu_arena *arena, const tn_step *step,
                                     struct program *program)
{
    struct axis axes[TN_MAX_RANK];
    if (program->count == 0 || !is_copy(step, &program->copied))
        return TN_OK;
    const tn_layout *out = &tn_step_output(step, 0)->layout;
    int32_t rank =
        cpu_transpose_merge_axes(&tn_step_input(step, program->copied)->layout, out, axes);
    int32_t row = rank > 0 ? find_row(axes, rank) : -1;
    bool turns = row >= 0;
    if (!turns)
        row = find_columns(axes, rank, (int64_t)cpu_dtype_size(out->dtype));
    if (row < 0)
        return TN_OK;
    struct program_transposition *t = arena_alloc(arena, sizeof(*t));
    if (!t)
        return TN_ERR_MEMORY;
    t->rows = axes[rank - 1].extent;
    t->columns = axes[row].extent;
    t->in_stride = axes[rank - 1].in;
    t->out_stride = axes[row].out;
    t->in_column = axes[row].in;
    t->band = turns ? BAND : SHORT_BAND;
    t->size_log2 = (uint32_t)__builtin_ctz(cpu_dtype_size(out->dtype));
    t->count = t->bands = (t->columns + t->band - 1) / t->band;
    for (int32_t i = 0; i < rank - 1; i++) {
        if (i == row)
            continue;
        t->extent[t->rank] = axes[i].extent;
        t->in_step[t->rank] = axes[i].in;
        t->out_step[t->rank++] = axes[i].out;
        t->count *= axes[i].extent;
    }
    program->transposition = t;
    return TN_OK;
}

struct transpose_run {
    const struct program *program;
    const unsigned char *in;
    unsigned char *out;
};

static void transpose_bands(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct transpose_run *run = context;
    const struct program *program = run->program;
    const struct program_transposition *t = program->transposition;
    const unsigned char *in = run->in;
    unsigned char *out = run->out;
    (void)worker;
    const int64_t outer = t->count / t->bands;
    for (int64_t i = begin; i < end; i++) {
        // Short rows: all outer elements of a band, whose lines are then in the cache.
        bool is_short = t->band == SHORT_BAND;
        int64_t band = is_short ? i / outer : i % t->bands, column = band * t->band;
        int64_t rest = is_short ? i - band * outer : i / t->bands;
        int64_t left = t->columns - column, n = left < t->band ? left : t->band;
        int64_t from = column * t->in_column, to = column * t->out_stride;
        for (int32_t axis = t->rank - 1; axis >= 0; axis--) {
            from += rest % t->extent[axis] * t->in_step[axis];
            to += rest % t->extent[axis] * t->out_step[axis];
            rest /= t->extent[axis];
        }
        if (!is_short)
            program->kernels->transpose[t->size_log2](
                out + to * (1 << t->size_log2), t->out_stride,
                in + from * (1 << t->size_log2), t->in_stride, t->rows, n);
        for (int64_t row = 0; row < t->rows && is_short; row++)
            program->kernels->copy[t->size_log2](
                out + (to + row) * (1 << t->size_log2), t->out_stride,
                in + (from + row * t->in_stride) * (1 << t->size_log2), t->in_column, n);
    }
}

void program_transpose(struct cpu_queue *queue, const struct program *program,
                       const struct program_frame *frame)
{
    const struct program_transposition *t = program->transposition;
    int64_t band = t->rows * (t->columns < t->band ? t->columns : t->band);
    struct transpose_run run = {program, frame->bases[program->copied],
                                frame->bases[program->num_operands - 1]};
    pool_run(queue->device->pool, t->count, 1 + PIECE_ELEMENTS / band, transpose_bands,
             &run);
}
