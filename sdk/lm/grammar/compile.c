// SPDX-License-Identifier: MIT
// Compiles trees of grammars to networks of states over bytes. Graphs are made from their
// end: the function that compiles a node gets the state that follows, and gives the state
// that begins.
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "grammar.h"

#define MOST_STATES (UINT64_C(1) << 18)
#define MOST_SETS UINT64_C(4096)

// A repeated node of more states than this, over all copies, becomes a rule of its own.
#define MOST_COPIED 2048

struct compiling {
    struct grammar_builder *b;
    struct grammar_network *n;
    uint32_t buckets[2 * MOST_SETS]; // sets by their hash, plus 1
};

static int32_t grammar_compile_rule(struct compiling *c, grammar_node node, int32_t next);

// --- states ----------------------------------------------------------------------------

static int32_t add_state(struct compiling *c, uint8_t kind, int32_t next, int32_t other)
{
    struct grammar_network *n = c->n;
    if (!grammar_grow(&c->b->status, &n->states, n->num_states, 1, &n->room_states,
                      sizeof(*n->states), MOST_STATES, "states"))
        return 0;
    n->states[n->num_states] =
        (struct grammar_state){.kind = kind, .next = next, .other = other};
    return (int32_t)n->num_states++;
}

static bool grammar_compile_is_same(const struct grammar_set *a,
                                    const struct grammar_set *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static int32_t add_set(struct compiling *c, const struct grammar_set *set)
{
    struct grammar_network *n = c->n;
    uint64_t hash = set->bits[0] ^ set->bits[1] >> 7 ^ set->bits[2] >> 13 ^ set->bits[3];
    hash = (hash ^ hash >> 29 ^ hash >> 47) & (COUNT(c->buckets) - 1);
    for (; c->buckets[hash]; hash = (hash + 1) & (COUNT(c->buckets) - 1))
        if (grammar_compile_is_same(&n->sets[c->buckets[hash] - 1], set))
            return (int32_t)c->buckets[hash] - 1;
    if (!grammar_grow(&c->b->status, &n->sets, n->num_sets, 1, &n->room_sets,
                      sizeof(*n->sets), MOST_SETS, "sets of characters"))
        return 0;
    n->sets[n->num_sets] = *set;
    c->buckets[hash] = (uint32_t)n->num_sets + 1;
    return (int32_t)n->num_sets++;
}

static void set_put(struct grammar_set *set, uint32_t first, uint32_t last)
{
    for (uint32_t byte = first; byte <= last; byte++)
        set->bits[byte / 64] |= UINT64_C(1) << byte % 64;
}

static int32_t grammar_compile_add_bytes(struct compiling *c, uint32_t first, uint32_t last,
                                         int32_t next)
{
    struct grammar_set set = {{0}};
    set_put(&set, first, last);
    return add_state(c, GRAMMAR_BYTES, next, add_set(c, &set));
}

// A state that goes on to a or to b; a or b itself where the other is -1, not made yet.
static int32_t grammar_compile_either(struct compiling *c, int32_t a, int32_t b)
{
    return a < 0 ? b : add_state(c, GRAMMAR_SPLIT, a, b);
}

// --- characters as bytes of UTF-8 ------------------------------------------------------

struct utf8_class {
    struct grammar_set leads[4]; // first bytes before 0 .. 3 arbitrary continuation bytes
    int32_t any[4];              // by number of such bytes: their state; -1: not made yet
    int32_t others;              // the transition for all other bytes; -1: none
    int32_t next;
};

static int grammar_compile_encode(uint32_t c, uint8_t *out)
{
    int size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = size - 1; i > 0; i--, c >>= 6)
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
    out[0] = (uint8_t)(size == 1 ? c : c | (0xf00U >> size & 0xff));
    return size;
}

