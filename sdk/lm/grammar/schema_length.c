// SPDX-License-Identifier: MIT
// Restricts a pattern to texts of min to max characters: parts of fixed length take theirs,
// and the other parts share the rest in every possible way.
#include <stdlib.h>
#include "schema.h"

#define MOST_FITTED 2000
#define MANY GRAMMAR_MANY

struct length_span {
    uint32_t min, max; // characters; MANY: no bound
};

// A node that was restricted to a span, with its result.
struct fitted {
    grammar_node node, result;
    struct length_span span;
};

struct fitter {
    struct grammar_builder *b;
    const grammar_node *characters; // nodes of one character, ascending
    uint64_t num_characters;
    struct fitted *known;
    uint64_t num_known, room_known;
    bool is_too_large;
};

static grammar_node schema_length_fit(struct fitter *f, grammar_node node,
                                      struct length_span span);

// --- lengths ---------------------------------------------------------------------------

static uint32_t schema_length_add(uint32_t a, uint32_t b)
{
    return a == MANY || b == MANY || a > MANY - 1 - b ? MANY : a + b;
}

static uint32_t schema_length_multiply(uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return 0;
    return a == MANY || b == MANY || a > (MANY - 1) / b ? MANY : a * b;
}

static uint32_t schema_length_less(uint32_t a, uint32_t b)
{
    return a == MANY ? MANY : a > b ? a - b : 0;
}

