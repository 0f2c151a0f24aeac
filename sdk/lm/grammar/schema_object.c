// SPDX-License-Identifier: MIT
// Objects of JSON schemas: listed members in the schema's order, then other members.
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "schema.h"

#define MOST_PROPERTIES 4096
#define MOST_COUNTED 16384 // rules of objects whose members are counted

struct schema_object_member {
    grammar_node pair;
    bool is_required;
};

// The members of an object. Members that the list does not name come behind those of the
// list.
struct members {
    struct schema_object_member *items;
    uint64_t count;
    grammar_node other; // -1: none
    uint32_t min, max;  // bounds of the number of members; 0 and GRAMMAR_MANY: none
};

static grammar_node schema_object_read_pair(struct schema_reader *r, const char *name,
                                            json_t *schema)
{
    json_t *key = json_string(name);
    grammar_node before = schema_constant(r, key);
    json_decref(key);
    grammar_node value =
        schema ? schema_read_at(r, schema, "properties", name) : schema_any(r);
    return grammar_own_rule(
        r->b, grammar_sequence(
                  r->b, GRAMMAR_NODES(before, grammar_text(r->b, ":"),
                                      grammar_repeat(r->b, grammar_text(r->b, " "), 0, 1),
                                      value)));
}

// Joins members in the schema's order: `behind` others, each with a comma; and as the first
// one.
static grammar_node join_members(struct schema_reader *r, const struct members *all)
{
    struct grammar_builder *b = r->b;
    grammar_node behind = grammar_text(b, ""), first = grammar_text(b, "");
    if (all->other >= 0) {
        behind = grammar_own_rule(b, schema_repeat(r, all->other, 0, GRAMMAR_MANY));
        first =
            grammar_repeat(b, grammar_sequence(b, GRAMMAR_NODES(all->other, behind)), 0, 1);
    }
    first = grammar_own_rule(b, first);
    for (uint64_t i = all->count; i > 0; i--) {
        const struct schema_object_member *m = &all->items[i - 1];
        grammar_node begun = grammar_sequence(b, GRAMMAR_NODES(m->pair, behind));
        first = grammar_own_rule(
            b, m->is_required ? begun : grammar_choice(b, GRAMMAR_NODES(begun, first)));
        grammar_node next = grammar_sequence(b, GRAMMAR_NODES(schema_comma(r), m->pair));
        next = m->is_required ? next : grammar_repeat(b, next, 0, 1);
        behind = grammar_own_rule(b, grammar_sequence(b, GRAMMAR_NODES(next, behind)));
    }
    return first;
}

// --- counted members -------------------------------------------------------------------

// Other members behind the list, where `used` members of the list are present.
static grammar_node count_others(struct schema_reader *r, const struct members *all,
                                 uint32_t used)
{
    struct grammar_builder *b = r->b;
    uint32_t min = all->min > used ? all->min - used : 0;
    uint32_t max = all->max == GRAMMAR_MANY ? GRAMMAR_MANY : all->max - used;
    if (all->other < 0 || max == 0 || min > 1) // two others might have the same name
        return min > 0 ? grammar_choice(b, NULL, 0) : grammar_text(b, "");
    if (used > 0)
        return schema_repeat(r, all->other, min, max);
    grammar_node some = grammar_sequence(
        b, GRAMMAR_NODES(all->other, schema_repeat(r, all->other, min > 0 ? min - 1 : 0,
                                                   max == GRAMMAR_MANY ? max : max - 1)));
    return min > 0 ? some : grammar_repeat(b, some, 0, 1);
}

// The members from `index` on, where `used` members before are present; `next` has the
// rules of the members behind this one, by the number of present members.
static grammar_node count_member(struct schema_reader *r, const struct members *all,
                                 uint64_t index, uint32_t used, uint32_t most,
                                 const grammar_node *next)
{
    struct grammar_builder *b = r->b;
    const struct schema_object_member *m = &all->items[index];
    grammar_node ways[2];
    uint64_t num = 0;
    uint32_t more = used < most ? used + 1 : used; // counts no further than `most`
    if (used < most || all->max == GRAMMAR_MANY)
        ways[num++] = grammar_sequence(
            b, GRAMMAR_NODES(used > 0 ? schema_comma(r) : grammar_text(b, ""), m->pair,
                             next[more]));
    if (!m->is_required)
        ways[num++] = next[used];
    return grammar_own_rule(b, grammar_choice(b, ways, num));
}

