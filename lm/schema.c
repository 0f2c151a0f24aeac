// SPDX-License-Identifier: MIT
// Reads JSON schemas as grammars of the JSON that is valid by them. Each text of the
// grammar is valid; of valid texts the grammar has those whose members are in the schema's
// order, with little white space.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "schema.h"
#include "internal.h"

#define MOST_LENGTH 100000

// The rule of a schema that is referred to.
struct known {
    const json_t *schema;
    int32_t rule;
};

struct reader {
    struct grammar_builder *b;
    json_t *root;
    struct known *known;
    uint64_t num_known, room_known;
    int32_t space, value, string; // rules that are made when first used; 0: not yet
    int depth;
    char path[400]; // of what is read: "#/properties/name"
};

static grammar_node read_schema(struct reader *r, json_t *schema);
static grammar_node read_types(struct reader *r, json_t *schema);

// --- failures --------------------------------------------------------------------------

static grammar_node refuse(struct reader *r, tn_status status, const char *what,
                           const char *name)
{
    if (r->b->status == TN_OK)
        r->b->status = lm_fail(status, "schema: %s: %s%s", r->path, what, name);
    return -1;
}

static size_t enter(struct reader *r, const char *key)
{
    size_t before = strlen(r->path);
    snprintf(r->path + before, sizeof(r->path) - before, "/%s", key);
    return before;
}

static grammar_node read_at(struct reader *r, json_t *schema, const char *key,
                            const char *name)
{
    size_t before = enter(r, key);
    if (name)
        enter(r, name);
    grammar_node node = read_schema(r, schema);
    r->path[before] = '\0';
    return node;
}

// An integer of 0 or more under a key, or `otherwise` where there is none.
static uint32_t read_count(struct reader *r, const json_t *schema, const char *key,
                           uint32_t otherwise)
{
    const json_t *given = json_object_get(schema, key);
    if (!given)
        return otherwise;
    json_int_t value = json_is_integer(given) ? json_integer_value(given) : -1;
    if (value < 0 || value > MOST_LENGTH)
        refuse(r, TN_ERR_REFUSED, "expected an integer from 0 to 100000 as ", key);
    return (uint32_t)value;
}

// --- pieces ----------------------------------------------------------------------------

static grammar_node text(struct reader *r, const char *bytes)
{
    return grammar_text(r->b, bytes);
}

// Nothing, a space, or a line with what indents the next.
static grammar_node space(struct reader *r)
{
    struct grammar_builder *b = r->b;
    static const struct grammar_range indent[] = {{'\t', '\t'}, {' ', ' '}};
    if (!r->space) {
        int32_t rule = grammar_rule_add(b, NULL, 0);
        grammar_node line = grammar_sequence(
            b, GRAMMAR_NODES(text(r, "\n"),
                             grammar_repeat(b, grammar_class(b, indent, 2), 0, 40)));
        grammar_node body =
            grammar_choice(b, GRAMMAR_NODES(text(r, ""), text(r, " "), line));
        if (b->status != TN_OK)
            return -1;
        b->rules[rule].body = body;
        r->space = rule;
    }
    return grammar_call(b, r->space);
}

static grammar_node comma(struct reader *r)
{
    return grammar_sequence(r->b, GRAMMAR_NODES(text(r, ","), space(r)));
}

static grammar_node repeat_behind_commas(struct reader *r, grammar_node node, uint32_t min,
                                         uint32_t max)
{
    return grammar_repeat(r->b, grammar_sequence(r->b, GRAMMAR_NODES(comma(r), node)), min,
                          max);
}

static grammar_node in_brackets(struct reader *r, const char *begin, grammar_node within,
                                const char *end)
{
    return grammar_sequence(r->b,
                            GRAMMAR_NODES(text(r, begin), space(r), within, text(r, end)));
}

static grammar_node string_of(struct reader *r, uint32_t min, uint32_t max)
{
    grammar_node any = schema_characters(r->b, NULL, 0, true);
    return grammar_sequence(
        r->b,
        GRAMMAR_NODES(text(r, "\""), grammar_repeat(r->b, any, min, max), text(r, "\"")));
}

