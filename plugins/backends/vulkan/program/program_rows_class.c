// SPDX-License-Identifier: MIT
// Classifies row programs: how many invocations compute a row, and how they address it.
#include <tenon/ops/program_rows.h>
#include "program_rows.h"
#include "vulkan/reduce/plan_reduce.h"

#define LEAST_GROUP 128   // invocations
#define SHARED_LANES 256  // the most lanes that shared memory folds, 16 by 16
#define WANTED_QUADS 16   // elements a lane, read four at a time
#define WANTED_SINGLES 8  // one at a time
#define MOST_REGISTERS 64 // 32-bit words that a lane keeps from one phase to the next
#define MOST_CODE 4096    // instructions, times the elements of a lane
#define SOFTWARE_ELEMENTS 8
#define MOST_SHARED 8192 // bytes of an array in shared memory: 32 reductions fit

// Rows with gaps: adjacent invocations compute adjacent rows.
#define FEW_COLUMNS 4096

static const tn_layout *rows_class_shape_of(const tn_step *step)
{
    return program_operand(step, 0);
}

static int64_t row_extent(const tn_step *step)
{
    const tn_layout *shape = rows_class_shape_of(step);
    return shape->extent[shape->rank - 1];
}

uint64_t program_rows(const tn_step *step)
{
    const tn_layout *shape = rows_class_shape_of(step);
    uint64_t rows = 1;
    for (int32_t axis = 0; axis < shape->rank - 1; axis++)
        rows *= (uint64_t)shape->extent[axis];
    return rows;
}

bool rows_is_reduction(const tn_expr_program *program, uint32_t position)
{
    return tn_expr_class(program->insns[position].op) == TN_EXPR_CLASS_REDUCE;
}

uint32_t rows_count_reductions(const tn_expr_program *program)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->num_insns; i++)
        count += rows_is_reduction(program, i);
    return count;
}

uint32_t rows_shared_size(const tn_expr_program *program, const struct program_class *class)
{
    return class->subgroup > 0
               ? rows_count_reductions(program) * (class->group / class->subgroup)
               : class->group + class->group / 16;
}

// --- scopes ----------------------------------------------------------------------------

static enum rows_scope scope_of_access(char access)
{
    switch (access) {
    case ACCESS_SCALAR:
    case ACCESS_TAKEN_FLAT:
        return ROWS_ALL;
    case ACCESS_REPEAT:
    case ACCESS_TAKEN_REPEAT:
        return ROWS_ROW;
    default:
        return ROWS_ELEMENT;
    }
}

void rows_find_scopes(const tn_expr_program *program, const struct program_class *class,
                      enum rows_scope scopes[TN_EXPR_MAX_INSNS])
{
    for (uint32_t i = 0; i < program->num_insns; i++) {
        const tn_expr_insn *insn = &program->insns[i];
        const uint32_t from[] = {insn->a, insn->b, insn->c};
        enum rows_scope scope = insn->op == TN_EXPR_INDEX ? ROWS_ELEMENT : ROWS_ALL;
        if (insn->op == TN_EXPR_LOAD || insn->op == TN_EXPR_TAKE)
            scope = scope_of_access(class->access[insn->a]);
        if (insn->op == TN_EXPR_TAKE && scopes[insn->b] > scope)
            scope = scopes[insn->b];
        for (uint32_t k = 0; k < tn_expr_operands(insn->op); k++)
            scope = scopes[from[k]] > scope ? scopes[from[k]] : scope;
        scopes[i] = rows_is_reduction(program, i) ? ROWS_ROW : scope;
    }
}

// --- operands --------------------------------------------------------------------------

// Whether the operand has one element for all of a row.
static bool is_of_row(const tn_step *step, const tn_layout *layout)
{
    int32_t last = layout->rank - 1;
    return row_extent(step) != 1 &&
           (layout->stride[last] == 0 || layout->extent[last] == 1);
}

static bool rows_class_has_columns(const tn_step *step)
{
    for (uint32_t i = 0; i < step->num_inputs; i++) {
        const tn_layout *layout = program_operand(step, i);
        if (!program_takes(step->program, i) && !is_of_row(step, layout) &&
            layout->extent[layout->rank - 1] > 1 && layout->stride[layout->rank - 1] != 1)
            return true;
    }
    return false;
}

