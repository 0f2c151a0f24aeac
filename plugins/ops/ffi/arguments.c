// SPDX-License-Identifier: MIT
// Reading the arguments of a function, in the order of the C declaration, its return value,
// and which statuses are failures.
#include "manifest.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const kind_names[] = {"input",  "output",    "work",     "extent",
                                         "stride", "attribute", "constant", "character",
                                         "status", "user",      "handle",   NULL};
enum {
    K_INPUT,
    K_OUTPUT,
    K_WORK,
    K_EXTENT,
    K_STRIDE,
    K_ATTRIBUTE,
    K_CONSTANT,
    K_CHARACTER,
    K_STATUS,
    K_USER,
    K_HANDLE
};
static const uint8_t argument_kinds[] = {
    [K_INPUT] = ARG_OPERAND,     [K_OUTPUT] = ARG_OPERAND,
    [K_WORK] = ARG_WORK,         [K_EXTENT] = ARG_EXTENT,
    [K_STRIDE] = ARG_STRIDE,     [K_ATTRIBUTE] = ARG_ATTRIBUTE,
    [K_CONSTANT] = ARG_CONSTANT, [K_CHARACTER] = ARG_CHARACTER,
    [K_STATUS] = ARG_STATUS,     [K_USER] = ARG_USER,
    [K_HANDLE] = ARG_HANDLE,
};

// The members that each kind of argument may have, ended by NULL.
static const char *const members[][8] = {
    {"kind", "name", "by", "type"},
    {"kind", "name", "type"},
    {"kind", "name"},
    {"kind", "value", "type", "by"},
    {"kind", "of", "axis", "type", "by"},
    {"kind", "name", "type", "by", "values"},
    {"kind", "value", "type", "by"},
    {"kind", "value", "attribute", "by"},
    {"kind", "type"},
    {"kind"},
    {"kind", "name", "by"},
};

static bool passes_by_pointer(struct json_reader *reader, const struct field *field,
                              bool otherwise)
{
    static const char *const ways[] = {"value", "pointer", NULL};
    struct field by = member(field, "by");
    return read_choice(reader, &by, ways, otherwise) == 1;
}

static bool is_passed_by_value(tn_dtype dtype)
{
    return tn_dtype_computed(dtype) == dtype && !tn_is_complex(dtype);
}

// "type" of an argument that is passed by value: no half float, which C cannot pass.
static tn_dtype scalar_type(struct json_reader *reader, const struct field *field,
                            const struct ffi_function *function, tn_dtype otherwise)
{
    struct field type = member(field, "type");
    tn_dtype dtype = read_type(reader, &type, otherwise);
    bool fits_c = is_passed_by_value(dtype);
    for (uint32_t i = 0; dtype == TN_DTYPE_NONE && i < function->num_variants; i++)
        fits_c &= is_passed_by_value(function->variants[i].dtype);
    if (!fits_c)
        refuse(reader, &type, "got %s, expected a type that C passes by value",
               tn_is_complex(dtype) ? "a complex number" : "a half float");
    return dtype;
}

static bool ffi_arguments_is_float(tn_dtype dtype)
{
    return dtype == TN_F32 || dtype == TN_F64;
}

// --- kinds -----------------------------------------------------------------------------

// Fails unless the stated type of an operand's elements is the operand's dtype, for each
// variant.
static void check_element_type(struct json_reader *reader, const struct field *type,
                               const struct ffi_function *function,
                               const struct ffi_operand *operand, tn_dtype stated)
{
    for (uint32_t i = 0; i < function->num_variants && reading(reader); i++) {
        tn_dtype got = dtype_or(stated, function, i);
        tn_dtype expected = dtype_or(operand->dtype, function, i);
        if (got != expected)
            refuse(reader, type,
                   "got %s, expected %s, the dtype of \"%s\" with symbol \"%s\"",
                   tn_dtype_name(got), tn_dtype_name(expected), operand->name,
                   function->variants[i].symbol);
    }
}

