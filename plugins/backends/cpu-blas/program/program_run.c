// SPDX-License-Identifier: MIT
// Runs prepared programs: block by block, on one thread or on the pool.
#include "program.h"

#include <string.h>

static int64_t cpu_program_run_row_length(const tn_layout *layout)
{
    return layout->rank > 0 ? layout->extent[layout->rank - 1] : 1;
}

// A cursor in a strided layout that moves along rows, from element `first` (row-major) on.
struct layout_cursor {
    const tn_layout *layout;
    int64_t index[TN_MAX_RANK];
    int64_t offset; // of the current element, in elements
};

static void cursor_begin(struct layout_cursor *cursor, const tn_layout *layout,
                         int64_t first)
{
    cursor->layout = layout;
    cursor->offset = 0;
    for (int32_t i = layout->rank - 1; i >= 0; i--) {
        int64_t extent = layout->extent[i], quotient = first / extent;
        cursor->index[i] = first - quotient * extent;
        cursor->offset += cursor->index[i] * layout->stride[i];
        first = quotient;
    }
}

// Moves the cursor by `n` elements along axis `i`, at most to its end.
static void cursor_advance(struct layout_cursor *cursor, int32_t i, int64_t n)
{
    const tn_layout *layout = cursor->layout;
    if (i < 0)
        return;
    cursor->index[i] += n;
    cursor->offset += n * layout->stride[i];
    for (; i > 0 && cursor->index[i] == layout->extent[i]; i--) {
        cursor->offset += layout->stride[i - 1] - cursor->index[i] * layout->stride[i];
        cursor->index[i] = 0;
        cursor->index[i - 1]++;
    }
}

// How often the row before the cursor, of which the operand has one only, comes again in
// the next `n` elements.
static int64_t count_repeats(const struct layout_cursor *cursor, int64_t n)
{
    const tn_layout *layout = cursor->layout;
    int32_t axis = layout->rank - 2;
    if (axis < 0 || layout->stride[axis] != 0 || cursor->index[axis] == 0)
        return 0;
    int64_t rows = n / layout->extent[axis + 1];
    int64_t left = layout->extent[axis] - cursor->index[axis];
    return rows < left ? rows : left;
}

// Writes the `size` bytes before `to` there `times` times, twice as many at a time.
static void repeat_before(unsigned char *to, int64_t size, int64_t times)
{
    const unsigned char *from = to - size;
    for (int64_t left = size * times, done = size; left > 0; done *= 2) {
        int64_t part = left < done ? left : done;
        memcpy(to, from, (size_t)part);
        to += part;
        left -= part;
    }
}

// Copies elements [first, first + n) from an operand to a register (`gather`), or back.
static void move_rows(cpu_copy_fn *copy, const tn_layout *layout, unsigned char *base,
                      unsigned char *block, int64_t first, int64_t n, uint32_t size_log2,
                      bool gather)
{
    struct layout_cursor cursor;
    int64_t length = cpu_program_run_row_length(layout);
    int64_t stride = layout->rank > 0 ? layout->stride[layout->rank - 1] : 0;

    cursor_begin(&cursor, layout, first);
    while (n > 0) {
        int64_t left = layout->rank > 0 ? length - cursor.index[layout->rank - 1] : 1;
        int64_t m = n < left ? n : left;
        unsigned char *at = base + cursor.offset * (1 << size_log2);
        if (gather)
            copy(block, 1, at, stride, m);
        else
            copy(at, stride, block, 1, m);
        cursor_advance(&cursor, layout->rank - 1, m);
        block += m << size_log2;
        n -= m;
        int64_t times = gather && m == length ? count_repeats(&cursor, n) : 0;
        if (times == 0)
            continue;
        repeat_before(block, m << size_log2, times);
        cursor_advance(&cursor, layout->rank - 2, times);
        block += times * m << size_log2;
        n -= times * m;
    }
}

static void run_map(const struct program_op *op, unsigned char *const *locations, int64_t n)
{
    const void *in[CPU_MAX_OPERANDS];
    for (uint32_t k = 0; k < op->num_in; k++)
        in[k] = locations[op->in[k]];
    op->map(locations[op->out], in, n, op->scalars);
}

static void cpu_program_run_number_elements(int64_t *out, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = first + i;
}

// A run of a program: constant, and shared by all threads of the loop.
struct cpu_program_run {
    struct cpu_queue *queue;
    const struct program *program;
    unsigned char *const *bases;
};

