// SPDX-License-Identifier: MIT
// Merges schemas that hold at once to one: those of "allOf", and the keys beside a
// reference or alternatives. Alternatives are multiplied out; keywords that cannot be
// merged are named.
#include <stdio.h>
#include <string.h>
#include "../base/fail.h"
#include "schema.h"

#define MOST_DEPTH 32
#define MOST_MERGED 20000

struct merger {
    json_t *root;
    char why[SCHEMA_WHY]; // the first keyword that cannot be merged; empty: none
    int depth, steps;
};

// Each function gives a new reference, or NULL with the reason in m->why.
static json_t *grammar_schema_merge(struct merger *m, json_t *a, json_t *b);

static json_t *merge_fail(struct merger *m, const char *why)
{
    if (!m->why[0])
        snprintf(m->why, sizeof(m->why), "%s", why);
    return NULL;
}

// --- keys ------------------------------------------------------------------------------

static const char *const choices[] = {"anyOf", "oneOf"};

// The keyword of a schema's alternatives ("anyOf", ...), or NULL.
static const char *schema_merge_choice_of(const json_t *schema)
{
    for (size_t i = 0; i < COUNT(choices); i++)
        if (json_object_get(schema, choices[i]))
            return choices[i];
    return NULL;
}

static json_t *schema_merge_without(json_t *schema, const char *key)
{
    json_t *copy = json_copy(schema);
    json_object_del(copy, key);
    return copy;
}

// --- values of one key -----------------------------------------------------------------

static json_t *schema_merge_both(json_t *x, json_t *y)
{
    if (json_is_false(x) || json_is_true(y) || json_equal(x, y))
        return json_incref(x);
    if (json_is_false(y) || json_is_true(x))
        return json_incref(y);
    return json_pack("{s:[O,O]}", "allOf", x, y);
}

static json_t *schema_merge_tighter(json_t *x, json_t *y, bool is_most)
{
    double left = json_number_value(x), right = json_number_value(y);
    return json_incref((is_most ? left >= right : left <= right) ? x : y);
}

static json_t *schema_merge_united(json_t *x, json_t *y)
{
    json_t *all = json_copy(x), *item;
    size_t i;
    json_array_foreach(y, i, item)
    {
        if (json_is_string(item) && !schema_lists(x, json_string_value(item)))
            json_array_append(all, item);
    }
    return all;
}

static bool schema_merge_has_type(const json_t *types, const char *name)
{
    return json_is_string(types) ? strcmp(json_string_value(types), name) == 0
                                 : schema_lists(types, name);
}

// The types that both lists have; an empty list if none is common.
static json_t *common_types(const json_t *x, const json_t *y)
{
    static const char *const names[] = {"object",  "array", "string", "number",
                                        "boolean", "null",  "integer"};
    json_t *common = json_array();
    for (size_t i = 0; i < COUNT(names); i++) {
        bool left = schema_merge_has_type(x, names[i]),
             right = schema_merge_has_type(y, names[i]);
        if (strcmp(names[i], "integer") == 0) {
            if (schema_merge_has_type(x, "number") && schema_merge_has_type(y, "number"))
                continue; // "number" in the list covers it
            left |= schema_merge_has_type(x, "number");
            right |= schema_merge_has_type(y, "number");
        }
        if (left && right)
            json_array_append_new(common, json_string(names[i]));
    }
    return common;
}

static json_t *common_multiple(struct merger *m, json_t *x, json_t *y)
{
    json_int_t a = json_integer_value(x), b = json_integer_value(y), u = a, v = b;
    if (a <= 0 || b <= 0 || a > 1000000 || b > 1000000)
        return merge_fail(m, "multipleOf");
    while (v) {
        json_int_t rest = u % v;
        u = v;
        v = rest;
    }
    return json_integer(a / u * b);
}

enum how { BOTH, MOST, LEAST, UNITED, TYPES, MULTIPLE, EITHER };