static void read_operand_argument(struct json_reader *reader, const struct field *field,
                                  const struct ffi_function *function, bool is_input,
                                  struct argument *out)
{
    const char *names[MAX_OPERANDS + 1] = {NULL};
    uint32_t first = is_input ? 0 : function->num_inputs;
    uint32_t count = is_input ? function->num_inputs : function->num_outputs;
    struct field name = member(field, "name");
    for (uint32_t i = 0; i < count; i++)
        names[i] = function->operands[first + i].name;
    out->kind = ARG_OPERAND;
    out->index = first + (uint32_t)read_choice(reader, &name, names, -1);
    if (!reading(reader))
        return;
    const struct ffi_operand *operand = &function->operands[out->index];
    bool is_array = operand->rank > 0 || operand->lead == LEAD_WHOLE;
    struct field by = member(field, "by"), type = member(field, "type");
    out->by_pointer = passes_by_pointer(reader, field, is_array || !is_input);
    out->type = operand->dtype;
    if (type.value)
        check_element_type(reader, &type, function, operand,
                           read_type(reader, &type, operand->dtype));
    if (out->by_pointer)
        return;
    if (is_array)
        refuse(reader, &by, "got the array \"%s\", expected one element to pass by value",
               operand->name);
    out->type = scalar_type(reader, field, function, operand->dtype);
}

static void read_work_argument(struct json_reader *reader, const struct field *field,
                               const struct ffi_function *function, struct argument *out)
{
    const char *names[MAX_WORK + 1] = {NULL};
    struct field name = member(field, "name");
    for (uint32_t i = 0; i < function->num_work; i++)
        names[i] = function->work[i].name;
    out->kind = ARG_WORK;
    out->by_pointer = true;
    out->index = (uint32_t)read_choice(reader, &name, names, -1);
}

static void read_handle_argument(struct json_reader *reader, const struct field *field,
                                 const struct ffi_function *function, struct argument *out)
{
    const char *names[MAX_HANDLES + 1] = {NULL};
    struct field name = member(field, "name");
    for (uint32_t i = 0; i < function->num_handles; i++)
        names[i] = function->handles[i].name;
    out->kind = ARG_HANDLE;
    out->by_pointer = passes_by_pointer(reader, field, false);
    out->type = TN_U64;
    out->index = (uint32_t)read_choice(reader, &name, names, -1);
}

tn_dtype read_integer_dtype(struct json_reader *reader, const struct field *field,
                            const struct ffi_function *function)
{
    struct field type = member(field, "type");
    tn_dtype dtype = scalar_type(reader, field, function, TN_I32);
    if (dtype == TN_DTYPE_NONE || ffi_arguments_is_float(dtype) || dtype == TN_BOOL)
        refuse(reader, &type, "got %s, expected an integer type",
               dtype == TN_DTYPE_NONE ? "T" : tn_dtype_name(dtype));
    return dtype;
}

static void read_integer_type(struct json_reader *reader, const struct field *field,
                              const struct ffi_function *function, struct argument *out)
{
    out->type = read_integer_dtype(reader, field, function);
    out->by_pointer = passes_by_pointer(reader, field, false);
}

static void read_stride(struct json_reader *reader, const struct field *field,
                        const struct ffi_function *function, struct argument *out)
{
    struct field of = member(field, "of"), axis = member(field, "axis");
    const char *names[MAX_OPERANDS + 1] = {NULL};
    for (uint32_t i = 0; i < function->num_inputs + function->num_outputs; i++)
        names[i] = function->operands[i].name;
    out->kind = ARG_STRIDE;
    out->index = (uint32_t)read_choice(reader, &of, names, -1);
    if (!reading(reader))
        return;
    const struct ffi_operand *operand = &function->operands[out->index];
    if (operand->rank == 0) {
        refuse(reader, &of, "got \"%s\", which has no axes, expected one with",
               operand->name);
        return;
    }
    int64_t last = (int64_t)operand->rank - 1;
    int64_t otherwise = operand->layout == LAYOUT_COLUMNS ? 1 : 0;
    out->axis = (uint32_t)read_integer(reader, &axis, 0, last, otherwise);
    read_integer_type(reader, field, function, out);
}

