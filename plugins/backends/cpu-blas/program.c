// SPDX-License-Identifier: MIT
// Prepares programs: values that are the same for all elements are computed once, pairs of
// instructions are fused, and the rest get registers by their lifetimes.
#include "program_prepare.h"

#include <assert.h>

// The numbers of operations and dtypes are the public ones.
#define SAME_OP(name, text, operands)                                                      \
    static_assert((int)CPU_OP_##name == (int)TN_EXPR_##name, "kernels/cpu/cpu.h");
TN_EXPR_OPS(SAME_OP)
#undef SAME_OP
static_assert((int)CPU_BOOL == TN_BOOL && (int)CPU_U8 == TN_U8 && (int)CPU_F16 == TN_F16 &&
                  (int)CPU_F64 == TN_F64,
              "kernels/cpu/cpu.h");

// What one thread should have to do at least, and what things cost, in picoseconds: rough,
// for choosing between one thread and several only.
#define PIECE_PS 6000000
#define BYTE_PS 15
#define MAP_PS 80
#define FUNCTION_PS 2000
#define GATHER_PS 400

static bool is_uniform_layout(const tn_layout *layout)
{
    for (int32_t i = 0; i < layout->rank; i++)
        if (layout->extent[i] != 1 && layout->stride[i] != 0)
            return false;
    return true;
}

static bool is_contiguous(const tn_layout *layout)
{
    int64_t expected = 1;
    for (int32_t i = layout->rank - 1; i >= 0; i--) {
        if (layout->extent[i] != 1 && layout->stride[i] != expected)
            return false;
        expected *= layout->extent[i];
    }
    return true;
}

static uint8_t log2_size(int32_t dtype)
{
    return (uint8_t)__builtin_ctz(cpu_dtype_size(dtype));
}

// --- emitting --------------------------------------------------------------------------

uint16_t prepare_place(struct prepare *p, enum place_kind kind)
{
    p->kinds[p->num_places] = (uint8_t)kind;
    return p->num_places++;
}

static uint16_t pointer_place(struct prepare *p, uint32_t operand, uint32_t step)
{
    uint16_t place = prepare_place(p, PLACE_POINTER);
    p->pointers[p->num_pointers++] =
        (struct program_pointer){place, (uint16_t)step, operand};
    return place;
}

struct program_op *prepare_op(struct prepare *p, enum program_action action, uint16_t out)
{
    struct program_op *op = &p->ops[p->num_ops++];
    *op = (struct program_op){.action = (uint8_t)action, .out = out};
    return op;
}

// A register that repeats the scalar of value `v`.
static uint16_t filled(struct prepare *p, uint32_t v)
{
    struct value *value = &p->values[v];
    if (value->filled == NO_PLACE) {
        value->filled = prepare_place(p, PLACE_REGISTER);
        p->fills[p->num_fills++] =
            (struct program_op){.action = ACTION_FILL,
                                .in = {value->place},
                                .num_in = 1,
                                .out = value->filled,
                                .size_log2 = log2_size(value->dtype)};
    }
    return value->filled;
}

// Converts what is in `from` to `to_dtype`, in a place of its own.
static uint16_t convert(struct prepare *p, uint16_t from, int32_t from_dtype,
                        int32_t to_dtype, bool uniform)
{
    cpu_map_fn *cast = p->device->kernels->cast[from_dtype][to_dtype];
    uint16_t out = prepare_place(p, uniform ? PLACE_SCALAR : PLACE_REGISTER);
    struct program_op op = {.map = cast, .in = {from}, .num_in = 1, .out = out};
    if (uniform)
        p->once[p->num_once++] = op;
    else
        p->ops[p->num_ops++] = op;
    return out;
}

// --- instructions ----------------------------------------------------------------------

static void prepare_number(struct prepare *p, uint32_t i, uint64_t bits)
{
    struct value *value = &p->values[i];
    int32_t from = value->dtype == TN_F32 || value->dtype == TN_F64 ? TN_F64 : TN_I64;
    const void *in = &bits;
    value->place = prepare_place(p, PLACE_SCALAR);
    value->uniform = true;
    p->device->kernels->cast[from][value->dtype](&p->scalars[value->place], &in, 1, 0);
}

static void prepare_load(struct prepare *p, uint32_t i, uint32_t input)
{
    struct value *value = &p->values[i];
    const tn_layout *layout = &p->step->inputs[input].layout;
    uint32_t size = cpu_dtype_size(layout->dtype);

    value->uniform = is_uniform_layout(layout);
    value->is_input = value->dtype == layout->dtype;
    if (value->uniform) {
        value->place = pointer_place(p, input, 0);
    } else if (is_contiguous(layout)) {
        value->place = pointer_place(p, input, size);
        p->cost += BYTE_PS * size;
    } else {
        value->is_input = false;
        value->place = prepare_place(p, PLACE_REGISTER);
        struct program_op *op = prepare_op(p, ACTION_GATHER, value->place);
        op->operand = input;
        op->size_log2 = log2_size(layout->dtype);
        p->cost += GATHER_PS;
    }
    if (value->dtype != layout->dtype)
        value->place =
            convert(p, value->place, layout->dtype, value->dtype, value->uniform);
}

// The dtype that selects the loop: the operands', but the result's for SELECT.
static int32_t loop_dtype(const struct prepare *p, uint32_t op, const uint32_t *operands)
{
    return p->values[operands[op == TN_EXPR_SELECT ? 1 : 0]].dtype;
}

static uint32_t map_cost(uint32_t op, int32_t dtype)
{
    uint32_t size = cpu_dtype_size(dtype);
    bool function = (op >= TN_EXPR_EXP && op <= TN_EXPR_ERF) || op == TN_EXPR_POW ||
                    op == TN_EXPR_ATAN2 || op == TN_EXPR_MOD;
    return (function ? FUNCTION_PS : MAP_PS) * (size > 4 ? 2 : 1);
}

static void prepare_map(struct prepare *p, uint32_t i, uint32_t op,
                        const uint32_t *operands, uint32_t num_operands)
{
    struct value *value = &p->values[i];
    int32_t dtype = loop_dtype(p, op, operands);
    struct program_op map = {.num_in = (uint8_t)num_operands};

    map.map = op == TN_EXPR_CAST ? p->device->kernels->cast[dtype][value->dtype]
                                 : p->device->kernels->map[dtype][op];
    value->uniform = true;
    for (uint32_t k = 0; k < num_operands; k++)
        value->uniform &= p->values[operands[k]].uniform;
    for (uint32_t k = 0; k < num_operands; k++) {
        const struct value *operand = &p->values[operands[k]];
        map.in[k] = operand->place;
        if (!operand->uniform || value->uniform)
            continue;
        if (cpu_takes_scalars((int32_t)op, dtype))
            map.scalars |= (uint8_t)(1u << k);
        else
            map.in[k] = filled(p, operands[k]);
    }
    value->place = prepare_place(p, value->uniform ? PLACE_SCALAR : PLACE_REGISTER);
    map.out = value->place;
    if (value->uniform) {
        p->once[p->num_once++] = map;
    } else {
        p->ops[p->num_ops++] = map;
        p->cost += map_cost(op, dtype);
    }
}

static void prepare_insn(struct prepare *p, uint32_t i)
{
    const tn_expr_insn *insn = &p->source->insns[i];
    const struct fusion *fusion = &p->fusions[i];
    struct value *value = &p->values[i];

    value->dtype = insn->dtype;
    value->place = value->filled = NO_PLACE;
    switch (insn->op) {
    case TN_EXPR_LOAD:
        prepare_load(p, i, insn->a);
        return;
    case TN_EXPR_CONST:
        prepare_number(p, i, p->source->constants[insn->a]);
        return;
    case TN_EXPR_PARAM:
        prepare_number(p, i, p->step->params[insn->a]);
        return;
    case TN_EXPR_INDEX:
        value->place = prepare_place(p, PLACE_REGISTER);
        prepare_op(p, ACTION_INDEX, value->place);
        p->cost += MAP_PS;
        return;
    default:
        if (!fusion->absorbed)
            prepare_map(p, i, fusion->op, fusion->operands, fusion->num_operands);
    }
}

// --- outputs ---------------------------------------------------------------------------

static bool reads_inputs(const struct prepare *p, const struct program_op *op)
{
    if (op->action == ACTION_GATHER)
        return true;
    for (uint32_t k = 0; k < op->num_in; k++)
        if (p->kinds[op->in[k]] == PLACE_POINTER)
            return true;
    return false;
}

// May the value be computed straight into an output? Not if inputs are read after that,
// since an input may lie in the same memory.
static bool may_write_directly(const struct prepare *p, const struct value *value)
{
    if (value->is_output || p->kinds[value->place] != PLACE_REGISTER)
        return false;
    for (int64_t i = (int64_t)p->num_ops - 1; i >= 0; i--) {
        if (p->ops[i].out == value->place && p->ops[i].action != ACTION_SCATTER)
            return true;
        if (reads_inputs(p, &p->ops[i]))
            return false;
    }
    return false;
}

static void write_uniform(struct prepare *p, uint32_t k, struct value *value)
{
    const tn_layout *layout = &p->step->outputs[k].layout;
    uint32_t operand = p->step->num_inputs + k;
    struct program_op *op;

    if (value->dtype != layout->dtype)
        value->place = convert(p, value->place, value->dtype, layout->dtype, true);
    if (is_contiguous(layout)) {
        uint16_t out = pointer_place(p, operand, cpu_dtype_size(layout->dtype));
        op = prepare_op(p, ACTION_SPREAD, out);
        op->in[0] = value->place;
    } else {
        struct value copy = *value;
        copy.dtype = layout->dtype;
        copy.filled = NO_PLACE;
        p->values[p->source->num_insns] = copy; // one past the end: a value of its own
        uint16_t source = filled(p, p->source->num_insns);
        op = prepare_op(p, ACTION_SCATTER, source);
        op->in[0] = source;
    }
    op->num_in = 1;
    op->operand = operand;
    op->size_log2 = log2_size(layout->dtype);
}

static void write_output(struct prepare *p, uint32_t k)
{
    struct value *value = &p->values[p->source->outputs[k]];
    const tn_layout *layout = &p->step->outputs[k].layout;
    uint32_t operand = p->step->num_inputs + k, size = cpu_dtype_size(layout->dtype);
    uint16_t place = value->place;

    p->cost += BYTE_PS * size;
    if (value->uniform) {
        struct value copy = *value; // converted for this output only
        write_uniform(p, k, &copy);
        return;
    }
    if (is_contiguous(layout)) {
        if (value->dtype == layout->dtype && may_write_directly(p, value)) {
            p->kinds[place] = PLACE_POINTER;
            p->pointers[p->num_pointers++] =
                (struct program_pointer){place, (uint16_t)size, operand};
            value->is_output = true;
            return;
        }
        uint16_t out = pointer_place(p, operand, size);
        struct program_op *op = prepare_op(p, ACTION_MAP, out);
        op->map = p->device->kernels->cast[value->dtype][layout->dtype];
        op->in[0] = place;
        op->num_in = 1;
        return;
    }
    if (value->dtype != layout->dtype)
        place = convert(p, place, value->dtype, layout->dtype, false);
    struct program_op *op = prepare_op(p, ACTION_SCATTER, place);
    op->in[0] = place;
    op->num_in = 1;
    op->operand = operand;
    op->size_log2 = log2_size(layout->dtype);
}

static void write_outputs(struct prepare *p)
{
    const tn_expr_program *source = p->source;
    // With several outputs, inputs that come out unchanged are saved before one of them is
    // overwritten.
    for (uint32_t k = 0; k < source->num_outputs && source->num_outputs > 1; k++) {
        struct value *value = &p->values[source->outputs[k]];
        if (!value->is_input)
            continue;
        value->place = convert(p, value->place, value->dtype, value->dtype, value->uniform);
        value->is_input = false;
    }
    for (uint32_t k = 0; k < source->num_outputs; k++)
        write_output(p, k);
}

// --- registers -------------------------------------------------------------------------

// Gives each register place a register, by the order of its first and last use. Registers
// of fills live throughout.
static void assign_registers(struct prepare *p)
{
    uint16_t last[PROGRAM_MAX_PLACES] = {0}, free_list[PROGRAM_MAX_PLACES];
    uint32_t num_free = 0;

    for (uint32_t i = 0; i < p->num_fills; i++) {
        last[p->fills[i].out] = UINT16_MAX;
        p->numbers[p->fills[i].out] = p->num_registers++;
    }
    for (uint32_t i = 0; i < p->num_ops; i++)
        for (uint32_t k = 0; k < p->ops[i].num_in; k++)
            if (last[p->ops[i].in[k]] != UINT16_MAX)
                last[p->ops[i].in[k]] = (uint16_t)i;
    for (uint32_t i = 0; i < p->num_ops; i++) {
        const struct program_op *op = &p->ops[i];
        if (p->kinds[op->out] == PLACE_REGISTER && op->action != ACTION_SCATTER)
            p->numbers[op->out] = num_free > 0 ? free_list[--num_free] : p->num_registers++;
        for (uint32_t k = 0; k < op->num_in; k++) {
            uint16_t place = op->in[k];
            if (p->kinds[place] == PLACE_REGISTER && last[place] == i) {
                free_list[num_free++] = p->numbers[place];
                last[place] = UINT16_MAX; // an operand may be named twice
            }
        }
    }
}

#define BLOCK_BYTES 16384 // of registers: half of a small first-level cache
#define MAX_BLOCK 1024    // elements
#define MIN_BLOCK 16

static int64_t choose_block(const struct prepare *p, int64_t count, uint32_t width)
{
    int64_t block = MAX_BLOCK;
    while (block > MIN_BLOCK && block * width * p->num_registers > BLOCK_BYTES)
        block /= 2;
    while (block > MIN_BLOCK && block / 2 >= count)
        block /= 2;
    return block;
}

// --- putting together ------------------------------------------------------------------

static void *keep(struct arena *arena, const void *data, uint64_t size)
{
    void *copy = arena_alloc(arena, size);
    if (copy && size > 0)
        memcpy(copy, data, size);
    return copy;
}

static void set_sizes(struct prepare *p, struct program *program)
{
    const tn_layout *layout = &p->step->outputs[0].layout;
    uint32_t width = 4;

    program->count = 1;
    for (int32_t i = 0; i < layout->rank; i++)
        program->count *= layout->extent[i];
    for (uint32_t i = 0; i < p->source->num_insns; i++)
        if (cpu_dtype_size(p->source->insns[i].dtype) > width)
            width = cpu_dtype_size(p->source->insns[i].dtype);
    for (uint32_t k = 0; k < p->step->num_outputs; k++)
        if (cpu_dtype_size(p->step->outputs[k].layout.dtype) > width)
            width = cpu_dtype_size(p->step->outputs[k].layout.dtype);
    program->block = choose_block(p, program->count, width);
    program->register_bytes = (uint32_t)program->block * width;
    program->grain = PIECE_PS / (p->cost + 1);
    if (program->grain < program->block)
        program->grain = program->block;
}

static tn_status set_layouts(struct prepare *p, struct program *program)
{
    const tn_step *step = p->step;
    program->num_operands = step->num_inputs + step->num_outputs;
    program->layouts = arena_alloc(p->arena, program->num_operands * sizeof(tn_layout));
    program->bases = arena_alloc(p->arena, program->num_operands * sizeof(void *));
    if (!program->layouts || !program->bases)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < step->num_inputs; i++)
        program->layouts[i] = step->inputs[i].layout;
    for (uint32_t i = 0; i < step->num_outputs; i++)
        program->layouts[step->num_inputs + i] = step->outputs[i].layout;
    return TN_OK;
}

