// SPDX-License-Identifier: MIT
// Whether a constant is valid by a schema, as far as that is decided here.
#include <math.h>
#include <string.h>
#include "../base/fail.h"
#include "schema.h"

#define MOST_DEPTH 64
#define MOST_STEPS 100000

struct accepter {
    json_t *root;
    int depth, steps;
};

static enum schema_verdict grammar_schema_accepts(struct accepter *a, json_t *schema,
                                                  json_t *value);

static enum schema_verdict least_of(enum schema_verdict x, enum schema_verdict y)
{
    return x < y ? x : y;
}

static enum schema_verdict schema_accepts_verdict(bool is_valid)
{
    return is_valid ? SCHEMA_YES : SCHEMA_NO;
}

// Whether values are equal; numbers by their values, so 1 and 1.0 are.
static bool are_equal(const json_t *x, const json_t *y)
{
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_number(x) && json_is_number(y) &&
        !(json_is_integer(x) && json_is_integer(y)))
        return json_number_value(x) == json_number_value(y);
    if (json_typeof(x) != json_typeof(y) || json_array_size(x) != json_array_size(y) ||
        json_object_size(x) != json_object_size(y))
        return false;
    json_array_foreach(x, i, item)
    {
        if (!are_equal(item, json_array_get(y, i)))
            return false;
    }
    json_object_foreach((json_t *)x, key, item)
    {
        const json_t *other = json_object_get(y, key);
        if (!other || !are_equal(item, other))
            return false;
    }
    return json_is_array(x) || json_is_object(x) || json_equal(x, y);
}

static bool is_of_type(const json_t *value, const char *name)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "object",  [JSON_ARRAY] = "array", [JSON_STRING] = "string",
        [JSON_INTEGER] = "number", [JSON_REAL] = "number", [JSON_TRUE] = "boolean",
        [JSON_FALSE] = "boolean",  [JSON_NULL] = "null"};
    if (name && strcmp(name, "integer") == 0)
        return json_is_integer(value) ||
               (json_is_real(value) &&
                json_real_value(value) == floor(json_real_value(value)));
    return name && strcmp(name, names[json_typeof(value)]) == 0;
}

static enum schema_verdict accepts_type(const json_t *types, const json_t *value)
{
    const json_t *one;
    size_t i;
    if (!json_is_array(types))
        return schema_accepts_verdict(is_of_type(value, json_string_value(types)));
    json_array_foreach(types, i, one)
    {
        if (is_of_type(value, json_string_value(one)))
            return SCHEMA_YES;
    }
    return SCHEMA_NO;
}

// --- alternatives ----------------------------------------------------------------------

static enum schema_verdict accepts_some(struct accepter *a, json_t *list, json_t *value,
                                        bool is_one)
{
    size_t num[3] = {0}, i;
    json_t *item;
    json_array_foreach(list, i, item) num[grammar_schema_accepts(a, item, value)]++;
    if (is_one && num[SCHEMA_YES] > 1)
        return SCHEMA_NO;
    if (is_one && num[SCHEMA_UNKNOWN])
        return SCHEMA_UNKNOWN;
    return num[SCHEMA_YES] ? SCHEMA_YES : num[SCHEMA_UNKNOWN] ? SCHEMA_UNKNOWN : SCHEMA_NO;
}

static enum schema_verdict accepts_all(struct accepter *a, json_t *list, json_t *value)
{
    enum schema_verdict all = SCHEMA_YES;
    json_t *item;
    size_t i;
    json_array_foreach(list, i, item) all =
        least_of(all, grammar_schema_accepts(a, item, value));
    return all;
}

static bool is_among(const json_t *list, const json_t *value)
{
    const json_t *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        if (are_equal(item, value))
            return true;
    }
    return false;
}

// --- bounds ----------------------------------------------------------------------------

// -1, 0 or 1: whether number x is below, equal to or above number y.
static int schema_accepts_compare(const json_t *x, const json_t *y)
{
    if (json_is_integer(x) && json_is_integer(y))
        return (json_integer_value(x) > json_integer_value(y)) -
               (json_integer_value(x) < json_integer_value(y));
    return (json_number_value(x) > json_number_value(y)) -
           (json_number_value(x) < json_number_value(y));
}

static enum schema_verdict accepts_multiple(const json_t *of, const json_t *value)
{
    if (!json_is_number(value))
        return SCHEMA_YES;
    double step = json_number_value(of), given = json_number_value(value);
    if (step != floor(step) || step <= 0 || fabs(given) > 9e15)
        return SCHEMA_UNKNOWN;
    return schema_accepts_verdict(fmod(given, step) == 0);
}

static enum schema_verdict accepts_bound(const char *key, const json_t *bound,
                                         const json_t *value)
{
    static const struct {
        const char *key;
        bool is_least, is_open;
    } bounds[] = {{"minimum", true, false},
                  {"maximum", false, false},
                  {"exclusiveMinimum", true, true},
                  {"exclusiveMaximum", false, true}};
    for (size_t i = 0; i < COUNT(bounds); i++) {
        if (strcmp(bounds[i].key, key) != 0)
            continue;
        if (!json_is_number(bound))
            return SCHEMA_UNKNOWN;
        int way = json_is_number(value) ? schema_accepts_compare(value, bound)
                  : bounds[i].is_least  ? 1
                                        : -1;
        way = bounds[i].is_least ? way : -way;
        return schema_accepts_verdict(way > 0 || (way == 0 && !bounds[i].is_open));
    }
    return SCHEMA_UNKNOWN;
}

