// SPDX-License-Identifier: MIT
// Attributes as bytes, for files and caches: u32 count, and for each field that is not at
// its default, in the byte order of the names: u8 size of the name, the name, u8 kind, and
// the value (8 bytes; for INTS a u8 count and 8 bytes each). All little-endian.
#include "attrs.h"

struct bytes {
    unsigned char *data;
    uint32_t size, capacity;
    tn_status status;
};

static void put(struct bytes *out, uint64_t value, uint32_t size)
{
    if (out->status == TN_OK)
        out->status = mem_grow((void **)&out->data, &out->capacity, out->size + size, 1);
    for (uint32_t i = 0; out->status == TN_OK && i < size; i++)
        out->data[out->size++] = (unsigned char)(value >> 8 * i);
}

static void put_field(struct bytes *out, const tn_attr_field *field, const void *attrs)
{
    size_t size = strlen(field->name);
    put(out, size, 1);
    for (size_t i = 0; i < size; i++)
        put(out, (unsigned char)field->name[i], 1);
    put(out, field->kind, 1);
    if (field->kind != TN_ATTR_INTS) {
        put(out, field_bits(field, attrs), 8);
        return;
    }
    const tn_ints *ints = field_ints(field, attrs);
    put(out, ints->count, 1);
    for (uint32_t i = 0; i < ints->count; i++)
        put(out, (uint64_t)ints->value[i], 8);
}

// Fields to write, by name. Returns how many.
static uint32_t sort_fields(const tn_attr_table *table, const void *attrs,
                            const tn_attr_field *sorted[MAX_ATTR_FIELDS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->num_fields && count < MAX_ATTR_FIELDS; i++) {
        const tn_attr_field *field = &table->fields[i];
        if (field_is_default(field, attrs) && !(field->flags & TN_ATTR_REQUIRED))
            continue;
        uint32_t at = count++;
        for (; at > 0 && strcmp(sorted[at - 1]->name, field->name) > 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = field;
    }
    return count;
}

tn_status attrs_serialise(const tn_attr_table *table, const void *attrs, void **out_bytes,
                          size_t *out_size)
{
    const tn_attr_field *sorted[MAX_ATTR_FIELDS];
    struct bytes out = {0};
    uint32_t count = sort_fields(table, attrs, sorted);
    put(&out, count, 4);
    for (uint32_t i = 0; i < count; i++)
        put_field(&out, sorted[i], attrs);
    if (out.status != TN_OK) {
        mem_free(out.data);
        return out.status;
    }
    *out_bytes = out.data;
    *out_size = out.size;
    return TN_OK;
}

// --- reading ---------------------------------------------------------------------------

struct reader {
    const unsigned char *next;
    size_t left;
    bool failed; // there were too few bytes
};

static uint64_t get(struct reader *in, uint32_t size)
{
    uint64_t value = 0;
    in->failed |= in->left < size;
    if (in->failed)
        return 0;
    for (uint32_t i = 0; i < size; i++)
        value |= (uint64_t)in->next[i] << 8 * i;
    in->next += size;
    in->left -= size;
    return value;
}

static tn_status get_value(struct reader *in, const tn_attr_field *field, void *out)
{
    tn_ints ints = {.given = 1};
    uint64_t bits;
    double f;
    switch (field->kind) {
    case TN_ATTR_INTS:
        ints.count = (uint32_t)get(in, 1);
        for (uint32_t i = 0; i < ints.count && !in->failed; i++) {
            int64_t value = (int64_t)get(in, 8);
            if (i < TN_MAX_RANK)
                ints.value[i] = value;
        }
        return field_store_ints(field, out, &ints);
    case TN_ATTR_F64:
        bits = get(in, 8);
        memcpy(&f, &bits, sizeof(f));
        return field_store_double(field, out, f);
    default:
        return field_store_int(field, out, (int64_t)get(in, 8));
    }
}

static tn_status get_field(struct reader *in, const tn_attr_table *table, uint64_t *given,
                           void *out)
{
    char name[256] = "";
    uint32_t size = (uint32_t)get(in, 1);
    for (uint32_t i = 0; i < size; i++)
        name[i] = (char)get(in, 1);
    uint32_t kind = (uint32_t)get(in, 1);
    if (in->failed)
        return TN_OK; // reported by the caller
    int index = attrs_field_index(table, name);
    if (index < 0)
        return attrs_unknown(table, name);
    if (*given >> index & 1)
        return fail(TN_ERR_ARGUMENT, "attribute '%s' is given twice", name);
    *given |= UINT64_C(1) << index;
    const tn_attr_field *field = &table->fields[index];
    if (field->kind != kind)
        return fail(TN_ERR_ARGUMENT, "attribute '%s': got kind %u, expected %u", name, kind,
                    field->kind);
    return get_value(in, field, out);
}

tn_status attrs_deserialise(const tn_attr_table *table, const void *bytes, size_t size,
                            void *out)
{
    struct reader in = {bytes, size, false};
    uint64_t given = 0;
    attrs_defaults(table, out);
    uint64_t count = get(&in, 4);
    for (uint64_t i = 0; i < count && !in.failed; i++) {
        tn_status status = get_field(&in, table, &given, out);
        if (status != TN_OK)
            return status;
    }
    if (in.failed)
        return fail(TN_ERR_ARGUMENT, "attributes end early: got %zu bytes", size);
    if (in.left)
        return fail(TN_ERR_ARGUMENT, "attributes: got %zu bytes, expected %zu", size,
                    size - in.left);
    return attrs_check_given(table, given);
}
