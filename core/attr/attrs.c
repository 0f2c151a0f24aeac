// SPDX-License-Identifier: MIT
// Attribute structs: filling them from lists of values, and hashing them.
#include "internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "../base/config.h"

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
static uint64_t canonical(const tn_attr_field *field, uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return field->kind == TN_ATTR_F64 && isnan(value) ? UINT64_C(0x7ff8) << 48 : bits;
}

bool field_is_default(const tn_attr_field *field, const void *attrs)
{
    if (field->kind == TN_ATTR_INTS)
        return !field_ints(field, attrs)->given;
    return canonical(field, field_bits(field, attrs)) ==
           canonical(field, field_default(field));
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
        } else {
            h = hash_u64(h, canonical(field, field_bits(field, attrs)));
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

tn_status field_store_ints(const tn_attr_field *field, void *out, const tn_ints *ints)
{
    if (field->kind != TN_ATTR_INTS)
        return fail(TN_ERR_ARGUMENT, "attribute '%s': got a list, expected %s", field->name,
                    field_expects(field));
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

// Clears the whole struct, padding included, and writes the defaults.
static void write_defaults(const tn_attr_table *table, void *out)
{
    memset(out, 0, table->size);
    for (uint32_t i = 0; i < table->num_fields; i++)
        if (table->fields[i].kind != TN_ATTR_INTS)
            field_set(&table->fields[i], out, field_default(&table->fields[i]));
}

// Fails unless all required fields are in `given` (bit i: field i).
static tn_status check_given(const tn_attr_table *table, uint64_t given)
{
    for (uint32_t i = 0; i < table->num_fields; i++)
        if (table->fields[i].flags & TN_ATTR_REQUIRED && !(given >> i & 1))
            return fail(TN_ERR_ARGUMENT, "attribute '%s' is missing, expected %s",
                        table->fields[i].name, field_expects(&table->fields[i]));
    return TN_OK;
}

static tn_status store(const tn_attr_field *field, void *out, const tn_attr *item)
{
    switch (item->kind) {
    case TN_ATTR_F64:
        return field_store_double(field, out, item->f);
    case TN_ATTR_INTS:
        return field_store_ints(field, out, item->ints);
    case TN_ATTR_TEXT:
        if (!item->text)
            return fail(TN_ERR_ARGUMENT, "attribute '%s': the text is NULL", field->name);
        return field_parse(field, item->text, strlen(item->text), out);
    case TN_ATTR_BOOL:
    case TN_ATTR_I64:
    case TN_ATTR_DTYPE:
    case TN_ATTR_CHOICE:
    case TN_ATTR_BITS:
        return field_store_int(field, out, item->i);
    default:
        return fail(TN_ERR_ARGUMENT, "attribute '%s': %u is no kind of value", field->name,
                    item->kind);
    }
}

tn_status attr_list_check(tn_attr_list list)
{
    if (list.count > 0 && list.item_size < TN_END_OF(list.items, text))
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

tn_status attrs_fill(const tn_attr_table *table, tn_attr_list list, void *out)
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
        tn_status status = store(&table->fields[index], out, item);
        if (status != TN_OK)
            return status;
    }
    return check_given(table, given);
}
