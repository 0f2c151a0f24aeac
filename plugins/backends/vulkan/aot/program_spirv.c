// SPDX-License-Identifier: MIT
// Main of a program's kernel as SPIR-V: the elements of an invocation, their loads and
// stores. program_glsl.c generates the same kernel as GLSL: change both.
#include "program_spirv.h"

#include "program_spirv_writer.h"

static bool needs_strides(char access)
{
    return access == ACCESS_STRIDED || access == ACCESS_ROW || access == ACCESS_REPEAT;
}

static uint32_t num_operands(const struct spirv_writer *w)
{
    return w->class->num_inputs + w->class->num_outputs;
}

tn_dtype spirv_operand_dtype(const struct spirv_writer *w, uint32_t operand)
{
    uint32_t inputs = w->class->num_inputs;
    return operand < inputs ? w->program->input_dtypes[operand]
                            : w->program->output_dtypes[operand - inputs];
}

// --- declarations ----------------------------------------------------------------------

static uint32_t declare_buffer(struct spirv_writer *w, uint32_t pointer, uint32_t binding,
                               bool is_read)
{
    struct spirv_module *m = w->module;
    uint32_t id = spirv_new_id(m);
    SPIRV_ADD(m, globals, SPIRV_VARIABLE, spirv_use(m, pointer), id, SPIRV_STORAGE_BUFFER);
    SPIRV_ADD(m, decorations, SPIRV_DECORATE, id, SPIRV_DESCRIPTOR_SET, 0);
    SPIRV_ADD(m, decorations, SPIRV_DECORATE, id, SPIRV_BINDING, binding);
    if (is_read)
        SPIRV_ADD(m, decorations, SPIRV_DECORATE, id, SPIRV_NON_WRITABLE);
    return id;
}

void spirv_declare_push(struct spirv_writer *w)
{
    struct spirv_module *m = w->module;
    if (w->class->args_in_buffer)
        w->args_buffer =
            declare_buffer(w, spirv_dtypes[TN_U32].ones, num_operands(w), true);
    if (w->class->is_function) { // restrict: loaded once for all elements of an invocation
        SPIRV_ADD(m, decorations, SPIRV_DECORATE, w->args_buffer, SPIRV_RESTRICT);
        return;
    }
    uint32_t array = spirv_new_id(m), block = spirv_new_id(m), pointer = spirv_new_id(m);
    uint32_t length = spirv_uint(m, w->class->args_in_buffer ? 1 : w->num_args);
    w->push_word = spirv_new_id(m);
    w->push = spirv_new_id(m);
    SPIRV_ADD(m, decorations, SPIRV_DECORATE, array, SPIRV_ARRAY_STRIDE, 4);
    SPIRV_ADD(m, decorations, SPIRV_DECORATE, block, SPIRV_BLOCK);
    SPIRV_ADD(m, decorations, SPIRV_MEMBER_DECORATE, block, 0, SPIRV_OFFSET, 0);
    SPIRV_ADD(m, globals, SPIRV_TYPE_ARRAY, array, w->uint_type, length);
    SPIRV_ADD(m, globals, SPIRV_TYPE_STRUCT, block, array);
    SPIRV_ADD(m, globals, SPIRV_TYPE_POINTER, pointer, SPIRV_PUSH_CONSTANT, block);
    SPIRV_ADD(m, globals, SPIRV_TYPE_POINTER, w->push_word, SPIRV_PUSH_CONSTANT,
              w->uint_type);
    SPIRV_ADD(m, globals, SPIRV_VARIABLE, pointer, w->push, SPIRV_PUSH_CONSTANT);
}

// A pointer to an element, or to a vector of four, of an operand. Declares the buffer at
// first use.
static uint32_t write_pointer(struct spirv_writer *w, uint32_t operand, bool four,
                              uint32_t index)
{
    const struct spirv_dtype *types = &spirv_dtypes[spirv_operand_dtype(w, operand)];
    uint32_t *variable = four ? &w->fours[operand] : &w->ones[operand];
    if (*variable == 0)
        *variable = declare_buffer(w, four ? types->fours : types->ones, operand,
                                   operand < w->class->num_inputs);
    return SPIRV_RESULT(w->module, SPIRV_ACCESS_CHAIN,
                        spirv_use(w->module, four ? types->four : types->one), *variable,
                        spirv_uint(w->module, 0), index);
}

// --- loads and stores ------------------------------------------------------------------

// Converts between the stored type (S_) and the loaded type (W_).
static uint32_t write_convert(struct spirv_writer *w, tn_dtype dtype, uint32_t from,
                              uint32_t to, uint32_t value)
{
    bool is_signed = dtype == TN_I8 || dtype == TN_I16;
    spirv_use(w->module, to);
    return from == to
               ? value
               : SPIRV_RESULT(w->module, is_signed ? SPIRV_S_CONVERT : SPIRV_U_CONVERT, to,
                              value);
}

