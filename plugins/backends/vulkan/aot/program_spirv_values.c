// SPDX-License-Identifier: MIT
// SPIR-V of what a program's values are: a call of a precompiled part for each instruction;
// arguments, loads and stores.
#include "program_spirv_writer.h"

#include <stdio.h>

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
    uint32_t zero = spirv_uint(m, 0), at = spirv_uint(m, index), pointer, position = at;
    if (!w->class->is_function) {
        pointer = SPIRV_RESULT(m, OpAccessChain, w->push_word, w->push, zero,
                               in_buffer ? zero : at);
        uint32_t word = SPIRV_RESULT(m, OpLoad, w->uint_type, pointer);
        if (!in_buffer)
            return word;
        position = SPIRV_RESULT(m, OpIAdd, w->uint_type, word, at);
    }
    pointer = SPIRV_RESULT(m, OpAccessChain, spirv_dtypes[TN_U32].one, w->args_buffer, zero,
                           position);
    return SPIRV_RESULT(m, OpLoad, w->uint_type, pointer);
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

uint32_t spirv_write_param(struct spirv_writer *w, tn_dtype dtype, uint32_t word)
{
    if (tn_is_complex(dtype))
        return write_complex(w, dtype, spirv_write_param(w, tn_dtype_real(dtype), word));
    bool is_wide = dtype_bytes(dtype) == 8;
    uint32_t low = spirv_write_arg(w, word);
    uint32_t high = is_wide ? spirv_write_arg(w, word + 1) : spirv_uint(w->module, 0);
    return write_bits(w, dtype, low, high);
}

// Uses a part for exactly this dtype if there is one (floats saturate at its range). Else
// converts between the computed dtypes and cuts the result to its width.
static uint32_t spirv_values_write_cast(struct spirv_writer *w, tn_dtype from, tn_dtype to,
                                        uint32_t value)
{
    char name[MAX_NAME];
    if (tn_is_complex(to) && !tn_is_complex(from))
        return write_complex(w, to,
                             spirv_values_write_cast(w, from, tn_dtype_real(to), value));
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
        return spirv_values_write_cast(w, from, dtype, operands[0]);
    if (op == TN_EXPR_SELECT && tn_is_complex(dtype))
        from = dtype; // the part is named by the others
    else if (op == TN_EXPR_SELECT)
        return spirv_result(w->module, OpSelect, spirv_dtypes[dtype].computed, operands,
                            num);
    memcpy(all, operands, num * sizeof(all[0]));
    if (tn_expr_class(op) == TN_EXPR_CLASS_SHIFT)
        all[num++] = spirv_uint(w->module, 8 * dtype_bytes(dtype));
    char name[MAX_NAME];
    snprintf(name, sizeof(name), "%s_%s", tn_expr_name(op), class_name(from));
    uint32_t value = spirv_call(w->module, spirv_get(w->module, name), all, num);
    return spirv_write_if_any(w, "NARROW", dtype, value);
}

static uint32_t spirv_values_num_operands(const struct spirv_writer *w)
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
    SPIRV_ADD(m, globals, OpVariable, spirv_use(m, pointer), id, StorageClassStorageBuffer);
    SPIRV_ADD(m, decorations, OpDecorate, id, DecorationDescriptorSet, 0);
    SPIRV_ADD(m, decorations, OpDecorate, id, DecorationBinding, binding);
    if (is_read)
        SPIRV_ADD(m, decorations, OpDecorate, id, DecorationNonWritable);
    return id;
}

void spirv_declare_push(struct spirv_writer *w)
{
    struct spirv_module *m = w->module;
    if (w->class->args_in_buffer)
        w->args_buffer = declare_buffer(w, spirv_dtypes[TN_U32].ones,
                                        spirv_values_num_operands(w), true);
    if (w->class->is_function) { // restrict: loaded once for all elements of an invocation
        SPIRV_ADD(m, decorations, OpDecorate, w->args_buffer, DecorationRestrict);
        return;
    }
    uint32_t array = spirv_new_id(m), block = spirv_new_id(m), pointer = spirv_new_id(m);
    uint32_t length = spirv_uint(m, w->class->args_in_buffer ? 1 : w->words.num_args);
    w->push_word = spirv_new_id(m);
    w->push = spirv_new_id(m);
    SPIRV_ADD(m, decorations, OpDecorate, array, DecorationArrayStride, 4);
    SPIRV_ADD(m, decorations, OpDecorate, block, DecorationBlock);
    SPIRV_ADD(m, decorations, OpMemberDecorate, block, 0, DecorationOffset, 0);
    SPIRV_ADD(m, globals, OpTypeArray, array, w->uint_type, length);
    SPIRV_ADD(m, globals, OpTypeStruct, block, array);
    SPIRV_ADD(m, globals, OpTypePointer, pointer, StorageClassPushConstant, block);
    SPIRV_ADD(m, globals, OpTypePointer, w->push_word, StorageClassPushConstant,
              w->uint_type);
    SPIRV_ADD(m, globals, OpVariable, pointer, w->push, StorageClassPushConstant);
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
    return SPIRV_RESULT(w->module, OpAccessChain,
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
               : SPIRV_RESULT(w->module, is_signed ? OpSConvert : OpUConvert, to, value);
}

uint32_t spirv_write_load(struct spirv_writer *w, uint32_t operand, bool four,
                          uint32_t index)
{
    tn_dtype dtype = spirv_operand_dtype(w, operand);
    const struct spirv_dtype *types = &spirv_dtypes[dtype];
    uint32_t stored = four ? types->stored_four : types->stored;
    uint32_t value =
        SPIRV_RESULT(w->module, OpLoad, stored, write_pointer(w, operand, four, index));
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
    SPIRV_ADD(w->module, code, OpStore, write_pointer(w, operand, four, index), stored);
}
