// SPDX-License-Identifier: MIT
// Attribute structs: filling them from lists of values, and hashing them.
#include "fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "../base/config.h"
#include "../base/text.h"

const tn_attr_field *attrs_field(const tn_attr_table *table, uint32_t index)
{
    return &table->fields[index];
}

int attrs_field_index(const tn_attr_table *table, const char *name)
{
    for (uint32_t i = 0; i < table->num_fields; i++)
        if (strcmp(table->fields[i].name, name) == 0)
            return (int)i;
    return -1;
}

static uint64_t field_default(const tn_attr_field *field)
{
    uint64_t bits = (uint64_t)field->default_i;
    if (field->kind == TN_ATTR_F64)
        memcpy(&bits, &field->default_f, sizeof(bits));
    return bits;
}

// Maps every NaN to one bit pattern, so that NaN attributes compare and hash as equal.
static uint64_t attrs_canonical(const tn_attr_field *field, uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return field->kind == TN_ATTR_F64 && isnan(value) ? UINT64_C(0x7ff8) << 48 : bits;
}

bool field_is_default(const tn_attr_field *field, const void *attrs)
{
    if (field->kind == TN_ATTR_INTS)
        return !field_ints(field, attrs)->given;
    if (attr_is_interned(field->kind))
        return !field_pointer(field, attrs);
    return attrs_canonical(field, field_bits(field, attrs)) ==
           attrs_canonical(field, field_default(field));
}

struct hash attrs_hash(struct hash h, const tn_attr_table *table, const void *attrs)
{
    for (uint32_t i = 0; i < table->num_fields; i++) {
        const tn_attr_field *field = &table->fields[i];
        if (field_is_default(field, attrs))
            continue;
        h = hash_u64(h, i + 1);
        if (field->kind == TN_ATTR_INTS) {
            const tn_ints *ints = field_ints(field, attrs);
            h = hash_bytes(hash_u64(h, ints->count), ints->value,
                           ints->count * sizeof(ints->value[0]));
        } else if (attr_is_interned(field->kind)) {
            h = hash_join(h, interned_hash(field->kind, field_pointer(field, attrs)));
        } else {
            h = hash_u64(h, attrs_canonical(field, field_bits(field, attrs)));
        }
    }
    return hash_u64(h, 0);
}

// --- filling ---------------------------------------------------------------------------

const char *field_expects(const tn_attr_field *field)
{
    static _Thread_local char buffer[256];
    static const char *const texts[] = {
        [TN_ATTR_BOOL] = "true or false",
        [TN_ATTR_I64] = "an integer",
        [TN_ATTR_F64] = "a number",
        [TN_ATTR_DTYPE] = "a dtype such as f32",
        [TN_ATTR_INTS] = "at most 8 integers such as [0, 1]",
        [TN_ATTR_BITS] = "an unsigned integer",
        [TN_ATTR_STRING] = "a text",
        [TN_ATTR_INT_LIST] = "a list of integers such as [3, 5, 7]",
        [TN_ATTR_FLOAT_LIST] = "a list of numbers such as [0.5, 1]",
        [TN_ATTR_GRAPH] = "a graph",
    };
    if (field->kind != TN_ATTR_CHOICE)
        return texts[field->kind];
    size_t used = (size_t)snprintf(buffer, sizeof(buffer), "one of ");
    for (int i = 0; field->choices[i] && used < sizeof(buffer); i++)
        used += (size_t)snprintf(buffer + used, sizeof(buffer) - used, "%s'%s'",
                                 i ? ", " : "", field->choices[i]);
    return buffer;
}

static tn_status fail_unknown(const tn_attr_table *table, const char *name)
{
    const char *names[MAX_ATTR_FIELDS + 1] = {0};
    char all[200] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < table->num_fields && i < MAX_ATTR_FIELDS; i++) {
        names[i] = table->fields[i].name;
        if (used < sizeof(all))
            used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
                                     names[i]);
    }
    const char *near = config_nearest(name, names);
    if (near)
        return fail(TN_ERR_ARGUMENT, "unknown attribute '%s', did you mean '%s'?", name,
                    near);
    if (!table->num_fields)
        return fail(TN_ERR_ARGUMENT, "unknown attribute '%s': there are no attributes",
                    name);
    return fail(TN_ERR_ARGUMENT, "unknown attribute '%s', expected one of: %s", name, all);
}