static tn_status set_places(struct prepare *p, struct program *program)
{
    struct program_register registers[PROGRAM_MAX_PLACES];
    program->num_places = p->num_places;
    program->scalars = keep(p->arena, p->scalars, p->num_places * sizeof(uint64_t));
    program->places = arena_alloc(p->arena, p->num_places * sizeof(void *));
    if (!program->scalars || !program->places)
        return TN_ERR_MEMORY;
    for (uint16_t i = 0; i < p->num_places; i++) {
        if (p->kinds[i] == PLACE_SCALAR)
            program->places[i] = (unsigned char *)&program->scalars[i];
        if (p->kinds[i] != PLACE_REGISTER)
            continue;
        program->places[i] =
            p->device->registers + (uint64_t)p->numbers[i] * program->register_bytes;
        registers[program->num_registers++] = (struct program_register){i, p->numbers[i]};
    }
    program->registers =
        keep(p->arena, registers, program->num_registers * sizeof(registers[0]));
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
    program->once = keep(p->arena, p->once, p->num_once * sizeof(p->once[0]));
    program->fills = keep(p->arena, p->fills, p->num_fills * sizeof(p->fills[0]));
    program->ops = keep(p->arena, p->ops, p->num_ops * sizeof(p->ops[0]));
    program->pointers =
        keep(p->arena, p->pointers, p->num_pointers * sizeof(p->pointers[0]));
    if (!program->once || !program->fills || !program->ops || !program->pointers)
        return TN_ERR_MEMORY;
    tn_status status = set_layouts(p, program);
    if (status == TN_OK)
        status = set_places(p, program);
    if (status == TN_OK)
        status = program_find_transposition(p->arena, p->step, program);
    if (status == TN_OK)
        *out_program = program;
    return status;
}

tn_status program_prepare(tn_device *device, struct arena *arena, const tn_step *step,
                          struct program **out_program)
{
    struct prepare p;
    prepare_init(&p, device, arena, step);
    prepare_fusions(&p);
    for (uint32_t i = 0; i < p.source->num_insns; i++)
        prepare_insn(&p, i);
    write_outputs(&p);
    assign_registers(&p);
    return put_together(&p, out_program);
}
