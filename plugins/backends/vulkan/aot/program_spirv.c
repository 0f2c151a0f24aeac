// SPDX-License-Identifier: MIT
// The language of elementwise programs' kernels that is SPIR-V. A function of one element
// gets the element's number and C_ of each input, and gives a struct of C_ of the outputs;
// C_ and the like are the types of types.glsl.
#include "program_spirv.h"

#include "program_spirv_writer.h"

// Ids, but for `operand`s.
struct spirv_kernel {
    struct spirv_writer w;
    uint32_t function;         // main, or the one that a kernel calls
    uint32_t element, outputs; // the function of one element, the struct that it gives
    // In the function of one element.
    uint32_t params[TN_EXPR_MAX_INPUTS + 1], values[TN_EXPR_MAX_INSNS];
    uint32_t block;                       // the label that was written last
    uint32_t sides[TN_EXPR_MAX_INSNS][3]; // of a branch: its labels, the last the end
    // In main, or in the function that a kernel calls.
    uint32_t item, num_elements, given, result;
    uint32_t rest, coordinate[TN_MAX_RANK];
    uint32_t at[PROGRAM_MAX_OPERANDS], step[PROGRAM_MAX_OPERANDS];
    // A call: inputs as loaded (W_), arguments, the struct, outputs ready to spirv_store
    // (W_).
    uint32_t loaded[TN_EXPR_MAX_INPUTS][4], arguments[TN_EXPR_MAX_INPUTS + 2], all;
    uint32_t to_store[TN_EXPR_MAX_OUTPUTS][4];
    // Labels, and what the tail counts by.
    uint32_t end, tail, end_whole, header, next, end_tail, left, lane, next_lane;
};

static uint32_t spirv_write_sum(struct spirv_kernel *k, uint32_t a, uint32_t b)
{
    return SPIRV_RESULT(k->w.module, OpIAdd, k->w.uint_type, a, b);
}

static uint32_t spirv_write_product(struct spirv_kernel *k, uint32_t a, uint32_t b)
{
    return SPIRV_RESULT(k->w.module, OpIMul, k->w.uint_type, a, b);
}

static void spirv_write_label(struct spirv_kernel *k, uint32_t label)
{
    SPIRV_ADD(k->w.module, code, OpLabel, label);
    k->block = label;
}

static void spirv_write_branch(struct spirv_kernel *k, uint32_t label)
{
    SPIRV_ADD(k->w.module, code, OpBranch, label);
}

static void spirv_end_code(struct spirv_kernel *k)
{
    spirv_add(k->w.module, &k->w.module->code, OpFunctionEnd, NULL, 0);
}

static void spirv_write_return(struct spirv_kernel *k)
{
    spirv_add(k->w.module, &k->w.module->code, OpReturn, NULL, 0);
    spirv_end_code(k);
}

// --- one element -----------------------------------------------------------------------

// Declares the types and begins the function.
static void spirv_begin_element(void *out)
{
    struct spirv_kernel *k = out;
    struct spirv_module *m = k->w.module;
    const tn_expr_program *program = k->w.program;
    uint32_t members[TN_EXPR_MAX_OUTPUTS + 1], types[TN_EXPR_MAX_INPUTS + 3];
    uint32_t type = spirv_new_id(m);
    k->outputs = members[0] = spirv_new_id(m);
    for (uint32_t i = 0; i < program->num_outputs; i++)
        members[1 + i] = spirv_use(m, spirv_dtypes[program->output_dtypes[i]].computed);
    spirv_add(m, &m->globals, OpTypeStruct, members, 1 + program->num_outputs);
    types[0] = type;
    types[1] = k->outputs;
    types[2] = k->w.uint_type;
    for (uint32_t i = 0; i < program->num_inputs; i++)
        types[3 + i] = spirv_use(m, spirv_dtypes[program->input_dtypes[i]].computed);
    spirv_add(m, &m->globals, OpTypeFunction, types, 3 + program->num_inputs);
    k->element = spirv_new_id(m);
    SPIRV_ADD(m, code, OpFunction, k->outputs, k->element, 0, type);
    for (uint32_t i = 0; i < 1 + program->num_inputs; i++) {
        k->params[i] = spirv_new_id(m);
        SPIRV_ADD(m, code, OpFunctionParameter, types[2 + i], k->params[i]);
    }
    spirv_write_label(k, spirv_new_id(m));
}

