// SPDX-License-Identifier: MIT
// Classifies steps: the class determines a kernel's code, everything else is an argument of
// the kernel.
#include "program.h"

#define MOST_FUNCTIONS 4 // of a program that computes four elements an invocation

const tn_layout *program_operand(const tn_step *step, uint32_t operand)
{
    return operand < step->num_inputs
               ? &tn_step_input(step, operand)->layout
               : &tn_step_output(step, operand - step->num_inputs)->layout;
}

uint64_t program_elements(const tn_step *step)
{
    const tn_layout *layout = &tn_step_output(step, 0)->layout;
    uint64_t n = 1;
    for (int32_t axis = 0; axis < layout->rank; axis++)
        n *= (uint64_t)layout->extent[axis];
    return n;
}

static bool program_class_is_contiguous(const tn_layout *layout)
{
    int64_t expected = 1;
    for (int32_t axis = layout->rank - 1; axis >= 0; axis--) {
        if (layout->extent[axis] == 1)
            continue;
        if (layout->stride[axis] != expected)
            return false;
        expected *= layout->extent[axis];
    }
    return true;
}

static bool program_class_is_scalar(const tn_layout *layout)
{
    for (int32_t axis = 0; axis < layout->rank; axis++)
        if (layout->extent[axis] != 1 && layout->stride[axis] != 0)
            return false;
    return true;
}

bool program_is_aligned(const tn_layout *layout)
{
    bool aligned = layout->offset % 4 == 0 && layout->stride[layout->rank - 1] == 1;
    for (int32_t axis = 0; axis < layout->rank - 1; axis++)
        aligned = aligned && (layout->extent[axis] == 1 || layout->stride[axis] % 4 == 0);
    return aligned;
}

static char classify_flat(const tn_layout *layout, bool is_input)
{
    if (is_input && program_class_is_scalar(layout))
        return ACCESS_SCALAR;
    if (program_class_is_contiguous(layout))
        return layout->offset % 4 == 0 ? ACCESS_FLAT : ACCESS_LOOSE;
    return ACCESS_STRIDED;
}

static char classify_strided(const tn_layout *layout)
{
    if (layout->stride[layout->rank - 1] == 0)
        return ACCESS_REPEAT;
    return program_is_aligned(layout) ? ACCESS_ROW : ACCESS_STRIDED;
}

void program_add_arg(struct program_args *args, uint64_t word)
{
    args->words[args->num_words++] = (uint32_t)word;
}

// Adds a param in its instruction's dtype: one word, or two for a 64-bit dtype. Those of
// complex dtypes are real.
static void add_param(struct program_args *args, tn_dtype dtype, uint64_t bits)
{
    dtype = tn_dtype_real(dtype);
    if (dtype == TN_F32) {
        double value;
        memcpy(&value, &bits, sizeof(value));
        float narrow = (float)value;
        uint32_t word;
        memcpy(&word, &narrow, sizeof(word));
        program_add_arg(args, word);
        return;
    }
    program_add_arg(args, bits);
    if (dtype_bytes(dtype) == 8)
        program_add_arg(args, bits >> 32);
}

// Whether positions among the elements are divided by the instruction, and nothing else is
// done with it: it is an extent.
static bool divides_positions(const tn_expr_program *program, uint32_t param)
{
    bool any = false;
    for (uint32_t i = 0; i < program->num_insns; i++) {
        const tn_expr_insn *insn = &program->insns[i];
        uint32_t count = tn_expr_operands(insn->op);
        bool takes = insn->op == TN_EXPR_TAKE;
        bool divides = tn_expr_class(insn->op) == TN_EXPR_CLASS_DIVIDE &&
                       program->insns[insn->a].op == TN_EXPR_INDEX;
        if (!takes && ((count > 0 && insn->a == param) || (count > 2 && insn->c == param)))
            return false;
        if ((takes || count > 1) && insn->b == param && !divides)
            return false;
        any = any || (count > 1 && insn->b == param);
    }
    for (uint32_t i = 0; i < program->num_outputs; i++)
        if (program->outputs[i] == param)
            return false;
    return any;
}

void program_add_params(const tn_step *step, struct program_args *args)
{
    const tn_expr_program *program = step->program;
    for (uint32_t i = 0; i < program->num_insns; i++) {
        const tn_expr_insn *insn = &program->insns[i];
        uint32_t first = args->num_words;
        if (insn->op == TN_EXPR_PARAM)
            add_param(args, insn->dtype, step->params[insn->a]);
        for (uint32_t k = 0; insn->op == TN_EXPR_TAKE && k < 2; k++)
            program_add_arg(args, step->params[insn->c + k]);
        bool is_value = insn->op == TN_EXPR_PARAM && !divides_positions(program, i);
        for (uint32_t k = first; is_value && k < args->num_words && k < 64; k++)
            args->values |= UINT64_C(1) << k;
    }
}

static void add_divisor(struct program_args *args, uint64_t divisor)
{
    uint32_t words[2];
    kernel_divisor(divisor, words);
    program_add_arg(args, words[0]);
    program_add_arg(args, words[1]);
}

