// SPDX-License-Identifier: MIT
// The instructions of a program: where each value lies, and which registers it takes, by
// live ranges.
#include "program_prepare.h"

// Rough costs, in picoseconds: of a byte read or written, of an arithmetic instruction, of
// a function such as exp, of a gathered element. They only choose the number of threads.
#define BYTE_PS 15
#define MAP_PS 80
#define GATHER_PS 400

void prepare_init(struct prepare *p, tn_device *device, struct cpu_arena *arena,
                  const tn_step *step)
{
    p->device = device;
    p->arena = arena;
    p->step = step;
    p->source = step->program;
    p->cost = 0;
    p->num_once = p->num_fills = p->num_ops = p->num_pointers = 0;
    p->num_locations = p->num_registers = 0;
    p->many_blocks = false;
    p->group = 1;
    p->num_phases = p->num_residents = 0;
    p->residents = NO_LOCATION;
    p->row = p->num_in_rows = 0;
    for (uint32_t i = 0; i < p->source->num_insns; i++)
        p->values[i] = (struct program_value){0};
}

bool prepare_is_uniform(const tn_layout *layout)
{
    for (int32_t i = 0; i < layout->rank; i++)
        if (layout->extent[i] != 1 && layout->stride[i] != 0)
            return false;
    return true;
}

bool prepare_is_contiguous(const tn_layout *layout)
{
    int64_t expected = 1;
    for (int32_t i = layout->rank - 1; i >= 0; i--) {
        if (layout->extent[i] != 1 && layout->stride[i] != expected)
            return false;
        expected *= layout->extent[i];
    }
    return true;
}

// --- emitting --------------------------------------------------------------------------

uint16_t prepare_location(struct prepare *p, enum location_kind kind)
{
    p->kinds[p->num_locations] = (uint8_t)kind;
    return p->num_locations++;
}

uint16_t prepare_pointer(struct prepare *p, uint32_t operand, uint32_t step)
{
    uint16_t location = prepare_location(p, LOCATION_POINTER);
    p->pointers[p->num_pointers++] =
        (struct program_pointer){location, (uint16_t)step, (uint16_t)operand, false};
    return location;
}

// Shorter rows are copied to registers: a block within such a row would be too short.
#define LEAST_ROW 256

// The location of an input whose rows are read without a copy. Each block of the program
// lies within a row then.
static uint16_t pointer_to_rows(struct prepare *p, uint32_t input, const tn_layout *layout)
{
    uint16_t location = prepare_pointer(p, input, cpu_dtype_size(layout->dtype));
    p->pointers[p->num_pointers - 1].in_rows = true;
    p->num_in_rows++;
    p->row = layout->extent[layout->rank - 1];
    return location;
}

static bool may_point_to_rows(const struct prepare *p, const tn_layout *layout)
{
    int32_t last = layout->rank - 1;
    return p->num_in_rows < TN_EXPR_MAX_INPUTS && last >= 0 && layout->stride[last] == 1 &&
           layout->extent[last] >= LEAST_ROW;
}

struct program_op *prepare_op(struct prepare *p, enum program_action action, uint16_t out)
{
    struct program_op *op = &p->ops[p->num_ops++];
    *op = (struct program_op){.action = (uint8_t)action, .out = out};
    return op;
}

// The location of a register that repeats the value `v` of a row or of all elements, made
// on first use.
uint16_t prepare_filled(struct prepare *p, uint32_t v)
{
    struct program_value *value = &p->values[v];
    if (value->filled == NO_LOCATION) {
        value->filled = prepare_location(p, LOCATION_REGISTER);
        const struct program_op op = {.action = ACTION_FILL,
                                      .in = {value->location},
                                      .num_in = 1,
                                      .out = value->filled,
                                      .by_rows = value->scope == SCOPE_ROW,
                                      .size_log2 = log2_size(value->dtype)};
        if (value->scope == SCOPE_ALL)
            p->fills[p->num_fills++] = op;
        else
            p->ops[p->num_ops++] = op;
    }
    return value->filled;
}

