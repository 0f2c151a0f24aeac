// SPDX-License-Identifier: MIT
// Whether the alternatives of a oneOf exclude each other: a text that is generated from one
// alternative must not be valid by another. Undecided pairs count as overlapping.
#include <math.h>
#include <string.h>
#include "../base/fail.h"
#include "schema.h"

#define MOST_DEPTH 32
#define MOST_STEPS 1000000
#define MOST_MERGED 5000
#define EXACT 9007199254740992.0 // 2^53: doubles below hold every integer

enum {
    OF_NULL = 1,
    OF_BOOLEAN = 2,
    OF_OBJECT = 4,
    OF_ARRAY = 8,
    OF_STRING = 16,
    OF_FRACTION = 32, // a number that is no integer
    OF_INTEGER = 64,
    OF_ALL = 127,
};

struct disjoint_search {
    json_t *root;
    json_t *made;    // array that owns the schemas made of constants
    const char *tag; // a member that objects always have, or NULL
    int depth, steps, num_merged;
};

// Whether no text that the grammar of `generated` permits is valid by `other`.
static bool are_disjoint(struct disjoint_search *a, json_t *generated, json_t *other);

// --- constants as schemas --------------------------------------------------------------

static json_t *constant_schema(json_t *value)
{
    return json_pack("{s:O}", "const", value);
}

static json_t *object_schema(json_t *value)
{
    json_t *properties = json_object(), *required = json_array(), *item;
    const char *key;
    json_object_foreach(value, key, item)
    {
        json_object_set_new(properties, key, constant_schema(item));
        json_array_append_new(required, json_string(key));
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties,
                     "required", required, "additionalProperties", 0);
}

static json_t *array_schema(json_t *value)
{
    json_t *items = json_array(), *item;
    size_t i;
    json_array_foreach(value, i, item) json_array_append_new(items, constant_schema(item));
    json_int_t count = (json_int_t)json_array_size(value);
    return json_pack("{s:s, s:o, s:b, s:I, s:I}", "type", "array", "prefixItems", items,
                     "items", 0, "minItems", count, "maxItems", count);
}

// A schema that describes a constant by its members or elements; of a scalar a "const".
static json_t *schema_of(struct disjoint_search *a, json_t *value)
{
    json_t *made = json_is_object(value)  ? object_schema(value)
                   : json_is_array(value) ? array_schema(value)
                                          : constant_schema(value);
    return made && json_array_append_new(a->made, made) == 0 ? made : NULL;
}

// --- kinds of values -------------------------------------------------------------------

static uint32_t schema_disjoint_kind_of(const json_t *value)
{
    if (json_is_real(value) && json_real_value(value) != floor(json_real_value(value)))
        return OF_FRACTION;
    return json_is_number(value)    ? OF_INTEGER
           : json_is_string(value)  ? OF_STRING
           : json_is_boolean(value) ? OF_BOOLEAN
           : json_is_object(value)  ? OF_OBJECT
           : json_is_array(value)   ? OF_ARRAY
                                    : OF_NULL;
}

static uint32_t kind_named(const char *name)
{
    static const struct {
        const char *name;
        uint32_t kind;
    } kinds[] = {{"null", OF_NULL},
                 {"boolean", OF_BOOLEAN},
                 {"object", OF_OBJECT},
                 {"array", OF_ARRAY},
                 {"string", OF_STRING},
                 {"integer", OF_INTEGER},
                 {"number", OF_INTEGER | OF_FRACTION}};
    for (size_t i = 0; name && i < COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].kind;
    return OF_ALL;
}

// Kinds of values of a schema. A schema without a type has all kinds, but its grammar
// writes only those that its other keys are about.
static uint32_t kinds_of(const json_t *schema, bool is_generated)
{
    const json_t *constant = json_object_get(schema, "const"),
                 *type = json_object_get(schema, "type"), *one;
    uint32_t kinds = 0;
    size_t i;
    if (constant)
        return schema_disjoint_kind_of(constant);
    if (!json_is_array(type)) {
        const char *guessed = is_generated && !type ? schema_guess_type(schema) : NULL;
        return kind_named(type ? json_string_value(type) : guessed);
    }
    json_array_foreach(type, i, one) kinds |= kind_named(json_string_value(one));
    return kinds;
}