uint32_t spirv_write_load(struct spirv_writer *w, uint32_t operand, bool four,
                          uint32_t index)
{
    tn_dtype dtype = spirv_operand_dtype(w, operand);
    const struct spirv_dtype *types = &spirv_dtypes[dtype];
    uint32_t stored = four ? types->stored_four : types->stored;
    uint32_t value =
        SPIRV_RESULT(w->module, SPIRV_LOAD, stored, write_pointer(w, operand, four, index));
    return write_convert(w, dtype, stored, four ? types->loaded_four : types->loaded,
                         value);
}

void spirv_write_store(struct spirv_writer *w, uint32_t operand, bool four, uint32_t index,
                       uint32_t value)
{
    tn_dtype dtype = spirv_operand_dtype(w, operand);
    const struct spirv_dtype *types = &spirv_dtypes[dtype];
    uint32_t stored = write_convert(w, dtype, four ? types->loaded_four : types->loaded,
                                    four ? types->stored_four : types->stored, value);
    SPIRV_ADD(w->module, code, SPIRV_STORE, write_pointer(w, operand, four, index), stored);
}

// Divides by the extent of an axis.
static uint32_t write_quotient(struct spirv_writer *w, uint32_t n, uint32_t axis,
                               uint32_t extent)
{
    uint32_t divisor = w->first_extent + w->class->rank + 2 * axis;
    if (!w->class->divides)
        return SPIRV_RESULT(w->module, SPIRV_U_DIV, w->uint_type, n, extent);
    uint32_t factor = spirv_write_arg(w, divisor);
    uint32_t shifts = spirv_write_arg(w, divisor + 1);
    return SPIRV_CALL(w->module, spirv_get(w->module, "DIVIDE"), n, factor, shifts);
}

void spirv_write_positions(struct spirv_writer *w)
{
    struct spirv_module *m = w->module;
    uint32_t rank = w->class->rank, stride = w->first_stride, type = w->uint_type;
    uint32_t coordinate[TN_MAX_RANK], rest = w->item;
    for (uint32_t axis = rank ? rank - 1 : 0; axis > 0; axis--) {
        uint32_t extent = spirv_write_arg(w, w->first_extent + axis);
        uint32_t next = write_quotient(w, rest, axis, extent);
        uint32_t whole = SPIRV_RESULT(m, SPIRV_I_MUL, type, next, extent);
        coordinate[axis] = SPIRV_RESULT(m, SPIRV_I_SUB, type, rest, whole);
        rest = next;
    }
    coordinate[0] = rest;
    for (uint32_t i = 0; i < num_operands(w); i++) {
        char access = w->class->access[i];
        w->at[i] = spirv_write_arg(w, 1 + i);
        if (access == ACCESS_FLAT || access == ACCESS_LOOSE)
            w->at[i] = SPIRV_RESULT(m, SPIRV_I_ADD, type, w->at[i], w->item);
        if (!needs_strides(access))
            continue;
        for (uint32_t axis = 0; axis < rank; axis++) {
            w->step[i] = spirv_write_arg(w, stride++);
            uint32_t part =
                SPIRV_RESULT(m, SPIRV_I_MUL, type, coordinate[axis], w->step[i]);
            w->at[i] = SPIRV_RESULT(m, SPIRV_I_ADD, type, w->at[i], part);
        }
    }
}

// The index in an operand of element `lane` (an id) of the invocation.
static uint32_t write_index(struct spirv_writer *w, uint32_t operand, uint32_t lane)
{
    char access = w->class->access[operand];
    if (access == ACCESS_SCALAR || access == ACCESS_REPEAT)
        return w->at[operand];
    if (access == ACCESS_STRIDED)
        lane = SPIRV_RESULT(w->module, SPIRV_I_MUL, w->uint_type, lane, w->step[operand]);
    return SPIRV_RESULT(w->module, SPIRV_I_ADD, w->uint_type, w->at[operand], lane);
}

// --- elements --------------------------------------------------------------------------

// Calls the function of one element. Inputs are as loaded (W_), outputs are ready to store
// (W_).
static void write_call(struct spirv_writer *w, uint32_t lane, const uint32_t *loaded,
                       uint32_t *to_store)
{
    struct spirv_module *m = w->module;
    const tn_expr_program *program = w->program;
    uint32_t operands[TN_EXPR_MAX_INPUTS + 2];
    operands[0] = w->element;
    operands[1] = SPIRV_RESULT(m, SPIRV_I_ADD, w->uint_type, w->item, lane);
    for (uint32_t i = 0; i < program->num_inputs; i++)
        operands[2 + i] =
            spirv_write_if_any(w, "DECODE", program->input_dtypes[i], loaded[i]);
    uint32_t all =
        spirv_result(m, SPIRV_FUNCTION_CALL, w->outputs, operands, 2 + program->num_inputs);
    for (uint32_t i = 0; i < program->num_outputs; i++) {
        tn_dtype dtype = program->output_dtypes[i];
        uint32_t value =
            SPIRV_RESULT(m, SPIRV_COMPOSITE_EXTRACT, spirv_dtypes[dtype].computed, all, i);
        to_store[i] = spirv_write_if_any(w, "ENCODE", dtype, value);
    }
}