static bool is_uniform(const tn_layout *layout)
{
    for (int32_t axis = 0; axis < layout->rank; axis++)
        if (layout->extent[axis] != 1 && layout->stride[axis] != 0)
            return false;
    return true;
}

static char classify_taken(const tn_step *step, const tn_layout *layout)
{
    return is_uniform(layout)        ? ACCESS_TAKEN_FLAT
           : is_of_row(step, layout) ? ACCESS_TAKEN_REPEAT
                                     : ACCESS_TAKEN;
}

static void classify_operands(const tn_step *step, struct program_class *class)
{
    enum rows_scope scopes[TN_EXPR_MAX_INSNS];
    bool even[TN_EXPR_MAX_INSNS];
    uint32_t num_operands = step->num_inputs + step->num_outputs;
    class->per_item = row_extent(step) % 4 == 0 ? 4 : 1;
    for (uint32_t i = 0; i < num_operands; i++) {
        const tn_layout *layout = program_operand(step, i);
        int32_t last = layout->rank - 1;
        if (i < step->num_inputs && program_takes(step->program, i)) {
            class->access[i] = classify_taken(step, layout);
            continue;
        }
        class->access[i] = is_of_row(step, layout) ? ACCESS_REPEAT
                           : layout->stride[last] == 1 || layout->extent[last] == 1
                               ? ACCESS_LOOSE
                               : ACCESS_STRIDED;
        if (class->access[i] != ACCESS_REPEAT && !program_is_aligned(layout))
            class->per_item = 1;
    }
    for (uint32_t i = 0; i < step->num_inputs; i++)
        if (class->access[i] == ACCESS_REPEAT && is_uniform(program_operand(step, i)))
            class->access[i] = ACCESS_SCALAR;
    rows_find_scopes(step->program, class, scopes);
    for (uint32_t i = 0; i < step->program->num_insns; i++)
        even[i] = scopes[i] != ROWS_ELEMENT;
    for (uint32_t i = 0; i < num_operands && class->per_item == 4; i++)
        if (class->access[i] == ACCESS_LOOSE)
            class->access[i] = ACCESS_ROW;
        else if (class->access[i] == ACCESS_TAKEN && program_takes_rows(step, i, even))
            class->access[i] = ACCESS_TAKEN_FOUR;
}

// --- shape -----------------------------------------------------------------------------

// The most elements that a lane has at once.
static uint32_t most_elements(const tn_step *step, const struct rows_device *device)
{
    const tn_expr_program *program = step->program;
    uint32_t words = 1; // that an element keeps, by a simple measure
    for (uint32_t i = 0; i < program->num_inputs; i++)
        words += program_takes(program, i) || !is_of_row(step, program_operand(step, i));
    uint32_t width = 1; // of the widest reduction, in words
    for (uint32_t i = 0; i < program->num_insns; i++)
        if (rows_is_reduction(program, i) && dtype_bytes(program->insns[i].dtype) == 8)
            width = 2;
    words *= width;
    uint32_t most = device->is_software ? SOFTWARE_ELEMENTS : 2 * MOST_REGISTERS / words;
    most = most < MOST_REGISTERS / 2 ? most : MOST_REGISTERS / 2;
    while (most > 4 && most * program->num_insns > MOST_CODE)
        most /= 2;
    return most > 4 ? most / 4 * 4 : 4;
}

static uint32_t rows_class_power_of_two(uint64_t least, uint32_t most)
{
    uint32_t lanes = 1;
    while (lanes < most && lanes < least)
        lanes *= 2;
    return lanes;
}

// Shared memory has an element of 8 bytes for each reduction and subgroup.
static uint32_t most_lanes(const tn_step *step, const struct rows_device *device)
{
    uint32_t lanes = device->max_group, reductions = rows_count_reductions(step->program);
    if (device->subgroup == 0)
        return SHARED_LANES < lanes ? SHARED_LANES : lanes;
    while (lanes > LEAST_GROUP && lanes / device->subgroup * reductions * 8 > MOST_SHARED)
        lanes /= 2;
    return lanes;
}