static int32_t any_bytes(struct compiling *c, struct utf8_class *u, int count)
{
    if (u->any[count] < 0)
        u->any[count] =
            count ? grammar_compile_add_bytes(c, 0x80, 0xbf, any_bytes(c, u, count - 1))
                  : u->next;
    return u->any[count];
}

static bool is_all(const uint8_t *bytes, int size, uint8_t byte)
{
    for (int i = 0; i < size; i++)
        if (bytes[i] != byte)
            return false;
    return true;
}

// States for the continuation bytes a .. b, where a and b have one size.
static int32_t grammar_compile_between(struct compiling *c, struct utf8_class *u,
                                       const uint8_t *a, const uint8_t *b, int size)
{
    static const uint8_t least[3] = {0x80, 0x80, 0x80}, most[3] = {0xbf, 0xbf, 0xbf};
    if (is_all(a, size, 0x80) && is_all(b, size, 0xbf))
        return any_bytes(c, u, size);
    if (a[0] == b[0])
        return grammar_compile_add_bytes(
            c, a[0], a[0], grammar_compile_between(c, u, a + 1, b + 1, size - 1));
    int32_t low = grammar_compile_add_bytes(
        c, a[0], a[0], grammar_compile_between(c, u, a + 1, most, size - 1));
    int32_t high = grammar_compile_add_bytes(
        c, b[0], b[0], grammar_compile_between(c, u, least, b + 1, size - 1));
    int32_t both = grammar_compile_either(c, low, high);
    return b[0] - a[0] < 2 ? both
                           : grammar_compile_either(
                                 c, both,
                                 grammar_compile_add_bytes(c, a[0] + 1U, b[0] - 1U,
                                                           any_bytes(c, u, size - 1)));
}

static void add_lead(struct compiling *c, struct utf8_class *u, uint32_t first,
                     uint32_t last, const uint8_t *a, const uint8_t *b, int size)
{
    if (is_all(a, size, 0x80) && is_all(b, size, 0xbf))
        set_put(&u->leads[size], first, last);
    else
        u->others = grammar_compile_either(
            c, u->others,
            grammar_compile_add_bytes(c, first, last,
                                      grammar_compile_between(c, u, a, b, size)));
}

// Adds characters whose encodings have the same size.
static void add_characters(struct compiling *c, struct utf8_class *u, uint32_t first,
                           uint32_t last)
{
    static const uint8_t least[3] = {0x80, 0x80, 0x80}, most[3] = {0xbf, 0xbf, 0xbf};
    uint8_t a[4], b[4];
    int size = grammar_compile_encode(first, a);
    grammar_compile_encode(last, b);
    if (a[0] == b[0]) {
        add_lead(c, u, a[0], a[0], a + 1, b + 1, size - 1);
        return;
    }
    add_lead(c, u, a[0], a[0], a + 1, most, size - 1);
    if (b[0] - a[0] >= 2)
        add_lead(c, u, a[0] + 1U, b[0] - 1U, least, most, size - 1);
    add_lead(c, u, b[0], b[0], least, b + 1, size - 1);
}

static int32_t compile_class(struct compiling *c, const struct grammar_range *ranges,
                             uint32_t count, int32_t next)
{
    static const uint32_t ends[] = {0x7f, 0x7ff, 0xffff, 0x10ffff};
    struct utf8_class u = {.any = {-1, -1, -1, -1}, .others = -1, .next = next};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = ranges[i].first;
        for (size_t k = 0; k < COUNT(ends) && first <= ranges[i].last; k++) {
            if (first > ends[k])
                continue;
            uint32_t last = ranges[i].last < ends[k] ? ranges[i].last : ends[k];
            add_characters(c, &u, first, last);
            first = last + 1;
        }
    }
    int32_t start = u.others;
    for (int size = 3; size >= 0; size--) {
        const uint64_t *bits = u.leads[size].bits;
        if (bits[0] | bits[1] | bits[2] | bits[3])
            start =
                grammar_compile_either(c, start,
                                       add_state(c, GRAMMAR_BYTES, any_bytes(c, &u, size),
                                                 add_set(c, &u.leads[size])));
    }
    return start < 0 ? add_state(c, GRAMMAR_FAIL, 0, 0) : start;
}