static void write_single(struct spirv_writer *w, uint32_t lane)
{
    const struct program_class *class = w->class;
    uint32_t loaded[TN_EXPR_MAX_INPUTS], to_store[TN_EXPR_MAX_OUTPUTS];
    for (uint32_t i = 0; i < class->num_inputs; i++)
        loaded[i] = spirv_write_load(w, i, false, write_index(w, i, lane));
    write_call(w, lane, loaded, to_store);
    for (uint32_t i = 0; i < class->num_outputs; i++) {
        uint32_t operand = class->num_inputs + i;
        spirv_write_store(w, operand, false, write_index(w, operand, lane), to_store[i]);
    }
}

static bool is_four(char access)
{
    return access == ACCESS_FLAT || access == ACCESS_ROW;
}

static uint32_t write_quarter(struct spirv_writer *w, uint32_t operand)
{
    return SPIRV_RESULT(w->module, SPIRV_SHIFT_RIGHT, w->uint_type, w->at[operand],
                        spirv_uint(w->module, 2));
}

static void load_four(struct spirv_writer *w, uint32_t operand, uint32_t loaded[4])
{
    char access = w->class->access[operand];
    uint32_t type = spirv_dtypes[spirv_operand_dtype(w, operand)].loaded;
    uint32_t all = 0;
    if (is_four(access))
        all = spirv_write_load(w, operand, true, write_quarter(w, operand));
    else if (access != ACCESS_STRIDED && access != ACCESS_LOOSE)
        all = spirv_write_load(w, operand, false, w->at[operand]);
    for (uint32_t lane = 0; lane < 4; lane++) {
        if (is_four(access))
            loaded[lane] = SPIRV_RESULT(w->module, SPIRV_COMPOSITE_EXTRACT,
                                        spirv_use(w->module, type), all, lane);
        else if (all)
            loaded[lane] = all;
        else
            loaded[lane] = spirv_write_load(
                w, operand, false, write_index(w, operand, spirv_uint(w->module, lane)));
    }
}

static void store_four(struct spirv_writer *w, uint32_t operand, const uint32_t values[4])
{
    uint32_t type = spirv_dtypes[spirv_operand_dtype(w, operand)].loaded_four;
    if (is_four(w->class->access[operand])) {
        uint32_t all = spirv_result(w->module, SPIRV_COMPOSITE_CONSTRUCT,
                                    spirv_use(w->module, type), values, 4);
        spirv_write_store(w, operand, true, write_quarter(w, operand), all);
        return;
    }
    for (uint32_t lane = 0; lane < 4; lane++)
        spirv_write_store(w, operand, false,
                          write_index(w, operand, spirv_uint(w->module, lane)),
                          values[lane]);
}

static void write_four(struct spirv_writer *w)
{
    const struct program_class *class = w->class;
    uint32_t loaded[TN_EXPR_MAX_INPUTS][4], results[TN_EXPR_MAX_OUTPUTS][4];
    for (uint32_t i = 0; i < class->num_inputs; i++)
        load_four(w, i, loaded[i]);
    for (uint32_t lane = 0; lane < 4; lane++) {
        uint32_t inputs[TN_EXPR_MAX_INPUTS], outputs[TN_EXPR_MAX_OUTPUTS];
        for (uint32_t i = 0; i < class->num_inputs; i++)
            inputs[i] = loaded[i][lane];
        write_call(w, spirv_uint(w->module, lane), inputs, outputs);
        for (uint32_t i = 0; i < class->num_outputs; i++)
            results[i][lane] = outputs[i];
    }
    for (uint32_t i = 0; i < class->num_outputs; i++)
        store_four(w, class->num_inputs + i, results[i]);
}

// --- control flow ----------------------------------------------------------------------

static void write_label(struct spirv_writer *w, uint32_t label)
{
    SPIRV_ADD(w->module, code, SPIRV_LABEL, label);
}

static void write_branch(struct spirv_writer *w, uint32_t label)
{
    SPIRV_ADD(w->module, code, SPIRV_BRANCH, label);
}