static int32_t count_choices(const tn_attr_field *field)
{
    int32_t count = 0;
    while (field->choices[count])
        count++;
    return count;
}

tn_status field_store_int(const tn_attr_field *field, void *out, int64_t value)
{
    bool ok = true;
    switch (field->kind) {
    case TN_ATTR_STRING:
    case TN_ATTR_GRAPH:
        ok = false;
        break;
    case TN_ATTR_BOOL:
        ok = value == 0 || value == 1;
        break;
    case TN_ATTR_DTYPE:
        ok = value == 0 || (value > 0 && value < TN_NUM_DTYPES);
        break;
    case TN_ATTR_CHOICE:
        ok = value >= 0 && value < count_choices(field);
        break;
    case TN_ATTR_F64:
        if (value > INT64_C(1) << 53 || value < -(INT64_C(1) << 53))
            return fail(TN_ERR_ARGUMENT,
                        "attribute '%s': %" PRId64 " is not exact as an f64", field->name,
                        value);
        return field_store_double(field, out, (double)value);
    case TN_ATTR_INTS:
        return field_store_ints(field, out,
                                &(tn_ints){.count = 1, .given = 1, .value = {value}});
    }
    if (!ok)
        return fail(TN_ERR_ARGUMENT, "attribute '%s': got %" PRId64 ", expected %s",
                    field->name, value, field_expects(field));
    field_set(field, out, (uint64_t)value);
    return TN_OK;
}

tn_status field_store_double(const tn_attr_field *field, void *out, double value)
{
    if (field->kind == TN_ATTR_F64) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof(bits));
        field_set(field, out, bits);
        return TN_OK;
    }
    bool is_whole = value == floor(value) && fabs(value) <= 0x1p53;
    if (!is_whole || (field->kind != TN_ATTR_I64 && field->kind != TN_ATTR_BOOL))
        return fail(TN_ERR_ARGUMENT, "attribute '%s': got %g, expected %s", field->name,
                    value, field_expects(field));
    return field_store_int(field, out, (int64_t)value);
}

static tn_status not_a_list(const tn_attr_field *field, const char *got)
{
    return fail(TN_ERR_ARGUMENT, "attribute '%s': got %s, expected %s", field->name, got,
                field_expects(field));
}

tn_status field_store_ints(const tn_attr_field *field, void *out, const tn_ints *ints)
{
    if (field->kind != TN_ATTR_INTS)
        return not_a_list(field, "a list");
    if (!ints || !ints->given) {
        memset((char *)out + field->offset, 0, sizeof(*ints));
        return TN_OK;
    }
    if (ints->count > TN_MAX_RANK)
        return fail(TN_ERR_ARGUMENT, "attribute '%s': got %u integers, expected at most %d",
                    field->name, ints->count, TN_MAX_RANK);
    tn_ints copy = {.count = ints->count, .given = 1};
    memcpy(copy.value, ints->value, ints->count * sizeof(copy.value[0]));
    memcpy((char *)out + field->offset, &copy, sizeof(copy));
    return TN_OK;
}

// --- texts and lists of any length ------------------------------------------------------

// Value i of a list as an integer, where nothing is lost.
static tn_status int_at(const tn_attr_field *field, const struct number_list *list,
                        uint64_t i, int64_t *out)
{
    if (!list->floats) {
        *out = list->ints[i];
        return TN_OK;
    }
    double value = list->floats[i];
    if (value != floor(value) || fabs(value) > 0x1p53)
        return fail(TN_ERR_ARGUMENT, "attribute '%s': value %" PRIu64 " is %g, expected %s",
                    field->name, i, value, field_expects(field));
    *out = (int64_t)value;
    return TN_OK;
}

