// SPDX-License-Identifier: MIT
// Reads the attributes of a node: {"axis": {"i64": 1}}. The file states each value's kind,
// so that no value is read as another kind.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "document.h"

tn_status parse_double(struct document *doc, const json_t *value, double *out)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    if (text && strncmp(text, "0x", 2) == 0 && strlen(text) == 18) {
        uint64_t bits = strtoull(text + 2, &end, 16);
        memcpy(out, &bits, sizeof(bits));
        return *end ? doc_refuse(doc, "'%.18s' is no number", text) : TN_OK;
    }
    *out = json_number_value(value);
    return json_is_number(value) ? TN_OK : doc_refuse(doc, "expected a number");
}

tn_status parse_int(struct document *doc, const json_t *value, int64_t *out)
{
    *out = json_integer_value(value);
    return json_is_integer(value) ? TN_OK : doc_refuse(doc, "expected an integer");
}

static tn_status graph_attrs_read_ints(struct document *doc, const json_t *list,
                                       tn_attr *attr)
{
    tn_ints *ints = doc_alloc(doc, 1, sizeof(*ints));
    size_t count = json_array_size(list);
    tn_status status = TN_OK;
    if (!json_is_array(list) || count > TN_MAX_RANK)
        return doc_refuse(doc, "expected a list of at most %d integers", TN_MAX_RANK);
    if (!ints)
        return TN_ERR_MEMORY;
    ints->given = 1;
    ints->count = (uint32_t)count;
    for (size_t i = 0; i < count && status == TN_OK; i++)
        status = parse_int(doc, json_array_get(list, i), &ints->value[i]);
    attr->ints = ints;
    return status;
}

static tn_status graph_attrs_read_list(struct document *doc, const json_t *list,
                                       tn_attr *attr)
{
    size_t count = json_array_size(list);
    tn_int_list *ints = doc_alloc(doc, 1, sizeof(*ints));
    tn_float_list *floats = doc_alloc(doc, 1, sizeof(*floats));
    int64_t *i64 = doc_alloc(doc, count, sizeof(*i64));
    double *f64 = doc_alloc(doc, count, sizeof(*f64));
    tn_status status = TN_OK;
    if (!json_is_array(list))
        return doc_refuse(doc, "expected a list");
    if (!ints || !floats || !i64 || !f64)
        return TN_ERR_MEMORY;
    for (size_t i = 0; i < count && status == TN_OK; i++) {
        const json_t *value = json_array_get(list, i);
        status = attr->kind == TN_ATTR_INT_LIST ? parse_int(doc, value, &i64[i])
                                                : parse_double(doc, value, &f64[i]);
    }
    *ints = (tn_int_list){count, i64};
    *floats = (tn_float_list){count, f64};
    attr->int_list = attr->kind == TN_ATTR_INT_LIST ? ints : NULL;
    attr->float_list = attr->kind == TN_ATTR_INT_LIST ? NULL : floats;
    return status;
}

static tn_status graph_attrs_read_text(struct document *doc, const json_t *value,
                                       tn_attr *attr)
{
    attr->text = json_string_value(value);
    if (attr->kind != TN_ATTR_STRING)
        attr->kind = TN_ATTR_TEXT; // the name of a dtype or choice, or bits in hexadecimal
    return attr->text ? TN_OK : doc_refuse(doc, "expected a text");
}

static tn_status graph_attrs_read_value(struct document *doc, const json_t *value,
                                        uint32_t graph, struct doc_attr *out)
{
    tn_attr *attr = &out->attr;
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    switch (attr->kind) {
    case TN_ATTR_BOOL:
        attr->i = json_is_true(value);
        return json_is_boolean(value) ? TN_OK : doc_refuse(doc, "expected true or false");
    case TN_ATTR_I64:
        return parse_int(doc, value, &attr->i);
    case TN_ATTR_F64:
        return parse_double(doc, value, &attr->f);
    case TN_ATTR_INTS:
        return graph_attrs_read_ints(doc, value, attr);
    case TN_ATTR_INT_LIST:
    case TN_ATTR_FLOAT_LIST:
        return graph_attrs_read_list(doc, value, attr);
    case TN_ATTR_GRAPH:
        if (number < 0 || number >= graph)
            return doc_refuse(doc, "expected the number of a graph below %u", graph);
        out->number = (uint32_t)number;
        return TN_OK;
    default:
        return graph_attrs_read_text(doc, value, attr);
    }
}

// {"f64": 2.0}, or {"runtime": 7} for array 7.
static tn_status graph_read_attr(struct document *doc, const json_t *value, uint32_t graph,
                                 uint32_t num_arrays, struct doc_attr *out)
{
    void *member = json_object_iter((json_t *)(uintptr_t)value);
    const char *kind = member ? json_object_iter_key(member) : "";
    const json_t *inner = member ? json_object_iter_value(member) : NULL;
    if (json_object_size(value) != 1)
        return doc_refuse(doc, "expected a kind and a value");
    if (strcmp(kind, "runtime") == 0) {
        json_int_t number = json_is_integer(inner) ? json_integer_value(inner) : -1;
        if (number < 0 || number >= num_arrays)
            return doc_refuse(doc, "expected the number of an array below %u", num_arrays);
        out->is_runtime = true;
        out->number = (uint32_t)number;
        return TN_OK;
    }
    for (uint32_t i = 1; i < COUNT(attr_kinds); i++)
        if (strcmp(attr_kinds[i], kind) == 0)
            out->kind = out->attr.kind = i;
    return out->kind ? graph_attrs_read_value(doc, inner, graph, out)
                     : doc_refuse(doc, "'%.64s' is no kind of attribute", kind);
}

tn_status parse_attrs(struct document *doc, const json_t *attrs, uint32_t graph,
                      uint32_t num_arrays, struct doc_node *node)
{
    const char *name;
    json_t *value;
    char position[sizeof(doc->where)];
    tn_status status = TN_OK;
    memcpy(position, doc->where, sizeof(position));
    if (!attrs)
        return TN_OK;
    if (!json_is_object(attrs))
        return doc_refuse(doc, "expected an object 'attrs'");
    node->attrs = doc_alloc(doc, json_object_size(attrs), sizeof(*node->attrs));
    if (!node->attrs)
        return TN_ERR_MEMORY;
    json_object_foreach((json_t *)(uintptr_t)attrs, name, value)
    {
        struct doc_attr *attr = &node->attrs[node->num_attrs++];
        attr->attr.name = name;
        snprintf(doc->where, sizeof(doc->where), "%.60sattribute '%.16s': ", position,
                 name);
        status = graph_read_attr(doc, value, graph, num_arrays, attr);
        if (status != TN_OK)
            return status;
    }
    memcpy(doc->where, position, sizeof(position));
    return TN_OK;
}