// Writes the tail: for (lane = 0; lane < left; lane++). `before`: the label of the current
// block.
static void write_tail(struct spirv_writer *w, uint32_t before, uint32_t left)
{
    struct spirv_module *m = w->module;
    uint32_t header = spirv_new_id(m), test = spirv_new_id(m), body = spirv_new_id(m),
             next = spirv_new_id(m), end = spirv_new_id(m), lane = spirv_new_id(m),
             next_lane = spirv_new_id(m);
    write_branch(w, header);
    write_label(w, header);
    SPIRV_ADD(m, code, SPIRV_PHI, w->uint_type, lane, spirv_uint(m, 0), before, next_lane,
              next);
    SPIRV_ADD(m, code, SPIRV_LOOP_MERGE, end, next, 0);
    write_branch(w, test);
    write_label(w, test);
    uint32_t more = SPIRV_RESULT(m, SPIRV_U_LESS, w->bool_type, lane, left);
    SPIRV_ADD(m, code, SPIRV_BRANCH_CONDITIONAL, more, body, end);
    write_label(w, body);
    write_single(w, lane);
    write_branch(w, next);
    write_label(w, next);
    SPIRV_ADD(m, code, SPIRV_I_ADD, w->uint_type, next_lane, lane, spirv_uint(m, 1));
    write_branch(w, header);
    write_label(w, end);
}

static void write_body(struct spirv_writer *w, uint32_t num_elements)
{
    struct spirv_module *m = w->module;
    spirv_write_positions(w);
    if (w->class->per_item == 1) {
        write_single(w, spirv_uint(m, 0));
        return;
    }
    uint32_t four = spirv_new_id(m), tail = spirv_new_id(m), end = spirv_new_id(m);
    uint32_t left = SPIRV_RESULT(m, SPIRV_I_SUB, w->uint_type, num_elements, w->item);
    uint32_t whole =
        SPIRV_RESULT(m, SPIRV_U_GREATER_EQUAL, w->bool_type, left, spirv_uint(m, 4));
    SPIRV_ADD(m, code, SPIRV_SELECTION_MERGE, end, 0);
    SPIRV_ADD(m, code, SPIRV_BRANCH_CONDITIONAL, whole, four, tail);
    write_label(w, four);
    write_four(w);
    write_branch(w, end);
    write_label(w, tail);
    write_tail(w, tail, left);
    write_branch(w, end);
    write_label(w, end);
}

static uint32_t write_main(struct spirv_writer *w)
{
    struct spirv_module *m = w->module;
    const struct spirv_part *model = spirv_entry(m);
    uint32_t entry = spirv_new_id(m), body = spirv_new_id(m), end = spirv_new_id(m);
    SPIRV_ADD(m, code, SPIRV_FUNCTION, model->result, entry, 0, model->type);
    write_label(w, spirv_new_id(m));
    uint32_t number = SPIRV_CALL(m, spirv_get(m, "ITEM"), spirv_uint(m, 0));
    w->item = SPIRV_RESULT(m, SPIRV_I_MUL, w->uint_type, number,
                           spirv_uint(m, w->class->per_item));
    uint32_t num_elements = spirv_write_arg(w, 0);
    uint32_t inside = SPIRV_RESULT(m, SPIRV_U_LESS, w->bool_type, w->item, num_elements);
    SPIRV_ADD(m, code, SPIRV_SELECTION_MERGE, end, 0);
    SPIRV_ADD(m, code, SPIRV_BRANCH_CONDITIONAL, inside, body, end);
    write_label(w, body);
    write_body(w, num_elements);
    write_branch(w, end);
    write_label(w, end);
    spirv_add(m, &m->code, SPIRV_RETURN, NULL, 0);
    spirv_add(m, &m->code, SPIRV_FUNCTION_END, NULL, 0);
    return entry;
}

struct spirv_writer spirv_begin_program(struct spirv_module *module,
                                        const tn_expr_program *program,
                                        const struct program_class *class)
{
    struct spirv_writer w = {.module = module, .program = program, .class = class};
    w.uint_type = spirv_use(module, spirv_dtypes[TN_U32].computed);
    w.bool_type = spirv_use(module, spirv_dtypes[TN_BOOL].computed);
    if (class->args_in_buffer)
        spirv_use(module, spirv_dtypes[TN_U32].one);
    w.first_extent = 1 + num_operands(&w);
    w.first_stride = w.first_extent + program_extent_words(class);
    w.first_param = w.first_stride;
    for (uint32_t i = 0; i < num_operands(&w); i++)
        w.first_param += needs_strides(class->access[i]) ? class->rank : 0;
    w.num_args = w.first_param + program_count_params(program);
    return w;
}

uint32_t program_write_spirv(struct spirv_module *module, const tn_expr_program *program,
                             const struct program_class *class)
{
    struct spirv_writer w = spirv_begin_program(module, program, class);
    if (class->lanes > 0)
        return program_write_rows_spirv(&w);
    if (class->is_function)
        return program_write_function_spirv(&w);
    spirv_declare_push(&w);
    spirv_write_element(&w);
    return write_main(&w);
}