// Value i of a list as a double, where nothing is lost.
static tn_status float_at(const tn_attr_field *field, const struct number_list *list,
                          uint64_t i, double *out)
{
    if (list->floats) {
        *out = list->floats[i];
        return TN_OK;
    }
    *out = (double)list->ints[i];
    if (list->ints[i] > INT64_C(1) << 53 || list->ints[i] < -(INT64_C(1) << 53))
        return fail(TN_ERR_ARGUMENT,
                    "attribute '%s': value %" PRIu64 " is %" PRId64
                    ", which is not exact as an f64",
                    field->name, i, list->ints[i]);
    return TN_OK;
}

static tn_status store_axes(const tn_attr_field *field, void *out,
                            const struct number_list *list)
{
    tn_ints ints = {.given = 1, .count = (uint32_t)list->count};
    if (list->count > TN_MAX_RANK)
        return fail(TN_ERR_ARGUMENT,
                    "attribute '%s': got %" PRIu64 " integers, expected at most %d",
                    field->name, list->count, TN_MAX_RANK);
    for (uint64_t i = 0; i < list->count; i++) {
        tn_status status = int_at(field, list, i, &ints.value[i]);
        if (status != TN_OK)
            return status;
    }
    return field_store_ints(field, out, &ints);
}

static tn_status store_int_list(struct intern_refs *refs, const tn_attr_field *field,
                                void *out, const struct number_list *list)
{
    int64_t *values = mem_alloc(list->count * sizeof(*values) + 1);
    const tn_int_list *interned = NULL;
    tn_status status = values ? TN_OK : TN_ERR_MEMORY;
    for (uint64_t i = 0; i < list->count && status == TN_OK; i++)
        status = int_at(field, list, i, &values[i]);
    if (status == TN_OK)
        status = intern_ints(refs, values, list->count, &interned);
    if (status == TN_OK)
        memcpy((char *)out + field->offset, &interned, sizeof(interned));
    mem_free(values);
    return status;
}

static tn_status store_float_list(struct intern_refs *refs, const tn_attr_field *field,
                                  void *out, const struct number_list *list)
{
    double *values = mem_alloc(list->count * sizeof(*values) + 1);
    const tn_float_list *interned = NULL;
    tn_status status = values ? TN_OK : TN_ERR_MEMORY;
    for (uint64_t i = 0; i < list->count && status == TN_OK; i++)
        status = float_at(field, list, i, &values[i]);
    if (status == TN_OK)
        status = intern_floats(refs, values, list->count, &interned);
    if (status == TN_OK)
        memcpy((char *)out + field->offset, &interned, sizeof(interned));
    mem_free(values);
    return status;
}

tn_status field_store_list(struct intern_refs *refs, const tn_attr_field *field, void *out,
                           const struct number_list *list)
{
    if (list->count > TN_ATTR_MOST)
        return fail(TN_ERR_ARGUMENT,
                    "attribute '%s': got %" PRIu64 " values, expected at most %" PRId64,
                    field->name, list->count, TN_ATTR_MOST);
    if (list->count && !list->ints && !list->floats)
        return fail(TN_ERR_ARGUMENT,
                    "attribute '%s': %" PRIu64 " values, but they are NULL", field->name,
                    list->count);
    switch (field->kind) {
    case TN_ATTR_INTS:
        return store_axes(field, out, list);
    case TN_ATTR_INT_LIST:
        return store_int_list(refs, field, out, list);
    case TN_ATTR_FLOAT_LIST:
        return store_float_list(refs, field, out, list);
    default:
        return not_a_list(field, "a list");
    }
}