static enum schema_verdict accepts_size(const char *key, const json_t *bound,
                                        const json_t *value)
{
    static const struct {
        const char *key;
        json_type type;
        bool is_least;
    } sizes[] = {
        {"minLength", JSON_STRING, true},     {"maxLength", JSON_STRING, false},
        {"minItems", JSON_ARRAY, true},       {"maxItems", JSON_ARRAY, false},
        {"minProperties", JSON_OBJECT, true}, {"maxProperties", JSON_OBJECT, false}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        if (strcmp(sizes[i].key, key) != 0)
            continue;
        if (json_typeof(value) != sizes[i].type)
            return SCHEMA_YES;
        double size = json_is_string(value)
                          ? (double)schema_text_length(json_string_value(value))
                          : (double)(json_array_size(value) + json_object_size(value));
        double most = json_number_value(bound);
        return json_is_number(bound)
                   ? schema_accepts_verdict(sizes[i].is_least ? size >= most : size <= most)
                   : SCHEMA_UNKNOWN;
    }
    return accepts_bound(key, bound, value);
}

// --- members and elements --------------------------------------------------------------

static enum schema_verdict accepts_members(struct accepter *a, json_t *schema,
                                           json_t *value)
{
    json_t *properties = json_object_get(schema, "properties"),
           *more = json_object_get(schema, "additionalProperties"), *item;
    const json_t *required = json_object_get(schema, "required");
    enum schema_verdict all = SCHEMA_YES;
    const char *key;
    size_t i;
    json_object_foreach(value, key, item)
    {
        json_t *own = json_object_get(properties, key);
        if (own || more)
            all = least_of(all, grammar_schema_accepts(a, own ? own : more, item));
    }
    json_array_foreach(required, i, item)
    {
        if (json_is_object(value) && json_is_string(item) &&
            !json_object_get(value, json_string_value(item)))
            return SCHEMA_NO;
    }
    return all;
}

static enum schema_verdict accepts_elements(struct accepter *a, json_t *schema,
                                            json_t *value)
{
    json_t *prefix = json_object_get(schema, "prefixItems"),
           *more = json_object_get(schema, "items"), *item;
    enum schema_verdict all = SCHEMA_YES;
    bool is_unique = json_is_true(json_object_get(schema, "uniqueItems"));
    size_t i;
    json_array_foreach(value, i, item)
    {
        json_t *own = json_array_get(prefix, i);
        if (own || more)
            all = least_of(all, grammar_schema_accepts(a, own ? own : more, item));
        for (size_t k = 0; is_unique && k < i; k++)
            if (are_equal(json_array_get(value, k), item))
                return SCHEMA_NO;
    }
    return all;
}

// --- schemas ---------------------------------------------------------------------------

static bool schema_accepts_is_of_members(const char *key)
{
    static const char *const keys[] = {"properties", "additionalProperties",
                                       "required",   "prefixItems",
                                       "items",      "uniqueItems"};
    for (size_t i = 0; i < COUNT(keys); i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

static enum schema_verdict accepts_key(struct accepter *a, const char *key, json_t *given,
                                       json_t *value)
{
    if (schema_is_note(key) || schema_accepts_is_of_members(key))
        return SCHEMA_YES;
    if (strcmp(key, "type") == 0)
        return accepts_type(given, value);
    if (strcmp(key, "const") == 0)
        return schema_accepts_verdict(are_equal(given, value));
    if (strcmp(key, "enum") == 0)
        return schema_accepts_verdict(is_among(given, value));
    if (strcmp(key, "$ref") == 0) {
        json_t *target =
            json_is_string(given) ? schema_follow(a->root, json_string_value(given)) : NULL;
        return target ? grammar_schema_accepts(a, target, value) : SCHEMA_UNKNOWN;
    }
    if (strcmp(key, "allOf") == 0)
        return accepts_all(a, given, value);
    if (strcmp(key, "anyOf") == 0 || strcmp(key, "oneOf") == 0)
        return accepts_some(a, given, value, key[0] == 'o');
    if (strcmp(key, "multipleOf") == 0)
        return accepts_multiple(given, value);
    if (strcmp(key, "pattern") == 0 && !json_is_string(value))
        return SCHEMA_YES;
    return accepts_size(key, given, value);
}

static enum schema_verdict grammar_schema_accepts(struct accepter *a, json_t *schema,
                                                  json_t *value)
{
    enum schema_verdict all = SCHEMA_YES;
    const char *key;
    json_t *given;
    if (json_is_boolean(schema))
        return schema_accepts_verdict(json_is_true(schema));
    if (!json_is_object(schema) || a->depth >= MOST_DEPTH || ++a->steps > MOST_STEPS)
        return SCHEMA_UNKNOWN;
    a->depth++;
    json_object_foreach(schema, key, given) all =
        least_of(all, accepts_key(a, key, given, value));
    all = least_of(all, accepts_members(a, schema, value));
    all = least_of(all, accepts_elements(a, schema, value));
    a->depth--;
    return all;
}

enum schema_verdict schema_accepts(json_t *root, json_t *schema, json_t *value)
{
    struct accepter a = {.root = root};
    return grammar_schema_accepts(&a, schema, value);
}