static void spirv_load(void *out, uint32_t position)
{
    struct spirv_kernel *k = out;
    k->values[position] = k->params[1 + k->w.program->insns[position].a];
}

static void spirv_constant(void *out, uint32_t position)
{
    struct spirv_kernel *k = out;
    const tn_expr_insn *insn = &k->w.program->insns[position];
    k->values[position] =
        spirv_write_constant(&k->w, insn->dtype, k->w.program->constants[insn->a]);
}

static void spirv_param(void *out, uint32_t position, uint32_t word)
{
    struct spirv_kernel *k = out;
    k->values[position] =
        spirv_write_param(&k->w, k->w.program->insns[position].dtype, word);
}

static void spirv_index(void *out, uint32_t position)
{
    struct spirv_kernel *k = out;
    struct spirv_module *m = k->w.module;
    k->values[position] = SPIRV_CALL(m, spirv_get(m, "INDEX"), k->params[0]);
}

static void spirv_operation(void *out, uint32_t position)
{
    struct spirv_kernel *k = out;
    const tn_expr_insn *insns = k->w.program->insns, *insn = &insns[position];
    const uint32_t positions[] = {insn->a, insn->b, insn->c};
    uint32_t operands[3] = {0};
    for (uint32_t i = 0; i < tn_expr_operands(insn->op); i++)
        operands[i] = k->values[positions[i]];
    k->values[position] =
        spirv_write_operation(&k->w, insn->op, insns[insn->a].dtype, insn->dtype, operands);
}

static void spirv_begin_branch(void *out, uint32_t position)
{
    struct spirv_kernel *k = out;
    struct spirv_module *m = k->w.module;
    uint32_t *sides = k->sides[position];
    for (uint32_t i = 0; i < 3; i++)
        sides[i] = spirv_new_id(m);
    SPIRV_ADD(m, code, OpSelectionMerge, sides[2], 0);
    SPIRV_ADD(m, code, OpBranchConditional, k->values[k->w.program->insns[position].a],
              sides[0], sides[1]);
    spirv_write_label(k, sides[0]);
}

// A side may end in another block than it began: that is where its value comes from.
static void spirv_other_side(void *out, uint32_t position)
{
    struct spirv_kernel *k = out;
    uint32_t *sides = k->sides[position], label = sides[1];
    sides[0] = k->block;
    spirv_write_branch(k, sides[2]);
    spirv_write_label(k, label);
}

static void spirv_end_branch(void *out, uint32_t position)
{
    struct spirv_kernel *k = out;
    struct spirv_module *m = k->w.module;
    const tn_expr_insn *insn = &k->w.program->insns[position];
    uint32_t *sides = k->sides[position];
    sides[1] = k->block;
    spirv_write_branch(k, sides[2]);
    spirv_write_label(k, sides[2]);
    k->values[position] =
        SPIRV_RESULT(m, OpPhi, spirv_use(m, spirv_dtypes[insn->dtype].computed),
                     k->values[insn->b], sides[0], k->values[insn->c], sides[1]);
}

static void spirv_end_element(void *out)
{
    struct spirv_kernel *k = out;
    const tn_expr_program *program = k->w.program;
    uint32_t results[TN_EXPR_MAX_OUTPUTS];
    for (uint32_t i = 0; i < program->num_outputs; i++)
        results[i] = k->values[program->outputs[i]];
    uint32_t all = spirv_result(k->w.module, OpCompositeConstruct, k->outputs, results,
                                program->num_outputs);
    SPIRV_ADD(k->w.module, code, OpReturnValue, all);
    spirv_end_code(k);
}