static void program_class_list_args(const tn_step *step, const struct program_class *class,
                                    struct program_args *args)
{
    uint32_t num_operands = step->num_inputs + step->num_outputs;
    args->num_words = 0;
    args->values = 0;
    program_add_arg(args, program_elements(step));
    for (uint32_t i = 0; i < num_operands; i++)
        program_add_arg(args, (uint64_t)program_operand(step, i)->offset);
    for (uint32_t axis = 0; axis < class->rank; axis++)
        program_add_arg(args, (uint64_t)tn_step_output(step, 0)->layout.extent[axis]);
    for (uint32_t axis = 0; class->divides && axis < class->rank; axis++)
        add_divisor(args, (uint64_t)tn_step_output(step, 0)->layout.extent[axis]);
    for (uint32_t i = 0; i < num_operands; i++)
        for (uint32_t axis = 0; access_has_strides(class->access[i]) && axis < class->rank;
             axis++)
            program_add_arg(args, (uint64_t)program_operand(step, i)->stride[axis]);
    program_add_params(step, args);
}

// Complex numbers are loaded one at a time, which is 8 or 16 bytes.
static bool has_complex_operand(const tn_step *step)
{
    for (uint32_t i = 0; i < step->num_inputs + step->num_outputs; i++)
        if (tn_is_complex(program_operand(step, i)->dtype))
            return true;
    return false;
}

bool program_takes(const tn_expr_program *program, uint32_t operand)
{
    bool found = false;
    for (uint32_t i = 0; i < program->num_insns && !found; i++)
        found = program->insns[i].op == TN_EXPR_TAKE && program->insns[i].a == operand;
    return found;
}

// The access to an operand before it is known how many elements an invocation has.
static char classify_operand(const tn_step *step, uint32_t operand)
{
    const tn_layout *layout = program_operand(step, operand);
    if (operand < step->num_inputs && program_takes(step->program, operand))
        return program_class_is_scalar(layout) ? ACCESS_TAKEN_FLAT : ACCESS_TAKEN;
    return classify_flat(layout, operand < step->num_inputs);
}

// Finds the instructions whose values are the same along the last axis.
static void find_even(const tn_step *step, bool even[TN_EXPR_MAX_INSNS])
{
    for (uint32_t i = 0; i < step->program->num_insns; i++) {
        const tn_expr_insn *insn = &step->program->insns[i];
        const uint32_t from[] = {insn->a, insn->b, insn->c};
        even[i] = insn->op != TN_EXPR_INDEX;
        if (insn->op == TN_EXPR_LOAD || insn->op == TN_EXPR_TAKE) {
            const tn_layout *layout = program_operand(step, insn->a);
            even[i] = layout->stride[layout->rank - 1] == 0;
        }
        if (insn->op == TN_EXPR_TAKE)
            even[i] = even[i] && even[insn->b];
        for (uint32_t k = 0; k < tn_expr_operands(insn->op); k++)
            even[i] = even[i] && even[from[k]];
    }
}

bool program_takes_rows(const tn_step *step, uint32_t operand, const bool *is_even)
{
    bool rows = program_is_aligned(program_operand(step, operand));
    for (uint32_t i = 0; i < step->program->num_insns; i++) {
        const tn_expr_insn *insn = &step->program->insns[i];
        if (insn->op == TN_EXPR_TAKE && insn->a == operand)
            rows = rows && is_even[insn->b] && step->params[insn->c + 1] % 4 == 0;
    }
    return rows;
}

// Finds where four elements that are gathered at strides lie side by side.
static void find_taken_rows(const tn_step *step, struct program_class *class)
{
    bool even[TN_EXPR_MAX_INSNS], is_found = false;
    for (uint32_t i = 0; i < class->num_inputs && class->per_item == 4; i++) {
        if (class->access[i] != ACCESS_TAKEN)
            continue;
        if (!is_found)
            find_even(step, even);
        is_found = true;
        if (program_takes_rows(step, i, even))
            class->access[i] = ACCESS_TAKEN_FOUR;
    }
}

// Each function becomes a hundred instructions and more, once for each element of an
// invocation: long code takes drivers long, and is more than caches hold.
static bool is_long(const tn_expr_program *program)
{
    uint32_t functions = 0;
    for (uint32_t i = 0; i < program->num_insns; i++)
        functions += tn_expr_class(program->insns[i].op) == TN_EXPR_CLASS_FUNCTION;
    return functions > MOST_FUNCTIONS;
}