static const enum location_kind scope_location[] = {[SCOPE_ELEMENT] = LOCATION_REGISTER,
                                                    [SCOPE_ROW] = LOCATION_LINE,
                                                    [SCOPE_ALL] = LOCATION_SCALAR};

// The location of a result. A COMPLEX128 takes two scalar locations, which are adjacent.
static uint16_t result_location(struct prepare *p, enum value_scope scope, int32_t dtype)
{
    uint16_t location = prepare_location(p, scope_location[scope]);
    if (scope == SCOPE_ALL && cpu_dtype_size(dtype) > sizeof(p->scalars[0]))
        prepare_location(p, LOCATION_SCALAR);
    return location;
}

static void append_map(struct prepare *p, struct program_op op, enum value_scope scope)
{
    op.once_a_row = scope == SCOPE_ROW;
    if (scope == SCOPE_ALL)
        p->once[p->num_once++] = op;
    else
        p->ops[p->num_ops++] = op;
}

// Converts location `from` to `to_dtype`, in a new location.
uint16_t prepare_converted(struct prepare *p, uint16_t from, int32_t from_dtype,
                           int32_t to_dtype, enum value_scope scope)
{
    uint16_t out = result_location(p, scope, to_dtype);
    append_map(p,
               (struct program_op){.map = p->device->kernels->cast[from_dtype][to_dtype],
                                   .in = {from},
                                   .num_in = 1,
                                   .out = out},
               scope);
    return out;
}

// --- instructions ----------------------------------------------------------------------

// A constant or parameter: `bits` is an f64 for floats and complex numbers, else an i64.
void prepare_number(struct prepare *p, uint32_t i, uint64_t bits)
{
    struct program_value *value = &p->values[i];
    bool is_double = tn_is_float(value->dtype) || tn_is_complex(value->dtype);
    int32_t from = is_double ? TN_F64 : TN_I64;
    const void *in = &bits;
    value->location = result_location(p, SCOPE_ALL, value->dtype);
    value->scope = SCOPE_ALL;
    p->device->kernels->cast[from][value->dtype](&p->scalars[value->location], &in, 1, 0);
}

static void prepare_load(struct prepare *p, uint32_t i, uint32_t input)
{
    struct program_value *value = &p->values[i];
    const tn_layout *layout = &tn_step_input(p->step, input)->layout;
    uint32_t size = cpu_dtype_size(layout->dtype);

    value->scope = prepare_is_uniform(layout) ? SCOPE_ALL : SCOPE_ELEMENT;
    value->is_input = value->dtype == layout->dtype;
    if (value->scope == SCOPE_ALL) {
        value->location = prepare_pointer(p, input, 0);
    } else if (prepare_is_contiguous(layout)) {
        value->location = prepare_pointer(p, input, size);
        p->cost += BYTE_PS * size;
    } else if (may_point_to_rows(p, layout)) {
        value->location = pointer_to_rows(p, input, layout);
        p->cost += BYTE_PS * size;
    } else {
        value->is_input = false;
        value->location = prepare_location(p, LOCATION_REGISTER);
        struct program_op *op = prepare_op(p, ACTION_GATHER, value->location);
        op->operand = (uint16_t)input;
        op->size_log2 = log2_size(layout->dtype);
        p->cost += GATHER_PS;
    }
    if (value->dtype != layout->dtype)
        value->location = prepare_converted(p, value->location, layout->dtype, value->dtype,
                                            value->scope);
}

// The dtype that selects the loop: the operands'; for SELECT that of the values, not the
// condition.
static int32_t loop_dtype(const struct prepare *p, uint32_t op, const uint32_t *operands)
{
    return p->values[operands[op == TN_EXPR_SELECT ? 1 : 0]].dtype;
}

static uint32_t map_cost(uint32_t op, int32_t dtype)
{
    uint32_t size = cpu_dtype_size(dtype);
    uint32_t kind = cpu_op_class((int32_t)op);
    bool function = kind == TN_EXPR_CLASS_FUNCTION || kind == TN_EXPR_CLASS_CIRCULAR ||
                    kind == TN_EXPR_CLASS_POWER ||
                    (tn_is_complex(dtype) && kind == TN_EXPR_CLASS_ROOT);
    return (function ? FUNCTION_PS : MAP_PS) * (size > 4 ? 2 : 1);
}