// --- positions -------------------------------------------------------------------------

static void spirv_begin_axes(void *out)
{
    struct spirv_kernel *k = out;
    k->rest = k->item;
}

static void spirv_split(void *out, uint32_t axis, uint32_t extent_word, uint32_t divisor)
{
    struct spirv_kernel *k = out;
    struct spirv_module *m = k->w.module;
    uint32_t extent = spirv_write_arg(&k->w, extent_word), next;
    if (divisor > 0) {
        uint32_t factor = spirv_write_arg(&k->w, divisor);
        uint32_t shifts = spirv_write_arg(&k->w, divisor + 1);
        next = SPIRV_CALL(m, spirv_get(m, "DIVIDE"), k->rest, factor, shifts);
    } else
        next = SPIRV_RESULT(m, OpUDiv, k->w.uint_type, k->rest, extent);
    uint32_t whole = spirv_write_product(k, next, extent);
    k->coordinate[axis] = SPIRV_RESULT(m, OpISub, k->w.uint_type, k->rest, whole);
    k->rest = next;
}

static void spirv_end_axes(void *out)
{
    struct spirv_kernel *k = out;
    k->coordinate[0] = k->rest;
}

static void spirv_begin_position(void *out, uint32_t operand, uint32_t word,
                                 bool adds_number)
{
    struct spirv_kernel *k = out;
    k->at[operand] = spirv_write_arg(&k->w, word);
    if (adds_number)
        k->at[operand] = spirv_write_sum(k, k->at[operand], k->item);
}

static void spirv_add_axis(void *out, uint32_t operand, uint32_t axis, uint32_t stride)
{
    struct spirv_kernel *k = out;
    k->step[operand] = spirv_write_arg(&k->w, stride);
    uint32_t part = spirv_write_product(k, k->coordinate[axis], k->step[operand]);
    k->at[operand] = spirv_write_sum(k, k->at[operand], part);
}

// The step is the stride of the axis that was added last.
static void spirv_end_position(void *out, uint32_t operand, uint32_t step)
{
    (void)out, (void)operand, (void)step;
}

// --- a call of the function of one element ---------------------------------------------

static uint32_t spirv_lane_id(struct spirv_kernel *k, uint32_t lane)
{
    return lane == PROGRAM_TAIL ? k->lane : spirv_uint(k->w.module, lane);
}

// The position in an operand of element `lane` of the invocation.
static uint32_t spirv_write_index(struct spirv_kernel *k, uint32_t operand,
                                  enum program_index index, uint32_t lane)
{
    if (index == PROGRAM_AT)
        return k->at[operand];
    uint32_t distance = spirv_lane_id(k, lane);
    if (index == PROGRAM_STEPS)
        distance = spirv_write_product(k, distance, k->step[operand]);
    return spirv_write_sum(k, k->at[operand], distance);
}

static void spirv_begin_outputs(void *out, uint32_t lane)
{
    (void)out, (void)lane;
}

static void spirv_begin_call(void *out, uint32_t lane)
{
    struct spirv_kernel *k = out;
    k->arguments[0] = k->element;
    k->arguments[1] = lane == PROGRAM_ONLY
                          ? k->item
                          : spirv_write_sum(k, k->item, spirv_lane_id(k, lane));
}

static void spirv_load_input(void *out, uint32_t input, enum program_index index,
                             uint32_t lane)
{
    struct spirv_kernel *k = out;
    k->loaded[input][0] =
        spirv_write_load(&k->w, input, false, spirv_write_index(k, input, index, lane));
}

static void spirv_pass(struct spirv_kernel *k, uint32_t input, uint32_t value)
{
    k->arguments[2 + input] =
        spirv_write_if_any(&k->w, "DECODE", k->w.program->input_dtypes[input], value);
}

