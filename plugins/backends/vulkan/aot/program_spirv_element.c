// SPDX-License-Identifier: MIT
// The function of one element of a program in SPIR-V: a call of a precompiled part for each
// instruction.
#include <stdio.h>
#include "program_spirv_writer.h"

#define MAX_NAME 32

tn_dtype spirv_class_of(tn_dtype dtype)
{
    tn_dtype computed = tn_dtype_computed(dtype);
    if (computed == TN_BOOL || tn_is_float(computed) || dtype_bytes(computed) >= 4)
        return computed;
    return tn_is_signed(computed) ? TN_I32 : TN_U32;
}

static const char *class_name(tn_dtype dtype)
{
    return dtype_glsl(spirv_class_of(dtype));
}

uint32_t spirv_write_if_any(struct spirv_writer *w, const char *name, tn_dtype dtype,
                            uint32_t value)
{
    char full[MAX_NAME];
    snprintf(full, sizeof(full), "%s_%s", name, dtype_glsl(dtype));
    const struct spirv_part *part = spirv_find(w->module, full);
    return part ? SPIRV_CALL(w->module, part, value) : value;
}

uint32_t spirv_write_arg(struct spirv_writer *w, uint32_t index)
{
    struct spirv_module *m = w->module;
    bool in_buffer = w->class->args_in_buffer;
    uint32_t zero = spirv_uint(m, 0), at = spirv_uint(m, index), pointer, place = at;
    if (!w->class->is_function) {
        pointer = SPIRV_RESULT(m, SPIRV_ACCESS_CHAIN, w->push_word, w->push, zero,
                               in_buffer ? zero : at);
        uint32_t word = SPIRV_RESULT(m, SPIRV_LOAD, w->uint_type, pointer);
        if (!in_buffer)
            return word;
        place = SPIRV_RESULT(m, SPIRV_I_ADD, w->uint_type, word, at);
    }
    pointer = SPIRV_RESULT(m, SPIRV_ACCESS_CHAIN, spirv_dtypes[TN_U32].one, w->args_buffer,
                           zero, place);
    return SPIRV_RESULT(m, SPIRV_LOAD, w->uint_type, pointer);
}

// Makes a value of its two words.
static uint32_t write_bits(struct spirv_writer *w, tn_dtype dtype, uint32_t low,
                           uint32_t high)
{
    char name[MAX_NAME];
    snprintf(name, sizeof(name), "BITS_%s", class_name(dtype));
    return SPIRV_CALL(w->module, spirv_get(w->module, name), low, high);
}

// Makes a complex number of its real part.
static uint32_t write_complex(struct spirv_writer *w, tn_dtype dtype, uint32_t real)
{
    char name[MAX_NAME];
    snprintf(name, sizeof(name), "COMPLEX_%s", class_name(tn_dtype_real(dtype)));
    uint32_t zero = spirv_uint(w->module, 0);
    return SPIRV_CALL(w->module, spirv_get(w->module, name), real,
                      write_bits(w, tn_dtype_real(dtype), zero, zero));
}

uint32_t spirv_write_constant(struct spirv_writer *w, tn_dtype dtype, uint64_t bits)
{
    uint32_t low = (uint32_t)bits, high = (uint32_t)(bits >> 32);
    if (tn_is_complex(dtype))
        return write_complex(w, dtype, spirv_write_constant(w, tn_dtype_real(dtype), bits));
    if (dtype == TN_F32) {
        double value;
        memcpy(&value, &bits, sizeof(value));
        float narrow = (float)value;
        memcpy(&low, &narrow, sizeof(low));
        high = 0;
    }
    return write_bits(w, dtype, spirv_uint(w->module, low), spirv_uint(w->module, high));
}

uint32_t spirv_write_param(struct spirv_writer *w, tn_dtype dtype, uint32_t *at)
{
    if (tn_is_complex(dtype))
        return write_complex(w, dtype, spirv_write_param(w, tn_dtype_real(dtype), at));
    bool is_wide = dtype_bytes(dtype) == 8;
    uint32_t low = spirv_write_arg(w, *at);
    uint32_t high = is_wide ? spirv_write_arg(w, *at + 1) : spirv_uint(w->module, 0);
    *at += is_wide ? 2 : 1;
    return write_bits(w, dtype, low, high);
}

// Uses a part for exactly this dtype if there is one (floats saturate at its range). Else
// converts between the computed dtypes and cuts the result to its width.
static uint32_t write_cast(struct spirv_writer *w, tn_dtype from, tn_dtype to,
                           uint32_t value)
{
    char name[MAX_NAME];
    if (tn_is_complex(to) && !tn_is_complex(from))
        return write_complex(w, to, write_cast(w, from, tn_dtype_real(to), value));
    if (tn_is_complex(from) && !tn_is_complex(to) && to != TN_BOOL) {
        snprintf(name, sizeof(name), "REAL_%s", class_name(from));
        value = SPIRV_CALL(w->module, spirv_get(w->module, name), value);
        from = tn_dtype_real(from);
    }
    snprintf(name, sizeof(name), "CAST_%s_%s", class_name(from), dtype_glsl(to));
    const struct spirv_part *part = spirv_find(w->module, name);
    if (part)
        return SPIRV_CALL(w->module, part, value);
    if (spirv_class_of(from) != spirv_class_of(to)) {
        snprintf(name, sizeof(name), "CAST_%s_%s", class_name(from), class_name(to));
        value = SPIRV_CALL(w->module, spirv_get(w->module, name), value);
    }
    return spirv_write_if_any(w, "NARROW", to, value);
}

