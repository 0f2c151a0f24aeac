// SPDX-License-Identifier: MIT
// Reads JSON schemas as grammars of the JSON that is valid by them. Each text of the
// grammar is valid; of the valid texts the grammar has those with members in the schema's
// order and little white space.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "schema.h"

#define MOST_LENGTH 100000

static grammar_node read_schema(struct schema_reader *r, json_t *schema);
static grammar_node read_types(struct schema_reader *r, json_t *schema);

// --- failures --------------------------------------------------------------------------

grammar_node schema_refuse(struct schema_reader *r, tn_status status, const char *what,
                           const char *name)
{
    if (r->b->status == TN_OK)
        r->b->status = lm_fail(status, "schema: %s: %s%s", r->path, what, name);
    return -1;
}

static size_t schema_enter(struct schema_reader *r, const char *key)
{
    size_t before = strlen(r->path);
    snprintf(r->path + before, sizeof(r->path) - before, "/%s", key);
    return before;
}

grammar_node schema_read_at(struct schema_reader *r, json_t *schema, const char *key,
                            const char *name)
{
    size_t before = schema_enter(r, key);
    if (name)
        schema_enter(r, name);
    grammar_node node = read_schema(r, schema);
    r->path[before] = '\0';
    return node;
}

// Upper bounds above the largest readable count are that count.
uint32_t schema_count(struct schema_reader *r, const json_t *schema, const char *key,
                      uint32_t otherwise)
{
    const json_t *given = json_object_get(schema, key);
    if (!given)
        return otherwise;
    double value = json_is_number(given) ? json_number_value(given) : -1; // 2.0 is 2
    bool is_bound = key[0] == 'm' && key[1] == 'a';
    if (is_bound && value > MOST_LENGTH)
        return MOST_LENGTH;
    if (!(value >= 0 && value <= MOST_LENGTH) || value != (double)(uint32_t)value) {
        schema_refuse(r, TN_ERR_REFUSED, "expected an integer from 0 to 100000 as ", key);
        return otherwise;
    }
    return (uint32_t)value;
}

// --- pieces ----------------------------------------------------------------------------

static grammar_node schema_text(struct schema_reader *r, const char *bytes)
{
    return grammar_text(r->b, bytes);
}

// The empty text, a space, or a line's end and the indentation of the next line.
static grammar_node schema_space(struct schema_reader *r)
{
    struct grammar_builder *b = r->b;
    static const struct grammar_range indent[] = {{'\t', '\t'}, {' ', ' '}};
    if (!r->space) {
        int32_t rule = grammar_rule_add(b, NULL, 0);
        grammar_node line = grammar_sequence(
            b, GRAMMAR_NODES(schema_text(r, "\n"),
                             grammar_repeat(b, grammar_class(b, indent, 2), 0, 40)));
        grammar_node body =
            grammar_choice(b, GRAMMAR_NODES(schema_text(r, ""), schema_text(r, " "), line));
        if (b->status != TN_OK)
            return -1;
        b->rules[rule].body = body;
        r->space = rule;
    }
    return grammar_call(b, r->space);
}

grammar_node schema_comma(struct schema_reader *r)
{
    return grammar_sequence(r->b, GRAMMAR_NODES(schema_text(r, ","), schema_space(r)));
}

grammar_node schema_repeat(struct schema_reader *r, grammar_node node, uint32_t min,
                           uint32_t max)
{
    return grammar_repeat(
        r->b, grammar_sequence(r->b, GRAMMAR_NODES(schema_comma(r), node)), min, max);
}

grammar_node schema_in_brackets(struct schema_reader *r, const char *begin,
                                grammar_node within, const char *end)
{
    return grammar_sequence(r->b, GRAMMAR_NODES(schema_text(r, begin), schema_space(r),
                                                within, schema_text(r, end)));
}

static grammar_node string_of(struct schema_reader *r, uint32_t min, uint32_t max)
{
    grammar_node any = schema_characters(r->b, NULL, 0, true);
    return grammar_sequence(r->b, GRAMMAR_NODES(schema_text(r, "\""),
                                                grammar_repeat(r->b, any, min, max),
                                                schema_text(r, "\"")));
}

static grammar_node schema_rule_of(struct schema_reader *r, grammar_node node)
{
    return grammar_own_rule(r->b, node);
}

