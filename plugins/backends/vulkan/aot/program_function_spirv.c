// SPDX-License-Identifier: MIT
// The SPIR-V of a program beside a kernel: a function for one element, which the kernel's
// module calls. program_function_glsl.c generates the same as GLSL: change both.
#include "program_spirv_writer.h"

static bool is_through(const struct spirv_writer *w, uint32_t operand)
{
    return w->class->access[operand] == ACCESS_THROUGH;
}

// Begins the function: (uint number, W_ element), or (uint number) -> W_. Gives the
// element's id.
static uint32_t begin_function(struct spirv_writer *w, bool is_output, uint32_t element,
                               uint32_t *out_function)
{
    struct spirv_module *m = w->module;
    const struct spirv_part *model = spirv_entry(m);
    uint32_t type = spirv_new_id(m), value = 0;
    uint32_t result = is_output ? model->result : spirv_use(m, element);
    const uint32_t types[] = {type, result, w->uint_type, element};
    spirv_add(m, &m->globals, SPIRV_TYPE_FUNCTION, types, is_output ? 4 : 3);
    *out_function = spirv_new_id(m);
    SPIRV_ADD(m, code, SPIRV_FUNCTION, result, *out_function, 0, type);
    w->item = spirv_new_id(m);
    SPIRV_ADD(m, code, SPIRV_FUNCTION_PARAMETER, w->uint_type, w->item);
    if (is_output) {
        value = spirv_new_id(m);
        SPIRV_ADD(m, code, SPIRV_FUNCTION_PARAMETER, spirv_use(m, element), value);
    }
    SPIRV_ADD(m, code, SPIRV_LABEL, spirv_new_id(m));
    return value;
}

// Calls element() with what is loaded and what the kernel has.
static uint32_t write_call(struct spirv_writer *w, uint32_t value)
{
    const tn_expr_program *program = w->program;
    uint32_t operands[TN_EXPR_MAX_INPUTS + 2] = {w->element, w->item};
    for (uint32_t i = 0; i < program->num_inputs; i++) {
        uint32_t loaded =
            is_through(w, i) ? value : spirv_write_load(w, i, false, w->at[i]);
        operands[2 + i] = spirv_write_if_any(w, "DECODE", program->input_dtypes[i], loaded);
    }
    return spirv_result(w->module, SPIRV_FUNCTION_CALL, w->outputs, operands,
                        2 + program->num_inputs);
}

uint32_t program_write_function_spirv(struct spirv_writer *w)
{
    struct spirv_module *m = w->module;
    uint32_t through = program_through(w->class), function;
    bool is_output = through < w->class->num_inputs; // what it would store comes in
    spirv_declare_push(w);
    spirv_write_element(w);
    uint32_t element = spirv_dtypes[spirv_operand_dtype(w, through)].loaded;
    uint32_t value = begin_function(w, is_output, element, &function);
    spirv_write_positions(w);
    uint32_t all = write_call(w, value), result = 0;
    for (uint32_t i = 0; i < w->program->num_outputs; i++) {
        uint32_t operand = w->class->num_inputs + i;
        tn_dtype dtype = w->program->output_dtypes[i];
        uint32_t computed =
            SPIRV_RESULT(m, SPIRV_COMPOSITE_EXTRACT, spirv_dtypes[dtype].computed, all, i);
        result = spirv_write_if_any(w, "ENCODE", dtype, computed);
        if (!is_through(w, operand))
            spirv_write_store(w, operand, false, w->at[operand], result);
    }
    if (is_output)
        spirv_add(m, &m->code, SPIRV_RETURN, NULL, 0);
    else
        SPIRV_ADD(m, code, SPIRV_RETURN_VALUE, result);
    spirv_add(m, &m->code, SPIRV_FUNCTION_END, NULL, 0);
    return function;
}