uint32_t spirv_write_operation(struct spirv_writer *w, uint32_t op, tn_dtype from,
                               tn_dtype dtype, const uint32_t *operands)
{
    uint32_t all[4] = {0}, num = tn_expr_operands(op);
    if (op == TN_EXPR_CAST)
        return write_cast(w, from, dtype, operands[0]);
    if (op == TN_EXPR_SELECT && tn_is_complex(dtype))
        from = dtype; // the part is named by the others
    else if (op == TN_EXPR_SELECT)
        return spirv_result(w->module, SPIRV_SELECT, spirv_dtypes[dtype].computed, operands,
                            num);
    memcpy(all, operands, num * sizeof(all[0]));
    if (tn_expr_class(op) == TN_EXPR_CLASS_SHIFT)
        all[num++] = spirv_uint(w->module, 8 * dtype_bytes(dtype));
    char name[MAX_NAME];
    snprintf(name, sizeof(name), "%s_%s", tn_expr_name(op), class_name(from));
    uint32_t value = spirv_call(w->module, spirv_get(w->module, name), all, num);
    return spirv_write_if_any(w, "NARROW", dtype, value);
}

static uint32_t write_operation(struct spirv_writer *w, const tn_expr_insn *insn,
                                const uint32_t *values)
{
    const uint32_t places[] = {insn->a, insn->b, insn->c};
    uint32_t operands[3] = {0};
    for (uint32_t i = 0; i < tn_expr_operands(insn->op); i++)
        operands[i] = values[places[i]];
    return spirv_write_operation(w, insn->op, w->program->insns[insn->a].dtype, insn->dtype,
                                 operands);
}

// `params`: ids of the function's parameters, the element's index first.
static uint32_t write_insn(struct spirv_writer *w, const tn_expr_insn *insn,
                           const uint32_t *values, const uint32_t *params,
                           uint32_t *param_at)
{
    switch (insn->op) {
    case TN_EXPR_LOAD:
        return params[1 + insn->a];
    case TN_EXPR_CONST:
        return spirv_write_constant(w, insn->dtype, w->program->constants[insn->a]);
    case TN_EXPR_PARAM:
        return spirv_write_param(w, insn->dtype, param_at);
    case TN_EXPR_INDEX:
        return SPIRV_CALL(w->module, spirv_get(w->module, "INDEX"), params[0]);
    default:
        return write_operation(w, insn, values);
    }
}

// Declares the types and begins the function; its parameters go to params.
static void begin_function(struct spirv_writer *w, uint32_t *params)
{
    struct spirv_module *m = w->module;
    const tn_expr_program *program = w->program;
    uint32_t members[TN_EXPR_MAX_OUTPUTS + 1], types[TN_EXPR_MAX_INPUTS + 3];
    uint32_t type = spirv_new_id(m);
    w->outputs = members[0] = spirv_new_id(m);
    for (uint32_t i = 0; i < program->num_outputs; i++)
        members[1 + i] = spirv_use(m, spirv_dtypes[program->output_dtypes[i]].computed);
    spirv_add(m, &m->globals, SPIRV_TYPE_STRUCT, members, 1 + program->num_outputs);
    types[0] = type;
    types[1] = w->outputs;
    types[2] = w->uint_type;
    for (uint32_t i = 0; i < program->num_inputs; i++)
        types[3 + i] = spirv_use(m, spirv_dtypes[program->input_dtypes[i]].computed);
    spirv_add(m, &m->globals, SPIRV_TYPE_FUNCTION, types, 3 + program->num_inputs);
    w->element = spirv_new_id(m);
    SPIRV_ADD(m, code, SPIRV_FUNCTION, w->outputs, w->element, 0, type);
    for (uint32_t i = 0; i < 1 + program->num_inputs; i++) {
        params[i] = spirv_new_id(m);
        SPIRV_ADD(m, code, SPIRV_FUNCTION_PARAMETER, types[2 + i], params[i]);
    }
    SPIRV_ADD(m, code, SPIRV_LABEL, spirv_new_id(m));
}

void spirv_write_element(struct spirv_writer *w)
{
    struct spirv_module *m = w->module;
    const tn_expr_program *program = w->program;
    uint32_t params[TN_EXPR_MAX_INPUTS + 1], values[TN_EXPR_MAX_INSNS];
    uint32_t results[TN_EXPR_MAX_OUTPUTS], param_at = w->first_param;
    begin_function(w, params);
    for (uint32_t i = 0; i < program->num_insns; i++)
        values[i] = write_insn(w, &program->insns[i], values, params, &param_at);
    for (uint32_t i = 0; i < program->num_outputs; i++)
        results[i] = values[program->outputs[i]];
    uint32_t all = spirv_result(m, SPIRV_COMPOSITE_CONSTRUCT, w->outputs, results,
                                program->num_outputs);
    SPIRV_ADD(m, code, SPIRV_RETURN_VALUE, all);
    spirv_add(m, &m->code, SPIRV_FUNCTION_END, NULL, 0);
}
