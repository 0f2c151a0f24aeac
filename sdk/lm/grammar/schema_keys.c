// SPDX-License-Identifier: MIT
// Keys of schemas, and keys of the objects that schemas describe.
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "schema.h"

const char *schema_guess_type(const json_t *schema)
{
    static const struct {
        const char *key, *type;
    } keys[] = {
        {"properties", "object"},
        {"required", "object"},
        {"additionalProperties", "object"},
        {"minProperties", "object"},
        {"maxProperties", "object"},
        {"items", "array"},
        {"prefixItems", "array"},
        {"minItems", "array"},
        {"maxItems", "array"},
        {"uniqueItems", "array"},
        {"pattern", "string"},
        {"minLength", "string"},
        {"maxLength", "string"},
        {"minimum", "number"},
        {"maximum", "number"},
        {"exclusiveMinimum", "number"},
        {"exclusiveMaximum", "number"},
        {"multipleOf", "number"},
    };
    for (size_t i = 0; i < COUNT(keys); i++)
        if (json_object_get(schema, keys[i].key))
            return keys[i].type;
    return NULL;
}

static int schema_keys_hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// The byte that a percent-escape of a reference ("%3C") stands for; -1: it is none.
static int schema_keys_percent(const char *at)
{
    int high = schema_keys_hex_digit(at[1]),
        low = high < 0 ? -1 : schema_keys_hex_digit(at[2]);
    return low < 0 ? -1 : 16 * high + low;
}

// Replaces the escapes of JSON pointers: "~1" by "/", "~0" by "~".
static void schema_keys_untilde(char *key)
{
    char *to = key;
    for (const char *from = key; *from; from++) {
        bool is_escape = *from == '~' && (from[1] == '0' || from[1] == '1');
        *to++ = is_escape ? (from[1] == '0' ? '~' : '/') : *from;
        from += is_escape;
    }
    *to = '\0';
}

json_t *schema_follow(json_t *root, const char *reference)
{
    json_t *at = root;
    if (reference[0] != '#')
        return NULL;
    for (const char *from = reference + 1; at && *from;) {
        char key[256];
        size_t size = 0;
        if (*from++ != '/')
            return NULL;
        for (; *from && *from != '/'; from++) {
            if (size + 1 == sizeof(key))
                return NULL;
            int byte = *from == '%' ? schema_keys_percent(from) : (unsigned char)*from;
            if (byte <= 0)
                return NULL;
            from += *from == '%' ? 2 : 0;
            key[size++] = (char)byte;
        }
        key[size] = '\0';
        schema_keys_untilde(key);
        at = json_is_array(at) ? json_array_get(at, strtoul(key, NULL, 10))
                               : json_object_get(at, key);
    }
    return at;
}

static bool schema_keys_is_one_of(const char *key, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], key) == 0)
            return true;
    return false;
}

bool schema_is_note(const char *key)
{
    static const char *const notes[] = {
        "$defs",        "definitions", "title",           "description",
        "default",      "examples",    "$schema",         "$id",
        "$comment",     "$anchor",     "format",          "deprecated",
        "readOnly",     "writeOnly",   "contentEncoding", "contentMediaType",
        "discriminator"};
    return schema_keys_is_one_of(key, notes, COUNT(notes));
}

bool schema_narrows(const json_t *schema)
{
    const char *key;
    json_t *value;
    if (!json_is_object(schema))
        return !json_is_true(schema);
    json_object_foreach((json_t *)schema, key, value)
    {
        if (!schema_is_note(key))
            return true;
    }
    return false;
}

bool schema_has_constants(const json_t *schema)
{
    return json_object_get(schema, "const") || json_object_get(schema, "enum");
}

json_t *schema_constants(const json_t *schema)
{
    json_t *constant = json_object_get(schema, "const");
    return constant ? json_pack("[O]", constant)
                    : json_incref(json_object_get(schema, "enum"));
}

bool schema_lists(const json_t *list, const char *name)
{
    size_t index;
    const json_t *item;
    json_array_foreach(list, index, item)
    {
        if (json_is_string(item) && strcmp(json_string_value(item), name) == 0)
            return true;
    }
    return false;
}