// "values": the integer that each choice of an attribute is passed as.
static void read_values(struct json_reader *reader, const struct field *field,
                        const tn_attr_field *attribute, struct argument *out)
{
    struct field values = member(field, "values");
    size_t count = 0, given = expect_array(reader, &values, 64, true);
    while (attribute->choices && attribute->choices[count])
        count++;
    if (given == 0)
        return;
    if (attribute->kind != TN_ATTR_CHOICE || given != count)
        refuse(reader, &values,
               "got %zu values, expected one for each of %zu choices of \"%s\"", given,
               count, attribute->name);
    out->by_choice = reader_alloc(reader, count * sizeof(*out->by_choice));
    for (size_t i = 0; i < count && reading(reader); i++) {
        struct field item = element(&values, i);
        out->by_choice[i] = read_integer(reader, &item, INT32_MIN, INT32_MAX, 0);
    }
}

static const tn_attr_field *read_attribute_name(struct json_reader *reader,
                                                const struct field *field,
                                                const struct ffi_function *function,
                                                struct argument *out)
{
    const char *names[MAX_ATTRS + 1] = {NULL};
    for (uint32_t i = 0; i < function->num_fields; i++)
        names[i] = function->fields[i].name;
    int index = read_choice(reader, field, names, -1);
    out->index = (uint32_t)index;
    return reading(reader) ? &function->fields[index] : NULL;
}

static void read_attribute_argument(struct json_reader *reader, const struct field *field,
                                    const struct ffi_function *function,
                                    struct argument *out)
{
    struct field name = member(field, "name"), type = member(field, "type");
    const tn_attr_field *attribute = read_attribute_name(reader, &name, function, out);
    if (!attribute)
        return;
    out->kind = ARG_ATTRIBUTE;
    out->type = scalar_type(reader, field, function,
                            attribute->kind == TN_ATTR_F64 ? TN_DTYPE_NONE : TN_I32);
    out->by_pointer = passes_by_pointer(reader, field, false);
    read_values(reader, field, attribute, out);
    for (uint32_t i = 0; i < function->num_variants; i++) {
        tn_dtype dtype = dtype_or(out->type, function, i);
        if (attribute->kind == TN_ATTR_F64 && !ffi_arguments_is_float(dtype))
            refuse(reader, &type,
                   "got %s for the real number \"%s\", expected float or double",
                   tn_dtype_name(dtype), attribute->name);
    }
}

static void check_constant(struct json_reader *reader, const struct field *value,
                           const struct argument *arg, tn_dtype type)
{
    if (ffi_arguments_is_float(type))
        return;
    if (!json_is_integer(value->value))
        refuse(reader, value, "got %g, expected an integer, as %s is", arg->real,
               tn_dtype_name(type));
    if (!fits(type, arg->integer))
        refuse(reader, value, "got %" PRId64 ", expected what fits %s", arg->integer,
               tn_dtype_name(type));
}

static void read_constant(struct json_reader *reader, const struct field *field,
                          const struct ffi_function *function, struct argument *out)
{
    struct field value = member(field, "value");
    out->kind = ARG_CONSTANT;
    if (!json_is_number(value.value)) {
        refuse_type(reader, &value, "a number");
        return;
    }
    out->integer = json_is_integer(value.value) ? json_integer_value(value.value) : 0;
    out->real = json_number_value(value.value);
    out->type = scalar_type(reader, field, function,
                            json_is_integer(value.value) ? TN_I32 : TN_DTYPE_NONE);
    out->by_pointer = passes_by_pointer(reader, field, false);
    for (uint32_t i = 0; i < function->num_variants; i++)
        check_constant(reader, &value, out, dtype_or(out->type, function, i));
}

