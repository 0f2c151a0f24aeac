// SPDX-License-Identifier: MIT
// Types, numbers and attributes as JSON.
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "save.h"

// --- values ------------------------------------------------------------------------------

json_t *type_json(const tn_type *type, bool weak)
{
    json_t *shape = json_array();
    for (int32_t i = 0; i < type->rank; i++)
        json_array_append_new(shape, json_integer(type->extent[i]));
    json_t *json = json_pack("[s, o]", tn_dtype_name(type->dtype), shape);
    if (weak)
        json_array_append_new(json, json_string("weak"));
    return json;
}

// Numbers that JSON cannot express are written as bits, so that they are read back exactly.
static json_t *double_json(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return isfinite(value) ? json_real(value) : json_sprintf("0x%016" PRIx64, bits);
}

json_t *number_json(const tn_type *type, const tn_graph_array *array)
{
    double value;
    memcpy(&value, &array->bits, sizeof(value));
    bool is_float =
        tn_dtype_in(type->dtype, TN_FLOAT_DTYPES | TN_FLOAT8_DTYPES | TN_COMPLEX_DTYPES);
    return json_pack("{s:o, s:o}", "number",
                     is_float ? double_json(value) : json_integer((json_int_t)array->bits),
                     "type", type_json(type, array->is_weak));
}

static json_t *int_list_json(const int64_t *values, uint64_t count)
{
    json_t *list = json_array();
    for (uint64_t i = 0; i < count; i++)
        json_array_append_new(list, json_integer(values[i]));
    return list;
}

static json_t *float_list_json(const tn_float_list *values)
{
    json_t *list = json_array();
    for (uint64_t i = 0; i < values->count; i++)
        json_array_append_new(list, double_json(values->value[i]));
    return list;
}

// --- attributes --------------------------------------------------------------------------

// A field's value, in the member of its kind.
struct field_value {
    int64_t i;
    double f;
    uint64_t bits;
    const void *pointer;
    const tn_ints *ints;
};

static struct field_value read_field(const tn_attr_field *field, const void *attrs)
{
    struct field_value v = {.ints = (const void *)((const char *)attrs + field->offset)};
    memcpy(&v.i, v.ints, sizeof(v.i));
    memcpy(&v.f, v.ints, sizeof(v.f));
    memcpy(&v.bits, v.ints, sizeof(v.bits));
    memcpy(&v.pointer, v.ints, sizeof(v.pointer));
    return v;
}

static bool is_default(const tn_attr_field *field, const struct field_value *v)
{
    if (field->flags & TN_ATTR_REQUIRED)
        return false;
    if (field->kind == TN_ATTR_F64)
        return memcmp(&v->f, &field->default_f, sizeof(v->f)) == 0;
    if (field->kind == TN_ATTR_INTS)
        return !v->ints->given;
    return field->kind >= TN_ATTR_STRING ? !v->pointer : v->i == field->default_i;
}

static tn_status save_value(struct saver *s, const tn_attr_field *field,
                            const struct field_value *v, json_t **out)
{
    const tn_int_list *list = v->pointer;
    uint32_t number = 0;
    tn_status status = TN_OK;
    switch (field->kind) {
    case TN_ATTR_BOOL:
        *out = json_boolean(v->i);
        break;
    case TN_ATTR_I64:
        *out = json_integer(v->i);
        break;
    case TN_ATTR_F64:
        *out = double_json(v->f);
        break;
    case TN_ATTR_DTYPE:
        *out = json_string(tn_dtype_name((tn_dtype)v->i));
        break;
    case TN_ATTR_CHOICE:
        *out = json_string(field->choices[v->i]);
        break;
    case TN_ATTR_INTS:
        *out = int_list_json(v->ints->value, v->ints->count);
        break;
    case TN_ATTR_BITS:
        *out = json_sprintf("0x%" PRIx64, v->bits);
        break;
    case TN_ATTR_STRING:
        *out = json_string(v->pointer);
        break;
    case TN_ATTR_INT_LIST:
        *out = int_list_json(list->value, list->count);
        break;
    case TN_ATTR_FLOAT_LIST:
        *out = float_list_json(v->pointer);
        break;
    case TN_ATTR_GRAPH:
        status = save_graph(s, v->pointer, &number);
        *out = json_integer(number);
        break;
    default:
        return save_fail(s, TN_ERR_UNSUPPORTED, "attribute '%s' is of an unknown kind %u",
                         field->name, field->kind);
    }
    return status;
}