static void cpu_program_run_op(const struct cpu_program_run *run,
                               const struct program_op *op, unsigned char *const *locations,
                               int64_t first, int64_t n)
{
    const struct program *program = run->program;
    cpu_copy_fn *copy = program->kernels->copy[op->size_log2];
    switch (op->action) {
    case ACTION_MAP:
        run_map(op, locations, n);
        break;
    case ACTION_FILL:
    case ACTION_SPREAD:
        copy(locations[op->out], 1, locations[op->in[0]], 0, n);
        break;
    case ACTION_GATHER:
        move_rows(copy, &program->layouts[op->operand], run->bases[op->operand],
                  locations[op->out], first, n, op->size_log2, true);
        break;
    case ACTION_SCATTER:
        move_rows(copy, &program->layouts[op->operand], run->bases[op->operand],
                  locations[op->in[0]], first, n, op->size_log2, false);
        break;
    default:
        cpu_program_run_number_elements((int64_t *)(void *)locations[op->out], first, n);
        break;
    }
}

// Positions of the pointers `in_rows` behind the current block, in their order.
struct row_cursors {
    struct layout_cursor at[TN_EXPR_MAX_INPUTS];
    int64_t left; // elements from there to the end of the row
};

static void begin_rows(const struct program *program, struct row_cursors *rows,
                       int64_t first)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->num_pointers; i++)
        if (program->pointers[i].in_rows)
            cursor_begin(&rows->at[count++],
                         &program->layouts[program->pointers[i].operand], first);
    rows->left = program->row - first % program->row;
}

// Sets the locations of the block of `n` elements from `first` on, and advances the rows.
static void next_block(const struct cpu_program_run *run, unsigned char **locations,
                       struct row_cursors *rows, int64_t first, int64_t n)
{
    const struct program *program = run->program;
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->num_pointers; i++) {
        const struct program_pointer *p = &program->pointers[i];
        int64_t at = first;
        if (p->in_rows) {
            struct layout_cursor *cursor = &rows->at[count++];
            at = cursor->offset;
            cursor_advance(cursor, cursor->layout->rank - 1, n);
        }
        locations[p->location] = run->bases[p->operand] + at * p->step;
    }
    if (program->row > 0) {
        rows->left -= n;
        rows->left = rows->left > 0 ? rows->left : program->row;
    }
}

// Prefetches part `part` of `parts` of the memory that the next block reads and writes.
// Addresses past an operand's end do no harm.
static void fetch_next(const struct cpu_program_run *run, unsigned char *const *locations,
                       const struct row_cursors *rows, uint32_t part, uint32_t parts)
{
    const struct program *program = run->program;
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->num_pointers; i++) {
        const struct program_pointer *p = &program->pointers[i];
        uint64_t bytes = (uint64_t)program->block * p->step;
        uintptr_t next = (uintptr_t)locations[p->location] + bytes;
        if (p->in_rows)
            next = (uintptr_t)(run->bases[p->operand] + rows->at[count++].offset * p->step);
        uint64_t end = bytes * (part + 1) / parts;
        for (uint64_t at = bytes * part / parts & ~UINT64_C(63); at < end; at += 64)
            __builtin_prefetch((const void *)(next + at));
    }
}

static void run_blocks(const struct cpu_program_run *run, unsigned char **locations,
                       int64_t begin, int64_t end)
{
    const struct program *program = run->program;
    struct row_cursors rows;
    if (program->num_phases > 0) {
        (program->group > 1 ? program_run_groups : program_run_rows)(program, run->bases,
                                                                     locations, begin, end);
        return;
    }
    for (uint32_t i = 0; i < program->num_fills; i++)
        cpu_program_run_op(run, &program->fills[i], locations, 0, program->block);
    rows.left = program->block;
    if (program->row > 0)
        begin_rows(program, &rows, begin);
    for (int64_t first = begin, n; first < end; first += n) {
        n = rows.left < program->block ? rows.left : program->block;
        n = end - first < n ? end - first : n;
        next_block(run, locations, &rows, first, n);
        for (uint32_t i = 0; i < program->num_ops; i++) {
            const struct program_op *op = &program->ops[i];
            if (program->fetches)
                fetch_next(run, locations, &rows, i, program->num_ops);
            if (op->action == ACTION_MAP)
                run_map(op, locations, n);
            else
                cpu_program_run_op(run, op, locations, first, n);
        }
    }
}

struct shared_run {
    struct cpu_program_run run;
    unsigned char *const *locations;
};