// `node` and white space behind it; none if the text of `node` is empty.
grammar_node schema_then_space(struct schema_reader *r, grammar_node node)
{
    return grammar_sequence(r->b, GRAMMAR_NODES(node, schema_space(r)));
}

// --- values ----------------------------------------------------------------------------

// A constant, as JSON writes it.
grammar_node schema_constant(struct schema_reader *r, json_t *value)
{
    struct grammar_builder *b = r->b;
    const char *key;
    json_t *member;
    size_t index;
    grammar_node whole = schema_text(r, "");
    if (++r->depth > GRAMMAR_DEPTH)
        return schema_refuse(r, TN_ERR_UNSUPPORTED, "too deep a constant", "");
    if (!json_is_object(value) && !json_is_array(value)) {
        char *dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        if (!dumped)
            b->status = lm_fail(TN_ERR_MEMORY, "out of memory for a schema");
        whole = dumped ? schema_text(r, dumped) : -1;
        free(dumped);
        r->depth--;
        return whole;
    }
    uint64_t count = 0;
    json_object_foreach(value, key, member)
    {
        json_t *name = json_string(key);
        grammar_node pair =
            grammar_sequence(b, GRAMMAR_NODES(schema_constant(r, name), schema_text(r, ":"),
                                              grammar_repeat(b, schema_text(r, " "), 0, 1),
                                              schema_constant(r, member)));
        json_decref(name);
        whole = count++ ? grammar_sequence(b, GRAMMAR_NODES(whole, schema_comma(r), pair))
                        : pair;
        whole = grammar_lower(b, whole, count);
    }
    json_array_foreach(value, index, member)
    {
        grammar_node item = schema_constant(r, member);
        whole =
            index ? grammar_sequence(b, GRAMMAR_NODES(whole, schema_comma(r), item)) : item;
        whole = grammar_lower(b, whole, index);
    }
    r->depth--;
    if (json_object_size(value) + json_array_size(value) > 0)
        whole = schema_then_space(r, whole);
    return json_is_array(value) ? schema_in_brackets(r, "[", whole, "]")
                                : schema_in_brackets(r, "{", whole, "}");
}

// Any value at all.
grammar_node schema_any(struct schema_reader *r)
{
    struct grammar_builder *b = r->b;
    if (!r->value) {
        r->value = grammar_rule_add(b, NULL, 0);
        json_t *nothing = json_object();
        static const char *const types[] = {"object", "array",   "string",
                                            "number", "boolean", "null"};
        grammar_node choices[COUNT(types)];
        for (size_t i = 0; i < COUNT(types); i++) {
            json_object_set_new(nothing, "type", json_string(types[i]));
            if (i == 0)
                json_object_set_new(nothing, "additionalProperties", json_true());
            choices[i] = read_types(r, nothing);
        }
        json_decref(nothing);
        grammar_node body = grammar_choice(b, choices, COUNT(types));
        if (b->status != TN_OK)
            return -1;
        b->rules[r->value].body = body;
    }
    return grammar_call(b, r->value);
}

static grammar_node read_string(struct schema_reader *r, json_t *schema)
{
    const json_t *pattern = json_object_get(schema, "pattern");
    uint32_t min = schema_count(r, schema, "minLength", 0);
    uint32_t max = schema_count(r, schema, "maxLength", GRAMMAR_MANY);
    if (pattern && !json_is_string(pattern))
        return schema_refuse(r, TN_ERR_REFUSED, "pattern is no text", "");
    if (pattern && min <= max) {
        grammar_node within =
            grammar_read_pattern(r->b, json_string_value(pattern), min, max, r->path);
        return grammar_sequence(
            r->b, GRAMMAR_NODES(schema_text(r, "\""), within, schema_text(r, "\"")));
    }
    if (max < min)
        return grammar_choice(r->b, NULL, 0);
    if (min > 0 || max != GRAMMAR_MANY)
        return string_of(r, min, max);
    if (!r->string) {
        grammar_node body = string_of(r, 0, GRAMMAR_MANY);
        r->string = grammar_rule_add(r->b, NULL, 0);
        if (r->b->status != TN_OK)
            return -1;
        r->b->rules[r->string].body = body;
    }
    return grammar_call(r->b, r->string);
}

// --- arrays ----------------------------------------------------------------------------

