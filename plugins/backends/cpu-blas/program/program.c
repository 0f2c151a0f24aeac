// SPDX-License-Identifier: MIT
// Prepares programs: computes uniform values (equal for all elements) once, fuses pairs of
// instructions, and puts the parts together.
#include "program_prepare.h"

// The least work of a piece in picoseconds, by which the number of threads is chosen.
#define PIECE_PS 6000000

#define BLOCK_BYTES 16384 // of all registers: half of a small first-level cache
#define MAX_BLOCK 1024    // elements
#define MIN_BLOCK 16

static int64_t choose_block(const struct prepare *p, int64_t count, uint32_t width)
{
    int64_t block = MAX_BLOCK;
    while (block > MIN_BLOCK && block * width * p->num_registers > BLOCK_BYTES)
        block /= 2;
    while (block > MIN_BLOCK && block / 2 >= count)
        block /= 2;
    if (p->row > 0) { // equal blocks within a row; registers stay aligned
        int64_t blocks = (p->row + block - 1) / block, unit = block < 64 ? block : 64;
        block = ((p->row + blocks - 1) / blocks + unit - 1) / unit * unit;
    }
    return block;
}

// --- assembling ------------------------------------------------------------------------

static void *cpu_program_keep(struct cpu_arena *arena, const void *data, uint64_t size)
{
    void *copy = arena_alloc(arena, size);
    if (copy && size > 0)
        memcpy(copy, data, size);
    return copy;
}

// Registers of a block and residents fit CPU_REGISTER_BYTES, with 8 bytes for each
// location.
#define ROW_BLOCK_BYTES 32768

static void set_row_sizes(struct prepare *p, struct program *program, uint32_t width)
{
    int64_t block = p->row > 2 * ROW_BLOCK ? ROW_BLOCK : p->row > 0 ? p->row : 1;
    if (p->group > 1)
        block = p->row * p->group;
    while (p->group == 1 && block > MIN_BLOCK &&
           block * width * p->num_registers > ROW_BLOCK_BYTES)
        block = (block + 1) / 2;
    program->row = p->row;
    program->block = block;
    program->streams = p->streams;
    program->register_bytes = (uint32_t)block * width;
    program->registers_end = (p->num_registers * program->register_bytes + 63) / 64 * 64;
    program->num_residents = p->num_residents;
    program->residents = p->residents;
    program->resident_width = width;
    if (p->num_residents > 0)
        program->resident_bytes = ((uint32_t)(p->row * p->group) * width + 63) / 64 * 64;
    program->group = p->group;
    program->grain = PIECE_PS / ((p->cost + 1) * (p->row + 64)) + 1;
}

// The processor does not foresee the next block if several operations of a block go over
// different memory: the block is prefetched, unless operands fit a second-level cache.
// (Before one long loop this would only wait.)
#define FETCH_FROM (INT64_C(2) << 20) // bytes
static bool fetches_next(const struct prepare *p, int64_t count)
{
    int64_t step = 0;
    for (uint32_t i = 0; i < p->num_pointers; i++)
        step += p->pointers[i].step;
    return p->num_ops >= (p->cost < FUNCTION_PS ? 2 : 3) && count * step >= FETCH_FROM;
}

static void set_sizes(struct prepare *p, struct program *program)
{
    const tn_layout *layout = &tn_step_output(p->step, 0)->layout;
    uint32_t width = prepare_width(p);
    program->count = 1;
    for (int32_t i = 0; i < layout->rank - p->has_rows; i++)
        program->count *= layout->extent[i];
    if (p->has_rows) {
        set_row_sizes(p, program, width);
        return;
    }
    program->row = p->row;
    program->block = choose_block(p, program->count, width);
    program->register_bytes = (uint32_t)program->block * width;
    program->grain = PIECE_PS / (p->cost + 1);
    program->fetches = fetches_next(p, program->count);
    if (program->grain < program->block)
        program->grain = program->block;
}