static json_t *merge_values(struct merger *m, const char *key, json_t *x, json_t *y)
{
    static const struct {
        const char *key;
        enum how how;
    } keys[] = {{"items", BOTH},     {"minimum", MOST},        {"exclusiveMinimum", MOST},
                {"minLength", MOST}, {"minItems", MOST},       {"minProperties", MOST},
                {"maximum", LEAST},  {"maxLength", LEAST},     {"exclusiveMaximum", LEAST},
                {"maxItems", LEAST}, {"maxProperties", LEAST}, {"required", UNITED},
                {"type", TYPES},     {"multipleOf", MULTIPLE}, {"uniqueItems", EITHER}};
    size_t i = 0;
    if (json_equal(x, y))
        return json_incref(x);
    while (i < COUNT(keys) && strcmp(keys[i].key, key) != 0)
        i++;
    if (i == COUNT(keys))
        return merge_fail(m, key);
    switch (keys[i].how) {
    case BOTH:
        return schema_merge_both(x, y);
    case MOST:
    case LEAST:
        return json_is_number(x) && json_is_number(y)
                   ? schema_merge_tighter(x, y, keys[i].how == MOST)
                   : merge_fail(m, key);
    case UNITED:
        return schema_merge_united(x, y);
    case TYPES:
        return common_types(x, y);
    case MULTIPLE:
        return common_multiple(m, x, y);
    default:
        return json_boolean(json_is_true(x) || json_is_true(y));
    }
}

// --- members and elements --------------------------------------------------------------

// The schema that applies to one member or element: its own, else that of all others; NULL:
// none.
static json_t *says_of(json_t *own, json_t *others)
{
    return own ? own : others;
}

static void put_both(json_t *out, const char *name, json_t *x, json_t *y)
{
    json_object_set_new(out, name,
                        x && y ? schema_merge_both(x, y) : json_incref(x ? x : y));
}

static void schema_merge_members(json_t *out, json_t *a, json_t *b)
{
    json_t *mine = json_object_get(a, "properties"),
           *others = json_object_get(b, "properties"),
           *more = json_object_get(a, "additionalProperties"),
           *other_more = json_object_get(b, "additionalProperties"), *all, *item;
    const char *name;
    if (mine || others) {
        all = json_object();
        json_object_foreach(mine, name, item)
            put_both(all, name, item, says_of(json_object_get(others, name), other_more));
        json_object_foreach(others, name, item)
        {
            if (!json_object_get(mine, name))
                put_both(all, name, more ? more : item, more ? item : NULL);
        }
        json_object_set_new(out, "properties", all);
    }
    if (more || other_more)
        put_both(out, "additionalProperties", more, other_more);
}

static void merge_elements(json_t *out, json_t *a, json_t *b)
{
    json_t *mine = json_object_get(a, "prefixItems"),
           *others = json_object_get(b, "prefixItems"), *more = json_object_get(a, "items"),
           *other_more = json_object_get(b, "items");
    size_t left = json_array_size(mine), right = json_array_size(others);
    if (!mine && !others)
        return;
    json_t *all = json_array();
    for (size_t i = 0; i < (left > right ? left : right); i++) {
        json_t *x = says_of(json_array_get(mine, i), more),
               *y = says_of(json_array_get(others, i), other_more);
        json_array_append_new(all,
                              x && y ? schema_merge_both(x, y) : json_incref(x ? x : y));
    }
    json_object_set_new(out, "prefixItems", all);
}

static bool schema_merge_is_of_members(const char *key)
{
    return strcmp(key, "properties") == 0 || strcmp(key, "additionalProperties") == 0 ||
           strcmp(key, "prefixItems") == 0;
}

// --- schemas ---------------------------------------------------------------------------

static json_t *merge_leaves(struct merger *m, json_t *a, json_t *b)
{
    json_t *out = json_copy(a), *value;
    const char *key;
    json_object_foreach(b, key, value)
    {
        json_t *own = json_object_get(a, key);
        if (schema_merge_is_of_members(key) || schema_is_note(key))
            continue;
        json_t *merged = own ? merge_values(m, key, own, value) : json_incref(value);
        if (!merged) {
            json_decref(out);
            return NULL;
        }
        json_object_set_new(out, key, merged);
    }
    schema_merge_members(out, a, b);
    merge_elements(out, a, b);
    const json_t *type = json_object_get(out, "type");
    if (json_is_array(type) && json_array_size(type) == 0) {
        json_decref(out);
        return json_false();
    }
    return out;
}

// The constants of one schema that are valid by both.
static json_t *merge_constants(struct merger *m, json_t *a, json_t *b)
{
    json_t *list = schema_constants(schema_has_constants(a) ? a : b), *kept = json_array(),
           *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        enum schema_verdict one = schema_accepts(m->root, a, item),
                            other = schema_accepts(m->root, b, item);
        if (one == SCHEMA_NO || other == SCHEMA_NO)
            continue;
        if (one == SCHEMA_UNKNOWN || other == SCHEMA_UNKNOWN)
            merge_fail(m, "enum or const beside what is not decided of a constant");
        json_array_append(kept, item);
    }
    json_decref(list);
    json_t *out = json_array_size(kept) ? json_pack("{s:O}", "enum", kept) : json_false();
    json_decref(kept);
    if (m->why[0])
        json_decref(out);
    return m->why[0] ? NULL : out;
}