static void set_registers(const struct program *program, unsigned char *registers,
                          unsigned char **locations)
{
    const struct program_register *lines = program->registers + program->num_registers;
    for (uint32_t i = 0; i < program->num_registers; i++)
        locations[program->registers[i].location] =
            registers + (uint64_t)program->registers[i].number * program->register_bytes;
    for (uint32_t i = 0; i < program->num_lines; i++)
        locations[lines[i].location] =
            registers + program->registers_end +
            (uint64_t)lines[i].number * 8 * (uint64_t)program->group;
    if (program->num_residents > 0)
        locations[program->residents] =
            registers + program->registers_end +
            (program->num_lines * 8 * (uint64_t)program->group + 63) / 64 * 64;
}

// A thread has a copy of the frame's locations, with registers of its own.
static void own_locations(const struct program *program, const struct cpu_queue *queue,
                          unsigned char *const *shared, uint32_t worker,
                          unsigned char **locations)
{
    memcpy(locations, shared, program->num_locations * sizeof(*locations));
    if (worker > 0)
        set_registers(
            program, queue->device->registers + (uint64_t)(worker - 1) * CPU_REGISTER_BYTES,
            locations);
}

static void cpu_program_run_piece(void *context, int64_t begin, int64_t end,
                                  uint32_t worker)
{
    const struct shared_run *shared = context;
    unsigned char *locations[PROGRAM_MAX_LOCATIONS];
    own_locations(shared->run.program, shared->run.queue, shared->locations, worker,
                  locations);
    run_blocks(&shared->run, locations, begin, end);
}

uint64_t program_frame_bytes(const struct program *program)
{
    return program->num_locations * (sizeof(unsigned char *) + sizeof(uint64_t)) +
           program->num_operands * sizeof(unsigned char *);
}

void program_frame_init(const struct program *program, struct cpu_queue *queue,
                        void *memory, struct program_frame *out_frame)
{
    uint64_t *scalars = memory;
    unsigned char **locations = (unsigned char **)(scalars + program->num_locations);
    memcpy(scalars, program->scalars, program->num_locations * sizeof(scalars[0]));
    memset(locations, 0, program->num_locations * sizeof(locations[0]));
    for (uint32_t i = 0; i < program->num_locations; i++)
        if (program->is_scalar[i])
            locations[i] = (unsigned char *)&scalars[i];
    set_registers(program, queue->registers, locations);
    *out_frame = (struct program_frame){locations, locations + program->num_locations};
}

// Computes the uniform values, on scalars.
static void cpu_program_run_once(const struct program *program,
                                 const struct program_frame *frame)
{
    for (uint32_t i = 0; i < program->num_pointers; i++) {
        const struct program_pointer *p = &program->pointers[i];
        frame->locations[p->location] = frame->bases[p->operand];
    }
    for (uint32_t i = 0; i < program->num_once; i++)
        run_map(&program->once[i], frame->locations, 1);
}

void program_begin(const struct program *program, const struct program_frame *frame)
{
    if (program->num_once > 0 || program->num_fills > 0)
        cpu_program_run_once(program, frame);
}

void program_run(struct cpu_queue *queue, const struct program *program,
                 const struct program_frame *frame)
{
    if (program->count == 0)
        return;
    if (program->transposition) {
        program_transpose(queue, program, frame);
        return;
    }
    program_begin(program, frame);
    struct shared_run shared = {{queue, program, frame->bases}, frame->locations};
    if (program->count < 2 * program->grain)
        run_blocks(&shared.run, frame->locations, 0, program->count);
    else
        pool_run(queue->device->pool, program->count, program->grain, cpu_program_run_piece,
                 &shared);
}

void program_run_part(struct cpu_queue *queue, const struct program *program,
                      const struct program_frame *frame, uint32_t through, void *values,
                      int64_t begin, int64_t end, uint32_t worker)
{
    unsigned char *locations[PROGRAM_MAX_LOCATIONS];
    unsigned char *bases[TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS];
    for (uint32_t i = 0; i < program->num_operands; i++) {
        bases[i] = frame->bases[i];
        if (through & UINT32_C(1) << i) {
            // The element with number 0, which may lie outside of `values`.
            uintptr_t offset = (uintptr_t)begin * cpu_dtype_size(program->layouts[i].dtype);
            bases[i] = (unsigned char *)((uintptr_t)values - offset);
        }
    }
    own_locations(program, queue, frame->locations, worker, locations);
    run_blocks(&(struct cpu_program_run){queue, program, bases}, locations, begin, end);
}