static tn_status add_attr(struct saver *s, json_t *attrs, const tn_attr_field *field,
                          const void *values)
{
    struct field_value v = read_field(field, values);
    json_t *value = NULL;
    if (is_default(field, &v))
        return TN_OK;
    // A required value is absent, which cannot happen: a node could not be made without it.
    if (field->kind >= TN_ATTR_STRING && !v.pointer)
        return save_fail(s, TN_ERR_INTERNAL, "attribute '%s' is NULL", field->name);
    tn_status status = save_value(s, field, &v, &value);
    if (status != TN_OK) {
        json_decref(value);
        return status;
    }
    return json_object_set_new(attrs, field->name,
                               json_pack("{s:o}", attr_kinds[field->kind], value))
               ? out_of_memory(s)
               : TN_OK;
}

// Adds an attribute of an expression: a number, under the name in its text.
static tn_status graph_values_add_number(struct saver *s, json_t *attrs,
                                         const tn_graph_node *node,
                                         const tn_attr_field *field)
{
    struct field_value v = read_field(field, node->attrs);
    bool is_named = (node->flags & TN_NODE_REDUCES) && strcmp(field->name, "axis") == 0;
    for (uint64_t i = 0; i < node->num_attr_names; i++)
        is_named = is_named || strcmp(node->attr_names[i], field->name) == 0;
    if (!is_named)
        return TN_OK;
    if (field->kind == TN_ATTR_INTS || field->kind >= TN_ATTR_BITS)
        return save_fail(s, TN_ERR_UNSUPPORTED,
                         "expression \"%s\": attribute '%s' is no plain number", node->expr,
                         field->name);
    json_t *value = field->kind == TN_ATTR_F64 ? json_pack("{s:o}", "f64", double_json(v.f))
                    : field->kind == TN_ATTR_BOOL
                        ? json_pack("{s:b}", "bool", v.i != 0)
                        : json_pack("{s:I}", "i64", (json_int_t)v.i);
    return json_object_set_new(attrs, field->name, value) ? out_of_memory(s) : TN_OK;
}

static uint32_t graph_values_number_of(const struct saver *s, const tn_array *array)
{
    tn_graph_array look;
    s->api->array(array, &look);
    return look.number;
}

// Scalars of runtime attributes are the node's last inputs; the file lists them by
// attribute name.
static tn_status save_attrs_of(struct saver *s, const tn_graph_node *node, json_t *attrs,
                               uint64_t first)
{
    const tn_attr_table *table = node->table;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < table->num_fields && status == TN_OK; i++) {
        const tn_attr_field *field = field_at(table, i);
        if (!node->primitive)
            status = graph_values_add_number(s, attrs, node, field);
        else if (!(field->flags & TN_ATTR_RUNTIME))
            status = add_attr(s, attrs, field, node->attrs);
        else if (json_object_set_new(attrs, field->name,
                                     json_pack("{s:I}", "runtime",
                                               (json_int_t)graph_values_number_of(
                                                   s, node->inputs[first++]))))
            status = out_of_memory(s);
    }
    return status;
}

tn_status save_attrs(struct saver *s, const tn_graph_node *node, json_t *attrs,
                     uint64_t *out_inputs)
{
    *out_inputs = node->num_inputs;
    for (uint32_t i = 0; node->primitive && node->table && i < node->table->num_fields; i++)
        *out_inputs -= (field_at(node->table, i)->flags & TN_ATTR_RUNTIME) != 0;
    return node->table ? save_attrs_of(s, node, attrs, *out_inputs) : TN_OK;
}