static grammar_node rule_of(struct reader *r, grammar_node node)
{
    return grammar_own_rule(r->b, node);
}

// `node`, and white space, where something is there at all.
static grammar_node then_space(struct reader *r, grammar_node node)
{
    return grammar_sequence(r->b, GRAMMAR_NODES(node, space(r)));
}

// --- values ----------------------------------------------------------------------------

// A value that is given whole.
static grammar_node read_constant(struct reader *r, json_t *value)
{
    struct grammar_builder *b = r->b;
    const char *key;
    json_t *member;
    size_t index;
    grammar_node whole = text(r, "");
    if (++r->depth > GRAMMAR_DEPTH)
        return refuse(r, TN_ERR_UNSUPPORTED, "too deep a constant", "");
    if (!json_is_object(value) && !json_is_array(value)) {
        char *dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        if (!dumped)
            b->status = lm_fail(TN_ERR_MEMORY, "out of memory for a schema");
        whole = dumped ? text(r, dumped) : -1;
        free(dumped);
        r->depth--;
        return whole;
    }
    uint64_t count = 0;
    json_object_foreach(value, key, member)
    {
        json_t *name = json_string(key);
        grammar_node pair =
            grammar_sequence(b, GRAMMAR_NODES(read_constant(r, name), text(r, ":"),
                                              grammar_repeat(b, text(r, " "), 0, 1),
                                              read_constant(r, member)));
        json_decref(name);
        whole = count++ ? grammar_sequence(b, GRAMMAR_NODES(whole, comma(r), pair)) : pair;
        whole = grammar_lower(b, whole, count);
    }
    json_array_foreach(value, index, member)
    {
        grammar_node item = read_constant(r, member);
        whole = index ? grammar_sequence(b, GRAMMAR_NODES(whole, comma(r), item)) : item;
        whole = grammar_lower(b, whole, index);
    }
    r->depth--;
    if (json_object_size(value) + json_array_size(value) > 0)
        whole = then_space(r, whole);
    return json_is_array(value) ? in_brackets(r, "[", whole, "]")
                                : in_brackets(r, "{", whole, "}");
}

// Any value at all.
static grammar_node any_value(struct reader *r)
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