tn_status field_store_text(struct intern_refs *refs, const tn_attr_field *field, void *out,
                           const char *text)
{
    const char *interned;
    if (field->kind != TN_ATTR_STRING)
        return not_a_list(field, "a text");
    size_t size = strlen(text), valid = text_valid(text);
    if (size > TN_ATTR_MOST)
        return fail(TN_ERR_ARGUMENT,
                    "attribute '%s': got a text of %zu bytes, expected at most %" PRId64,
                    field->name, size, TN_ATTR_MOST);
    if (valid != size)
        return fail(TN_ERR_ARGUMENT,
                    "attribute '%s': byte %zu of the text is 0x%02x, expected UTF-8",
                    field->name, valid, (unsigned char)text[valid]);
    tn_status status = intern_text(refs, text, size, &interned);
    if (status == TN_OK)
        memcpy((char *)out + field->offset, &interned, sizeof(interned));
    return status;
}

tn_status field_store_graph(struct intern_refs *refs, const tn_attr_field *field, void *out,
                            const tn_graph *graph)
{
    if (field->kind != TN_ATTR_GRAPH)
        return not_a_list(field, "a graph");
    tn_status status = intern_hold_graph(refs, graph);
    if (status != TN_OK)
        fail_prefix("attribute '%s': ", field->name);
    else
        memcpy((char *)out + field->offset, &graph, sizeof(graph));
    return status;
}

// Clears the whole struct, padding included, and writes the defaults.
static void write_defaults(const tn_attr_table *table, void *out)
{
    memset(out, 0, table->size);
    for (uint32_t i = 0; i < table->num_fields; i++)
        if (table->fields[i].kind != TN_ATTR_INTS)
            field_set(&table->fields[i], out, field_default(&table->fields[i]));
}

// Fails unless all required fields are in `given` (bit i: field i); texts and lists also
// count as left out when they were given as NULL.
static tn_status attrs_check_given(const tn_attr_table *table, uint64_t given,
                                   const void *attrs)
{
    for (uint32_t i = 0; i < table->num_fields; i++) {
        const tn_attr_field *field = &table->fields[i];
        bool is_given = given >> i & 1;
        if (attr_is_interned(field->kind))
            is_given = field_pointer(field, attrs) != NULL;
        if (field->flags & TN_ATTR_REQUIRED && !is_given)
            return fail(TN_ERR_ARGUMENT, "attribute '%s' is missing, expected %s",
                        field->name, field_expects(field));
    }
    return TN_OK;
}

static bool is_number_list(const tn_attr_field *field)
{
    return field->kind == TN_ATTR_INT_LIST || field->kind == TN_ATTR_FLOAT_LIST;
}

// Stores a value that is a list. One that is NULL leaves the field at its default.
static tn_status attrs_store_list(struct intern_refs *refs, const tn_attr_field *field,
                                  void *out, const tn_attr *item)
{
    struct number_list list = {0};
    switch (item->kind) {
    case TN_ATTR_INTS:
        if (!is_number_list(field))
            return field_store_ints(field, out, item->ints);
        if (!item->ints || !item->ints->given)
            return TN_OK;
        if (item->ints->count > TN_MAX_RANK)
            return fail(TN_ERR_ARGUMENT,
                        "attribute '%s': a tn_ints of %u integers, expected at most %d",
                        field->name, item->ints->count, TN_MAX_RANK);
        list = (struct number_list){item->ints->count, item->ints->value, NULL};
        break;
    case TN_ATTR_INT_LIST:
        if (item->int_list)
            list = (struct number_list){item->int_list->count, item->int_list->value, NULL};
        break;
    default:
        if (item->float_list)
            list = (struct number_list){item->float_list->count, NULL,
                                        item->float_list->value};
    }
    bool is_absent = item->kind == TN_ATTR_INT_LIST     ? !item->int_list
                     : item->kind == TN_ATTR_FLOAT_LIST ? !item->float_list
                                                        : false;
    if (is_absent && (is_number_list(field) || field->kind == TN_ATTR_INTS))
        return TN_OK;
    return field_store_list(refs, field, out, &list);
}