// --- ranges ----------------------------------------------------------------------------

struct schema_disjoint_range {
    double low, high;
    bool is_low_open, is_high_open;
};

static void schema_disjoint_narrow(struct schema_disjoint_range *range, const json_t *bound,
                                   bool is_low, bool is_open)
{
    double value = json_number_value(bound);
    if (!json_is_number(bound) || fabs(value) >= EXACT)
        return;
    if (is_low && value >= range->low) {
        range->is_low_open = is_open || (value == range->low && range->is_low_open);
        range->low = value;
    } else if (!is_low && value <= range->high) {
        range->is_high_open = is_open || (value == range->high && range->is_high_open);
        range->high = value;
    }
}

// The range of a schema: of numbers their values, of texts their lengths, of arrays their
// sizes.
static struct schema_disjoint_range schema_disjoint_range_of(const json_t *schema,
                                                             uint32_t kind)
{
    const bool is_number = kind == OF_INTEGER || kind == OF_FRACTION;
    struct schema_disjoint_range range = {-INFINITY, INFINITY, false, false};
    const json_t *constant = json_object_get(schema, "const");
    if (constant && is_number) {
        schema_disjoint_narrow(&range, constant, true, false);
        schema_disjoint_narrow(&range, constant, false, false);
    } else if (constant) {
        range.low = range.high = (double)schema_text_length(json_string_value(constant));
    } else if (is_number) {
        schema_disjoint_narrow(&range, json_object_get(schema, "minimum"), true, false);
        schema_disjoint_narrow(&range, json_object_get(schema, "maximum"), false, false);
        schema_disjoint_narrow(&range, json_object_get(schema, "exclusiveMinimum"), true,
                               true);
        schema_disjoint_narrow(&range, json_object_get(schema, "exclusiveMaximum"), false,
                               true);
    } else {
        bool is_text = kind == OF_STRING;
        schema_disjoint_narrow(&range,
                               json_object_get(schema, is_text ? "minLength" : "minItems"),
                               true, false);
        schema_disjoint_narrow(&range,
                               json_object_get(schema, is_text ? "maxLength" : "maxItems"),
                               false, false);
    }
    return range;
}

static bool schema_disjoint_is_below(const struct schema_disjoint_range *a,
                                     const struct schema_disjoint_range *b)
{
    return a->high < b->low || (a->high == b->low && (a->is_high_open || b->is_low_open));
}

static bool have_no_common(const json_t *generated, const json_t *other, uint32_t kind)
{
    struct schema_disjoint_range a = schema_disjoint_range_of(generated, kind),
                                 b = schema_disjoint_range_of(other, kind);
    return schema_disjoint_is_below(&a, &b) || schema_disjoint_is_below(&b, &a);
}

// --- objects and arrays ----------------------------------------------------------------

static bool is_required(const json_t *schema, const char *name)
{
    return schema_lists(json_object_get(schema, "required"), name);
}

// The schema of a member of this name; NULL: it may be anything.
static json_t *member_of(const json_t *schema, const char *name)
{
    json_t *own = json_object_get(json_object_get(schema, "properties"), name);
    return own ? own : json_object_get(schema, "additionalProperties");
}

// Whether the grammar of a schema never has a member of this name.
static bool schema_disjoint_lacks(const json_t *schema, const char *name)
{
    const json_t *properties = json_object_get(schema, "properties"),
                 *more = json_object_get(schema, "additionalProperties");
    bool has_more =
        more ? !json_is_false(more)
             : !properties && !json_array_size(json_object_get(schema, "required"));
    return !has_more && !json_object_get(properties, name) && !is_required(schema, name);
}

// Compares members or elements of two schemas, which are disjoint without regard to a tag.
static bool are_parts_disjoint(struct disjoint_search *a, json_t *generated, json_t *other)
{
    const char *tag = a->tag;
    a->tag = NULL;
    bool good = are_disjoint(a, generated, other);
    a->tag = tag;
    return good;
}