// --- nodes -----------------------------------------------------------------------------

// Estimates the number of states that a node takes.
static uint64_t grammar_compile_weight(const struct grammar_builder *b, grammar_node at)
{
    const struct grammar_tree_node *node = &b->nodes[at];
    uint64_t sum = 1;
    if (node->kind == NODE_LITERAL)
        return node->count;
    if (node->kind == NODE_CLASS)
        for (uint32_t i = 0; i < node->count; i++)
            sum += b->ranges[node->first + (int32_t)i].last < 0x80 ? 0 : 8;
    if (node->kind == NODE_SEQUENCE || node->kind == NODE_CHOICE)
        for (uint32_t i = 0; i < node->count; i++)
            sum += grammar_compile_weight(b, b->children[node->first + (int32_t)i]);
    if (node->kind == NODE_REPEAT) {
        uint64_t copies = node->max == GRAMMAR_MANY ? node->min + 1U : node->max;
        uint64_t each = grammar_compile_weight(b, node->first);
        sum += copies * each > MOST_COPIED ? copies : copies * each;
    }
    return sum;
}

static int32_t compile_repeat(struct compiling *c, const struct grammar_tree_node *node,
                              int32_t next)
{
    struct grammar_builder *b = c->b;
    bool is_open = node->max == GRAMMAR_MANY;
    uint64_t copies = is_open ? (uint64_t)node->min + 1 : node->max;
    uint32_t least = node->min, most = node->max;
    grammar_node body = node->first; // `node` moves when nodes are added
    if (copies > 1 && grammar_compile_weight(b, body) > 2 &&
        copies * grammar_compile_weight(b, body) > MOST_COPIED) {
        int32_t rule = grammar_rule_add(b, NULL, 0);
        if (rule < 0)
            return 0;
        b->rules[rule].body = body;
        body = grammar_call(b, rule);
    }
    int32_t start = next;
    if (is_open) {
        start = add_state(c, GRAMMAR_SPLIT, 0, next);
        int32_t again = grammar_compile_rule(c, body, start);
        if (b->status == TN_OK)
            c->n->states[start].next = again;
        start = least > 0 ? again : start;
        least -= least > 0;
    }
    for (uint32_t i = least; !is_open && i < most && b->status == TN_OK; i++)
        start = add_state(c, GRAMMAR_SPLIT, grammar_compile_rule(c, body, start), next);
    for (uint32_t i = 0; i < least && b->status == TN_OK; i++)
        start = grammar_compile_rule(c, body, start);
    return start;
}

static int32_t grammar_compile_rule(struct compiling *c, grammar_node at, int32_t next)
{
    struct grammar_builder *b = c->b;
    if (b->status != TN_OK)
        return 0;
    struct grammar_tree_node node = b->nodes[at];
    int32_t start = node.kind == NODE_CHOICE ? -1 : next;
    switch (node.kind) {
    case NODE_LITERAL:
        for (uint32_t i = node.count; i > 0; i--) {
            uint8_t byte = (uint8_t)b->bytes[node.first + (int32_t)i - 1];
            start = grammar_compile_add_bytes(c, byte, byte, start);
        }
        return start;
    case NODE_CLASS:
        return compile_class(c, node.count ? b->ranges + node.first : NULL, node.count,
                             next);
    case NODE_SEQUENCE:
        for (uint32_t i = node.count; i > 0; i--)
            start =
                grammar_compile_rule(c, b->children[node.first + (int32_t)i - 1], start);
        return start;
    case NODE_CHOICE:
        for (uint32_t i = node.count; i > 0; i--)
            start = grammar_compile_either(
                c, start,
                grammar_compile_rule(c, b->children[node.first + (int32_t)i - 1], next));
        return start < 0 ? add_state(c, GRAMMAR_FAIL, 0, 0) : start;
    case NODE_REPEAT:
        return compile_repeat(c, &node, next);
    default:
        return add_state(c, GRAMMAR_CALL, next, node.first);
    }
}

