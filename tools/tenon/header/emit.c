// SPDX-License-Identifier: MIT
// One operator as a C function that calls tn_op.
//
// Up to two attributes are plain arguments. More become a struct, whose NAME_defaults()
// sets the record's defaults, so that zero in a field means zero. Runtime attributes are in
// a struct, too, with a second field for an array.
#include "ops/describe.h"
#include "header.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PLAIN_ATTRS 2    // more of them become a struct
#define MOST_VARIADIC 64 // arrays of a variadic input that is not the only one

struct emitter {
    FILE *out;
    const tn_primitive *primitive;
    char name[MAX_NAME];
    bool has_struct;
};

static bool has_runtime(const tn_attr_table *table)
{
    for (uint32_t i = 0; i < table->num_fields; i++)
        if (attr_field(table, i).flags & TN_ATTR_RUNTIME)
            return true;
    return false;
}

// Whether an attribute becomes no argument: the result's dtype, for which callers have
// tn_astype(). In a struct it is a member.
static bool header_emit_is_left_out(const struct emitter *e, const tn_attr_field *field)
{
    return !e->has_struct && field->flags & TN_ATTR_RESULT;
}

static uint32_t count_plain(const tn_attr_table *table)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->num_fields; i++)
        count += !(attr_field(table, i).flags & TN_ATTR_RESULT);
    return count;
}

// Whether the function returns a status, and gives its arrays through arguments.
static bool gives_status(const tn_primitive *p)
{
    return num_outputs(p) > 1 || counts_outputs(p);
}

static const char *c_type(const tn_attr_field *field)
{
    static const char *const types[] = {
        [TN_ATTR_BOOL] = "int32_t ",
        [TN_ATTR_I64] = "int64_t ",
        [TN_ATTR_F64] = "double ",
        [TN_ATTR_DTYPE] = "tn_dtype ",
        [TN_ATTR_CHOICE] = "const char *",
        [TN_ATTR_INTS] = "const tn_ints *",
        [TN_ATTR_BITS] = "uint64_t ",
        [TN_ATTR_STRING] = "const char *",
        [TN_ATTR_INT_LIST] = "const tn_int_list *",
        [TN_ATTR_FLOAT_LIST] = "const tn_float_list *",
        [TN_ATTR_GRAPH] = "const tn_graph *",
    };
    return field->kind < COUNT(types) && types[field->kind] ? types[field->kind]
                                                            : "int64_t ";
}

// Writes a record's text within a // comment: without newlines, and without backslashes,
// which would continue the comment.
static void emit_words(FILE *out, const char *text)
{
    for (; text && *text; text++)
        fputc((unsigned char)*text < ' ' || *text == '\\' ? ' ' : *text, out);
}

static void emit_comment(const struct emitter *e)
{
    const tn_primitive *p = e->primitive;
    char value[64];
    fprintf(e->out, "\n// %s: ", p->id);
    emit_words(e->out, p->doc);
    fprintf(e->out, "\n");
    for (uint32_t i = 0; i < p->num_inputs; i++) {
        fprintf(e->out, "//   %s: ", p->inputs[i].name);
        emit_words(e->out, p->inputs[i].doc);
        fprintf(e->out, "%s\n",
                p->inputs[i].flags & TN_INPUT_OPTIONAL ? "; may be NULL" : "");
    }
    for (uint32_t i = 0; i < p->attrs.num_fields; i++) {
        tn_attr_field field = attr_field(&p->attrs, i);
        if (header_emit_is_left_out(e, &field))
            continue;
        fprintf(e->out, "//   %s: ", field.name);
        emit_words(e->out, field.doc);
        fprintf(e->out, " (%s)\n", attr_default(&field, value, sizeof(value)));
        if (field.flags & TN_ATTR_RUNTIME)
            fprintf(
                e->out,
                "//     A function that is traced keeps this number for all its calls;\n"
                "//     %s_array, a scalar, may be an input of it. NULL: the number.\n",
                field.name);
    }
    if (counts_outputs(p))
        fprintf(e->out, "//   outputs_: num_outputs_ of them, as tn_op_outputs() gives\n");
}