static grammar_node read_string(struct reader *r, json_t *schema)
{
    const json_t *pattern = json_object_get(schema, "pattern");
    uint32_t min = read_count(r, schema, "minLength", 0);
    uint32_t max = read_count(r, schema, "maxLength", GRAMMAR_MANY);
    if (pattern && !json_is_string(pattern))
        return refuse(r, TN_ERR_REFUSED, "pattern is no text", "");
    if (pattern && (min > 0 || max != GRAMMAR_MANY))
        return refuse(r, TN_ERR_UNSUPPORTED, "a pattern beside a length", "");
    if (pattern) {
        grammar_node within =
            grammar_read_pattern(r->b, json_string_value(pattern), r->path);
        return grammar_sequence(r->b, GRAMMAR_NODES(text(r, "\""), within, text(r, "\"")));
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

static grammar_node read_array(struct reader *r, json_t *schema)
{
    struct grammar_builder *b = r->b;
    json_t *prefix = json_object_get(schema, "prefixItems");
    json_t *items = json_object_get(schema, "items");
    uint32_t min = read_count(r, schema, "minItems", 0);
    uint32_t max = read_count(r, schema, "maxItems", GRAMMAR_MANY);
    uint32_t first = (uint32_t)json_array_size(prefix);
    if (prefix && !json_is_array(prefix))
        return refuse(r, TN_ERR_REFUSED, "prefixItems is no array", "");
    bool has_more = !json_is_false(items) && max > first;
    max = !has_more && max > first ? first : max;
    if (max < min || r->b->status != TN_OK)
        return grammar_choice(b, NULL, 0);
    // From the end: what follows the first 0, 1, ... elements.
    grammar_node rest = text(r, "");
    if (has_more) {
        grammar_node item =
            rule_of(r, items ? read_at(r, items, "items", NULL) : any_value(r));
        uint32_t least = min > first ? min - first : 0;
        uint32_t most = max == GRAMMAR_MANY ? max : max - first;
        grammar_node more =
            repeat_behind_commas(r, item, first ? least : least - (least > 0),
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
            read_at(r, json_array_get(prefix, i - 1), "prefixItems", number);
        if (i > max)
            continue;
        if (i > 1)
            item = grammar_sequence(b, GRAMMAR_NODES(comma(r), item));
        rest = rule_of(r, grammar_sequence(b, GRAMMAR_NODES(item, rest)));
        rest = i > min ? grammar_repeat(b, rest, 0, 1) : rest;
    }
    return in_brackets(r, "[", then_space(r, rest), "]");
}

// --- objects ---------------------------------------------------------------------------

struct member {
    grammar_node pair;
    bool is_required;
};

static grammar_node read_pair(struct reader *r, const char *name, json_t *schema)
{
    json_t *key = json_string(name);
    grammar_node before = read_constant(r, key);
    json_decref(key);
    grammar_node value = schema ? read_at(r, schema, "properties", name) : any_value(r);
    return rule_of(
        r, grammar_sequence(r->b, GRAMMAR_NODES(before, text(r, ":"),
                                                grammar_repeat(r->b, text(r, " "), 0, 1),
                                                value)));
}

static bool is_listed(const json_t *list, const char *name)
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

// Members in the schema's order: behind others, each with a comma; and as the first one.
static grammar_node join_members(struct reader *r, const struct member *members,
                                 uint64_t count, grammar_node other)
{
    struct grammar_builder *b = r->b;
    grammar_node behind = text(r, ""), first = text(r, "");
    if (other >= 0) {
        behind = rule_of(r, repeat_behind_commas(r, other, 0, GRAMMAR_MANY));
        first = grammar_repeat(b, grammar_sequence(b, GRAMMAR_NODES(other, behind)), 0, 1);
    }
    first = rule_of(r, first);
    for (uint64_t i = count; i > 0; i--) {
        const struct member *m = &members[i - 1];
        grammar_node begun = grammar_sequence(b, GRAMMAR_NODES(m->pair, behind));
        first = rule_of(r, m->is_required ? begun
                                          : grammar_choice(b, GRAMMAR_NODES(begun, first)));
        grammar_node next = grammar_sequence(b, GRAMMAR_NODES(comma(r), m->pair));
        next = m->is_required ? next : grammar_repeat(b, next, 0, 1);
        behind = rule_of(r, grammar_sequence(b, GRAMMAR_NODES(next, behind)));
    }
    return first;
}

// Fills `members`, which has room for all. Returns their number.
static uint64_t read_members(struct reader *r, json_t *properties, const json_t *required,
                             json_t *additional, struct member *members)
{
    uint64_t count = 0;
    size_t index;
    const char *name;
    json_t *item;
    json_object_foreach(properties, name, item)
    {
        members[count].pair = read_pair(r, name, item);
        members[count++].is_required = is_listed(required, name);
    }
    json_array_foreach(required, index, item)
    {
        const char *text_ = json_string_value(item);
        if (!text_)
            refuse(r, TN_ERR_REFUSED, "a required name is no text", "");
        else if (!json_object_get(properties, text_) && json_is_false(additional))
            refuse(r, TN_ERR_REFUSED,
                   "required, but neither a property nor additional: ", text_);
        else if (!json_object_get(properties, text_))
            members[count++] = (struct member){
                read_pair(r, text_, json_is_true(additional) ? NULL : additional), true};
    }
    return count;
}

static grammar_node read_object(struct reader *r, json_t *schema)
{
    json_t *properties = json_object_get(schema, "properties");
    json_t *required = json_object_get(schema, "required");
    json_t *additional = json_object_get(schema, "additionalProperties");
    if ((properties && !json_is_object(properties)) ||
        (required && !json_is_array(required)))
        return refuse(r, TN_ERR_REFUSED, "properties is no object, or required no array",
                      "");
    uint64_t most = json_object_size(properties) + json_array_size(required);
    if (most > 4096)
        return refuse(r, TN_ERR_UNSUPPORTED, "more than 4096 properties", "");
    struct member *members = lm_alloc(most, sizeof(*members));
    if (!members) {
        r->b->status = TN_ERR_MEMORY;
        return -1;
    }
    uint64_t count = read_members(r, properties, required, additional, members);
    grammar_node other = -1;
    bool has_other =
        additional ? !json_is_false(additional) : !properties && !json_array_size(required);
    if (has_other && r->b->status == TN_OK) {
        json_t *listed = json_object();
        const char *name;
        size_t index;
        json_t *item;
        json_object_foreach(properties, name, item)
            json_object_set_new(listed, name, json_null());
        json_array_foreach(required, index, item)
            json_object_set_new(listed, json_string_value(item), json_null());
        grammar_node key = schema_other_key(r->b, listed);
        json_decref(listed);
        grammar_node value = additional && !json_is_true(additional)
                                 ? read_at(r, additional, "additionalProperties", NULL)
                                 : any_value(r);
        other = rule_of(
            r, grammar_sequence(
                   r->b, GRAMMAR_NODES(key, text(r, ":"),
                                       grammar_repeat(r->b, text(r, " "), 0, 1), value)));
    }
    grammar_node within = join_members(r, members, count, other);
    free(members);
    return in_brackets(r, "{", then_space(r, within), "}");
}

// --- schemas ---------------------------------------------------------------------------

static grammar_node read_type(struct reader *r, json_t *schema, const char *type)
{
    if (strcmp(type, "object") == 0)
        return read_object(r, schema);
    if (strcmp(type, "array") == 0)
        return read_array(r, schema);
    if (strcmp(type, "string") == 0)
        return read_string(r, schema);
    if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0)
        return schema_number(r->b, schema, type[0] == 'i', r->path);
    if (strcmp(type, "boolean") == 0)
        return grammar_choice(r->b, GRAMMAR_NODES(text(r, "true"), text(r, "false")));
    if (strcmp(type, "null") == 0)
        return text(r, "null");
    return refuse(r, TN_ERR_REFUSED, "no type: ", type);
}

static grammar_node read_types(struct reader *r, json_t *schema)
{
    const json_t *type = json_object_get(schema, "type"), *one;
    grammar_node choices[8];
    size_t index;
    if (!type) {
        const char *guessed = schema_guess_type(schema);
        return guessed ? read_type(r, schema, guessed) : any_value(r);
    }
    if (json_is_string(type))
        return read_type(r, schema, json_string_value(type));
    if (json_array_size(type) == 0 || json_array_size(type) > COUNT(choices))
        return refuse(r, TN_ERR_REFUSED, "type is neither a name nor some names", "");
    json_array_foreach(type, index, one) choices[index] =
        json_is_string(one) ? read_type(r, schema, json_string_value(one))
                            : refuse(r, TN_ERR_REFUSED, "a type is no name", "");
    return grammar_choice(r->b, choices, json_array_size(type));
}

static grammar_node read_list(struct reader *r, json_t *list, const char *key,
                              bool is_constants)
{
    grammar_node whole = grammar_choice(r->b, NULL, 0);
    size_t index;
    json_t *item;
    if (json_array_size(list) == 0)
        return refuse(r, TN_ERR_REFUSED, "expected some in ", key);
    json_array_foreach(list, index, item)
    {
        char number[24];
        snprintf(number, sizeof(number), "%zu", index);
        grammar_node one =
            is_constants ? read_constant(r, item) : read_at(r, item, key, number);
        whole = index ? grammar_choice(r->b, GRAMMAR_NODES(whole, one)) : one;
        whole = grammar_lower(r->b, whole, index);
    }
    return whole;
}

static grammar_node read_reference(struct reader *r, const json_t *reference)
{
    const char *name = json_string_value(reference);
    json_t *target = name ? schema_follow(r->root, name) : NULL;
    if (!target)
        return refuse(r, TN_ERR_REFUSED,
                      "no such place in the schema: ", name ? name : "(no text)");
    for (uint64_t i = 0; i < r->num_known; i++)
        if (r->known[i].schema == target)
            return grammar_call(r->b, r->known[i].rule);
    int32_t rule = grammar_rule_add(r->b, NULL, 0);
    if (!grammar_grow(&r->b->status, &r->known, r->num_known, 1, &r->room_known,
                      sizeof(*r->known), 65536, "references"))
        return -1;
    r->known[r->num_known++] = (struct known){target, rule};
    char path[sizeof(r->path)];
    memcpy(path, r->path, sizeof(path));
    snprintf(r->path, sizeof(r->path), "%s", name);
    grammar_node body = read_schema(r, target);
    memcpy(r->path, path, sizeof(path));
    if (r->b->status != TN_OK)
        return -1;
    r->b->rules[rule].body = body;
    return grammar_call(r->b, rule);
}

// Alternatives of which a value fits one alone.
static grammar_node read_one_of(struct reader *r, json_t *list)
{
    size_t one = 0, other = 0;
    char what[160];
    if (schema_are_apart(r->root, list, &one, &other))
        return read_list(r, list, "oneOf", false);
    snprintf(what, sizeof(what),
             "a value may be valid by both alternatives %zu and %zu of oneOf: expected "
             "types, constants, bounds or required members that tell them apart, or anyOf",
             one, other);
    return refuse(r, TN_ERR_UNSUPPORTED, what, "");
}

// A schema is what the first of these says; others beside it would narrow it, and are
// refused.
static grammar_node read_alone(struct reader *r, json_t *schema, bool *out_found)
{
    static const char *const alone[] = {"$ref", "const", "enum", "anyOf", "oneOf", "allOf"};
    grammar_node node = -1;
    size_t at = 0;
    while (at < COUNT(alone) && !json_object_get(schema, alone[at]))
        at++;
    *out_found = at < COUNT(alone);
    if (!*out_found)
        return node;
    json_t *value = json_object_get(schema, alone[at]);
    bool is_constant = at == 1 || at == 2; // a type beside says no more
    for (size_t i = at + 1; i < COUNT(alone); i++)
        if (json_object_get(schema, alone[i]))
            return refuse(r, TN_ERR_UNSUPPORTED, "beside another one: ", alone[i]);
    if (schema_guess_type(schema) || (json_object_get(schema, "type") && !is_constant))
        return refuse(r, TN_ERR_UNSUPPORTED, "a type or its keywords beside ", alone[at]);
    if (at == 0)
        return read_reference(r, value);
    if (at == 1)
        return read_constant(r, value);
    if (at == 5 && json_array_size(value) != 1)
        return refuse(r, TN_ERR_UNSUPPORTED, "more than one in ", "allOf");
    return at == 4 ? read_one_of(r, value) : read_list(r, value, alone[at], is_constant);
}

static grammar_node read_schema(struct reader *r, json_t *schema)
{
    bool is_alone = false;
    if (r->b->status != TN_OK)
        return -1;
    if (json_is_true(schema))
        return any_value(r);
    if (json_is_false(schema))
        return grammar_choice(r->b, NULL, 0);
    if (!json_is_object(schema))
        return refuse(r, TN_ERR_REFUSED, "a schema is an object, true or false", "");
    if (++r->depth > GRAMMAR_DEPTH)
        return refuse(r, TN_ERR_UNSUPPORTED, "schemas are too deep: more than 128", "");
    grammar_node node = -1;
    const char *unknown = schema_unknown_key(schema);
    if (unknown)
        refuse(r, TN_ERR_UNSUPPORTED, "a keyword that is not known: ", unknown);
    else
        node = read_alone(r, schema, &is_alone);
    if (r->b->status == TN_OK && !is_alone)
        node = read_types(r, schema);
    r->depth--;
    return node;
}

tn_status grammar_read_schema(struct grammar_builder *b, const char *schema, uint64_t size)
{
    json_error_t error;
    struct reader r = {.b = b, .path = "#"};
    r.root = json_loadb(schema, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (!r.root)
        return b->status = lm_fail(TN_ERR_REFUSED, "schema: line %d, column %d: %s",
                                   error.line, error.column, error.text);
    int32_t root = grammar_rule_add(b, "root", 4);
    grammar_node body = read_schema(&r, r.root);
    if (b->status == TN_OK)
        b->rules[root].body = body;
    free(r.known);
    json_decref(r.root);
    return b->status;
}