static grammar_node schema_read_array(struct schema_reader *r, json_t *schema)
{
    struct grammar_builder *b = r->b;
    json_t *prefix = json_object_get(schema, "prefixItems");
    json_t *items = json_object_get(schema, "items");
    uint32_t min = schema_count(r, schema, "minItems", 0);
    uint32_t max = schema_count(r, schema, "maxItems", GRAMMAR_MANY);
    uint32_t first = (uint32_t)json_array_size(prefix);
    if (prefix && !json_is_array(prefix))
        return schema_refuse(r, TN_ERR_REFUSED, "prefixItems is no array", "");
    bool has_more = !json_is_false(items) && max > first;
    max = !has_more && max > first ? first : max;
    if (max < min || r->b->status != TN_OK)
        return grammar_choice(b, NULL, 0);
    // From the end: what follows the first 0, 1, ... elements.
    grammar_node rest = schema_text(r, "");
    if (has_more) {
        grammar_node item = schema_rule_of(
            r, items ? schema_read_at(r, items, "items", NULL) : schema_any(r));
        uint32_t least = min > first ? min - first : 0;
        uint32_t most = max == GRAMMAR_MANY ? max : max - first;
        grammar_node more = schema_repeat(r, item, first ? least : least - (least > 0),
                                          most == GRAMMAR_MANY ? most
                                          : first              ? most
                                                               : most - 1);
        rest = first ? more : grammar_sequence(b, GRAMMAR_NODES(item, more));
        rest = first || min > 0 ? rest : grammar_repeat(b, rest, 0, 1);
    }
    for (uint32_t i = first; i > 0; i--) {
        char number[16];
        snprintf(number, sizeof(number), "%" PRIu32, i - 1);
        grammar_node item =
            schema_read_at(r, json_array_get(prefix, i - 1), "prefixItems", number);
        if (i > max)
            continue;
        if (i > 1)
            item = grammar_sequence(b, GRAMMAR_NODES(schema_comma(r), item));
        rest = schema_rule_of(r, grammar_sequence(b, GRAMMAR_NODES(item, rest)));
        rest = i > min ? grammar_repeat(b, rest, 0, 1) : rest;
    }
    return schema_in_brackets(r, "[", schema_then_space(r, rest), "]");
}

// --- schemas ---------------------------------------------------------------------------

static grammar_node schema_read_type(struct schema_reader *r, json_t *schema,
                                     const char *type)
{
    if (strcmp(type, "object") == 0)
        return schema_object(r, schema);
    if (strcmp(type, "array") == 0)
        return schema_read_array(r, schema);
    if (strcmp(type, "string") == 0)
        return read_string(r, schema);
    if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0)
        return schema_number(r->b, schema, type[0] == 'i', r->path);
    if (strcmp(type, "boolean") == 0)
        return grammar_choice(
            r->b, GRAMMAR_NODES(schema_text(r, "true"), schema_text(r, "false")));
    if (strcmp(type, "null") == 0)
        return schema_text(r, "null");
    return schema_refuse(r, TN_ERR_REFUSED, "no type: ", type);
}

static grammar_node read_types(struct schema_reader *r, json_t *schema)
{
    const json_t *type = json_object_get(schema, "type"), *one;
    grammar_node choices[8];
    size_t index;
    if (!type) {
        const char *guessed = schema_guess_type(schema);
        return guessed ? schema_read_type(r, schema, guessed) : schema_any(r);
    }
    if (json_is_string(type))
        return schema_read_type(r, schema, json_string_value(type));
    if (json_array_size(type) == 0 || json_array_size(type) > COUNT(choices))
        return schema_refuse(r, TN_ERR_REFUSED, "type is neither a name nor some names",
                             "");
    json_array_foreach(type, index, one) choices[index] =
        json_is_string(one) ? schema_read_type(r, schema, json_string_value(one))
                            : schema_refuse(r, TN_ERR_REFUSED, "a type is no name", "");
    return grammar_choice(r->b, choices, json_array_size(type));
}

// --- several at once -------------------------------------------------------------------