static tn_status set_layouts(struct prepare *p, struct program *program)
{
    const tn_step *step = p->step;
    program->num_operands = step->num_inputs + step->num_outputs;
    program->layouts = arena_alloc(p->arena, program->num_operands * sizeof(tn_layout));
    if (!program->layouts)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < step->num_inputs; i++)
        program->layouts[i] = tn_step_input(step, i)->layout;
    for (uint32_t i = 0; i < step->num_outputs; i++)
        program->layouts[step->num_inputs + i] = tn_step_output(step, i)->layout;
    return TN_OK;
}

static tn_status set_locations(struct prepare *p, struct program *program)
{
    struct program_register registers[PROGRAM_MAX_LOCATIONS];
    program->num_locations = p->num_locations;
    program->scalars =
        cpu_program_keep(p->arena, p->scalars, p->num_locations * sizeof(uint64_t));
    program->is_scalar = arena_alloc(p->arena, p->num_locations);
    if (!program->scalars || !program->is_scalar)
        return TN_ERR_MEMORY;
    for (uint16_t i = 0; i < p->num_locations; i++) {
        program->is_scalar[i] = p->kinds[i] == LOCATION_SCALAR;
        if (p->kinds[i] == LOCATION_REGISTER)
            registers[program->num_registers++] =
                (struct program_register){i, p->numbers[i]};
    }
    uint32_t count = program->num_registers;
    for (uint16_t i = 0; i < p->num_locations; i++)
        if (p->kinds[i] == LOCATION_LINE)
            registers[count++] =
                (struct program_register){i, (uint16_t)program->num_lines++};
    for (uint16_t i = 0; i < p->num_locations; i++)
        if (p->kinds[i] == LOCATION_RESIDENT)
            registers[count++] = (struct program_register){i, p->numbers[i]};
    program->registers =
        cpu_program_keep(p->arena, registers, count * sizeof(registers[0]));
    return program->registers ? TN_OK : TN_ERR_MEMORY;
}

static tn_status put_together(struct prepare *p, struct program **out_program)
{
    struct program *program = arena_alloc(p->arena, sizeof(*program));
    if (!program)
        return TN_ERR_MEMORY;
    set_sizes(p, program);
    program->kernels = p->device->kernels;
    program->num_once = p->num_once;
    program->num_fills = p->num_fills;
    program->num_ops = p->num_ops;
    program->num_pointers = p->num_pointers;
    program->once = cpu_program_keep(p->arena, p->once, p->num_once * sizeof(p->once[0]));
    program->fills =
        cpu_program_keep(p->arena, p->fills, p->num_fills * sizeof(p->fills[0]));
    program->ops = cpu_program_keep(p->arena, p->ops, p->num_ops * sizeof(p->ops[0]));
    program->pointers =
        cpu_program_keep(p->arena, p->pointers, p->num_pointers * sizeof(p->pointers[0]));
    program->num_phases = p->num_phases;
    program->phases =
        cpu_program_keep(p->arena, p->phases, p->num_phases * sizeof(p->phases[0]));
    if (!program->phases || !program->once || !program->fills || !program->ops ||
        !program->pointers)
        return TN_ERR_MEMORY;
    tn_status status = set_layouts(p, program);
    if (status == TN_OK)
        status = set_locations(p, program);
    if (status == TN_OK && !p->has_rows)
        status = program_find_transposition(p->arena, p->step, program);
    if (status == TN_OK)
        *out_program = program;
    return status;
}

tn_status program_prepare(tn_device *device, struct cpu_arena *arena, const tn_step *step,
                          bool in_place, struct program **out_program)
{
    struct prepare p;
    p.in_place = in_place;
    p.has_rows = step->program->flags & TN_EXPR_ROWS;
    prepare_init(&p, device, arena, step);
    p.has_rows |= prepare_has_values_of_rows(&p);
    prepare_fusions(&p);
    if (p.has_rows) {
        prepare_rows(&p);
        return put_together(&p, out_program);
    }
    for (uint32_t i = 0; i < p.source->num_insns; i++)
        prepare_insn(&p, i);
    prepare_outputs(&p);
    prepare_registers(&p);
    return put_together(&p, out_program);
}
