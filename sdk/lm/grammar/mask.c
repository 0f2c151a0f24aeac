// SPDX-License-Identifier: MIT
// Masks: the tokens of a vocabulary that may come next. The tokens are a tree of bytes,
// which is walked together with the sets of a matcher.
//
// There are two such trees. In the coarse tree each byte is replaced by its coarse class,
// one of a few that most grammars treat alike: letters, digits and signs are one class.
// Within the text of a string, where nearly all tokens may come, the coarse tree is walked
// instead: tokens with equal classes are allowed together. Where a grammar does tell bytes
// of a class apart, the tokens from there on are followed one by one.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "match.h"

// The most bytes of a token that masks may allow.
#define MOST_TOKEN 512

// Nodes of more tokens than this have a mask of their own.
#define MANY_TOKENS 256

// A node of a tree, in the order of a walk: its descendants come next, up to `end`.
struct trie_node {
    uint32_t end;
    uint32_t first, num_tokens, end_tokens; // in `order`: tokens that end here; all below
    int32_t mask;                           // mask of the tokens that end here; -1: none
    uint16_t depth;                         // position of the node's byte in texts
    uint8_t byte;                           // in the coarse tree: a class
    uint8_t reserved;
};

struct trie {
    struct trie_node *nodes;
    int32_t *order;  // tokens, sorted by their texts
    uint32_t *texts; // by position in `order`: where the text begins in `bytes`
    uint16_t *sizes; // by position in `order`: bytes
    uint64_t *masks; // of nodes with many tokens
    uint64_t num_nodes, num_masks;
};

struct grammar_vocabulary {
    struct trie fine, coarse;
    char *bytes;
    int32_t count;
    uint8_t classes[256];
    uint8_t first[GRAMMAR_COARSE]; // by class: one byte of it
    struct grammar_set sets[GRAMMAR_COARSE];
};

// --- making vocabularies ---------------------------------------------------------------

static const struct {
    uint8_t first, last, class;
} coarse_classes[] = {
    {0x00, 0xff, 0},  {0x00, 0x1f, 1},  {'\n', '\n', 2},  {'"', '"', 3},
    {'\\', '\\', 4},  {0x7f, 0x7f, 5},  {0x80, 0x8f, 6},  {0x90, 0x9f, 7},
    {0xa0, 0xbf, 8},  {0xc0, 0xff, 9},  {0xc2, 0xdf, 10}, {0xe0, 0xe0, 11},
    {0xe1, 0xec, 12}, {0xed, 0xed, 13}, {0xee, 0xef, 14}, {0xf0, 0xf0, 15},
    {0xf1, 0xf3, 16}, {0xf4, 0xf4, 17},
};
_Static_assert(COUNT(coarse_classes) == GRAMMAR_COARSE, "a row for each class");

static void make_classes(struct grammar_vocabulary *v)
{
    for (size_t i = 0; i < COUNT(coarse_classes); i++)
        for (uint32_t b = coarse_classes[i].first; b <= coarse_classes[i].last; b++)
            v->classes[b] = coarse_classes[i].class;
    for (uint32_t byte = 0; byte < 256; byte++) {
        v->first[v->classes[byte]] = (uint8_t)byte;
        v->sets[v->classes[byte]].bits[byte / 64] |= UINT64_C(1) << byte % 64;
    }
}

struct sorted {
    uint64_t head; // first 8 bytes, zeros behind them, as a big-endian number
    const char *bytes;
    uint32_t size;
    int32_t id;
};