static int compare_nodes(const void *a, const void *b)
{
    const grammar_node *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static struct length_span lengths_of(const struct fitter *f, grammar_node node)
{
    const struct grammar_tree_node n = f->b->nodes[node];
    if (bsearch(&node, f->characters, f->num_characters, sizeof(node), compare_nodes))
        return (struct length_span){1, 1};
    if (n.kind == NODE_REPEAT) {
        struct length_span one = lengths_of(f, n.first);
        return (struct length_span){schema_length_multiply(one.min, n.min),
                                    schema_length_multiply(one.max, n.max)};
    }
    struct length_span all = {n.kind == NODE_CHOICE ? MANY : 0, 0};
    bool has_parts = n.kind == NODE_CHOICE || n.kind == NODE_SEQUENCE;
    for (uint32_t i = 0; has_parts && i < n.count; i++) {
        struct length_span one = lengths_of(f, f->b->children[n.first + (int32_t)i]);
        if (n.kind == NODE_SEQUENCE)
            all = (struct length_span){schema_length_add(all.min, one.min),
                                       schema_length_add(all.max, one.max)};
        else
            all = (struct length_span){one.min < all.min ? one.min : all.min,
                                       one.max > all.max ? one.max : all.max};
    }
    return all;
}

static bool schema_length_is_fixed(struct length_span span)
{
    return span.min == span.max && span.max != MANY;
}

// --- texts -----------------------------------------------------------------------------

static grammar_node schema_length_nothing(struct fitter *f)
{
    return grammar_choice(f->b, NULL, 0);
}

static grammar_node schema_length_behind(struct fitter *f, grammar_node left,
                                         grammar_node right)
{
    return grammar_sequence(f->b, GRAMMAR_NODES(left, right));
}

// Two parts in sequence: tries each length of the right part that leaves a possible length
// to the left.
static grammar_node fit_two(struct fitter *f, grammar_node left, grammar_node right,
                            struct length_span span)
{
    struct length_span mine = lengths_of(f, left), others = lengths_of(f, right);
    if (mine.min > span.max)
        return schema_length_nothing(f);
    if (schema_length_is_fixed(mine))
        return schema_length_behind(
            f, left,
            schema_length_fit(
                f, right,
                (struct length_span){schema_length_less(span.min, mine.min),
                                     schema_length_less(span.max, mine.min)}));
    uint32_t need = schema_length_less(span.min, mine.min); // from here on: any left length
    uint32_t last = span.max == MANY ? need : schema_length_less(span.max, mine.min) + 1;
    grammar_node whole = schema_length_nothing(f);
    for (uint32_t i = others.min; i < last && i <= others.max && f->b->status == TN_OK;
         i++) {
        struct length_span rest = {schema_length_less(span.min, i),
                                   schema_length_less(span.max, i)};
        grammar_node one =
            schema_length_behind(f, schema_length_fit(f, left, rest),
                                 schema_length_fit(f, right, (struct length_span){i, i}));
        whole = grammar_choice(f->b, GRAMMAR_NODES(whole, one));
        if (f->is_too_large)
            return -1;
    }
    if (span.max != MANY)
        return whole;
    grammar_node more = schema_length_behind(
        f, left, schema_length_fit(f, right, (struct length_span){need, MANY}));
    return grammar_choice(f->b, GRAMMAR_NODES(whole, more));
}

static grammar_node known_find(const struct fitter *f, grammar_node node,
                               struct length_span span)
{
    for (uint64_t i = 0; i < f->num_known; i++)
        if (f->known[i].node == node && f->known[i].span.min == span.min &&
            f->known[i].span.max == span.max)
            return f->known[i].result;
    return -1;
}

static void known_add(struct fitter *f, grammar_node node, struct length_span span,
                      grammar_node result)
{
    if (f->num_known == MOST_FITTED)
        f->is_too_large = true;
    else if (grammar_grow(&f->b->status, &f->known, f->num_known, 1, &f->room_known,
                          sizeof(*f->known), MOST_FITTED, "parts of a pattern"))
        f->known[f->num_known++] = (struct fitted){node, result, span};
}

// The rest of a repetition behind its first element, as one node, which is restricted once.
static grammar_node rest_of(struct fitter *f, grammar_node node)
{
    static const struct length_span whole = {MANY, 0}; // no span: the key of rests
    const struct grammar_tree_node n = f->b->nodes[node];
    grammar_node rest = n.min == 0 && n.max == MANY ? node : known_find(f, node, whole);
    if (rest >= 0)
        return rest;
    rest = grammar_repeat(f->b, n.first, schema_length_less(n.min, 1),
                          schema_length_less(n.max, 1));
    known_add(f, node, whole, rest);
    return rest;
}

static grammar_node fit_repeated(struct fitter *f, grammar_node node,
                                 struct length_span span)
{
    const struct grammar_tree_node n = f->b->nodes[node];
    struct length_span one = lengths_of(f, n.first);
    if (schema_length_is_fixed(one) && one.min > 0) {
        uint32_t low = span.min / one.min + (span.min % one.min > 0),
                 high = span.max == MANY ? MANY : span.max / one.min;
        low = low > n.min ? low : n.min;
        high = high < n.max ? high : n.max;
        return low > high ? schema_length_nothing(f)
                          : grammar_repeat(f->b, n.first, low, high);
    }
    if (one.min == 0) { // elements may be empty: any number fits
        f->is_too_large = true;
        return -1;
    }
    grammar_node rest = rest_of(f, node);
    grammar_node some = f->is_too_large ? -1 : fit_two(f, n.first, rest, span);
    return n.min > 0 || span.min > 0
               ? some
               : grammar_choice(f->b, GRAMMAR_NODES(some, grammar_text(f->b, "")));
}

static grammar_node fit_parts(struct fitter *f, grammar_node node, struct length_span span)
{
    const struct grammar_tree_node n = f->b->nodes[node];
    grammar_node whole = schema_length_nothing(f);
    if (n.kind == NODE_REPEAT)
        return fit_repeated(f, node, span);
    if (n.kind == NODE_SEQUENCE && n.count == 2)
        return fit_two(f, f->b->children[n.first], f->b->children[n.first + 1], span);
    for (uint32_t i = 0; n.kind == NODE_CHOICE && i < n.count; i++) {
        grammar_node one = schema_length_fit(f, f->b->children[n.first + (int32_t)i], span);
        whole = grammar_choice(f->b, GRAMMAR_NODES(whole, one));
    }
    f->is_too_large |= n.kind != NODE_CHOICE;
    return whole;
}

static grammar_node schema_length_fit(struct fitter *f, grammar_node node,
                                      struct length_span span)
{
    if (f->b->status != TN_OK || f->is_too_large)
        return -1;
    struct length_span own = lengths_of(f, node);
    if (own.min >= span.min && own.max <= span.max)
        return node;
    if (own.max < span.min || own.min > span.max)
        return schema_length_nothing(f);
    grammar_node result = known_find(f, node, span);
    if (result >= 0)
        return result;
    result = fit_parts(f, node, span);
    if (f->is_too_large || f->b->status != TN_OK)
        return -1;
    result = grammar_own_rule(f->b, result);
    known_add(f, node, span, result);
    return result;
}

grammar_node schema_fit_length(struct grammar_builder *b, grammar_node node,
                               const grammar_node *characters, uint64_t count, uint32_t min,
                               uint32_t max, bool *out_is_too_large)
{
    struct fitter f = {.b = b, .characters = characters, .num_characters = count};
    grammar_node result = schema_length_fit(&f, node, (struct length_span){min, max});
    free(f.known);
    *out_is_too_large = f.is_too_large;
    return result;
}