static void spirv_pass_input(void *out, uint32_t input, enum program_index index,
                             uint32_t lane)
{
    struct spirv_kernel *k = out;
    (void)index, (void)lane;
    spirv_pass(k, input, k->loaded[input][0]);
}

static void spirv_end_call(void *out)
{
    struct spirv_kernel *k = out;
    k->all = spirv_result(k->w.module, OpFunctionCall, k->outputs, k->arguments,
                          2 + k->w.program->num_inputs);
}

static void spirv_output_of_four(void *out, uint32_t number, uint32_t lane)
{
    struct spirv_kernel *k = out;
    tn_dtype dtype = k->w.program->output_dtypes[number];
    uint32_t value = SPIRV_RESULT(k->w.module, OpCompositeExtract,
                                  spirv_dtypes[dtype].computed, k->all, number);
    k->to_store[number][lane] = spirv_write_if_any(&k->w, "ENCODE", dtype, value);
}

static void spirv_output(void *out, uint32_t number)
{
    spirv_output_of_four(out, number, 0);
}

static void spirv_store(void *out, uint32_t number, enum program_index index, uint32_t lane)
{
    struct spirv_kernel *k = out;
    uint32_t operand = k->w.class->num_inputs + number;
    spirv_write_store(&k->w, operand, false, spirv_write_index(k, operand, index, lane),
                      k->to_store[number][0]);
}

// --- four elements ---------------------------------------------------------------------

static uint32_t spirv_write_quarter(struct spirv_kernel *k, uint32_t operand)
{
    return SPIRV_RESULT(k->w.module, OpShiftRightLogical, k->w.uint_type, k->at[operand],
                        spirv_uint(k->w.module, 2));
}

static void spirv_load_four(void *out, uint32_t input, enum program_four how,
                            enum program_index index)
{
    struct spirv_kernel *k = out;
    struct spirv_module *m = k->w.module;
    uint32_t type = spirv_dtypes[spirv_operand_dtype(&k->w, input)].loaded, all = 0;
    if (how == PROGRAM_WHOLE)
        all = spirv_write_load(&k->w, input, true, spirv_write_quarter(k, input));
    else if (how == PROGRAM_SAME)
        all = spirv_write_load(&k->w, input, false, k->at[input]);
    for (uint32_t lane = 0; lane < 4; lane++) {
        if (how == PROGRAM_WHOLE)
            k->loaded[input][lane] =
                SPIRV_RESULT(m, OpCompositeExtract, spirv_use(m, type), all, lane);
        else if (how == PROGRAM_SAME)
            k->loaded[input][lane] = all;
        else
            k->loaded[input][lane] = spirv_write_load(
                &k->w, input, false, spirv_write_index(k, input, index, lane));
    }
}

static void spirv_begin_four(void *out)
{
    (void)out;
}

static void spirv_pass_lane(void *out, uint32_t input, uint32_t lane)
{
    struct spirv_kernel *k = out;
    spirv_pass(k, input, k->loaded[input][lane]);
}

static void spirv_store_four(void *out, uint32_t number, enum program_four how,
                             enum program_index index)
{
    struct spirv_kernel *k = out;
    uint32_t operand = k->w.class->num_inputs + number;
    uint32_t type = spirv_dtypes[spirv_operand_dtype(&k->w, operand)].loaded_four;
    if (how == PROGRAM_WHOLE) {
        uint32_t all = spirv_result(k->w.module, OpCompositeConstruct,
                                    spirv_use(k->w.module, type), k->to_store[number], 4);
        spirv_write_store(&k->w, operand, true, spirv_write_quarter(k, operand), all);
        return;
    }
    for (uint32_t lane = 0; lane < 4; lane++)
        spirv_write_store(&k->w, operand, false, spirv_write_index(k, operand, index, lane),
                          k->to_store[number][lane]);
}

// --- main ------------------------------------------------------------------------------