// The constants of a schema that the rest of the schema allows.
static grammar_node schema_read_constants(struct schema_reader *r, json_t *schema)
{
    grammar_node whole = grammar_choice(r->b, NULL, 0);
    json_t *list = schema_constants(schema), *item;
    size_t index;
    uint64_t count = 0;
    if (json_array_size(list) == 0)
        schema_refuse(r, TN_ERR_REFUSED, "expected some in ", "enum");
    json_array_foreach(list, index, item)
    {
        enum schema_verdict is_valid = schema_accepts(r->root, schema, item);
        if (is_valid == SCHEMA_UNKNOWN)
            schema_refuse(r, TN_ERR_UNSUPPORTED,
                          "enum or const beside what is not decided of a constant", "");
        if (is_valid != SCHEMA_YES)
            continue;
        grammar_node one = schema_constant(r, item);
        whole = count ? grammar_choice(r->b, GRAMMAR_NODES(whole, one)) : one;
        whole = grammar_lower(r->b, whole, count++);
    }
    json_decref(list);
    return whole;
}

// Reads `schema` and `beside` merged to one schema, which the reader keeps until the end.
static grammar_node read_merged(struct schema_reader *r, json_t *schema, json_t *beside)
{
    char why[SCHEMA_WHY];
    json_t *merged = schema_merge(r->root, schema, beside, why),
           *tag = json_object_get(schema, "discriminator");
    if (merged && tag && json_is_object(merged) && !schema_has_constants(merged))
        json_object_set(merged, "discriminator", tag);
    if (!merged || json_array_append_new(r->made, merged) != 0)
        return schema_refuse(
            r, TN_ERR_UNSUPPORTED,
            "cannot be merged with what is beside it: ", why[0] ? why : "out of memory");
    return read_schema(r, merged);
}

// The rule of a schema, made when the schema is first met, so that a schema may contain
// itself. `tag`: a member that is required besides; "": the schema is merged with the keys
// beside it.
static grammar_node read_known(struct schema_reader *r, json_t *schema, const char *tag)
{
    for (uint64_t i = 0; i < r->num_known; i++) {
        const char *other = r->known[i].tag;
        if (r->known[i].schema == schema && !other == !tag && (!tag || !strcmp(tag, other)))
            return grammar_call(r->b, r->known[i].rule);
    }
    int32_t rule = grammar_rule_add(r->b, NULL, 0);
    if (!grammar_grow(&r->b->status, &r->known, r->num_known, 1, &r->room_known,
                      sizeof(*r->known), 65536, "references"))
        return -1;
    r->known[r->num_known++] = (struct schema_known){schema, tag, rule};
    json_t *beside = tag && tag[0] ? json_pack("{s:[s]}", "required", tag) : json_true();
    grammar_node body = tag ? read_merged(r, schema, beside) : read_schema(r, schema);
    json_decref(beside);
    if (r->b->status != TN_OK)
        return -1;
    r->b->rules[rule].body = body;
    return grammar_call(r->b, rule);
}

static grammar_node read_reference(struct schema_reader *r, const json_t *reference,
                                   const char *tag)
{
    const char *name = json_string_value(reference);
    json_t *target = name ? schema_follow(r->root, name) : NULL;
    char path[sizeof(r->path)];
    if (!target)
        return schema_refuse(r, TN_ERR_REFUSED, "the schema has nothing at ",
                             name ? name : "(no text)");
    memcpy(path, r->path, sizeof(path));
    snprintf(r->path, sizeof(r->path), "%s", name);
    grammar_node node = read_known(r, target, tag);
    memcpy(r->path, path, sizeof(path));
    return node;
}

// --- alternatives ----------------------------------------------------------------------

// Reads one alternative of a list. `tag`: a member that it requires.
static grammar_node read_alternative(struct schema_reader *r, json_t *schema,
                                     const char *key, size_t index, const char *tag)
{
    char number[24];
    const json_t *reference = json_object_get(schema, "$ref");
    snprintf(number, sizeof(number), "%zu", index);
    if (!tag)
        return schema_read_at(r, schema, key, number);
    size_t before = schema_enter(r, key);
    schema_enter(r, number);
    grammar_node node =
        reference ? read_reference(r, reference, tag) : read_known(r, schema, tag);
    r->path[before] = '\0';
    return node;
}