static void rows_class_choose_lanes(const tn_step *step, const struct rows_device *device,
                                    struct program_class *class)
{
    uint64_t n = (uint64_t)row_extent(step), items = ceil_div(n, class->per_item);
    uint32_t most = most_elements(step, device);
    uint32_t wanted = class->per_item == 4 ? WANTED_QUADS : WANTED_SINGLES;
    uint32_t max_lanes = most_lanes(step, device);
    uint32_t usual = max_lanes < SHARED_LANES ? max_lanes : SHARED_LANES;
    wanted = wanted < most ? wanted : most;
    class->lanes = rows_class_power_of_two(ceil_div(n, wanted), usual);
    // Rows of a few elements: adjacent lanes read 128 bytes.
    uint32_t least = rows_class_power_of_two(items, class->per_item == 4 ? 8 : 32);
    class->lanes = class->lanes > least ? class->lanes : least;
    if (rows_class_has_columns(step))
        class->lanes = 1;
    else if (ceil_div(n, class->lanes) > most)
        class->lanes = rows_class_power_of_two(ceil_div(n, most), max_lanes);
    class->chunks = (uint32_t)ceil_div(items, class->lanes);
    class->loops = ceil_div(items, class->lanes) > most / class->per_item;
    if (class->loops) {
        class->lanes = class->lanes < usual ? class->lanes : usual;
        class->chunks = wanted / class->per_item;
    }
    class->whole = items % ((uint64_t) class->lanes * class->chunks) == 0;
    class->group = class->lanes > LEAST_GROUP ? class->lanes : LEAST_GROUP;
}

uint32_t rows_first_param(const struct program_class *class)
{
    uint32_t num_operands = class->num_inputs + class->num_outputs;
    uint32_t word = 2 + num_operands + class->rank - 1;
    for (uint32_t i = 0; i < num_operands; i++)
        if (rows_has_strides(class->access[i]))
            word += class->rank - 1 + rows_has_step(class->access[i]);
    return word;
}

static void rows_class_list_args(const tn_step *step, const struct program_class *class,
                                 struct program_args *args)
{
    uint32_t num_operands = step->num_inputs + step->num_outputs;
    args->num_words = 0;
    args->values = 0;
    program_add_arg(args, program_rows(step));
    program_add_arg(args, (uint64_t)row_extent(step));
    for (uint32_t i = 0; i < num_operands; i++)
        program_add_arg(args, (uint64_t)program_operand(step, i)->offset);
    for (uint32_t axis = 0; axis + 1 < class->rank; axis++)
        program_add_arg(args, (uint64_t)rows_class_shape_of(step)->extent[axis]);
    for (uint32_t i = 0; i < num_operands; i++) {
        const tn_layout *layout = program_operand(step, i);
        for (uint32_t axis = 0;
             rows_has_strides(class->access[i]) && axis + 1 < class->rank; axis++)
            program_add_arg(args,
                            layout->extent[axis] == 1 ? 0 : (uint64_t)layout->stride[axis]);
        if (rows_has_step(class->access[i]))
            program_add_arg(args, (uint64_t)layout->stride[class->rank - 1]);
    }
    program_add_params(step, args);
}

void program_classify_rows(const tn_step *step, const struct rows_device *device,
                           uint32_t push_words, struct program_class *out,
                           struct program_args *args)
{
    struct program_class class = {.num_inputs = step->num_inputs,
                                  .num_outputs = step->num_outputs,
                                  .rank = (uint32_t)rows_class_shape_of(step)->rank,
                                  .subgroup = device->subgroup};
    classify_operands(step, &class);
    rows_class_choose_lanes(step, device, &class);
    rows_class_list_args(step, &class, args);
    class.args_in_buffer = args->num_words > push_words;
    *out = class;
}

const char *program_rows_refused(const tn_step *step)
{
    int64_t n = row_extent(step);
    uint64_t rows = program_rows(step);
    // A driver may take x - max(x) of a single x for 0, where it is NaN of an infinity.
    if (n < 2)
        return n == 0 ? "its rows have no elements" : "its rows have one element";
    if (n >= REDUCE_LONG_ROW && rows < REDUCE_FEW_ROWS)
        return "reductions are spread over the device for few rows as long as these";
    if (rows_class_has_columns(step) && rows < FEW_COLUMNS)
        return "reductions are spread over the device for few rows with gaps";
    return NULL;
}