static int compare_texts(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    uint32_t size = x->size < y->size ? x->size : y->size;
    int order = size > 8 ? memcmp(x->bytes + 8, y->bytes + 8, size - 8) : 0;
    if (order)
        return order;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static uint64_t grammar_mask_shared_bytes(const struct sorted *a, const struct sorted *b)
{
    uint64_t size = a->size < b->size ? a->size : b->size, i = 0;
    while (i < size && a->bytes[i] == b->bytes[i])
        i++;
    return i;
}

// Adds the nodes of a text that are not those of the text before it.
static void trie_add(struct trie *t, const struct sorted *token,
                     const struct sorted *before, uint32_t rank, uint32_t *path)
{
    uint64_t shared = before ? grammar_mask_shared_bytes(token, before) : 0;
    for (uint64_t i = shared; before && i < before->size; i++) {
        t->nodes[path[i]].end = (uint32_t)t->num_nodes;
        t->nodes[path[i]].end_tokens = rank;
    }
    for (uint64_t i = shared; i < token->size; i++) {
        path[i] = (uint32_t)t->num_nodes;
        t->nodes[t->num_nodes++] = (struct trie_node){.first = rank,
                                                      .mask = -1,
                                                      .depth = (uint16_t)i,
                                                      .byte = (uint8_t)token->bytes[i]};
    }
    t->nodes[path[token->size - 1]].num_tokens++;
}

static bool make_masks(struct trie *t, uint64_t words)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < t->num_nodes; i++)
        count += t->nodes[i].num_tokens >= MANY_TOKENS;
    t->masks = lm_alloc(count * words, sizeof(uint64_t));
    for (uint64_t i = 0; t->masks && i < t->num_nodes; i++) {
        struct trie_node *node = &t->nodes[i];
        if (node->num_tokens < MANY_TOKENS)
            continue;
        node->mask = (int32_t)(t->num_masks++ * words);
        for (uint32_t k = 0; k < node->num_tokens; k++) {
            int32_t id = t->order[node->first + k];
            t->masks[node->mask + id / 64] |= UINT64_C(1) << id % 64;
        }
    }
    return t->masks != NULL;
}

// Sorts the tokens, whose texts are in `bytes`, and makes a tree of them.
static bool trie_make(struct trie *t, struct sorted *sorted, uint64_t num, uint64_t total,
                      const char *bytes, uint64_t words)
{
    uint32_t path[MOST_TOKEN];
    t->nodes = lm_alloc(total, sizeof(*t->nodes));
    t->order = lm_alloc(num, sizeof(*t->order));
    t->texts = lm_alloc(num, sizeof(*t->texts));
    t->sizes = lm_alloc(num, sizeof(*t->sizes));
    if (!t->nodes || !t->order || !t->texts || !t->sizes)
        return false;
    for (uint64_t i = 0; i < num; i++) {
        sorted[i].head = 0;
        for (uint32_t k = 0; k < 8; k++)
            sorted[i].head = sorted[i].head << 8 |
                             (k < sorted[i].size ? (uint8_t)sorted[i].bytes[k] : 0);
    }
    if (num > 1)
        qsort(sorted, num, sizeof(*sorted), compare_texts);
    for (uint64_t i = 0; i < num; i++) {
        t->order[i] = sorted[i].id;
        t->texts[i] = (uint32_t)(sorted[i].bytes - bytes);
        t->sizes[i] = (uint16_t)sorted[i].size;
        trie_add(t, &sorted[i], i ? &sorted[i - 1] : NULL, (uint32_t)i, path);
    }
    for (uint64_t i = 0; num && i < sorted[num - 1].size; i++) {
        t->nodes[path[i]].end = (uint32_t)t->num_nodes;
        t->nodes[path[i]].end_tokens = (uint32_t)num;
    }
    struct trie_node *fewer = realloc(t->nodes, (t->num_nodes + 1) * sizeof(*fewer));
    t->nodes = fewer ? fewer : t->nodes;
    return make_masks(t, words);
}