// Whether the member `name` keeps every object from being valid by both: one schema always
// has it, and the other never has it, or has it with disjoint values.
static bool are_members_disjoint(struct disjoint_search *a, json_t *generated,
                                 json_t *other, const char *name)
{
    bool is_tag = a->tag && strcmp(a->tag, name) == 0;
    bool is_always = is_tag || is_required(generated, name),
         is_asked = is_required(other, name);
    if (!is_always && !is_asked)
        return false;
    if (is_asked && schema_disjoint_lacks(generated, name))
        return true;
    json_t *mine = member_of(generated, name), *others = member_of(other, name);
    if (!others)
        return false;
    return json_is_false(others) || (mine && are_parts_disjoint(a, mine, others));
}

static bool are_objects_disjoint(struct disjoint_search *a, json_t *generated,
                                 json_t *other)
{
    const json_t *lists[] = {json_object_get(generated, "required"),
                             json_object_get(other, "required")};
    const json_t *item;
    size_t index;
    if (a->tag && are_members_disjoint(a, generated, other, a->tag))
        return true;
    for (size_t i = 0; i < COUNT(lists); i++)
        json_array_foreach(lists[i], index, item)
        {
            if (json_is_string(item) &&
                are_members_disjoint(a, generated, other, json_string_value(item)))
                return true;
        }
    return false;
}

static json_t *schema_disjoint_element_of(const json_t *schema, size_t index)
{
    json_t *own = json_array_get(json_object_get(schema, "prefixItems"), index);
    return own ? own : json_object_get(schema, "items");
}

// Whether some element that both arrays always have takes disjoint values.
static bool are_arrays_disjoint(struct disjoint_search *a, json_t *generated, json_t *other)
{
    struct schema_disjoint_range mine = schema_disjoint_range_of(generated, OF_ARRAY),
                                 others = schema_disjoint_range_of(other, OF_ARRAY);
    double both = fmax(mine.low, others.low);
    for (size_t i = 0; (double)i < both && i < MOST_DEPTH; i++) {
        json_t *left = schema_disjoint_element_of(generated, i),
               *right = schema_disjoint_element_of(other, i);
        if (left && right && are_parts_disjoint(a, left, right))
            return true;
    }
    return false;
}

// --- schemas ---------------------------------------------------------------------------

static bool are_leaves_disjoint(struct disjoint_search *a, json_t *generated, json_t *other)
{
    const json_t *left = json_object_get(generated, "const"),
                 *right = json_object_get(other, "const");
    uint32_t common = kinds_of(generated, true) & kinds_of(other, false);
    if (left && right && json_is_string(left) && json_is_string(right))
        return strcmp(json_string_value(left), json_string_value(right)) != 0;
    if (common & OF_BOOLEAN && left && right && json_is_true(left) != json_is_true(right))
        common &= ~(uint32_t)OF_BOOLEAN;
    static const uint32_t ranged[] = {OF_STRING, OF_INTEGER, OF_FRACTION, OF_ARRAY};
    for (size_t i = 0; i < COUNT(ranged); i++)
        if (common & ranged[i] && have_no_common(generated, other, ranged[i]))
            common &= ~ranged[i];
    if (common == OF_OBJECT)
        return are_objects_disjoint(a, generated, other);
    if (common == OF_ARRAY)
        return are_arrays_disjoint(a, generated, other);
    return common == 0;
}

// The list of alternatives of `schema`; NULL: it has none.
static json_t *schema_disjoint_alternatives(const json_t *schema)
{
    static const char *const keys[] = {"anyOf", "oneOf", "allOf", "enum"};
    for (size_t i = 0; i < COUNT(keys); i++) {
        json_t *list = json_object_get(schema, keys[i]);
        if (json_array_size(list) > 0)
            return list;
    }
    return NULL;
}

// Whether a schema has keys beside its reference or alternatives.
static bool has_beside(json_t *schema)
{
    static const char *const keys[] = {"$ref", "anyOf", "oneOf", "allOf"};
    const char *key;
    json_t *value;
    size_t num = 0, at = 0;
    while (at < COUNT(keys) && !json_object_get(schema, keys[at]))
        at++;
    if (at == COUNT(keys) || schema_has_constants(schema))
        return false;
    json_object_foreach(schema, key, value) num += !schema_is_note(key);
    return num > 1;
}

