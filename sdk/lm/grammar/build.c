// SPDX-License-Identifier: MIT
// Trees of grammars, as their readers build them.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "grammar.h"

// Bounds of a grammar: nodes, and elements of any list.
#define MOST_ELEMENTS (UINT64_C(1) << 20)

bool grammar_grow(tn_status *status, void *items, uint64_t used, uint64_t count,
                  uint64_t *room, uint64_t size, uint64_t most, const char *what)
{
    void *now;
    if (*status != TN_OK)
        return false;
    if (count > most || used > most - count) {
        *status = lm_fail(TN_ERR_UNSUPPORTED,
                          "the grammar is too large: more than %" PRIu64 " %s", most, what);
        return false;
    }
    if (used + count <= *room)
        return true;
    uint64_t more = 2 * (used + count) + 16;
    memcpy(&now, items, sizeof(now)); // a pointer to any type
    now = realloc(now, more * size);
    if (!now) {
        *status = lm_fail(TN_ERR_MEMORY, "out of memory for a grammar of %" PRIu64 " %s",
                          used + count, what);
        return false;
    }
    memcpy(items, &now, sizeof(now));
    *room = more;
    return true;
}

#define GROW(b, list, num, room_, count, what)                                             \
    grammar_grow(&(b)->status, &(b)->list, (b)->num, count, &(b)->room_,                   \
                 sizeof(*(b)->list), MOST_ELEMENTS, what)

void grammar_builder_finish(struct grammar_builder *b)
{
    for (uint64_t i = 0; i < b->num_rules; i++)
        free(b->rules[i].name);
    free(b->rules);
    free(b->nodes);
    free(b->children);
    free(b->ranges);
    free(b->bytes);
    *b = (struct grammar_builder){.status = b->status};
}

static grammar_node grammar_build_add_node(struct grammar_builder *b,
                                           struct grammar_tree_node node)
{
    if (!GROW(b, nodes, num_nodes, room_nodes, 1, "nodes"))
        return -1;
    b->nodes[b->num_nodes] = node;
    return (grammar_node)b->num_nodes++;
}

grammar_node grammar_literal(struct grammar_builder *b, const char *bytes, uint64_t size)
{
    int32_t first = (int32_t)b->num_bytes;
    if (!GROW(b, bytes, num_bytes, room_bytes, size, "bytes of text"))
        return -1;
    if (size)
        memcpy(b->bytes + b->num_bytes, bytes, size);
    b->num_bytes += size;
    return grammar_build_add_node(
        b, (struct grammar_tree_node){NODE_LITERAL, first, (uint32_t)size, 0, 0});
}

grammar_node grammar_text(struct grammar_builder *b, const char *text)
{
    return grammar_literal(b, text, strlen(text));
}

grammar_node grammar_class(struct grammar_builder *b, const struct grammar_range *ranges,
                           uint64_t count)
{
    int32_t first = (int32_t)b->num_ranges;
    if (!GROW(b, ranges, num_ranges, room_ranges, count, "ranges of characters"))
        return -1;
    if (count)
        memcpy(b->ranges + b->num_ranges, ranges, count * sizeof(*ranges));
    b->num_ranges += count;
    return grammar_build_add_node(
        b, (struct grammar_tree_node){NODE_CLASS, first, (uint32_t)count, 0, 0});
}

static grammar_node grammar_build_add_list(struct grammar_builder *b, uint32_t kind,
                                           const grammar_node *children, uint64_t count)
{
    int32_t first = (int32_t)b->num_children;
    if (!GROW(b, children, num_children, room_children, count, "elements"))
        return -1;
    for (uint64_t i = 0; i < count; i++)
        b->children[b->num_children++] = children[i];
    return grammar_build_add_node(
        b, (struct grammar_tree_node){kind, first, (uint32_t)count, 0, 0});
}

grammar_node grammar_sequence(struct grammar_builder *b, const grammar_node *children,
                              uint64_t count)
{
    return count == 1 ? children[0]
                      : grammar_build_add_list(b, NODE_SEQUENCE, children, count);
}

grammar_node grammar_choice(struct grammar_builder *b, const grammar_node *children,
                            uint64_t count)
{
    return count == 1 ? children[0]
                      : grammar_build_add_list(b, NODE_CHOICE, children, count);
}

