// SPDX-License-Identifier: MIT
// Reading the inputs and outputs of one function of a manifest.
#include "manifest.h"

#include <ctype.h>
#include <string.h>

// "..." or "*" at the start of a shape.
static void read_lead(struct json_reader *reader, const struct field *shape,
                      struct ffi_function *function, struct ffi_operand *operand)
{
    struct field first = element(shape, 0);
    const char *text = json_string_value(first.value);
    if (text && strcmp(text, "...") == 0)
        operand->lead = LEAD_BATCH;
    else if (text && strcmp(text, "*") == 0)
        operand->lead = LEAD_WHOLE;
    if (operand->lead == LEAD_NONE)
        return;
    if (function->lead != LEAD_NONE && function->lead != operand->lead)
        refuse(reader, &first, "got both \"...\" and \"*\", expected one in a function");
    if (operand->lead == LEAD_WHOLE && json_array_size(shape->value) > 1)
        refuse(reader, &first, "got axes beside \"*\", expected none: it stands for all");
    function->lead = operand->lead;
}

// Defines a name for each axis of an input that is just a new name: the axis' extent.
static void ffi_operands_bind_names(struct json_reader *reader, const struct field *field,
                                    struct ffi_function *function,
                                    const struct ffi_operand *operand)
{
    struct field shape = member(field, "shape");
    for (size_t i = operand->lead != LEAD_NONE; i < json_array_size(shape.value); i++) {
        struct field axis = element(&shape, i);
        const char *text = json_string_value(axis.value);
        if (!text || isdigit((unsigned char)*text) ||
            text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")])
            continue;
        const char *name = read_name(reader, &axis);
        if (reading(reader) && find_name(function, name) < 0)
            add_name(reader, &axis, function, name, NAME_SHAPE, 0);
    }
}

static void ffi_operands_read_shape(struct json_reader *reader, const struct field *field,
                                    struct ffi_function *function,
                                    struct ffi_operand *operand)
{
    static const char *const layouts[] = {"contiguous", "rows", "columns", "strided", NULL};
    static const uint32_t ranks[] = {0, 2, 2, 1}; // that a layout needs; 0: any
    struct field shape = member(field, "shape"), layout = member(field, "layout");
    size_t count = expect_array(reader, &shape, TN_MAX_RANK + 1, false);
    if (!reading(reader))
        return;
    if (count > 0)
        read_lead(reader, &shape, function, operand);
    operand->rank = (uint32_t)count - (operand->lead != LEAD_NONE);
    if (operand->rank > TN_MAX_RANK)
        refuse(reader, &shape, "got %u axes, expected at most %d", operand->rank,
               TN_MAX_RANK);
    int choice = read_choice(reader, &layout, layouts, 0);
    operand->layout = (enum layout)choice;
    if (ranks[choice] && ranks[choice] != operand->rank)
        refuse(reader, &layout, "got \"%s\" for \"%s\" of %u axes, expected %u axes",
               layouts[choice], operand->name, operand->rank, ranks[choice]);
}

static void read_axes(struct json_reader *reader, const struct field *field,
                      struct ffi_function *function, struct ffi_operand *operand)
{
    struct field shape = member(field, "shape");
    for (uint32_t i = 0; i < operand->rank && reading(reader); i++) {
        struct field axis = element(&shape, i + (operand->lead != LEAD_NONE));
        read_extent(reader, &axis, function, &operand->axes[i]);
    }
}

static void ffi_read_operand(struct json_reader *reader, const struct field *field,
                             struct ffi_function *function, bool is_input)
{
    static const char *const of_inputs[] = {"name",   "doc",       "dtype",    "shape",
                                            "layout", "destroyed", "constant", NULL};
    static const char *const of_outputs[] = {"name",   "doc",        "dtype", "shape",
                                             "layout", "overwrites", NULL};
    struct ffi_operand *operand =
        &function->operands[function->num_inputs + function->num_outputs];
    expect_object(reader, field, is_input ? of_inputs : of_outputs);
    struct field name = member(field, "name"), doc = member(field, "doc");
    struct field dtype = member(field, "dtype"), other = member(field, "overwrites");
    struct field destroyed = member(field, "destroyed"),
                 constant = member(field, "constant");
    *operand = (struct ffi_operand){.name = read_name(reader, &name)};
    operand->doc = read_text(reader, &doc, 400, operand->name);
    operand->dtype = read_type(reader, &dtype, TN_DTYPE_NONE);
    operand->is_destroyed = read_bool(reader, &destroyed, false);
    operand->is_constant = read_bool(reader, &constant, false);
    if (reading(reader) && find_operand(function, operand->name) >= 0)
        refuse(reader, &name, "two operands are named \"%s\", expected one", operand->name);
    ffi_operands_read_shape(reader, field, function, operand);
    if (other.value) {
        const char *input = read_text(reader, &other, 63, NULL);
        int index = find_operand(function, input);
        if (reading(reader) && (index < 0 || index >= (int)function->num_inputs))
            refuse(reader, &other, "got \"%s\", expected the name of an input", input);
        operand->overwrites = (uint32_t)(index + 1);
    }
    *(is_input ? &function->num_inputs : &function->num_outputs) += 1;
}

void read_operands(struct json_reader *reader, const struct field *field,
                   struct ffi_function *function)
{
    struct field inputs = member(field, "inputs"), outputs = member(field, "outputs");
    size_t num_inputs = expect_array(reader, &inputs, MAX_INPUTS, true);
    for (size_t i = 0; i < num_inputs && reading(reader); i++) {
        struct field item = element(&inputs, i);
        ffi_read_operand(reader, &item, function, true);
        if (reading(reader))
            ffi_operands_bind_names(reader, &item, function, &function->operands[i]);
    }
    size_t num_outputs = expect_array(reader, &outputs, MAX_OUTPUTS, false);
    for (size_t i = 0; i < num_outputs && reading(reader); i++) {
        struct field item = element(&outputs, i);
        ffi_read_operand(reader, &item, function, false);
    }
    if (reading(reader) && num_outputs == 0)
        refuse(reader, &outputs, "got an empty list, expected an output");
}

void read_operand_axes(struct json_reader *reader, const struct field *field,
                       struct ffi_function *function)
{
    struct field inputs = member(field, "inputs"), outputs = member(field, "outputs");
    for (uint32_t i = 0; i < function->num_inputs + function->num_outputs; i++) {
        bool is_input = i < function->num_inputs;
        struct field item =
            is_input ? element(&inputs, i) : element(&outputs, i - function->num_inputs);
        read_axes(reader, &item, function, &function->operands[i]);
    }
}

// --- conditions between operands -------------------------------------------------------

static bool has_same_axes(const struct ffi_operand *a, const struct ffi_operand *b)
{
    bool same = a->dtype == b->dtype && a->lead == b->lead && a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = strcmp(a->axes[i].text, b->axes[i].text) == 0;
    return same;
}

// An output and the input that it overwrites may be one memory: so they have the same dtype
// and shape, and no other output overwrites that input.
static void check_overwritten(struct json_reader *reader, const struct field *field,
                              const struct ffi_function *function, uint32_t index)
{
    const struct ffi_operand *outputs = function->operands + function->num_inputs;
    const struct ffi_operand *in = &function->operands[outputs[index].overwrites - 1];
    struct field overwrites = member(field, "overwrites");
    if (!has_same_axes(in, &outputs[index]))
        refuse(reader, &overwrites,
               "\"%s\" has another dtype or shape than \"%s\", expected the same",
               outputs[index].name, in->name);
    for (uint32_t i = 0; i < index; i++)
        if (outputs[i].overwrites == outputs[index].overwrites)
            refuse(reader, &overwrites, "\"%s\" overwrites \"%s\" already, expected one",
                   outputs[i].name, in->name);
}

void check_outputs(struct json_reader *reader, const struct field *field,
                   const struct ffi_function *function)
{
    struct field outputs = member(field, "outputs");
    for (uint32_t i = 0; i < function->num_outputs && reading(reader); i++) {
        const struct ffi_operand *output = &function->operands[function->num_inputs + i];
        struct field item = element(&outputs, i), shape = member(&item, "shape");
        if (function->lead == LEAD_BATCH && output->lead == LEAD_NONE)
            refuse(reader, &shape,
                   "got no \"...\", expected it first: each element of the inputs' batch "
                   "would write \"%s\" anew",
                   output->name);
        if (output->overwrites)
            check_overwritten(reader, &item, function, i);
    }
}
