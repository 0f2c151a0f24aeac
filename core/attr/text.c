// SPDX-License-Identifier: MIT
// Attributes as text, "alpha=4, axes=[0, 1]": prints structs, and parses single values.
#include "fields.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>
#include "../base/number.h"
#include "../base/shape.h"

// --- printing --------------------------------------------------------------------------

struct text_buffer {
    char *bytes;
    uint32_t size, capacity;
    tn_status status;
};

static void attr_text_put(struct text_buffer *text, const char *format, ...)
    PRINTF_LIKE(2, 3);
static void attr_text_put(struct text_buffer *text, const char *format, ...)
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
static void attr_text_put_double(struct text_buffer *text, double value)
{
    char buffer[40];
    if (isnan(value) || isinf(value)) {
        attr_text_put(text, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
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
    attr_text_put(text, "%s", buffer);
}

static void put_ints(struct text_buffer *text, const tn_ints *ints)
{
    if (!ints->given) {
        attr_text_put(text, "none");
        return;
    }
    attr_text_put(text, "[");
    for (uint32_t i = 0; i < ints->count; i++)
        attr_text_put(text, "%s%" PRId64, i ? ", " : "", ints->value[i]);
    attr_text_put(text, "]");
}

// Appends a text in quotes. Escapes bytes below the space, so that the text stays one line.
static void put_quoted(struct text_buffer *text, const char *value)
{
    attr_text_put(text, "\"");
    while (*value) {
        size_t plain = strcspn(value, "\"\\\1\2\3\4\5\6\7\b\t\n\v\f\r\16\17\20\21\22"
                                      "\23\24\25\26\27\30\31\32\33\34\35\36\37\177");
        attr_text_put(text, "%.*s", (int)plain, value);
        value += plain;
        if (!*value)
            break;
        const char *escape = strchr("\"\"\\\\\nn\tt\rr", *value);
        if (escape)
            attr_text_put(text, "\\%c", escape[1]);
        else
            attr_text_put(text, "\\x%02x", (unsigned char)*value);
        value++;
    }
    attr_text_put(text, "\"");
}

static void put_types(struct text_buffer *text, const tn_type *types, uint32_t count)
{
    char type[TYPE_TEXT];
    for (uint32_t i = 0; i < count; i++)
        attr_text_put(text, "%s%s", i ? ", " : "", type_print(&types[i], type));
}

// "(f32[2], i64 -> f32[2]: 3 nodes, #0123456789abcdef)". A graph cannot be read back.
static void put_graph(struct text_buffer *text, const tn_graph *graph)
{
    attr_text_put(text, "(");
    put_types(text, graph->inputs, graph->num_inputs);
    attr_text_put(text, "%s-> ", graph->num_inputs ? " " : "");
    put_types(text, graph->outputs, graph->num_outputs);
    attr_text_put(text, ": %u node%s, #%016" PRIx64 ")", graph->num_nodes,
                  graph->num_nodes == 1 ? "" : "s", graph->hash[0]);
}

// A text, a list of any length or a graph.
static void put_interned(struct text_buffer *text, uint32_t kind, const void *value)
{
    const tn_int_list *ints = value;
    const tn_float_list *floats = value;
    if (!value) {
        attr_text_put(text, "none");
        return;
    }
    if (kind == TN_ATTR_STRING) {
        put_quoted(text, value);
        return;
    }
    if (kind == TN_ATTR_GRAPH) {
        put_graph(text, value);
        return;
    }
    attr_text_put(text, "[");
    for (uint64_t i = 0; i < ints->count; i++) { // both counts have one offset
        attr_text_put(text, "%s", i ? ", " : "");
        if (kind == TN_ATTR_INT_LIST)
            attr_text_put(text, "%" PRId64, ints->value[i]);
        else
            attr_text_put_double(text, floats->value[i]);
    }
    attr_text_put(text, "]");
}

static void put_value(struct text_buffer *text, const tn_attr_field *field,
                      const void *attrs)
{
    uint64_t bits = field->kind == TN_ATTR_INTS ? 0 : field_bits(field, attrs);
    double value;
    switch (field->kind) {
    case TN_ATTR_BOOL:
        attr_text_put(text, "%s", bits ? "true" : "false");
        return;
    case TN_ATTR_F64:
        memcpy(&value, &bits, sizeof(value));
        attr_text_put_double(text, value);
        return;
    case TN_ATTR_DTYPE:
        attr_text_put(text, "%s", dtype_name((tn_dtype)bits));
        return;
    case TN_ATTR_CHOICE:
        attr_text_put(text, "%s", field->choices[bits]);
        return;
    case TN_ATTR_INTS:
        put_ints(text, field_ints(field, attrs));
        return;
    case TN_ATTR_STRING:
    case TN_ATTR_INT_LIST:
    case TN_ATTR_FLOAT_LIST:
    case TN_ATTR_GRAPH:
        put_interned(text, field->kind, field_pointer(field, attrs));
        return;
    case TN_ATTR_BITS:
        attr_text_put(text, "0x%" PRIx64, bits);
        return;
    default:
        attr_text_put(text, "%" PRId64, (int64_t)bits);
    }
}

char *attrs_print(const tn_attr_table *table, const void *attrs, bool all)
{
    struct text_buffer text = {0};
    attr_text_put(&text, "%s", "");
    for (uint32_t i = 0; i < table->num_fields; i++) {
        const tn_attr_field *field = &table->fields[i];
        bool is_required = field->flags & TN_ATTR_REQUIRED;
        if (!all && !is_required && field_is_default(field, attrs))
            continue;
        attr_text_put(&text, "%s%s=", text.size ? ", " : "", field->name);
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

static tn_status attr_text_mismatch(const tn_attr_field *field, const char *text)
{
    return fail(TN_ERR_ARGUMENT, "attribute '%s': got '%.60s', expected %s", field->name,
                text, field_expects(field));
}

static bool attr_text_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static bool read_int(const char *text, int64_t *out)
{
    char *end;
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    errno = 0;
    *out = strtoll(text, &end, is_hex ? 16 : 10);
    return end != text && !*end && errno == 0 && !attr_text_is_space(text[0]);
}

static bool read_bits(const char *text, uint64_t *out)
{
    char *end;
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    errno = 0;
    *out = strtoull(text, &end, is_hex ? 16 : 10);
    return end != text && !*end && errno == 0 && text[0] != '-' &&
           !attr_text_is_space(text[0]);
}

static bool read_double(const char *text, double *out)
{
    char *end;
    *out = text_to_double(text, &end);
    return end != text && !*end && !attr_text_is_space(text[0]);
}

// A list while it is parsed: `ints` or `floats` has room for `max` values.
struct parsed_list {
    struct number_list list;
    int64_t *ints;
    double *floats;
    uint32_t max;
    bool is_absent; // "none"
};

static tn_status attr_text_add_number(struct parsed_list *list, bool as_float,
                                      const char *text, char **out_end)
{
    uint32_t need = (uint32_t)list->list.count + 1;
    tn_status status =
        as_float ? mem_grow((void **)&list->floats, &list->max, need, sizeof(double))
                 : mem_grow((void **)&list->ints, &list->max, need, sizeof(int64_t));
    if (status != TN_OK)
        return status;
    errno = 0;
    if (as_float)
        list->floats[need - 1] = text_to_double(text, out_end);
    else
        list->ints[need - 1] = strtoll(text, out_end, 10);
    if (*out_end != text && (as_float || !errno))
        list->list.count = need;
    return TN_OK;
}

// Parses "[0, 1]", "(2, 3)", "(2,)", "3", "[]" or "none". Overwrites `text`. *out_valid:
// whether it is a list.
static tn_status attr_text_read_list(char *text, bool as_float, struct parsed_list *out,
                                     bool *out_valid)
{
    size_t size = strlen(text);
    *out_valid = out->is_absent = strcmp(text, "none") == 0;
    if (*out_valid)
        return TN_OK;
    if (size && (text[0] == '[' || text[0] == '(')) {
        if (size < 2 || text[size - 1] != (text[0] == '[' ? ']' : ')'))
            return TN_OK;
        text[size - 1] = 0;
        text++;
    }
    while (attr_text_is_space(*text))
        text++;
    while (*text) {
        char *end;
        uint64_t before = out->list.count;
        tn_status status =
            before > TN_ATTR_MOST ? TN_OK : attr_text_add_number(out, as_float, text, &end);
        if (status != TN_OK)
            return status;
        if (before > TN_ATTR_MOST || out->list.count == before)
            break;
        while (attr_text_is_space(*end))
            end++;
        if (*end && *end != ',')
            return TN_OK;
        for (text = end + (*end == ','); attr_text_is_space(*text);)
            text++;
    }
    *out_valid = !*text || out->list.count > TN_ATTR_MOST; // storing refuses that many
    out->list.ints = out->ints;
    out->list.floats = out->floats;
    return TN_OK;
}

static tn_status attr_text_parse_list(struct intern_refs *refs, const tn_attr_field *field,
                                      char *text, void *out)
{
    static const int64_t none[1];
    struct parsed_list list = {0};
    bool is_valid;
    char original[64];
    snprintf(original, sizeof(original), "%.60s", text);
    tn_status status =
        attr_text_read_list(text, field->kind == TN_ATTR_FLOAT_LIST, &list, &is_valid);
    if (status == TN_OK && list.list.count == 0)
        list.list.ints = none;
    if (status == TN_OK &&
        (!is_valid || (field->kind == TN_ATTR_INTS && list.list.count > TN_MAX_RANK)))
        status = attr_text_mismatch(field, original);
    else if (status == TN_OK && !list.is_absent)
        status = field_store_list(refs, field, out, &list.list);
    mem_free(list.ints);
    mem_free(list.floats);
    return status;
}

static tn_status parse_choice(const tn_attr_field *field, const char *text, void *out)
{
    for (int64_t i = 0; field->choices[i]; i++)
        if (strcmp(field->choices[i], text) == 0)
            return field_store_int(field, out, i);
    return attr_text_mismatch(field, text);
}

static tn_status attr_text_parse_dtype(const tn_attr_field *field, const char *text,
                                       void *out)
{
    tn_dtype dtype = dtype_parse(text);
    if (!dtype && strcmp(text, "none") != 0)
        return attr_text_mismatch(field, text);
    return field_store_int(field, out, dtype);
}

static tn_status parse_bool(const tn_attr_field *field, const char *text, void *out)
{
    static const char *const names[] = {"false", "true", "0", "1", "False", "True"};
    for (int i = 0; i < 6; i++)
        if (strcmp(text, names[i]) == 0)
            return field_store_int(field, out, i & 1);
    return attr_text_mismatch(field, text);
}

static tn_status attr_text_parse_value(struct intern_refs *refs, const tn_attr_field *field,
                                       char *text, void *out)
{
    int64_t i;
    uint64_t bits;
    double f;
    switch (field->kind) {
    case TN_ATTR_BOOL:
        return parse_bool(field, text, out);
    case TN_ATTR_I64:
        return read_int(text, &i) ? field_store_int(field, out, i)
                                  : attr_text_mismatch(field, text);
    case TN_ATTR_F64:
        return read_double(text, &f) ? field_store_double(field, out, f)
                                     : attr_text_mismatch(field, text);
    case TN_ATTR_DTYPE:
        return attr_text_parse_dtype(field, text, out);
    case TN_ATTR_CHOICE:
        return parse_choice(field, text, out);
    case TN_ATTR_INTS:
    case TN_ATTR_INT_LIST:
    case TN_ATTR_FLOAT_LIST:
        return attr_text_parse_list(refs, field, text, out);
    case TN_ATTR_GRAPH:
        return attr_text_mismatch(field, text);
    default:
        if (!read_bits(text, &bits))
            return attr_text_mismatch(field, text);
        field_set(field, out, bits);
        return TN_OK;
    }
}

tn_status field_parse(struct intern_refs *refs, const tn_attr_field *field,
                      const char *text, void *out)
{
    if (field->kind == TN_ATTR_STRING)
        return field_store_text(refs, field, out, text);
    char buffer[512], *copy = buffer;
    bool is_list = attr_is_interned(field->kind);
    while (attr_text_is_space(*text))
        text++;
    size_t size = strlen(text);
    while (size && attr_text_is_space(text[size - 1]))
        size--;
    if (size >= sizeof(buffer) && !is_list)
        return fail(TN_ERR_ARGUMENT, "attribute '%s': got %zu bytes, expected %s",
                    field->name, size, field_expects(field));
    if (size >= sizeof(buffer) && !(copy = mem_alloc(size + 1)))
        return TN_ERR_MEMORY;
    memcpy(copy, text, size);
    copy[size] = 0;
    tn_status status = attr_text_parse_value(refs, field, copy, out);
    if (copy != buffer)
        mem_free(copy);
    return status;
}