static void ffi_arguments_read_character(struct json_reader *reader,
                                         const struct field *field,
                                         const struct ffi_function *function,
                                         struct argument *out)
{
    struct field value = member(field, "value"), name = member(field, "attribute");
    out->kind = ARG_CHARACTER;
    out->type = TN_I8;
    out->by_pointer = passes_by_pointer(reader, field, true);
    if (!name.value) {
        const char *text = read_text(reader, &value, 1, NULL);
        out->integer = *text;
        return;
    }
    const tn_attr_field *attribute = read_attribute_name(reader, &name, function, out);
    if (!attribute)
        return;
    if (attribute->kind != TN_ATTR_CHOICE) {
        refuse(reader, &name, "got \"%s\", expected an attribute of type \"choice\"",
               attribute->name);
        return;
    }
    size_t count = 0;
    while (attribute->choices[count])
        count++;
    out->by_choice = reader_alloc(reader, count * sizeof(*out->by_choice));
    for (size_t i = 0; i < count && out->by_choice; i++)
        out->by_choice[i] = attribute->choices[i][0];
}

// --- the list --------------------------------------------------------------------------

void read_argument(struct json_reader *reader, const struct field *field,
                   struct ffi_function *function, uint32_t kinds, const char *what,
                   struct argument *out)
{
    struct field kind_field = member(field, "kind"), value = member(field, "value");
    if (!json_is_object(field->value)) {
        refuse_type(reader, field, "an object");
        return;
    }
    int kind = read_choice(reader, &kind_field, kind_names, -1);
    if (!reading(reader))
        return;
    if (!(kinds >> argument_kinds[kind] & 1)) {
        refuse(reader, &kind_field, "got \"%s\", which is none of the kinds that %s has",
               kind_names[kind], what);
        return;
    }
    expect_object(reader, field, members[kind]);
    switch (kind) {
    case K_INPUT:
    case K_OUTPUT:
        read_operand_argument(reader, field, function, kind == K_INPUT, out);
        break;
    case K_WORK:
        read_work_argument(reader, field, function, out);
        break;
    case K_EXTENT:
        out->kind = ARG_EXTENT;
        read_integer_type(reader, field, function, out);
        read_extent(reader, &value, function, &out->value);
        break;
    case K_STRIDE:
        read_stride(reader, field, function, out);
        break;
    case K_ATTRIBUTE:
        read_attribute_argument(reader, field, function, out);
        break;
    case K_CONSTANT:
        read_constant(reader, field, function, out);
        break;
    case K_CHARACTER:
        ffi_arguments_read_character(reader, field, function, out);
        break;
    case K_HANDLE:
        read_handle_argument(reader, field, function, out);
        break;
    case K_STATUS:
        out->kind = ARG_STATUS;
        read_integer_type(reader, field, function, out);
        out->by_pointer = true;
        break;
    default:
        out->kind = ARG_USER;
        out->by_pointer = true;
        if (function->library)
            refuse(reader, &kind_field,
                   "got \"user\", expected another: only callbacks have a user's pointer");
    }
}

static void read_returns(struct json_reader *reader, const struct field *field,
                         struct ffi_function *function)
{
    static const char *const known[] = {"kind", "type", NULL};
    static const char *const kinds[] = {"void", "output", "status", NULL};
    struct field returns = member(field, "returns");
    if (!returns.value)
        return;
    expect_object(reader, &returns, known);
    struct field kind = member(&returns, "kind"), type = member(&returns, "type");
    if (!reading(reader))
        return;
    function->returns = (enum returns)read_choice(reader, &kind, kinds, -1);
    const struct ffi_operand *first = &function->operands[function->num_inputs];
    if (function->returns == RETURNS_STATUS)
        function->return_type = read_integer_dtype(reader, &returns, function);
    if (function->returns != RETURNS_OUTPUT)
        return;
    check_element_type(reader, &type, function, first,
                       scalar_type(reader, &returns, function, first->dtype));
    function->return_type = first->dtype;
    if (function->num_outputs != 1 || first->rank || first->lead == LEAD_WHOLE)
        refuse(reader, &kind,
               "got \"output\" with %u outputs and \"%s\" of %u axes, expected one output "
               "of one element",
               function->num_outputs, first->name, first->rank);
}