static void header_emit_default(FILE *out, const tn_attr_field *field)
{
    switch (field->kind) {
    case TN_ATTR_F64:
        if (isnan(field->default_f))
            fprintf(out, "__builtin_nan(\"\")");
        else if (isinf(field->default_f))
            fprintf(out, "%s__builtin_inf()", field->default_f < 0 ? "-" : "");
        else
            fprintf(out, "%.17g", field->default_f);
        break;
    case TN_ATTR_INTS:
    case TN_ATTR_STRING:
    case TN_ATTR_INT_LIST:
    case TN_ATTR_FLOAT_LIST:
    case TN_ATTR_GRAPH:
        fprintf(out, "NULL");
        break;
    case TN_ATTR_CHOICE:
        fprintf(out, "\"%s\"", field->choices ? field->choices[field->default_i] : "");
        break;
    case TN_ATTR_I64:
        if (field->default_i == INT64_MIN) {
            fprintf(out, "INT64_MIN");
            break;
        }
        // fall through
    default:
        fprintf(out, "%" PRId64, field->default_i);
    }
}

static void emit_struct(const struct emitter *e)
{
    const tn_attr_table *table = &e->primitive->attrs;
    char name[MAX_NAME];
    fprintf(e->out, "typedef struct %s_options {\n", e->name);
    for (uint32_t i = 0; i < table->num_fields; i++) {
        tn_attr_field field = attr_field(table, i);
        header_identifier(field.name, strlen(field.name), name);
        fprintf(e->out, "    %s%s;\n", c_type(&field), name);
        if (field.flags & TN_ATTR_RUNTIME)
            fprintf(e->out, "    const tn_array *%s_array;\n", name);
    }
    fprintf(e->out, "} %s_options;\n", e->name);
    fprintf(e->out, "static inline %s_options %s_defaults(void)\n{\n", e->name, e->name);
    fprintf(e->out, "    %s_options options;\n", e->name);
    for (uint32_t i = 0; i < table->num_fields; i++) {
        tn_attr_field field = attr_field(table, i);
        header_identifier(field.name, strlen(field.name), name);
        fprintf(e->out, "    options.%s = ", name);
        header_emit_default(e->out, &field);
        fprintf(e->out, ";\n");
        if (field.flags & TN_ATTR_RUNTIME)
            fprintf(e->out, "    options.%s_array = NULL;\n", name);
    }
    fprintf(e->out, "    return options;\n}\n");
}

static void header_emit_parameters(const struct emitter *e)
{
    const tn_primitive *p = e->primitive;
    char name[MAX_NAME];
    fprintf(e->out, "tn_scope *scope_");
    for (uint32_t i = 0; i < p->num_inputs; i++) {
        header_identifier(p->inputs[i].name, strlen(p->inputs[i].name), name);
        if (p->inputs[i].flags & TN_INPUT_VARIADIC)
            fprintf(e->out, ", const tn_array *const *%s, uint64_t num_%s", name, name);
        else
            fprintf(e->out, ", const tn_array *%s", name);
    }
    for (uint32_t i = 0; !e->has_struct && i < p->attrs.num_fields; i++) {
        tn_attr_field field = attr_field(&p->attrs, i);
        if (header_emit_is_left_out(e, &field))
            continue;
        header_identifier(field.name, strlen(field.name), name);
        fprintf(e->out, ", %s%s", c_type(&field), name);
    }
    if (e->has_struct)
        fprintf(e->out, ", const %s_options *options", e->name);
    if (counts_outputs(p)) {
        fprintf(e->out, ", tn_array **outputs_, uint64_t num_outputs_");
        return;
    }
    for (uint32_t i = 0; num_outputs(p) > 1 && i < num_outputs(p); i++) {
        tn_output_info output = output_info(p, i);
        header_identifier(output.name, strlen(output.name), name);
        fprintf(e->out, ", tn_array **out_%s", name);
    }
}