static bool make_tries(struct grammar_vocabulary *v, const tn_text *bytes,
                       struct sorted *sorted)
{
    uint64_t total = 0, num = 0, words = ((uint64_t)v->count + 63) / 64;
    for (int32_t i = 0; i < v->count; i++)
        total += bytes[i].size > MOST_TOKEN ? 0 : bytes[i].size;
    v->bytes = lm_alloc(total, 1);
    char *classes = lm_alloc(total, 1);
    uint64_t used = 0;
    for (int32_t i = 0; v->bytes && classes && i < v->count; i++) {
        if (bytes[i].size == 0 || bytes[i].size > MOST_TOKEN)
            continue;
        memcpy(v->bytes + used, bytes[i].data, bytes[i].size);
        sorted[num++] = (struct sorted){
            .bytes = v->bytes + used, .size = (uint32_t)bytes[i].size, .id = i};
        used += bytes[i].size;
    }
    bool is_made =
        v->bytes && classes && trie_make(&v->fine, sorted, num, total, v->bytes, words);
    for (uint64_t i = 0; is_made && i < total; i++)
        classes[i] = (char)v->classes[(uint8_t)v->bytes[i]];
    for (uint64_t i = 0; is_made && i < num; i++)
        sorted[i].bytes = classes + (sorted[i].bytes - v->bytes);
    is_made = is_made && trie_make(&v->coarse, sorted, num, total, classes, words);
    free(classes);
    return is_made;
}

tn_status grammar_vocabulary_make(const tn_text *bytes, int32_t count,
                                  struct grammar_vocabulary **out_vocabulary)
{
    struct grammar_vocabulary *v = lm_alloc(1, sizeof(*v));
    struct sorted *sorted = lm_alloc((uint64_t)count, sizeof(*sorted));
    bool is_made = false;
    if (v && sorted) {
        v->count = count;
        make_classes(v);
        is_made = make_tries(v, bytes, sorted);
    }
    free(sorted);
    if (is_made)
        *out_vocabulary = v;
    else
        grammar_vocabulary_destroy(v);
    return is_made ? TN_OK : TN_ERR_MEMORY;
}

static void trie_finish(struct trie *t)
{
    free(t->nodes);
    free(t->order);
    free(t->texts);
    free(t->sizes);
    free(t->masks);
}

void grammar_vocabulary_destroy(struct grammar_vocabulary *v)
{
    if (!v)
        return;
    trie_finish(&v->fine);
    trie_finish(&v->coarse);
    free(v->bytes);
    free(v);
}

// --- walking ---------------------------------------------------------------------------

static void grammar_mask_allow(const struct trie *t, const struct trie_node *node,
                               uint64_t *mask, uint64_t words)
{
    if (node->mask >= 0) {
        for (uint64_t i = 0; i < words; i++)
            mask[i] |= t->masks[(uint64_t)node->mask + i];
        return;
    }
    for (uint32_t i = 0; i < node->num_tokens; i++) {
        int32_t id = t->order[node->first + i];
        mask[id / 64] |= UINT64_C(1) << id % 64;
    }
}

static void walk_fine(struct grammar_matcher *m, const struct grammar_vocabulary *v,
                      uint64_t *mask, uint64_t words)
{
    const struct grammar_network *n = m->network;
    const struct trie *t = &v->fine;
    int32_t path[MOST_TOKEN + 1] = {m->at};
    for (uint64_t i = 0; i < t->num_nodes && m->status == TN_OK;) {
        const struct trie_node *node = &t->nodes[i];
        int32_t at = path[node->depth];
        int32_t next = m->rows[(uint64_t)at * n->num_classes + n->class_of[node->byte]];
        if (next == UNKNOWN)
            next = grammar_matcher_next(m, at, node->byte);
        if (next < 0) {
            i = node->end;
            continue;
        }
        path[node->depth + 1] = next;
        grammar_mask_allow(t, node, mask, words);
        i++;
    }
}

// The set that each byte of a coarse class leads to, or PARTS.
static int32_t coarse_next(struct grammar_matcher *m, const struct grammar_vocabulary *v,
                           int32_t set, uint8_t class)
{
    uint64_t cell = (uint64_t)set * GRAMMAR_COARSE + class;
    const struct grammar_set *bytes = &v->sets[class];
    int32_t next = m->coarse[cell];
    if (next != UNKNOWN)
        return next;
    for (int32_t i = 0; i < m->sets[set].num_scans && next == UNKNOWN; i++) {
        struct item item = m->items[m->sets[set].scans + i];
        const struct grammar_set *with =
            &m->network->sets[m->network->states[item.state].other];
        uint64_t some = 0, none = 0;
        for (int k = 0; k < 4; k++) {
            some |= bytes->bits[k] & with->bits[k];
            none |= bytes->bits[k] & ~with->bits[k];
        }
        if (some && none)
            next = PARTS;
    }
    if (next == UNKNOWN)
        next = grammar_matcher_next(m, set, v->first[class]);
    if (m->status == TN_OK)
        m->coarse[cell] = next;
    return next;
}