// Merges the keys beside a schema's alternatives into these. If that is impossible, gives
// the schema `true`, by which all values are valid.
static json_t *merged_alone(struct disjoint_search *a, json_t *schema)
{
    char why[SCHEMA_WHY];
    json_t *merged = ++a->num_merged > MOST_MERGED
                         ? NULL
                         : schema_merge(a->root, schema, json_true(), why);
    return merged && json_array_append_new(a->made, merged) == 0 ? merged : json_true();
}

// Follows references, and makes a schema of a constant that has members or elements.
static json_t *schema_disjoint_resolve(struct disjoint_search *a, json_t *schema)
{
    for (int i = 0; i < MOST_DEPTH && json_object_get(schema, "$ref"); i++) {
        if (has_beside(schema))
            break;
        const char *name = json_string_value(json_object_get(schema, "$ref"));
        schema = name ? schema_follow(a->root, name) : NULL;
    }
    if (has_beside(schema))
        schema = merged_alone(a, schema);
    json_t *constant = json_object_get(schema, "const");
    return json_is_object(constant) || json_is_array(constant) ? schema_of(a, constant)
                                                               : schema;
}

// Whether each alternative of `list` is disjoint from `generated` or `other`, whichever is
// not NULL. Constants of an "enum" become schemas.
static bool are_all_disjoint(struct disjoint_search *a, json_t *list, bool is_enum,
                             json_t *generated, json_t *other)
{
    json_t *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        json_t *one = is_enum ? schema_of(a, item) : item;
        if (!one || !are_disjoint(a, generated ? generated : one, generated ? one : other))
            return false;
    }
    return true;
}

static bool are_disjoint(struct disjoint_search *a, json_t *generated, json_t *other)
{
    bool good = false;
    if (++a->steps > MOST_STEPS || a->depth >= MOST_DEPTH)
        return false;
    if (json_is_false(generated) || json_is_false(other))
        return true;
    a->depth++;
    generated = schema_disjoint_resolve(a, generated);
    other = schema_disjoint_resolve(a, other);
    json_t *some = schema_disjoint_alternatives(generated),
           *others = schema_disjoint_alternatives(other);
    if (some)
        good = are_all_disjoint(a, some, some == json_object_get(generated, "enum"), NULL,
                                other);
    else if (others)
        good = are_all_disjoint(a, others, others == json_object_get(other, "enum"),
                                generated, NULL);
    else if (json_is_object(generated) && json_is_object(other))
        good = are_leaves_disjoint(a, generated, other);
    a->depth--;
    return good;
}

// Resolves an alternative of a list. Constants of its "enum" become schemas here, once.
static json_t *schema_disjoint_prepared(struct disjoint_search *a, json_t *schema)
{
    json_t *one = schema_disjoint_resolve(a, schema), *list = json_object_get(one, "enum"),
           *item;
    size_t i;
    if (schema_disjoint_alternatives(one) != list || !list)
        return one;
    json_t *schemas = json_array();
    json_array_foreach(list, i, item) json_array_append(schemas, schema_of(a, item));
    json_t *made = json_pack("{s:o}", "anyOf", schemas);
    return made && json_array_append_new(a->made, made) == 0 ? made : one;
}

enum schema_disjoint schema_are_disjoint(json_t *root, json_t *list, const char *tag,
                                         size_t *out_one, size_t *out_other)
{
    struct disjoint_search a = {.root = root, .made = json_array(), .tag = tag};
    json_t *forms = json_array(), *item;
    size_t count = json_array_size(list), index;
    bool good = a.made != NULL && forms != NULL;
    json_array_foreach(list, index, item)
        json_array_append(forms, schema_disjoint_prepared(&a, item));
    good &= json_array_size(forms) == count;
    for (size_t i = 0; good && i < count; i++)
        for (size_t j = 0; good && j < count; j++) {
            if (i == j)
                continue;
            good = are_disjoint(&a, json_array_get(forms, i), json_array_get(forms, j));
            *out_one = i < j ? i : j;
            *out_other = i < j ? j : i;
        }
    json_decref(forms);
    json_decref(a.made);
    return good                   ? SCHEMA_DISJOINT
           : a.steps > MOST_STEPS ? SCHEMA_TOO_MANY
                                  : SCHEMA_TOGETHER;
}