// Merges each alternative of `a` with the keys beside it and with `b`, which comes first
// where `is_behind`.
static json_t *schema_merge_distribute(struct merger *m, json_t *a, const char *key,
                                       json_t *b, bool is_behind)
{
    json_t *rest = schema_merge_without(a, key), *all = json_array(), *item;
    size_t i;
    json_array_foreach(json_object_get(a, key), i, item)
    {
        json_t *own = grammar_schema_merge(m, rest, item);
        json_t *one =
            own ? grammar_schema_merge(m, is_behind ? b : own, is_behind ? own : b) : NULL;
        json_decref(own);
        if (one)
            json_array_append_new(all, one);
    }
    json_decref(rest);
    if (!json_array_size(json_object_get(a, key)))
        merge_fail(m, key);
    if (m->why[0]) {
        json_decref(all);
        return NULL;
    }
    return json_pack("{s:o}", key, all);
}

// `schema` without a reference and without "allOf".
static json_t *schema_merge_resolved(struct merger *m, json_t *schema)
{
    json_t *reference = json_object_get(schema, "$ref"),
           *list = json_object_get(schema, "allOf");
    if (!reference && !list)
        return json_incref(schema);
    const char *key = reference ? "$ref" : "allOf";
    const char *name = json_string_value(reference);
    json_t *rest = schema_merge_without(schema, key), *item,
           *all = reference ? NULL : json_true();
    size_t i;
    if (reference)
        all = json_incref(name ? schema_follow(m->root, name) : NULL);
    json_array_foreach(list, i, item)
    {
        json_t *next = all ? grammar_schema_merge(m, all, item) : NULL;
        json_decref(all);
        all = next;
    }
    if (!all)
        merge_fail(m, key);
    json_t *out = all ? grammar_schema_merge(m, all, rest) : NULL;
    json_decref(all);
    json_decref(rest);
    return out;
}

static json_t *merge_resolved(struct merger *m, json_t *a, json_t *b)
{
    if (json_is_false(a) || json_is_false(b))
        return json_false();
    if (json_is_true(a) || !schema_narrows(a))
        return json_incref(b);
    if (json_is_true(b) || !schema_narrows(b))
        return json_incref(a);
    if (schema_has_constants(a) || schema_has_constants(b))
        return merge_constants(m, a, b);
    if (schema_merge_choice_of(a))
        return schema_merge_distribute(m, a, schema_merge_choice_of(a), b, false);
    if (schema_merge_choice_of(b))
        return schema_merge_distribute(m, b, schema_merge_choice_of(b), a, true);
    return merge_leaves(m, a, b);
}

static bool is_schema(const json_t *schema)
{
    return json_is_object(schema) || json_is_boolean(schema);
}

static json_t *grammar_schema_merge(struct merger *m, json_t *a, json_t *b)
{
    if (m->why[0] || !is_schema(a) || !is_schema(b))
        return merge_fail(m, "what is no schema");
    if (m->depth >= MOST_DEPTH || ++m->steps > MOST_MERGED)
        return merge_fail(m, "too many schemas");
    m->depth++;
    json_t *left = schema_merge_resolved(m, a),
           *right = left ? schema_merge_resolved(m, b) : NULL;
    json_t *out = left && right ? merge_resolved(m, left, right) : NULL;
    json_decref(left);
    json_decref(right);
    m->depth--;
    return out;
}

json_t *schema_merge(json_t *root, json_t *schema, json_t *beside, char out_why[SCHEMA_WHY])
{
    struct merger m = {.root = root};
    json_t *out = grammar_schema_merge(&m, schema, beside);
    json_t *flat = NULL;
    const char *key = out ? schema_merge_choice_of(out) : NULL;
    json_t *rest = key && json_is_object(out) ? schema_merge_without(out, key) : NULL;
    if (rest && schema_narrows(rest) && !schema_has_constants(out)) {
        flat = schema_merge_distribute(&m, out, key, rest,
                                       false); // alternatives beside other keys
        json_decref(out);
        out = flat;
    }
    json_decref(rest);
    memcpy(out_why, m.why, sizeof(m.why));
    return out;
}
