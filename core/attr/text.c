// SPDX-License-Identifier: MIT
// Attributes as text, "alpha=4, axes=[0, 1]": prints structs, and parses single values.
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>
#include "../base/number.h"

// --- printing --------------------------------------------------------------------------

struct text_buffer {
    char *bytes;
    uint32_t size, capacity;
    tn_status status;
};

static void put(struct text_buffer *text, const char *format, ...) PRINTF_LIKE(2, 3);
static void put(struct text_buffer *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    uint32_t size = n < 0 ? 0 : (uint32_t)n;
    if (text->status == TN_OK)
        text->status =
            mem_grow((void **)&text->bytes, &text->capacity, text->size + size + 1, 1);
    if (text->status != TN_OK)
        return;
    va_start(list, format);
    vsnprintf(text->bytes + text->size, size + 1, format, list);
    va_end(list);
    text->size += size;
}

// Prints the fewest digits, from 6 to 17, that parse back to the same number.
static void put_double(struct text_buffer *text, double value)
{
    char buffer[40];
    if (isnan(value) || isinf(value)) {
        put(text, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(buffer, sizeof(buffer), "%.*g", digits, value);
        if (strtod(buffer, NULL) == value)
            break;
    }
    char *comma = strchr(buffer, ','); // the decimal separator of the process's locale
    if (comma)
        *comma = '.';
    put(text, "%s", buffer);
}

static void put_ints(struct text_buffer *text, const tn_ints *ints)
{
    if (!ints->given) {
        put(text, "none");
        return;
    }
    put(text, "[");
    for (uint32_t i = 0; i < ints->count; i++)
        put(text, "%s%" PRId64, i ? ", " : "", ints->value[i]);
    put(text, "]");
}

static void put_value(struct text_buffer *text, const tn_attr_field *field,
                      const void *attrs)
{
    uint64_t bits = field->kind == TN_ATTR_INTS ? 0 : field_bits(field, attrs);
    double value;
    switch (field->kind) {
    case TN_ATTR_BOOL:
        put(text, "%s", bits ? "true" : "false");
        return;
    case TN_ATTR_F64:
        memcpy(&value, &bits, sizeof(value));
        put_double(text, value);
        return;
    case TN_ATTR_DTYPE:
        put(text, "%s", dtype_name((tn_dtype)bits));
        return;
    case TN_ATTR_CHOICE:
        put(text, "%s", field->choices[bits]);
        return;
    case TN_ATTR_INTS:
        put_ints(text, field_ints(field, attrs));
        return;
    case TN_ATTR_BITS:
        put(text, "0x%" PRIx64, bits);
        return;
    default:
        put(text, "%" PRId64, (int64_t)bits);
    }
}

char *attrs_print(const tn_attr_table *table, const void *attrs, bool all)
{
    struct text_buffer text = {0};
    put(&text, "%s", "");
    for (uint32_t i = 0; i < table->num_fields; i++) {
        const tn_attr_field *field = &table->fields[i];
        bool is_required = field->flags & TN_ATTR_REQUIRED;
        if (!all && !is_required && field_is_default(field, attrs))
            continue;
        put(&text, "%s%s=", text.size ? ", " : "", field->name);
        put_value(&text, field, attrs);
    }
    if (text.status == TN_OK)
        return text.bytes;
    mem_free(text.bytes);
    return NULL;
}

char *tn_attrs_print(const tn_attr_table *table, const void *attrs, int32_t all)
{
    if (!table || (!attrs && table->num_fields)) {
        fail(TN_ERR_ARGUMENT, "tn_attrs_print: a table and a struct are needed, got NULL");
        return NULL;
    }
    return attrs_print(table, attrs, all != 0);
}

// --- parsing ---------------------------------------------------------------------------

static tn_status mismatch(const tn_attr_field *field, const char *text)
{
    return fail(TN_ERR_ARGUMENT, "attribute '%s': got '%.60s', expected %s", field->name,
                text, field_expects(field));
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static bool read_int(const char *text, int64_t *out)
{
    char *end;
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    errno = 0;
    *out = strtoll(text, &end, is_hex ? 16 : 10);
    return end != text && !*end && errno == 0 && !is_space(text[0]);
}

static bool read_bits(const char *text, uint64_t *out)
{
    char *end;
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    errno = 0;
    *out = strtoull(text, &end, is_hex ? 16 : 10);
    return end != text && !*end && errno == 0 && text[0] != '-' && !is_space(text[0]);
}

static bool read_double(const char *text, double *out)
{
    char *end;
    *out = text_to_double(text, &end);
    return end != text && !*end && !is_space(text[0]);
}

// Parses "[0, 1]", "(2, 3)", "(2,)", "3", "[]" or "none". Overwrites `text`.
static bool read_ints(char *text, tn_ints *out)
{
    *out = (tn_ints){.given = 1};
    size_t size = strlen(text);
    if (strcmp(text, "none") == 0) {
        *out = (tn_ints){0};
        return true;
    }
    if (size && (text[0] == '[' || text[0] == '(')) {
        if (size < 2 || text[size - 1] != (text[0] == '[' ? ']' : ')'))
            return false;
        text[size - 1] = 0;
        text++;
    }
    while (is_space(*text))
        text++;
    while (*text) {
        char *end;
        errno = 0;
        if (out->count == TN_MAX_RANK)
            return false;
        out->value[out->count++] = strtoll(text, &end, 10);
        if (end == text || errno)
            return false;
        while (is_space(*end))
            end++;
        if (*end && *end != ',')
            return false;
        for (text = end + (*end == ','); is_space(*text);)
            text++;
    }
    return true;
}

static tn_status parse_choice(const tn_attr_field *field, const char *text, void *out)
{
    for (int64_t i = 0; field->choices[i]; i++)
        if (strcmp(field->choices[i], text) == 0)
            return field_store_int(field, out, i);
    return mismatch(field, text);
}

static tn_status parse_dtype(const tn_attr_field *field, const char *text, void *out)
{
    tn_dtype dtype = dtype_parse(text);
    if (!dtype && strcmp(text, "none") != 0)
        return mismatch(field, text);
    return field_store_int(field, out, dtype);
}

static tn_status parse_bool(const tn_attr_field *field, const char *text, void *out)
{
    static const char *const names[] = {"false", "true", "0", "1", "False", "True"};
    for (int i = 0; i < 6; i++)
        if (strcmp(text, names[i]) == 0)
            return field_store_int(field, out, i & 1);
    return mismatch(field, text);
}

static tn_status parse_value(const tn_attr_field *field, char *text, void *out)
{
    int64_t i;
    uint64_t bits;
    double f;
    tn_ints ints;
    char original[64];
    snprintf(original, sizeof(original), "%.60s", text);
    switch (field->kind) {
    case TN_ATTR_BOOL:
        return parse_bool(field, text, out);
    case TN_ATTR_I64:
        return read_int(text, &i) ? field_store_int(field, out, i) : mismatch(field, text);
    case TN_ATTR_F64:
        return read_double(text, &f) ? field_store_double(field, out, f)
                                     : mismatch(field, text);
    case TN_ATTR_DTYPE:
        return parse_dtype(field, text, out);
    case TN_ATTR_CHOICE:
        return parse_choice(field, text, out);
    case TN_ATTR_INTS:
        return read_ints(text, &ints) ? field_store_ints(field, out, &ints)
                                      : mismatch(field, original);
    default:
        if (!read_bits(text, &bits))
            return mismatch(field, text);
        field_set(field, out, bits);
        return TN_OK;
    }
}

tn_status field_parse(const tn_attr_field *field, const char *text, size_t size, void *out)
{
    char buffer[512];
    while (size && is_space(*text))
        text++, size--;
    while (size && is_space(text[size - 1]))
        size--;
    if (size >= sizeof(buffer))
        return fail(TN_ERR_ARGUMENT, "attribute '%s': got %zu bytes, expected %s",
                    field->name, size, field_expects(field));
    memcpy(buffer, text, size);
    buffer[size] = 0;
    return parse_value(field, buffer, out);
}