static void emit_attr(const struct emitter *e, const tn_attr_field *field)
{
    char bare[MAX_NAME], value[MAX_NAME + 16];
    header_identifier(field->name, strlen(field->name), bare);
    snprintf(value, sizeof(value), "%s%s", e->has_struct ? "options->" : "", bare);
    if (field->flags & TN_ATTR_RUNTIME)
        fprintf(e->out,
                "    if (%s_array)\n"
                "        attrs_[count_++] = tn_call_array(\"%s\", %s_array);\n"
                "    else\n    ",
                value, field->name, value);
    fprintf(e->out, "    ");
    bool is_pointer = strchr(c_type(field), '*') != NULL;
    if (is_pointer || field->kind == TN_ATTR_DTYPE)
        fprintf(e->out, "if (%s)\n        ", value);
    fprintf(e->out, "attrs_[count_++] = ");
    if (field->kind == TN_ATTR_INTS)
        fprintf(e->out, "tn_call_ints(\"%s\", %s);\n", field->name, value);
    else if (field->kind == TN_ATTR_INT_LIST)
        fprintf(e->out, "tn_call_int_list(\"%s\", %s);\n", field->name, value);
    else if (field->kind == TN_ATTR_FLOAT_LIST)
        fprintf(e->out, "tn_call_float_list(\"%s\", %s);\n", field->name, value);
    else if (field->kind == TN_ATTR_GRAPH)
        fprintf(e->out, "tn_call_graph(\"%s\", %s);\n", field->name, value);
    else if (field->kind == TN_ATTR_CHOICE || field->kind == TN_ATTR_STRING)
        fprintf(e->out, "tn_call_text(\"%s\", %s);\n", field->name, value);
    else if (field->kind == TN_ATTR_F64)
        fprintf(e->out, "tn_call_number(\"%s\", %s);\n", field->name, value);
    else
        fprintf(e->out, "tn_call_integer(\"%s\", %u, (int64_t)%s);\n", field->name,
                field->kind, value);
}

static void emit_attrs(const struct emitter *e)
{
    const tn_attr_table *table = &e->primitive->attrs;
    if (e->has_struct)
        fprintf(e->out,
                "    const %s_options defaults_ = %s_defaults();\n"
                "    options = options ? options : &defaults_;\n",
                e->name, e->name);
    if (!table->num_fields) {
        fprintf(e->out, "    const tn_attr_list list_ = {NULL, 0, 0, 0};\n");
        return;
    }
    fprintf(e->out, "    tn_attr attrs_[%u];\n    uint64_t count_ = 0;\n",
            table->num_fields);
    for (uint32_t i = 0; i < table->num_fields; i++) {
        tn_attr_field field = attr_field(table, i);
        if (!header_emit_is_left_out(e, &field))
            emit_attr(e, &field);
    }
    fprintf(e->out,
            "    const tn_attr_list list_ = {attrs_, count_, sizeof(tn_attr), 0};\n");
}

static bool ends_variadic(const tn_primitive *p)
{
    return p->num_inputs > 0 && p->inputs[p->num_inputs - 1].flags & TN_INPUT_VARIADIC;
}

// Several inputs, of which the last is variadic: its arrays follow the others.
static void emit_variadic(const struct emitter *e, const char *failed)
{
    const tn_primitive *p = e->primitive;
    uint32_t before = p->num_inputs - 1;
    char name[MAX_NAME];
    header_identifier(p->inputs[before].name, strlen(p->inputs[before].name), name);
    fprintf(e->out, "    const tn_array *inputs_[%u];\n", before + MOST_VARIADIC);
    fprintf(e->out,
            "    if (num_%s > %u) {\n"
            "        %stn_scope_fail(scope_, TN_ERR_ARGUMENT, \"%s: got %%llu %s, "
            "expected at most %u: call tn_op for more\",\n"
            "            (unsigned long long)num_%s);\n"
            "%s"
            "    }\n",
            name, MOST_VARIADIC, failed ? "" : "return ", p->id, name, MOST_VARIADIC, name,
            failed ? failed : "");
    for (uint32_t i = 0; i < before; i++) {
        char input[MAX_NAME];
        header_identifier(p->inputs[i].name, strlen(p->inputs[i].name), input);
        fprintf(e->out, "    inputs_[%u] = %s;\n", i, input);
    }
    fprintf(e->out,
            "    for (uint64_t i_ = 0; i_ < num_%s; i_++)\n"
            "        inputs_[%u + i_] = %s[i_];\n",
            name, before, name);
}