// Follows each token below a node by itself, from the node's byte on.
static void allow_each(struct grammar_matcher *m, const struct grammar_vocabulary *v,
                       const struct trie_node *node, int32_t set, uint64_t *mask)
{
    const struct trie *t = &v->coarse;
    for (uint32_t i = node->first; i < node->end_tokens && m->status == TN_OK; i++) {
        const char *text = v->bytes + t->texts[i];
        int32_t at = set, id = t->order[i];
        for (uint32_t k = node->depth; k < t->sizes[i] && at >= 0; k++)
            at = grammar_matcher_next(m, at, (uint8_t)text[k]);
        if (at >= 0)
            mask[id / 64] |= UINT64_C(1) << id % 64;
    }
}

static void walk_coarse(struct grammar_matcher *m, const struct grammar_vocabulary *v,
                        uint64_t *mask, uint64_t words)
{
    const struct trie *t = &v->coarse;
    int32_t path[MOST_TOKEN + 1] = {m->at};
    for (uint64_t i = 0; i < t->num_nodes && m->status == TN_OK;) {
        const struct trie_node *node = &t->nodes[i];
        int32_t at = path[node->depth];
        int32_t next = coarse_next(m, v, at, node->byte);
        if (next == PARTS)
            allow_each(m, v, node, at, mask);
        if (next < 0) {
            i = node->end;
            continue;
        }
        path[node->depth + 1] = next;
        grammar_mask_allow(t, node, mask, words);
        i++;
    }
}

static tn_status make_mask(struct grammar_matcher *m, const struct grammar_vocabulary *v,
                           uint64_t words)
{
    if (m->num_masks + words > MOST_MASK_WORDS) {
        for (uint64_t i = 0; i < m->num_sets; i++)
            m->sets[i].mask = -1;
        m->num_masks = 0;
    }
    uint64_t first = m->num_masks;
    if (!grammar_matcher_grow(m, &m->masks, first, words, &m->room_masks, sizeof(*m->masks),
                              2 * MOST_MASK_WORDS))
        return m->status;
    memset(m->masks + first, 0, words * sizeof(*m->masks));
    m->work = 0;
    m->most_work = MOST_MASK_WORK;
    if (coarse_next(m, v, m->at, 0) >= 0)
        walk_coarse(m, v, m->masks + first, words);
    else
        walk_fine(m, v, m->masks + first, words);
    m->most_work = MOST_WORK;
    if (m->status == TN_OK) {
        m->num_masks += words;
        m->sets[m->at].mask = (int32_t)first;
    }
    return m->status;
}

tn_status grammar_matcher_mask(struct grammar_matcher *m,
                               const struct grammar_vocabulary *v, uint64_t serial,
                               const uint64_t **out_mask)
{
    uint64_t words = ((uint64_t)v->count + 63) / 64;
    if (serial != m->serial) {
        for (uint64_t i = 0; i < m->num_sets; i++)
            m->sets[i].mask = -1;
        m->num_masks = 0;
        m->serial = serial;
    }
    tn_status status = m->sets[m->at].mask >= 0 ? TN_OK : make_mask(m, v, words);
    if (status == TN_ERR_UNSUPPORTED &&
        !m->is_slow) { // memory is full of old sets: tried once more without
        status = grammar_matcher_rebuild(m);
        if (status == TN_OK)
            status = make_mask(m, v, words);
    }
    if (status == TN_OK)
        *out_mask = m->masks + m->sets[m->at].mask;
    return status;
}