// --- properties of states --------------------------------------------------------------

// Lists of states: the predecessors of each state, and the calls of each rule.
struct grammar_compile_backward {
    uint32_t *first, *list; // of state i: list[first[i]] .. list[first[i + 1] - 1]
    uint32_t *first_call, *calls;
    int32_t *todo;
};

static void backward_finish(struct grammar_compile_backward *w)
{
    free(w->first);
    free(w->list);
    free(w->first_call);
    free(w->calls);
    free(w->todo);
}

// Counts one entry, or writes it to the list.
static void grammar_compile_note(uint32_t *first, uint32_t *list, int32_t at,
                                 uint64_t value)
{
    if (list)
        list[--first[at]] = (uint32_t)value;
    else
        first[at]++;
}

static void note_all(const struct grammar_network *n, struct grammar_compile_backward *w,
                     bool is_second)
{
    for (uint64_t i = 0; i < n->num_states; i++) {
        const struct grammar_state *s = &n->states[i];
        if (s->kind == GRAMMAR_ACCEPT || s->kind == GRAMMAR_FAIL)
            continue;
        grammar_compile_note(w->first, is_second ? w->list : NULL, s->next, i);
        if (s->kind == GRAMMAR_SPLIT)
            grammar_compile_note(w->first, is_second ? w->list : NULL, s->other, i);
        if (s->kind == GRAMMAR_CALL) // also a predecessor of the rule's start
            grammar_compile_note(w->first_call, is_second ? w->calls : NULL,
                                 n->starts[s->other], i);
    }
}

static bool backward_make(const struct grammar_network *n,
                          struct grammar_compile_backward *w)
{
    uint64_t states = n->num_states;
    w->first = lm_alloc(states + 1, sizeof(uint32_t));
    w->list = lm_alloc(2 * states, sizeof(uint32_t));
    w->first_call = lm_alloc(states + 1, sizeof(uint32_t));
    w->calls = lm_alloc(states, sizeof(uint32_t));
    w->todo = lm_alloc(states, sizeof(int32_t));
    if (!w->first || !w->list || !w->first_call || !w->calls || !w->todo)
        return false;
    note_all(n, w, false);
    for (uint64_t i = 1; i <= states; i++) {
        w->first[i] += w->first[i - 1];
        w->first_call[i] += w->first_call[i - 1];
    }
    note_all(n, w, true);
    return true;
}

static bool is_good(const struct grammar_network *n, const uint8_t *good, bool with_bytes,
                    uint32_t at)
{
    const struct grammar_state *s = &n->states[at];
    switch (s->kind) {
    case GRAMMAR_SPLIT:
        return good[s->next] || good[s->other];
    case GRAMMAR_BYTES:
        return with_bytes && good[s->next];
    case GRAMMAR_CALL:
        return good[s->next] && good[n->starts[s->other]];
    default:
        return s->kind == GRAMMAR_ACCEPT;
    }
}

// Marks the states from which the end of their rule can be reached: by the empty text or,
// if with_bytes, by any text.
static void grammar_compile_reach(const struct grammar_network *n,
                                  const struct grammar_compile_backward *w, bool with_bytes,
                                  uint8_t *good)
{
    uint64_t count = 0;
    memset(good, 0, n->num_states);
    good[GRAMMAR_ACCEPT] = 1;
    w->todo[count++] = 0;
    while (count > 0) {
        int32_t at = w->todo[--count];
        uint32_t plain = w->first[at + 1] - w->first[at];
        uint32_t calls = w->first_call[at + 1] - w->first_call[at];
        for (uint32_t i = 0; i < plain + calls; i++) {
            uint32_t before = i < plain ? w->list[w->first[at] + i]
                                        : w->calls[w->first_call[at] + i - plain];
            if (good[before] || !is_good(n, good, with_bytes, before))
                continue;
            good[before] = 1;
            w->todo[count++] = (int32_t)before;
        }
    }
}