// Whether an operation on all rows of a group takes an element that is one for all as a
// scalar. A fused one does unless a value of each row, which fills a register, is an
// operand, too: it has no fast loop for both.
static bool takes_scalars_of_groups(const struct prepare *p, uint32_t op,
                                    const uint32_t *operands, uint32_t num_operands)
{
    for (uint32_t k = 0; k < num_operands && cpu_is_fused((int32_t)op); k++)
        if (p->values[operands[k]].scope == SCOPE_ROW)
            return false;
    return true;
}

static void prepare_map(struct prepare *p, uint32_t i, uint32_t op,
                        const uint32_t *operands, uint32_t num_operands)
{
    struct program_value *value = &p->values[i];
    int32_t dtype = loop_dtype(p, op, operands);
    struct program_op map = {.num_in = (uint8_t)num_operands};

    map.map = op == TN_EXPR_CAST ? p->device->kernels->cast[dtype][value->dtype]
                                 : p->device->kernels->map[dtype][op];
    value->scope = SCOPE_ALL;
    for (uint32_t k = 0; k < num_operands; k++)
        if (p->values[operands[k]].scope < value->scope)
            value->scope = p->values[operands[k]].scope;
    bool takes = cpu_takes_scalars((int32_t)op, dtype);
    if (p->group > 1 && takes && value->scope == SCOPE_ELEMENT)
        takes = takes_scalars_of_groups(p, op, operands, num_operands);
    for (uint32_t k = 0; k < num_operands; k++) {
        const struct program_value *operand = &p->values[operands[k]];
        map.in[k] = operand->location;
        if (operand->scope == value->scope || operand->scope == SCOPE_ELEMENT ||
            (value->scope == SCOPE_ROW && p->group == 1))
            continue;
        if (takes && (operand->scope == SCOPE_ALL || p->group == 1))
            map.scalars |= (uint8_t)(1u << k);
        else
            map.in[k] = prepare_filled(p, operands[k]);
    }
    value->location = result_location(p, value->scope, value->dtype);
    map.out = value->location;
    append_map(p, map, value->scope);
    if (value->scope == SCOPE_ELEMENT)
        p->cost += map_cost(op, dtype);
}

void prepare_insn(struct prepare *p, uint32_t i)
{
    const tn_expr_insn *insn = &p->source->insns[i];
    const struct fusion *fusion = &p->fusions[i];
    struct program_value *value = &p->values[i];

    value->dtype = insn->dtype;
    value->location = value->filled = NO_LOCATION;
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
        value->location = prepare_location(p, LOCATION_REGISTER);
        prepare_op(p, ACTION_INDEX, value->location);
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
        if (p->kinds[op->in[k]] == LOCATION_POINTER)
            return true;
    return false;
}

// Whether the instruction that computes `value` may write to an output's memory. Not if an
// input is read after that instruction, since the input may share the memory.
bool prepare_may_write_directly(const struct prepare *p, const struct program_value *value)
{
    if (value->is_output || p->kinds[value->location] != LOCATION_REGISTER)
        return false;
    for (int64_t i = (int64_t)p->num_ops - 1; i >= 0; i--) {
        if (p->ops[i].out == value->location && p->ops[i].action != ACTION_SCATTER)
            return true;
        if (reads_inputs(p, &p->ops[i]))
            return false;
    }
    return false;
}

static void write_uniform(struct prepare *p, uint32_t k, struct program_value *value)
{
    const tn_layout *layout = &tn_step_output(p->step, k)->layout;
    uint32_t operand = p->step->num_inputs + k;
    struct program_op *op;

    if (value->dtype != layout->dtype)
        value->location =
            prepare_converted(p, value->location, value->dtype, layout->dtype, SCOPE_ALL);
    if (prepare_is_contiguous(layout)) {
        uint16_t out = prepare_pointer(p, operand, cpu_dtype_size(layout->dtype));
        op = prepare_op(p, ACTION_SPREAD, out);
        op->in[0] = value->location;
    } else {
        struct program_value copy = *value;
        copy.dtype = layout->dtype;
        copy.filled = NO_LOCATION;
        p->values[p->source->num_insns] = copy; // one past the instructions: a temporary
        uint16_t source = prepare_filled(p, p->source->num_insns);
        op = prepare_op(p, ACTION_SCATTER, source);
        op->in[0] = source;
    }
    op->num_in = 1;
    op->operand = (uint16_t)operand;
    op->size_log2 = log2_size(layout->dtype);
}