grammar_node grammar_repeat(struct grammar_builder *b, grammar_node child, uint32_t min,
                            uint32_t max)
{
    if (b->status != TN_OK)
        return -1;
    return min == 1 && max == 1
               ? child
               : grammar_build_add_node(
                     b, (struct grammar_tree_node){NODE_REPEAT, child, 1, min, max});
}

grammar_node grammar_call(struct grammar_builder *b, int32_t rule)
{
    return grammar_build_add_node(b, (struct grammar_tree_node){NODE_CALL, rule, 0, 0, 0});
}

static uint32_t grammar_build_bucket_of(const char *name, uint64_t size)
{
    uint32_t hash = 0;
    for (uint64_t i = 0; i < size; i++)
        hash = (hash * 31 + (unsigned char)name[i]) % 1000003;
    return hash % GRAMMAR_BUCKETS;
}

int32_t grammar_rule_find(const struct grammar_builder *b, const char *name, uint64_t size)
{
    int32_t at = b->by_name[grammar_build_bucket_of(name, size)] - 1;
    while (at >= 0 &&
           (b->rules[at].name_size != size || memcmp(b->rules[at].name, name, size) != 0))
        at = b->rules[at].same;
    return at;
}

int32_t grammar_rule_add(struct grammar_builder *b, const char *name, uint64_t size)
{
    if (!GROW(b, rules, num_rules, room_rules, 1, "rules"))
        return -1;
    int32_t rule = (int32_t)b->num_rules;
    struct grammar_rule *added = &b->rules[rule];
    *added = (struct grammar_rule){.name_size = size, .same = -1, .body = -1};
    if (name && !(added->name = lm_alloc(1, size + 1))) {
        b->status = TN_ERR_MEMORY;
        return -1;
    }
    if (name) {
        int32_t *bucket = &b->by_name[grammar_build_bucket_of(name, size)];
        memcpy(added->name, name, size);
        added->same = *bucket - 1;
        *bucket = rule + 1;
    }
    b->num_rules++;
    return rule;
}

grammar_node grammar_own_rule(struct grammar_builder *b, grammar_node node)
{
    int32_t rule = grammar_rule_add(b, NULL, 0);
    if (rule < 0)
        return -1;
    b->rules[rule].body = node;
    return grammar_call(b, rule);
}

grammar_node grammar_lower(struct grammar_builder *b, grammar_node node, uint64_t index)
{
    return index % 64 == 63 ? grammar_own_rule(b, node) : node;
}

// --- characters ------------------------------------------------------------------------

static int compare_ranges(const void *a, const void *b)
{
    const struct grammar_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

// Adds a range but for the halves of surrogate pairs, which are no characters.
static uint64_t put_range(struct grammar_range *out, uint64_t count, uint32_t first,
                          uint32_t last)
{
    if (first < 0xd800 && last >= 0xd800) {
        out[count++] = (struct grammar_range){first, 0xd7ff};
        first = 0xe000;
    } else if (first >= 0xd800 && first < 0xe000) {
        first = 0xe000;
    }
    if (first <= last && last <= 0x10ffff)
        out[count++] = (struct grammar_range){first, last};
    return count;
}

uint64_t grammar_ranges_tidy(struct grammar_range *ranges, uint64_t count, bool is_negated,
                             struct grammar_range *out)
{
    uint64_t merged = 0, num = 0;
    uint32_t at = 0;
    if (count > 1)
        qsort(ranges, count, sizeof(*ranges), compare_ranges);
    for (uint64_t i = 0; i < count; i++) {
        if (merged > 0 && ranges[i].first <= ranges[merged - 1].last + 1) {
            if (ranges[i].last > ranges[merged - 1].last)
                ranges[merged - 1].last = ranges[i].last;
        } else {
            ranges[merged++] = ranges[i];
        }
    }
    for (uint64_t i = 0; i < merged; i++) {
        if (!is_negated)
            num = put_range(out, num, ranges[i].first, ranges[i].last);
        else if (ranges[i].first > at)
            num = put_range(out, num, at, ranges[i].first - 1);
        at = ranges[i].last + 1;
    }
    if (is_negated && at <= 0x10ffff)
        num = put_range(out, num, at, 0x10ffff);
    return num;
}