// Writes the declaration of the inputs. `array` and `count` are the expressions to pass on.
static void emit_inputs(const struct emitter *e, char array[MAX_NAME],
                        char count[MAX_NAME + 32])
{
    const tn_primitive *p = e->primitive;
    char name[MAX_NAME];
    strcpy(array, "NULL");
    strcpy(count, "0");
    if (!p->num_inputs)
        return;
    if (p->num_inputs == 1 && p->inputs[0].flags & TN_INPUT_VARIADIC) {
        header_identifier(p->inputs[0].name, strlen(p->inputs[0].name), array);
        snprintf(count, MAX_NAME + 32, "num_%s", array);
        return;
    }
    strcpy(array, "inputs_");
    if (ends_variadic(p)) {
        emit_variadic(e, gives_status(p) ? NULL : "        return NULL;\n");
        header_identifier(p->inputs[p->num_inputs - 1].name,
                          strlen(p->inputs[p->num_inputs - 1].name), name);
        snprintf(count, MAX_NAME + 32, "%u + num_%s", p->num_inputs - 1, name);
        return;
    }
    fprintf(e->out, "    const tn_array *const inputs_[] = {");
    for (uint32_t i = 0; i < p->num_inputs; i++) {
        header_identifier(p->inputs[i].name, strlen(p->inputs[i].name), name);
        fprintf(e->out, "%s%s", i ? ", " : "", name);
    }
    fprintf(e->out, "};\n");
    snprintf(count, MAX_NAME, "%u", p->num_inputs);
    // Optional inputs come last: NULLs at the end are not passed on.
    if (p->inputs[p->num_inputs - 1].flags & TN_INPUT_OPTIONAL) {
        uint32_t required = 0;
        while (!(p->inputs[required].flags & TN_INPUT_OPTIONAL))
            required++;
        fprintf(e->out,
                "    uint64_t given_ = %u;\n"
                "    while (given_ > %u && !inputs_[given_ - 1])\n"
                "        given_--;\n",
                p->num_inputs, required);
        strcpy(count, "given_");
    }
}

static void emit_outputs(const struct emitter *e, const char *array, const char *count)
{
    const tn_primitive *p = e->primitive;
    char name[MAX_NAME];
    uint32_t n = num_outputs(p);
    if (counts_outputs(p)) {
        fprintf(e->out,
                "    return tn_op_n(scope_, \"%s\", %s, %s, list_, outputs_, "
                "num_outputs_);\n",
                p->id, array, count);
        return;
    }
    if (n == 1) {
        fprintf(e->out, "    return tn_op(scope_, \"%s\", %s, %s, list_);\n", p->id, array,
                count);
        return;
    }
    fprintf(
        e->out,
        "    tn_array *outputs_[%u] = {NULL};\n"
        "    const tn_status status_ = tn_op_n(scope_, \"%s\", %s, %s, list_, outputs_, "
        "%u);\n",
        n, p->id, array, count, n);
    for (uint32_t i = 0; i < n; i++) {
        tn_output_info output = output_info(p, i);
        header_identifier(output.name, strlen(output.name), name);
        fprintf(e->out, "    *out_%s = outputs_[%u];\n", name, i);
    }
    fprintf(e->out, "    return status_;\n");
}

void header_emit(FILE *out, const char *plugin, const tn_primitive *primitive, bool newest)
{
    struct emitter e = {.out = out,
                        .primitive = primitive,
                        .has_struct = count_plain(&primitive->attrs) > PLAIN_ATTRS ||
                                      has_runtime(&primitive->attrs)};
    char array[MAX_NAME], count[MAX_NAME + 32];
    header_function_name(plugin, primitive->id, newest, e.name);
    emit_comment(&e);
    if (e.has_struct)
        emit_struct(&e);
    fprintf(out, "static inline %s%s(",
            gives_status(primitive) ? "tn_status " : "tn_array *", e.name);
    header_emit_parameters(&e);
    fprintf(out, ")\n{\n");
    emit_inputs(&e, array, count);
    emit_attrs(&e);
    emit_outputs(&e, array, count);
    fprintf(out, "}\n");
}
