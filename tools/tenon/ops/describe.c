// SPDX-License-Identifier: MIT
// Signatures and attributes as text.
#include "describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

tn_attr_field attr_field(const tn_attr_table *table, uint32_t i)
{
    tn_attr_field field = {0};
    size_t size = table->field_size < sizeof(field) ? table->field_size : sizeof(field);
    memcpy(&field, (const char *)table->fields + i * table->field_size, size);
    return field;
}

uint32_t num_outputs(const tn_primitive *primitive)
{
    return primitive->num_outputs ? primitive->num_outputs : 1;
}

bool counts_outputs(const tn_primitive *primitive)
{
    return TN_HAS(primitive, count_outputs);
}

tn_output_info output_info(const tn_primitive *primitive, uint32_t i)
{
    if (primitive->outputs)
        return primitive->outputs[i];
    return (tn_output_info){.name = "out", .doc = ""};
}

const char *attr_kind_name(const tn_attr_field *field)
{
    static const char *const names[] = {
        [TN_ATTR_BOOL] = "bool",         [TN_ATTR_I64] = "int",
        [TN_ATTR_F64] = "float",         [TN_ATTR_DTYPE] = "dtype",
        [TN_ATTR_CHOICE] = "word",       [TN_ATTR_INTS] = "ints",
        [TN_ATTR_BITS] = "bits",         [TN_ATTR_STRING] = "text",
        [TN_ATTR_INT_LIST] = "int list", [TN_ATTR_FLOAT_LIST] = "float list",
        [TN_ATTR_GRAPH] = "graph",
    };
    if (field->flags & TN_ATTR_RUNTIME)
        return field->kind == TN_ATTR_F64 ? "runtime float" : "runtime int";
    return field->kind < COUNT(names) && names[field->kind] ? names[field->kind] : "?";
}

const char *attr_default(const tn_attr_field *field, char *text, size_t size)
{
    if (field->flags & TN_ATTR_REQUIRED) {
        snprintf(text, size, "required");
        return text;
    }
    switch (field->kind) {
    case TN_ATTR_BOOL:
        snprintf(text, size, field->default_i ? "true" : "false");
        break;
    case TN_ATTR_I64:
        if (field->default_i == INT64_MIN)
            snprintf(text, size, "none");
        else
            snprintf(text, size, "%" PRId64, field->default_i);
        break;
    case TN_ATTR_F64:
        snprintf(text, size, "%.15g", field->default_f);
        break;
    case TN_ATTR_DTYPE:
        snprintf(text, size, "%s",
                 field->default_i ? dtype_name((tn_dtype)field->default_i) : "none");
        break;
    case TN_ATTR_CHOICE:
        snprintf(text, size, "%s", field->choices ? field->choices[field->default_i] : "?");
        break;
    case TN_ATTR_BITS:
        snprintf(text, size, "0x%" PRIx64, (uint64_t)field->default_i);
        break;
    default:
        snprintf(text, size, "none");
    }
    return text;
}

static void ops_describe_print_inputs(FILE *stream, const tn_primitive *primitive)
{
    for (uint32_t i = 0; i < primitive->num_inputs; i++) {
        const tn_input_info *input = &primitive->inputs[i];
        const char *before = i ? ", " : "";
        if (input->flags & TN_INPUT_VARIADIC)
            fprintf(stream, "%s%s...", before, input->name);
        else if (input->flags & TN_INPUT_OPTIONAL)
            fprintf(stream, "%s[%s]", before, input->name);
        else
            fprintf(stream, "%s%s", before, input->name);
    }
}

char *signature(const tn_primitive *primitive)
{
    char *text = NULL, value[64];
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    fprintf(stream, "%.*s(", (int)strcspn(primitive->id, "/"), primitive->id);
    ops_describe_print_inputs(stream, primitive);
    for (uint32_t i = 0; i < primitive->attrs.num_fields; i++) {
        tn_attr_field field = attr_field(&primitive->attrs, i);
        fprintf(stream, "%s%s", primitive->num_inputs || i ? ", " : "", field.name);
        if (field.flags & TN_ATTR_REQUIRED)
            fprintf(stream, "=<%s>", attr_kind_name(&field));
        else
            fprintf(stream, "=%s", attr_default(&field, value, sizeof(value)));
    }
    fprintf(stream, ") -> ");
    for (uint32_t i = 0; i < num_outputs(primitive); i++)
        fprintf(stream, "%s%s%s", i ? ", " : "", output_info(primitive, i).name,
                counts_outputs(primitive) ? "..." : "");
    fclose(stream);
    return text;
}