static void spirv_begin_main(void *out)
{
    struct spirv_kernel *k = out;
    struct spirv_module *m = k->w.module;
    const struct spirv_part *model = spirv_entry(m);
    k->function = spirv_new_id(m);
    uint32_t body = spirv_new_id(m);
    k->end = spirv_new_id(m);
    SPIRV_ADD(m, code, OpFunction, model->result, k->function, 0, model->type);
    spirv_write_label(k, spirv_new_id(m));
    uint32_t number = SPIRV_CALL(m, spirv_get(m, "ITEM"), spirv_uint(m, 0));
    k->item = spirv_write_product(k, number, spirv_uint(m, k->w.class->per_item));
    k->num_elements = spirv_write_arg(&k->w, 0);
    uint32_t inside =
        SPIRV_RESULT(m, OpULessThan, k->w.bool_type, k->item, k->num_elements);
    SPIRV_ADD(m, code, OpSelectionMerge, k->end, 0);
    SPIRV_ADD(m, code, OpBranchConditional, inside, body, k->end);
    spirv_write_label(k, body);
}

static void spirv_begin_whole(void *out)
{
    struct spirv_kernel *k = out;
    struct spirv_module *m = k->w.module;
    uint32_t four = spirv_new_id(m);
    k->tail = spirv_new_id(m);
    k->end_whole = spirv_new_id(m);
    k->left = SPIRV_RESULT(m, OpISub, k->w.uint_type, k->num_elements, k->item);
    uint32_t whole =
        SPIRV_RESULT(m, OpUGreaterThanEqual, k->w.bool_type, k->left, spirv_uint(m, 4));
    SPIRV_ADD(m, code, OpSelectionMerge, k->end_whole, 0);
    SPIRV_ADD(m, code, OpBranchConditional, whole, four, k->tail);
    spirv_write_label(k, four);
}

// for (lane = 0; lane < left; lane++)
static void spirv_begin_tail(void *out)
{
    struct spirv_kernel *k = out;
    struct spirv_module *m = k->w.module;
    spirv_write_branch(k, k->end_whole);
    spirv_write_label(k, k->tail);
    k->header = spirv_new_id(m);
    uint32_t test = spirv_new_id(m), body = spirv_new_id(m);
    k->next = spirv_new_id(m);
    k->end_tail = spirv_new_id(m);
    k->lane = spirv_new_id(m);
    k->next_lane = spirv_new_id(m);
    spirv_write_branch(k, k->header);
    spirv_write_label(k, k->header);
    SPIRV_ADD(m, code, OpPhi, k->w.uint_type, k->lane, spirv_uint(m, 0), k->tail,
              k->next_lane, k->next);
    SPIRV_ADD(m, code, OpLoopMerge, k->end_tail, k->next, 0);
    spirv_write_branch(k, test);
    spirv_write_label(k, test);
    uint32_t more = SPIRV_RESULT(m, OpULessThan, k->w.bool_type, k->lane, k->left);
    SPIRV_ADD(m, code, OpBranchConditional, more, body, k->end_tail);
    spirv_write_label(k, body);
}

static void spirv_end_tail(void *out)
{
    struct spirv_kernel *k = out;
    spirv_write_branch(k, k->next);
    spirv_write_label(k, k->next);
    SPIRV_ADD(k->w.module, code, OpIAdd, k->w.uint_type, k->next_lane, k->lane,
              spirv_uint(k->w.module, 1));
    spirv_write_branch(k, k->header);
    spirv_write_label(k, k->end_tail);
    spirv_write_branch(k, k->end_whole);
    spirv_write_label(k, k->end_whole);
}

static void spirv_end_main(void *out)
{
    struct spirv_kernel *k = out;
    spirv_write_branch(k, k->end);
    spirv_write_label(k, k->end);
    spirv_write_return(k);
}

// --- a function ------------------------------------------------------------------------

// Whether the program's input is the element that the kernel would store, not one that it
// loads.
static bool spirv_is_store(const struct spirv_kernel *k)
{
    return program_through(k->w.class) < k->w.class->num_inputs;
}