static void cpu_insn_write_output(struct prepare *p, uint32_t k)
{
    struct program_value *value = &p->values[p->source->outputs[k]];
    const tn_layout *layout = &tn_step_output(p->step, k)->layout;
    uint32_t operand = p->step->num_inputs + k, size = cpu_dtype_size(layout->dtype);
    uint16_t location = value->location;

    p->cost += BYTE_PS * size;
    if (value->scope == SCOPE_ALL) {
        struct program_value copy =
            *value; // write_uniform converts it, for this output only
        write_uniform(p, k, &copy);
        return;
    }
    if (prepare_is_contiguous(layout)) {
        if (value->dtype == layout->dtype && prepare_may_write_directly(p, value)) {
            p->kinds[location] = LOCATION_POINTER;
            p->pointers[p->num_pointers++] = (struct program_pointer){
                location, (uint16_t)size, (uint16_t)operand, false};
            value->is_output = true;
            return;
        }
        uint16_t out = prepare_pointer(p, operand, size);
        struct program_op *op = prepare_op(p, ACTION_MAP, out);
        op->map = p->device->kernels->cast[value->dtype][layout->dtype];
        op->in[0] = location;
        op->num_in = 1;
        return;
    }
    if (value->dtype != layout->dtype)
        location =
            prepare_converted(p, location, value->dtype, layout->dtype, SCOPE_ELEMENT);
    struct program_op *op = prepare_op(p, ACTION_SCATTER, location);
    op->in[0] = location;
    op->num_in = 1;
    op->operand = (uint16_t)operand;
    op->size_log2 = log2_size(layout->dtype);
}

void prepare_outputs(struct prepare *p)
{
    const tn_expr_program *source = p->source;
    // An input may share its memory with an output. With several outputs, inputs that are
    // outputs themselves are copied to registers before any output is written.
    for (uint32_t k = 0; k < source->num_outputs && source->num_outputs > 1; k++) {
        struct program_value *value = &p->values[source->outputs[k]];
        if (!value->is_input)
            continue;
        value->location =
            prepare_converted(p, value->location, value->dtype, value->dtype, value->scope);
        value->is_input = false;
    }
    for (uint32_t k = 0; k < source->num_outputs; k++)
        cpu_insn_write_output(p, k);
}

// --- registers -------------------------------------------------------------------------

// Linear-scan assignment of registers to locations by live ranges. Registers of fills are
// live throughout.
void prepare_registers(struct prepare *p)
{
    uint16_t last[PROGRAM_MAX_LOCATIONS] = {0}, free_list[PROGRAM_MAX_LOCATIONS];
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
        if (p->kinds[op->out] == LOCATION_REGISTER && op->action != ACTION_SCATTER)
            p->numbers[op->out] = num_free > 0 ? free_list[--num_free] : p->num_registers++;
        for (uint32_t k = 0; k < op->num_in; k++) {
            uint16_t location = op->in[k];
            if (p->kinds[location] == LOCATION_REGISTER && last[location] == i) {
                free_list[num_free++] = p->numbers[location];
                last[location] = UINT16_MAX; // frees the register once if it is read twice
            }
        }
    }
}

// Bytes of the widest element that a register holds.
uint32_t prepare_width(const struct prepare *p)
{
    uint32_t width = 4;
    for (uint32_t i = 0; i < p->source->num_insns; i++)
        if (cpu_dtype_size(p->source->insns[i].dtype) > width)
            width = cpu_dtype_size(p->source->insns[i].dtype);
    for (uint32_t k = 0; k < p->step->num_outputs; k++)
        if (cpu_dtype_size(tn_step_output(p->step, k)->layout.dtype) > width)
            width = cpu_dtype_size(tn_step_output(p->step, k)->layout.dtype);
    return width;
}