void program_classify(const tn_step *step, uint32_t push_words, struct program_class *out,
                      struct program_args *args)
{
    uint32_t num_operands = step->num_inputs + step->num_outputs;
    struct program_class class = {
        .per_item = 4, .num_inputs = step->num_inputs, .num_outputs = step->num_outputs};
    for (uint32_t i = 0; i < num_operands; i++) {
        class.access[i] = classify_operand(step, i);
        if (access_has_strides(class.access[i]))
            class.rank = (uint32_t)program_operand(step, i)->rank;
    }
    // If rows are no multiple of 4, four elements may lie in two rows.
    if (class.rank > 0 && tn_step_output(step, 0)->layout.extent[class.rank - 1] % 4 != 0)
        class.per_item = 1;
    if (has_complex_operand(step) || is_long(step->program))
        class.per_item = 1;
    for (uint32_t i = 0; i < num_operands; i++) {
        if (class.per_item == 4 && class.access[i] == ACCESS_STRIDED)
            class.access[i] = classify_strided(program_operand(step, i));
        if (class.per_item == 1 && class.access[i] == ACCESS_FLAT)
            class.access[i] = ACCESS_LOOSE;
    }
    find_taken_rows(step, &class);
    class.divides = class.rank > 1;
    program_class_list_args(step, &class, args);
    if (class.divides && args->num_words > push_words) {
        class.divides = false;
        program_class_list_args(step, &class, args);
    }
    class.args_in_buffer = args->num_words > push_words;
    *out = class;
}

void program_classify_function(const tn_step *step, struct program_class *out,
                               struct program_args *args)
{
    uint32_t num_operands = step->num_inputs + step->num_outputs;
    struct program_class class = {.per_item = 1,
                                  .num_inputs = step->num_inputs,
                                  .num_outputs = step->num_outputs,
                                  .args_in_buffer = true,
                                  .divides = true,
                                  .is_function = true};
    for (uint32_t i = 0; i < num_operands; i++) {
        bool is_input = i < step->num_inputs;
        const tn_value *value =
            is_input ? tn_step_input(step, i) : tn_step_output(step, i - step->num_inputs);
        char access = classify_operand(step, i);
        class.access[i] = value->flags & TN_VALUE_FUSED ? ACCESS_THROUGH
                          : access == ACCESS_FLAT       ? ACCESS_LOOSE
                                                        : access;
        if (access_has_strides(class.access[i]))
            class.rank = (uint32_t)value->layout.rank;
    }
    program_class_list_args(step, &class, args);
    *out = class;
}

uint32_t program_through(const struct program_class *class)
{
    uint32_t i = 0;
    while (!access_is_through(class->access[i]))
        i++;
    return i;
}

// The hash of a program's structure, without its name.
static struct vk_hash class_program_hash(const tn_expr_program *program)
{
    struct vk_hash h = {1, 2};
    h = vk_hash_u64(h, program->num_insns);
    for (uint32_t i = 0; i < program->num_insns; i++) {
        const tn_expr_insn *insn = &program->insns[i];
        h = vk_hash_u64(h,
                        (uint64_t)insn->op << 48 | (uint64_t)insn->dtype << 32 | insn->a);
        h = vk_hash_u64(h, (uint64_t)insn->b << 32 | insn->c);
    }
    for (uint32_t i = 0; i < program->num_constants; i++)
        h = vk_hash_u64(h, program->constants[i]);
    for (uint32_t i = 0; i < program->num_inputs; i++)
        h = vk_hash_u64(h, (uint64_t)program->input_dtypes[i]);
    for (uint32_t i = 0; i < program->num_outputs; i++)
        h = vk_hash_u64(h, (uint64_t)program->output_dtypes[i] << 32 | program->outputs[i]);
    return vk_hash_u64(h, (uint64_t)program->num_inputs << 32 | program->num_outputs);
}

struct vk_hash program_class_hash(const tn_expr_program *program,
                                  const struct program_class *class)
{
    struct vk_hash h = class_program_hash(program);
    h = vk_hash_u64(h, (uint64_t) class->divides << 33 |
                           (uint64_t) class->is_function << 32 | class->rank << 16 |
                           class->per_item << 1 | class->args_in_buffer);
    h = vk_hash_u64(h, (uint64_t) class->lanes << 32 | class->chunks << 2 |
                           (uint32_t) class->loops << 1 | class->whole);
    h = vk_hash_u64(h, (uint64_t) class->subgroup << 32 | class->group);
    if (class->parts > 0)
        h = vk_hash_u64(h, class->parts);
    return vk_hash_bytes(h, class->access, class->num_inputs + class->num_outputs);
}

uint32_t program_group(const struct program_class *class)
{
    return class->lanes > 0 ? class->group : PROGRAM_GROUP;
}

uint32_t program_per_group(const struct program_class *class)
{
    return class->lanes > 0 ? class->group / class->lanes : PROGRAM_GROUP * class->per_item;
}

uint32_t program_dtypes(const tn_expr_program *program)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < program->num_insns; i++)
        set |= TN_DTYPE_BIT(program->insns[i].dtype) |
               TN_DTYPE_BIT(tn_dtype_real(program->insns[i].dtype));
    return set;
}

bool program_has_f64_function(const tn_expr_program *program)
{
    for (uint32_t i = 0; i < program->num_insns; i++) {
        const tn_expr_insn *insn = &program->insns[i];
        uint32_t kind = tn_expr_class(insn->op);
        bool is_function = kind == TN_EXPR_CLASS_FUNCTION ||
                           kind == TN_EXPR_CLASS_CIRCULAR || insn->op == TN_EXPR_POW;
        if ((insn->dtype == TN_F64 && is_function) || insn->dtype == TN_COMPLEX128)
            return true;
    }
    return false;
}