static void ffi_arguments_read_status(struct json_reader *reader, const struct field *field,
                                      struct ffi_function *function)
{
    static const char *const ways[] = {"nonzero", "negative", "positive", NULL};
    static const char *const signs[] = {"negative", "positive", NULL};
    struct field fails = member(field, "fails"), messages = member(field, "messages");
    bool has_status = function->returns == RETURNS_STATUS;
    for (uint32_t i = 0; i < function->num_args; i++)
        has_status |= function->args[i].kind == ARG_STATUS;
    function->fails = (enum failure)read_choice(reader, &fails, ways, FAILS_NONZERO);
    if (!has_status && (fails.value || messages.value))
        refuse(reader, fails.value ? &fails : &messages,
               "got it without a status, expected an argument or a returned value of kind "
               "\"status\"");
    if (!messages.value)
        return;
    expect_object(reader, &messages, signs);
    for (int i = 0; i < 2; i++) {
        struct field text = member(&messages, signs[i]);
        if (text.value)
            function->remedies[i] = read_text(reader, &text, 200, NULL);
    }
}

// Fails on an output that neither an argument nor the return value writes.
static void check_written(struct json_reader *reader, const struct field *field,
                          const struct ffi_function *function)
{
    for (uint32_t i = 0; i < function->num_outputs && reading(reader); i++) {
        bool is_written = function->returns == RETURNS_OUTPUT;
        for (uint32_t k = 0; k < function->num_args; k++)
            is_written |= function->args[k].kind == ARG_OPERAND &&
                          function->args[k].index == function->num_inputs + i;
        if (!is_written)
            refuse(reader, field,
                   "nothing writes the output \"%s\", expected an argument of kind "
                   "\"output\" that names it, or \"returns\"",
                   function->operands[function->num_inputs + i].name);
    }
}

// Fails when an argument passes an overwritten input: input and output may be one memory,
// which the output's argument passes.
static void check_aliases(struct json_reader *reader, const struct field *args,
                          const struct ffi_function *function)
{
    for (uint32_t i = 0; i < function->num_args && reading(reader); i++) {
        const struct argument *arg = &function->args[i];
        struct field item = element(args, i), name = member(&item, "name");
        for (uint32_t k = 0; k < function->num_outputs; k++) {
            const struct ffi_operand *output =
                &function->operands[function->num_inputs + k];
            if (arg->kind == ARG_OPERAND && arg->index < function->num_inputs &&
                output->overwrites == arg->index + 1)
                refuse(reader, &name,
                       "got \"%s\", which \"%s\" overwrites, expected that output alone",
                       function->operands[arg->index].name, output->name);
        }
    }
}

void read_arguments(struct json_reader *reader, const struct field *field,
                    struct ffi_function *function)
{
    struct field args = member(field, "args");
    size_t count = expect_array(reader, &args, MAX_ARGS, false);
    for (size_t i = 0; i < count && reading(reader); i++) {
        struct field item = element(&args, i);
        read_argument(reader, &item, function, UINT32_MAX, "a function",
                      &function->args[i]);
    }
    function->num_args = (uint32_t)count;
    if (reading(reader))
        read_returns(reader, field, function);
    if (reading(reader))
        ffi_arguments_read_status(reader, field, function);
    check_written(reader, &args, function);
    check_aliases(reader, &args, function);
}