static grammar_node count_members(struct schema_reader *r, const struct members *all)
{
    uint32_t most = all->max == GRAMMAR_MANY ? all->min : all->max;
    most = all->max != GRAMMAR_MANY && all->other < 0 && most > all->count
               ? (uint32_t)all->count
               : most;
    if (most > MOST_COUNTED / (all->count + 1))
        return schema_refuse(r, TN_ERR_UNSUPPORTED, "too many members to count: ",
                             "minProperties or maxProperties");
    grammar_node *now = lm_alloc(most + 1, sizeof(*now)), whole = -1;
    for (uint32_t used = 0; now && used <= most; used++)
        now[used] = grammar_own_rule(r->b, count_others(r, all, used));
    for (uint64_t i = all->count; now && i > 0; i--)
        for (uint32_t used = 0; used <= most; used++) // reads entries `used` and used + 1
            now[used] = count_member(r, all, i - 1, used, most, now);
    if (now)
        whole = now[0];
    else
        r->b->status = TN_ERR_MEMORY;
    free(now);
    return whole;
}

static bool are_counted(const struct members *all)
{
    uint64_t required = 0;
    for (uint64_t i = 0; i < all->count; i++)
        required += all->items[i].is_required;
    return all->min > required ||
           (all->max != GRAMMAR_MANY && (all->other >= 0 || all->max < all->count));
}

// --- reading ---------------------------------------------------------------------------

// Whether a name is among the first `count` of a list.
static bool schema_object_is_before(const json_t *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        const char *other = json_string_value(json_array_get(list, i));
        if (other && strcmp(other, name) == 0)
            return true;
    }
    return false;
}

// Fills all->items, which has room for all members.
static void read_members(struct schema_reader *r, json_t *properties,
                         const json_t *required, json_t *additional, struct members *all)
{
    size_t index;
    const char *name;
    json_t *item;
    json_object_foreach(properties, name, item) all->items[all->count++] =
        (struct schema_object_member){schema_object_read_pair(r, name, item),
                                      schema_lists(required, name)};
    json_array_foreach(required, index, item)
    {
        name = json_string_value(item);
        if (!name)
            schema_refuse(r, TN_ERR_REFUSED, "a required name is no text", "");
        else if (!json_object_get(properties, name) && json_is_false(additional))
            schema_refuse(r, TN_ERR_REFUSED,
                          "required, but neither a property nor additional: ", name);
        else if (!json_object_get(properties, name) &&
                 !schema_object_is_before(required, index, name))
            all->items[all->count++] = (struct schema_object_member){
                schema_object_read_pair(r, name,
                                        json_is_true(additional) ? NULL : additional),
                true};
    }
}

// A member whose name the list does not have.
static grammar_node read_other(struct schema_reader *r, json_t *properties,
                               const json_t *required, json_t *additional)
{
    json_t *listed = json_object(), *item;
    const char *name;
    size_t index;
    json_object_foreach(properties, name, item)
        json_object_set_new(listed, name, json_null());
    json_array_foreach(required, index, item)
        json_object_set_new(listed, json_string_value(item), json_null());
    grammar_node key = schema_other_key(r->b, listed);
    json_decref(listed);
    grammar_node value = additional && !json_is_true(additional)
                             ? schema_read_at(r, additional, "additionalProperties", NULL)
                             : schema_any(r);
    grammar_node gap = grammar_repeat(r->b, grammar_text(r->b, " "), 0, 1);
    return grammar_own_rule(
        r->b,
        grammar_sequence(r->b, GRAMMAR_NODES(key, grammar_text(r->b, ":"), gap, value)));
}

grammar_node schema_object(struct schema_reader *r, json_t *schema)
{
    json_t *properties = json_object_get(schema, "properties");
    json_t *required = json_object_get(schema, "required");
    json_t *additional = json_object_get(schema, "additionalProperties");
    if ((properties && !json_is_object(properties)) ||
        (required && !json_is_array(required)))
        return schema_refuse(r, TN_ERR_REFUSED,
                             "properties is no object, or required no array", "");
    uint64_t most = json_object_size(properties) + json_array_size(required);
    if (most > MOST_PROPERTIES)
        return schema_refuse(r, TN_ERR_UNSUPPORTED, "more than 4096 properties", "");
    struct members all = {.items = lm_alloc(most, sizeof(*all.items)),
                          .other = -1,
                          .min = schema_count(r, schema, "minProperties", 0),
                          .max = schema_count(r, schema, "maxProperties", GRAMMAR_MANY)};
    if (!all.items) {
        r->b->status = TN_ERR_MEMORY;
        return -1;
    }
    read_members(r, properties, required, additional, &all);
    bool has_other =
        additional ? !json_is_false(additional) : !properties && !json_array_size(required);
    if (has_other && r->b->status == TN_OK)
        all.other = read_other(r, properties, required, additional);
    if (all.other >= 0 && all.min > all.count + 1)
        schema_refuse(
            r, TN_ERR_UNSUPPORTED,
            "members that are not listed may have one name twice: expected fewer as ",
            "minProperties");
    grammar_node within = all.max < all.min   ? grammar_choice(r->b, NULL, 0)
                          : are_counted(&all) ? count_members(r, &all)
                                              : join_members(r, &all);
    free(all.items);
    return schema_in_brackets(r, "{", schema_then_space(r, within), "}");
}