static tn_status attrs_store(struct intern_refs *refs, const tn_attr_field *field,
                             void *out, const tn_attr *item)
{
    switch (item->kind) {
    case TN_ATTR_F64:
        return is_number_list(field)
                   ? field_store_list(refs, field, out,
                                      &(struct number_list){1, NULL, &item->f})
                   : field_store_double(field, out, item->f);
    case TN_ATTR_INTS:
    case TN_ATTR_INT_LIST:
    case TN_ATTR_FLOAT_LIST:
        return attrs_store_list(refs, field, out, item);
    case TN_ATTR_STRING:
        return item->text ? field_store_text(refs, field, out, item->text) : TN_OK;
    case TN_ATTR_GRAPH:
        return item->graph ? field_store_graph(refs, field, out, item->graph) : TN_OK;
    case TN_ATTR_TEXT:
        if (!item->text && field->kind == TN_ATTR_STRING)
            return TN_OK; // a rule passes on what was left out
        if (!item->text)
            return fail(TN_ERR_ARGUMENT, "attribute '%s': the text is NULL", field->name);
        return field_parse(refs, field, item->text, out);
    case TN_ATTR_BOOL:
    case TN_ATTR_I64:
    case TN_ATTR_DTYPE:
    case TN_ATTR_CHOICE:
    case TN_ATTR_BITS:
        return is_number_list(field)
                   ? field_store_list(refs, field, out,
                                      &(struct number_list){1, &item->i, NULL})
                   : field_store_int(field, out, item->i);
    default:
        return fail(TN_ERR_ARGUMENT, "attribute '%s': %u is no kind of value", field->name,
                    item->kind);
    }
}

tn_status attr_list_check(tn_attr_list list)
{
    if (list.count > 0 && list.item_size < TN_END_OF(list.items, graph))
        return fail(TN_ERR_ARGUMENT,
                    "attrs.item_size is %u, expected %zu, the size of a tn_attr",
                    list.item_size, sizeof(tn_attr));
    return TN_OK;
}

const tn_attr *attr_list_item(tn_attr_list list, uint64_t i, tn_attr *room)
{
    const void *at = (const char *)list.items + i * list.item_size;
    if (list.item_size >= sizeof(*room))
        return at;
    *room = (tn_attr){0};
    memcpy(room, at, list.item_size);
    return room;
}

// Takes the array that is the value of a runtime attribute.
static tn_status attrs_take_array(const tn_attr_field *field, const tn_attr *item,
                                  const tn_array **out_array)
{
    if (!out_array || !(field->flags & TN_ATTR_RUNTIME))
        return fail(TN_ERR_ARGUMENT,
                    "attribute '%s': got an array, expected %s: it is no runtime attribute",
                    field->name, field_expects(field));
    if (!item->array)
        return fail(TN_ERR_ARGUMENT, "attribute '%s': the array is NULL", field->name);
    *out_array = item->array;
    return TN_OK;
}

void attrs_reset(const tn_attr_table *table, uint32_t index, void *attrs)
{
    field_set(&table->fields[index], attrs, field_default(&table->fields[index]));
}

tn_status attrs_fill(struct intern_refs *refs, const tn_attr_table *table,
                     tn_attr_list list, void *out, const tn_array **arrays)
{
    uint64_t given = 0;
    tn_attr room;
    tn_status checked = attr_list_check(list);
    if (checked != TN_OK)
        return checked;
    write_defaults(table, out);
    for (uint64_t i = 0; i < list.count; i++) {
        const tn_attr *item = attr_list_item(list, i, &room);
        if (!item->name)
            return fail(TN_ERR_ARGUMENT, "an attribute's name is NULL");
        int index = attrs_field_index(table, item->name);
        if (index < 0)
            return fail_unknown(table, item->name);
        if (given >> index & 1)
            return fail(TN_ERR_ARGUMENT, "attribute '%s' is given twice", item->name);
        given |= UINT64_C(1) << index;
        const tn_attr_field *field = &table->fields[index];
        tn_status status =
            item->kind == TN_ATTR_ARRAY
                ? attrs_take_array(field, item, arrays ? &arrays[index] : NULL)
                : attrs_store(refs, field, out, item);
        if (status != TN_OK)
            return status;
    }
    return attrs_check_given(table, given, out);
}