uint64_t schema_text_length(const char *text)
{
    uint64_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

const char *schema_unknown_key(json_t *schema)
{
    static const char *const known[] = {"type",          "properties",
                                        "required",      "additionalProperties",
                                        "items",         "prefixItems",
                                        "minItems",      "maxItems",
                                        "minLength",     "maxLength",
                                        "minProperties", "maxProperties",
                                        "pattern",       "minimum",
                                        "maximum",       "exclusiveMinimum",
                                        "enum",          "exclusiveMaximum",
                                        "multipleOf",    "const",
                                        "anyOf",         "oneOf",
                                        "allOf",         "$ref"};
    const char *key;
    json_t *value;
    json_object_foreach(schema, key, value)
    {
        bool says_nothing = strcmp(key, "uniqueItems") == 0 && json_is_false(value);
        if (!says_nothing && !schema_is_note(key) &&
            !schema_keys_is_one_of(key, known, COUNT(known)))
            return key;
    }
    return NULL;
}

// --- other keys ------------------------------------------------------------------------

// Sorted names that begin with the same bytes as the key so far.
struct schema_keys_names {
    const char **items;
    uint64_t count;
};

static int schema_keys_compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static uint32_t schema_keys_character_at(const char *at, size_t *out_size)
{
    const unsigned char *c = (const unsigned char *)at;
    int size = c[0] < 0x80 ? 1 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    uint32_t value = size == 1 ? c[0] : c[0] & (0x7fU >> size);
    for (int i = 1; i < size; i++)
        value = value << 6 | (c[i] & 0x3f);
    *out_size = (size_t)size;
    return value;
}

// Ends of keys that share `used` bytes with these names and are none of them.
static grammar_node other_key(struct grammar_builder *b, struct schema_keys_names names,
                              size_t used, grammar_node plain, int depth)
{
    struct grammar_range *taken = lm_alloc(names.count + 3, sizeof(*taken));
    struct grammar_range *left = lm_alloc(names.count + 6, sizeof(*left));
    uint64_t num_taken = 0;
    bool is_name = false;
    grammar_node whole = grammar_choice(b, NULL, 0);
    for (uint64_t i = 0; taken && left && i < names.count && b->status == TN_OK;) {
        if (!names.items[i][used]) {
            is_name = true;
            i++;
            continue;
        }
        size_t bytes, other;
        uint64_t end = i + 1;
        uint32_t c = schema_keys_character_at(names.items[i] + used, &bytes);
        while (end < names.count && names.items[end][used] &&
               schema_keys_character_at(names.items[end] + used, &other) == c)
            end++;
        if (depth < 100 && c >= 0x20 && c != '"' && c != '\\') {
            struct schema_keys_names rest = {names.items + i, end - i};
            grammar_node next = other_key(b, rest, used + bytes, plain, depth + 1);
            next = grammar_sequence(
                b, GRAMMAR_NODES(grammar_literal(b, names.items[i] + used, bytes), next));
            whole = grammar_choice(b, GRAMMAR_NODES(whole, next));
            whole = grammar_lower(b, whole, i);
        }
        taken[num_taken++] = (struct grammar_range){c, c};
        i = end;
    }
    if (taken && left) {
        taken[num_taken++] = (struct grammar_range){0, 0x1f};
        taken[num_taken++] = (struct grammar_range){'"', '"'};
        taken[num_taken++] = (struct grammar_range){'\\', '\\'};
        uint64_t num = grammar_ranges_tidy(taken, num_taken, true, left);
        grammar_node away =
            grammar_sequence(b, GRAMMAR_NODES(grammar_class(b, left, num), plain));
        whole = grammar_choice(b, GRAMMAR_NODES(whole, away));
        if (!is_name)
            whole = grammar_choice(b, GRAMMAR_NODES(whole, grammar_text(b, "\"")));
    } else {
        b->status = TN_ERR_MEMORY;
    }
    free(taken);
    free(left);
    return grammar_own_rule(b, whole);
}

grammar_node schema_other_key(struct grammar_builder *b, json_t *properties)
{
    struct grammar_range excluded[] = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}, plain[8];
    const char *name;
    json_t *value;
    struct schema_keys_names names = {
        lm_alloc(json_object_size(properties), sizeof(char *)), 0};
    if (!names.items) {
        b->status = TN_ERR_MEMORY;
        return -1;
    }
    json_object_foreach(properties, name, value) names.items[names.count++] = name;
    if (names.count > 1)
        qsort(names.items, names.count, sizeof(*names.items), schema_keys_compare_names);
    uint64_t num = grammar_ranges_tidy(excluded, 3, true, plain);
    int32_t rest = grammar_rule_add(b, NULL, 0);
    grammar_node body = grammar_sequence(
        b, GRAMMAR_NODES(grammar_repeat(b, grammar_class(b, plain, num), 0, GRAMMAR_MANY),
                         grammar_text(b, "\"")));
    grammar_node key = -1;
    if (b->status == TN_OK) {
        b->rules[rest].body = body;
        key = grammar_sequence(
            b, GRAMMAR_NODES(grammar_text(b, "\""),
                             other_key(b, names, 0, grammar_call(b, rest), 0)));
    }
    free(names.items);
    return key;
}