// (uint number, W_ element), or (uint number) -> W_.
static void spirv_begin_function(void *out)
{
    struct spirv_kernel *k = out;
    struct spirv_module *m = k->w.module;
    const struct spirv_part *model = spirv_entry(m);
    uint32_t through = program_through(k->w.class), type = spirv_new_id(m);
    uint32_t element = spirv_dtypes[spirv_operand_dtype(&k->w, through)].loaded;
    uint32_t result = spirv_is_store(k) ? model->result : spirv_use(m, element);
    const uint32_t types[] = {type, result, k->w.uint_type, element};
    spirv_add(m, &m->globals, OpTypeFunction, types, spirv_is_store(k) ? 4 : 3);
    k->function = spirv_new_id(m);
    SPIRV_ADD(m, code, OpFunction, result, k->function, 0, type);
    k->item = spirv_new_id(m);
    SPIRV_ADD(m, code, OpFunctionParameter, k->w.uint_type, k->item);
    if (spirv_is_store(k)) {
        k->given = spirv_new_id(m);
        SPIRV_ADD(m, code, OpFunctionParameter, spirv_use(m, element), k->given);
    }
    spirv_write_label(k, spirv_new_id(m));
}

static void spirv_pass_given(void *out, uint32_t input)
{
    struct spirv_kernel *k = out;
    spirv_pass(k, input, k->given);
}

static void spirv_give(void *out, uint32_t number)
{
    struct spirv_kernel *k = out;
    k->result = k->to_store[number][0];
}

static void spirv_end_function(void *out)
{
    struct spirv_kernel *k = out;
    if (spirv_is_store(k)) {
        spirv_write_return(k);
        return;
    }
    SPIRV_ADD(k->w.module, code, OpReturnValue, k->result);
    spirv_end_code(k);
}

static const struct program_language spirv = {
    .begin_element = spirv_begin_element,
    .load = spirv_load,
    .constant = spirv_constant,
    .param = spirv_param,
    .index = spirv_index,
    .operation = spirv_operation,
    .begin_branch = spirv_begin_branch,
    .other_side = spirv_other_side,
    .end_branch = spirv_end_branch,
    .end_element = spirv_end_element,
    .begin_axes = spirv_begin_axes,
    .split = spirv_split,
    .end_axes = spirv_end_axes,
    .begin_position = spirv_begin_position,
    .add_axis = spirv_add_axis,
    .end_position = spirv_end_position,
    .begin_outputs = spirv_begin_outputs,
    .begin_call = spirv_begin_call,
    .load_input = spirv_load_input,
    .pass_input = spirv_pass_input,
    .end_call = spirv_end_call,
    .output = spirv_output,
    .store = spirv_store,
    .load_four = spirv_load_four,
    .begin_four = spirv_begin_four,
    .pass_lane = spirv_pass_lane,
    .output_of_four = spirv_output_of_four,
    .store_four = spirv_store_four,
    .begin_main = spirv_begin_main,
    .begin_whole = spirv_begin_whole,
    .begin_tail = spirv_begin_tail,
    .end_tail = spirv_end_tail,
    .end_main = spirv_end_main,
    .begin_function = spirv_begin_function,
    .pass_given = spirv_pass_given,
    .give = spirv_give,
    .end_function = spirv_end_function,
};

uint32_t program_write_spirv(struct spirv_module *module, const tn_expr_program *program,
                             const struct program_class *class)
{
    struct spirv_kernel k = {.w = {.module = module, .program = program, .class = class}};
    k.w.uint_type = spirv_use(module, spirv_dtypes[TN_U32].computed);
    k.w.bool_type = spirv_use(module, spirv_dtypes[TN_BOOL].computed);
    if (class->args_in_buffer)
        spirv_use(module, spirv_dtypes[TN_U32].one);
    k.w.words = program_words_of(program, class);
    if (class->lanes > 0)
        return program_write_rows_spirv(&k.w);
    spirv_declare_push(&k.w);
    program_write_code(&spirv, &k, program, class);
    return k.function;
}