static tn_status know_states(struct grammar_network *n)
{
    struct grammar_compile_backward w = {NULL};
    uint8_t *good = lm_alloc(n->num_states, 1);
    n->is_nullable = lm_alloc(n->num_rules, 1);
    bool is_made = good && n->is_nullable && backward_make(n, &w);
    if (is_made) {
        grammar_compile_reach(n, &w, false, good);
        for (uint64_t i = 0; i < n->num_rules; i++)
            n->is_nullable[i] = good[n->starts[i]];
        grammar_compile_reach(n, &w, true, good);
        for (uint64_t i = 0; i < n->num_states; i++) {
            n->states[i].is_productive = good[i];
            n->states[i].is_tail =
                n->states[i].kind == GRAMMAR_CALL && n->states[i].next == GRAMMAR_ACCEPT;
        }
    }
    backward_finish(&w);
    free(good);
    return is_made ? TN_OK : TN_ERR_MEMORY;
}

static void know_classes(struct grammar_network *n)
{
    n->num_classes = 1;
    for (uint64_t i = 0; i < n->num_sets && n->num_classes < 256; i++) {
        int32_t others[256];
        memset(others, -1, sizeof(others));
        uint32_t before = n->num_classes;
        uint32_t inside[256] = {0}, outside[256] = {0};
        for (uint32_t byte = 0; byte < 256; byte++) {
            bool is_in = n->sets[i].bits[byte / 64] >> byte % 64 & 1;
            (is_in ? inside : outside)[n->class_of[byte]]++;
        }
        for (uint32_t class = 0; class < before; class ++)
            if (inside[class] && outside[class])
                others[class] = (int32_t)n->num_classes++;
        for (uint32_t byte = 0; byte < 256; byte++) {
            bool is_in = n->sets[i].bits[byte / 64] >> byte % 64 & 1;
            if (is_in && others[n->class_of[byte]] >= 0)
                n->class_of[byte] = (uint8_t)others[n->class_of[byte]];
        }
    }
}

// --- the whole -------------------------------------------------------------------------

void grammar_network_finish(struct grammar_network *n)
{
    free(n->states);
    free(n->sets);
    free(n->starts);
    free(n->is_nullable);
    *n = (struct grammar_network){.num_states = 0};
}

static void compile_rules(struct compiling *c)
{
    struct grammar_network *n = c->n;
    add_state(c, GRAMMAR_ACCEPT, 0, 0);
    for (uint64_t i = 0; i < c->b->num_rules && c->b->status == TN_OK; i++) {
        int32_t start = grammar_compile_rule(c, c->b->rules[i].body, 0);
        if (grammar_grow(&c->b->status, &n->starts, i, 1, &n->room_rules, sizeof(int32_t),
                         MOST_STATES, "rules"))
            n->starts[n->num_rules++] = start;
    }
}

tn_status grammar_compile(struct grammar_builder *b, struct grammar_network *out)
{
    struct grammar_network n = {.num_states = 0};
    if (b->status != TN_OK)
        return b->status;
    struct compiling *c = lm_alloc(1, sizeof(*c));
    if (!c)
        return TN_ERR_MEMORY;
    c->b = b;
    c->n = &n;
    compile_rules(c);
    tn_status status = b->status == TN_OK ? know_states(&n) : b->status;
    if (status == TN_OK && !n.states[n.starts[0]].is_productive)
        status = lm_fail(TN_ERR_REFUSED, "the grammar has no text: each way through its "
                                         "first rule is endless, or leads nowhere");
    know_classes(&n);
    free(c);
    if (status == TN_OK)
        *out = n;
    else
        grammar_network_finish(&n);
    return status;
}