static grammar_node schema_read_list(struct schema_reader *r, json_t *list, const char *key,
                                     const char *tag)
{
    grammar_node whole = grammar_choice(r->b, NULL, 0);
    size_t index;
    json_t *item;
    if (json_array_size(list) == 0)
        return schema_refuse(r, TN_ERR_REFUSED, "expected some in ", key);
    json_array_foreach(list, index, item)
    {
        grammar_node one = read_alternative(r, item, key, index, tag);
        whole = index ? grammar_choice(r->b, GRAMMAR_NODES(whole, one)) : one;
        whole = grammar_lower(r->b, whole, index);
    }
    return whole;
}

// Reads alternatives of which exactly one may fit a value. If the schema has a
// discriminator, its member is required.
static grammar_node read_one_of(struct schema_reader *r, json_t *schema)
{
    size_t one = 0, other = 0;
    char what[160];
    json_t *list = json_object_get(schema, "oneOf");
    const char *tag = json_string_value(
        json_object_get(json_object_get(schema, "discriminator"), "propertyName"));
    tag = tag && tag[0] ? tag : NULL;
    enum schema_disjoint found = schema_are_disjoint(r->root, list, tag, &one, &other);
    if (found == SCHEMA_DISJOINT)
        return schema_read_list(r, list, "oneOf", tag);
    if (found == SCHEMA_TOO_MANY)
        return schema_refuse(r, TN_ERR_UNSUPPORTED,
                             "too many alternatives to compare: expected anyOf for ",
                             "oneOf");
    snprintf(what, sizeof(what),
             "a value may be valid by both alternatives %zu and %zu of oneOf: expected "
             "types, constants, bounds or required members that tell them apart, or anyOf",
             one, other);
    return schema_refuse(r, TN_ERR_UNSUPPORTED, what, "");
}

// Reads a schema with one of these keys, merged with the keys beside it.
static grammar_node read_combined(struct schema_reader *r, json_t *schema, const char *key)
{
    json_t *value = json_object_get(schema, key), *item;
    const char *other;
    bool is_alone = true;
    json_object_foreach(schema, other, item) is_alone &=
        schema_is_note(other) || strcmp(other, key) == 0;
    if (!is_alone || (key[0] == 'a' && key[1] == 'l' && json_array_size(value) != 1))
        return read_known(r, schema, "");
    if (key[0] == '$')
        return read_reference(r, value, NULL);
    return key[0] == 'o' ? read_one_of(r, schema) : schema_read_list(r, value, key, NULL);
}

// --- schemas ---------------------------------------------------------------------------

static grammar_node schema_read_keys(struct schema_reader *r, json_t *schema)
{
    static const char *const combined[] = {"$ref", "allOf", "anyOf", "oneOf"};
    const char *unknown = schema_unknown_key(schema);
    if (unknown)
        return schema_refuse(r, TN_ERR_UNSUPPORTED,
                             "a keyword that is not known: ", unknown);
    if (schema_has_constants(schema))
        return schema_read_constants(r, schema);
    for (size_t i = 0; i < COUNT(combined); i++)
        if (json_object_get(schema, combined[i]))
            return read_combined(r, schema, combined[i]);
    return read_types(r, schema);
}

static grammar_node read_schema(struct schema_reader *r, json_t *schema)
{
    if (r->b->status != TN_OK)
        return -1;
    if (json_is_true(schema))
        return schema_any(r);
    if (json_is_false(schema))
        return grammar_choice(r->b, NULL, 0);
    if (!json_is_object(schema))
        return schema_refuse(r, TN_ERR_REFUSED, "a schema is an object, true or false", "");
    if (++r->depth > GRAMMAR_DEPTH)
        return schema_refuse(r, TN_ERR_UNSUPPORTED, "schemas are too deep: more than 128",
                             "");
    grammar_node node = schema_read_keys(r, schema);
    r->depth--;
    return node;
}

tn_status grammar_read_schema(struct grammar_builder *b, const char *schema, uint64_t size)
{
    json_error_t error;
    struct schema_reader r = {.b = b, .path = "#", .made = json_array()};
    r.root = json_loadb(schema, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (!r.root)
        b->status = lm_fail(TN_ERR_REFUSED, "schema: line %d, column %d: %s", error.line,
                            error.column, error.text);
    int32_t root = grammar_rule_add(b, "root", 4);
    grammar_node body = r.root ? read_schema(&r, r.root) : -1;
    if (b->status == TN_OK)
        b->rules[root].body = body;
    free(r.known);
    json_decref(r.made);
    json_decref(r.root);
    return b->status;
}
