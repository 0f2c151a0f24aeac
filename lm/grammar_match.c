// SPDX-License-Identifier: MIT
// Matching a network of rules byte by byte, as Earley's parser does, any grammar at all:
// left recursion and ambiguity cost no more than a bounded number of items a byte.
//
// An item is a state of a rule, and the frame in which it runs: the rule, and the set of
// items that called it. A set is determined by the items that bytes lead to, its kernel, so
// that equal ones are found again: sets are the states of an automaton that is made as it is
// used. Frames point to older sets, never to later ones.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "grammar.h"
#include "internal.h"

// What a matcher keeps at most, and the steps of making one mask.
#define MOST_ITEMS (UINT64_C(1) << 22)
#define MOST_ROWS (UINT64_C(1) << 23)
#define MOST_SETS (UINT64_C(1) << 19)
#define MOST_WORK (UINT64_C(1) << 24)
#define MOST_MASK_WORDS (UINT64_C(1) << 20)

enum { UNKNOWN = -2, DEAD = -1 };

struct item {
    int32_t state, frame;
};

struct frame {
    int32_t rule, set; // set -1: of the whole text
};

struct item_set {
    uint64_t hash;
    int32_t kernel, num_kernel; // of the pool of items: in order
    int32_t scans, num_scans;   // that wait for a byte
    int32_t calls, num_calls;   // that wait for the end of a rule
    int32_t mask;               // -1: not made
    bool may_end;
};

struct grammar_matcher {
    const struct grammar_network *network; // borrowed
    tn_status status;                      // of what grows
    struct item *items;
    struct frame *frames;
    struct item_set *sets;
    int32_t *rows;    // of each set, num_classes: the set behind a byte
    int32_t *buckets; // sets by their hash, plus 1
    uint64_t num_items, num_frames, num_sets, num_rows, num_buckets;
    uint64_t room_items, room_frames, room_sets, room_rows;
    uint64_t work;
    // While a set is made:
    struct item *todo;
    uint64_t *seen; // items that were taken, hashed; with the number of the making above
    int32_t *frame_of, *frame_set; // of each rule that this set calls
    uint64_t num_todo, room_todo, num_seen, room_seen;
    uint8_t representative[256]; // a byte of each class
    // The text so far.
    char *text;
    uint64_t size, room_text;
    int32_t at;
    // Masks of tokens, and the vocabulary that they are of.
    uint64_t *masks;
    uint64_t num_masks, room_masks, serial;
};

static bool grow(struct grammar_matcher *m, void *items, uint64_t used, uint64_t count,
                 uint64_t *room, uint64_t size, uint64_t most)
{
    return grammar_grow(&m->status, items, used, count, room, size, most,
                        "states of texts at once: it is too ambiguous");
}

// --- items -----------------------------------------------------------------------------

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    return (uint64_t)((unsigned __int128)x * UINT64_C(0x9e3779b97f4a7c15) >> 17);
}

static uint64_t key_of(struct item item)
{
    return ((uint64_t)(uint32_t)item.state << 32 | (uint32_t)item.frame) + 1;
}

static void seen_put(struct grammar_matcher *m, uint64_t key)
{
    uint64_t at = mix(key) & (m->room_seen - 1);
    while (m->seen[at])
        at = (at + 1) & (m->room_seen - 1);
    m->seen[at] = key;
}

static bool seen_grow(struct grammar_matcher *m)
{
    uint64_t *old = m->seen, before = m->room_seen;
    uint64_t *more = lm_alloc(2 * before, sizeof(*more));
    if (!more) {
        m->status = TN_ERR_MEMORY;
        return false;
    }
    m->seen = more;
    m->room_seen = 2 * before;
    for (uint64_t i = 0; i < before; i++)
        if (old[i])
            seen_put(m, old[i]);
    free(old);
    return true;
}

// Puts an item down to be taken, once for each set.
static void push(struct grammar_matcher *m, int32_t state, int32_t frame)
{
    struct item item = {state, frame};
    uint64_t key = key_of(item), at = mix(key) & (m->room_seen - 1);
    if (!m->network->states[state].is_productive)
        return;
    for (m->work++; m->seen[at]; at = (at + 1) & (m->room_seen - 1))
        if (m->seen[at] == key)
            return;
    m->seen[at] = key;
    if (2 * ++m->num_seen > m->room_seen && !seen_grow(m))
        return;
    if (grow(m, &m->todo, m->num_todo, 1, &m->room_todo, sizeof(item), MOST_ITEMS))
        m->todo[m->num_todo++] = item;
}

static void keep(struct grammar_matcher *m, struct item item)
{
    if (grow(m, &m->items, m->num_items, 1, &m->room_items, sizeof(item), MOST_ITEMS))
        m->items[m->num_items++] = item;
}

// The frame of a rule that the set being made calls.
static int32_t frame_for(struct grammar_matcher *m, int32_t rule, int32_t set)
{
    if (m->frame_set[rule] == set)
        return m->frame_of[rule];
    if (!grow(m, &m->frames, m->num_frames, 1, &m->room_frames, sizeof(*m->frames),
              MOST_ITEMS))
        return 0;
    m->frames[m->num_frames] = (struct frame){rule, set};
    m->frame_set[rule] = set;
    m->frame_of[rule] = (int32_t)m->num_frames;
    return (int32_t)m->num_frames++;
}

// A rule has ended: what called it goes on.
static void complete(struct grammar_matcher *m, int32_t number, int32_t set)
{
    struct frame frame = m->frames[number];
    if (frame.set < 0) {
        m->sets[set].may_end = true;
        return;
    }
    if (frame.set == set)
        return; // of the empty text: the call itself has gone on
    const struct item_set *caller = &m->sets[frame.set];
    m->work += (uint64_t)caller->num_calls;
    for (int32_t i = 0; i < caller->num_calls && m->work < MOST_WORK; i++) {
        struct item call = m->items[caller->calls + i];
        const struct grammar_state *s = &m->network->states[call.state];
        if (s->other == frame.rule)
            push(m, s->next, call.frame);
    }
}

static void take(struct grammar_matcher *m, struct item item, int32_t set)
{
    const struct grammar_network *n = m->network;
    const struct grammar_state *s = &n->states[item.state];
    switch (s->kind) {
    case GRAMMAR_ACCEPT:
        complete(m, item.frame, set);
        break;
    case GRAMMAR_SPLIT:
        push(m, s->next, item.frame);
        push(m, s->other, item.frame);
        break;
    case GRAMMAR_CALL:
        push(m, n->starts[s->other],
             s->is_tail ? item.frame : frame_for(m, s->other, set));
        if (n->is_nullable[s->other] && !s->is_tail)
            push(m, s->next, item.frame);
        break;
    default:
        break;
    }
}

// Keeps the items of one kind that were taken, and gives where they begin.
static int32_t keep_kind(struct grammar_matcher *m, uint64_t taken, uint8_t kind,
                         int32_t *out_count)
{
    int32_t first = (int32_t)m->num_items;
    for (uint64_t i = 0; i < taken; i++) {
        const struct grammar_state *s = &m->network->states[m->todo[i].state];
        if (s->kind == kind && !s->is_tail)
            keep(m, m->todo[i]);
    }
    *out_count = (int32_t)m->num_items - first;
    return first;
}

// Follows all that a set's kernel leads to without a byte.
static void close_set(struct grammar_matcher *m, int32_t set)
{
    memset(m->seen, 0, m->room_seen * sizeof(*m->seen));
    m->num_seen = m->num_todo = 0;
    for (int32_t i = 0; i < m->sets[set].num_kernel; i++) {
        struct item item = m->items[m->sets[set].kernel + i];
        push(m, item.state, item.frame);
    }
    for (uint64_t i = 0; i < m->num_todo && m->status == TN_OK; i++) {
        take(m, m->todo[i], set);
        if (m->work >= MOST_WORK)
            m->status = lm_fail(TN_ERR_UNSUPPORTED,
                                "the grammar is too ambiguous: more than %" PRIu64
                                " steps behind one text",
                                MOST_WORK);
    }
    struct item_set *s = &m->sets[set];
    s->scans = keep_kind(m, m->num_todo, GRAMMAR_BYTES, &s->num_scans);
    s->calls = keep_kind(m, m->num_todo, GRAMMAR_CALL, &s->num_calls);
}

// --- sets ------------------------------------------------------------------------------

static int compare_items(const void *a, const void *b)
{
    uint64_t x = key_of(*(const struct item *)a), y = key_of(*(const struct item *)b);
    return x < y ? -1 : x > y;
}

static bool rehash(struct grammar_matcher *m)
{
    uint64_t size = m->num_buckets ? 2 * m->num_buckets : 256;
    int32_t *more = lm_alloc(size, sizeof(*more));
    if (!more) {
        m->status = TN_ERR_MEMORY;
        return false;
    }
    for (uint64_t i = 0; i < m->num_sets; i++) {
        uint64_t at = m->sets[i].hash & (size - 1);
        while (more[at])
            at = (at + 1) & (size - 1);
        more[at] = (int32_t)i + 1;
    }
    free(m->buckets);
    m->buckets = more;
    m->num_buckets = size;
    return true;
}

// The set whose kernel is the last items of the pool, which it takes.
static int32_t set_of(struct grammar_matcher *m, uint64_t kernel)
{
    uint64_t count = m->num_items - kernel, hash = 0, left = 0;
    if (count > 1)
        qsort(m->items + kernel, count, sizeof(struct item), compare_items);
    for (uint64_t i = 0; i < count; i++) { // each once
        struct item item = m->items[kernel + i];
        if (left > 0 && key_of(item) == key_of(m->items[kernel + left - 1]))
            continue;
        m->items[kernel + left++] = item;
        hash = mix(hash ^ key_of(item)) ^ hash >> 9;
    }
    m->num_items = kernel + left;
    if (2 * m->num_sets >= m->num_buckets && !rehash(m))
        return DEAD;
    uint64_t at = hash & (m->num_buckets - 1);
    for (; m->buckets[at]; at = (at + 1) & (m->num_buckets - 1)) {
        const struct item_set *s = &m->sets[m->buckets[at] - 1];
        if (s->hash != hash || (uint64_t)s->num_kernel != left ||
            memcmp(m->items + s->kernel, m->items + kernel, left * sizeof(struct item)))
            continue;
        m->num_items = kernel;
        return m->buckets[at] - 1;
    }
    uint32_t row = m->network->num_classes;
    if (!grow(m, &m->sets, m->num_sets, 1, &m->room_sets, sizeof(*m->sets), MOST_SETS) ||
        !grow(m, &m->rows, m->num_rows, row, &m->room_rows, sizeof(*m->rows), MOST_ROWS))
        return DEAD;
    int32_t set = (int32_t)m->num_sets++;
    m->buckets[at] = set + 1;
    for (uint32_t i = 0; i < row; i++)
        m->rows[m->num_rows++] = UNKNOWN;
    m->sets[set] = (struct item_set){.hash = hash,
                                     .kernel = (int32_t)kernel,
                                     .num_kernel = (int32_t)left,
                                     .mask = -1};
    close_set(m, set);
    return m->status == TN_OK ? set : DEAD;
}

// The set behind a byte of a class; DEAD also after a failure.
static int32_t step(struct grammar_matcher *m, int32_t set, uint32_t class)
{
    const struct grammar_network *n = m->network;
    uint64_t kernel = m->num_items;
    uint8_t byte = m->representative[class];
    for (int32_t i = 0; i < m->sets[set].num_scans; i++) {
        struct item item = m->items[m->sets[set].scans + i];
        const struct grammar_state *s = &n->states[item.state];
        if (n->sets[s->other].bits[byte / 64] >> byte % 64 & 1)
            keep(m, (struct item){s->next, item.frame});
    }
    m->work += (uint64_t)m->sets[set].num_scans;
    if (m->status != TN_OK)
        return DEAD;
    int32_t next = m->num_items > kernel ? set_of(m, kernel) : DEAD;
    if (m->status == TN_OK)
        m->rows[(uint64_t)set * n->num_classes + class] = next;
    return next;
}

static int32_t next_set(struct grammar_matcher *m, int32_t set, uint8_t byte)
{
    uint32_t class = m->network->class_of[byte];
    int32_t next = m->rows[(uint64_t)set * m->network->num_classes + class];
    return next == UNKNOWN ? step(m, set, class) : next;
}

// --- texts -----------------------------------------------------------------------------

// Begins with no set but that of the empty text.
static tn_status clear(struct grammar_matcher *m)
{
    m->status = TN_OK;
    m->num_items = m->num_sets = m->num_rows = m->num_masks = m->work = 0;
    m->num_frames = 1;
    if (m->num_buckets)
        memset(m->buckets, 0, m->num_buckets * sizeof(*m->buckets));
    memset(m->frame_set, -1, m->network->num_rules * sizeof(int32_t));
    keep(m, (struct item){m->network->starts[0], 0});
    m->at = set_of(m, 0);
    return m->status;
}

tn_status grammar_matcher_open(const struct grammar_network *network,
                               struct grammar_matcher **out_matcher)
{
    struct grammar_matcher *m = lm_alloc(1, sizeof(*m));
    if (!m)
        return TN_ERR_MEMORY;
    m->network = network;
    m->room_seen = 64;
    m->seen = lm_alloc(m->room_seen, sizeof(*m->seen));
    m->frame_of = lm_alloc(network->num_rules, sizeof(int32_t));
    m->frame_set = lm_alloc(network->num_rules, sizeof(int32_t));
    m->frames = lm_alloc(8, sizeof(*m->frames));
    m->room_frames = 8;
    tn_status status = TN_ERR_MEMORY;
    if (m->seen && m->frame_of && m->frame_set && m->frames) {
        m->frames[0] = (struct frame){0, -1};
        for (uint32_t byte = 0; byte < 256; byte++)
            m->representative[network->class_of[byte]] = (uint8_t)byte;
        status = clear(m);
    }
    if (status == TN_OK)
        *out_matcher = m;
    else
        grammar_matcher_close(m);
    return status;
}

void grammar_matcher_close(struct grammar_matcher *m)
{
    if (!m)
        return;
    free(m->items);
    free(m->frames);
    free(m->sets);
    free(m->rows);
    free(m->buckets);
    free(m->todo);
    free(m->seen);
    free(m->frame_of);
    free(m->frame_set);
    free(m->text);
    free(m->masks);
    free(m);
}

tn_status grammar_matcher_reset(struct grammar_matcher *m)
{
    m->size = 0;
    m->at = 0; // the first set that was made
    return m->status == TN_OK ? TN_OK : clear(m);
}

// Forgets all sets but those of the text so far.
static tn_status rebuild(struct grammar_matcher *m)
{
    tn_status status = clear(m);
    for (uint64_t i = 0; i < m->size && status == TN_OK; i++) {
        m->work = 0;
        m->at = next_set(m, m->at, (uint8_t)m->text[i]);
        status = m->status;
    }
    return status;
}

static int32_t follow(struct grammar_matcher *m, const char *bytes, uint64_t size)
{
    int32_t at = m->at;
    for (uint64_t i = 0; i < size && at >= 0; i++) {
        m->work = 0;
        at = next_set(m, at, (uint8_t)bytes[i]);
    }
    return at;
}

tn_status grammar_matcher_append(struct grammar_matcher *m, const char *bytes,
                                 uint64_t size, bool *out_fits)
{
    tn_status status = TN_OK;
    int32_t at = follow(m, bytes, size);
    if (m->status == TN_ERR_UNSUPPORTED) { // full of what came before: once more
        status = rebuild(m);
        at = status == TN_OK ? follow(m, bytes, size) : DEAD;
    }
    status = m->status;
    if (status != TN_OK)
        return status;
    if (!grow(m, &m->text, m->size, size, &m->room_text, 1, UINT64_C(1) << 30))
        return m->status;
    *out_fits = at >= 0;
    if (at < 0)
        return TN_OK;
    if (size)
        memcpy(m->text + m->size, bytes, size);
    m->size += size;
    m->at = at;
    return TN_OK;
}

bool grammar_matcher_may_end(const struct grammar_matcher *m)
{
    return m->sets[m->at].may_end;
}

bool grammar_matcher_may_go_on(const struct grammar_matcher *m)
{
    return m->sets[m->at].num_scans > 0;
}

// --- vocabularies ----------------------------------------------------------------------

// Bytes of the longest token that a mask has.
#define MOST_TOKEN 512

// In the order of a walk: a node's children come next, up to `end`.
struct trie_node {
    int32_t token; // that ends here; -1: none
    uint32_t end;
    uint16_t depth; // of the node's byte: 0, 1, ...
    uint8_t byte;
    uint8_t reserved;
};

struct grammar_vocabulary {
    struct trie_node *nodes;
    uint64_t num_nodes;
    int32_t *again; // of each token, another one of equal bytes; -1: none
    int32_t count;
};

struct sorted {
    tn_text bytes;
    int32_t id;
};

static int compare_texts(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    uint64_t size = x->bytes.size < y->bytes.size ? x->bytes.size : y->bytes.size;
    int order = size ? memcmp(x->bytes.data, y->bytes.data, size) : 0;
    if (order)
        return order;
    return x->bytes.size < y->bytes.size ? -1 : x->bytes.size > y->bytes.size;
}

// Adds the nodes of one text behind those that it shares with the one before.
static void trie_add(struct grammar_vocabulary *v, const struct sorted *token,
                     const struct sorted *before, uint32_t *path)
{
    uint64_t shared = 0;
    uint64_t last = before ? before->bytes.size : 0;
    while (shared < last && shared < token->bytes.size &&
           before->bytes.data[shared] == token->bytes.data[shared])
        shared++;
    if (before && shared == last && shared == token->bytes.size) {
        int32_t *end = &v->nodes[path[shared - 1]].token;
        v->again[token->id] = *end;
        *end = token->id;
        return;
    }
    for (uint64_t i = shared; i < last; i++)
        v->nodes[path[i]].end = (uint32_t)v->num_nodes;
    for (uint64_t i = shared; i < token->bytes.size; i++) {
        path[i] = (uint32_t)v->num_nodes;
        v->nodes[v->num_nodes++] =
            (struct trie_node){.token = i + 1 == token->bytes.size ? token->id : -1,
                               .depth = (uint16_t)i,
                               .byte = (uint8_t)token->bytes.data[i]};
    }
}

tn_status grammar_vocabulary_make(const tn_text *bytes, int32_t count,
                                  struct grammar_vocabulary **out_vocabulary)
{
    uint64_t total = 0, num = 0;
    uint32_t path[MOST_TOKEN];
    struct grammar_vocabulary *v = lm_alloc(1, sizeof(*v));
    struct sorted *sorted = lm_alloc((uint64_t)count, sizeof(*sorted));
    for (int32_t i = 0; sorted && i < count; i++) {
        if (bytes[i].size == 0 || bytes[i].size > MOST_TOKEN)
            continue;
        sorted[num++] = (struct sorted){bytes[i], i};
        total += bytes[i].size;
    }
    if (v && sorted) {
        v->count = count;
        v->again = lm_alloc((uint64_t)count, sizeof(*v->again));
        v->nodes = lm_alloc(total, sizeof(*v->nodes));
    }
    tn_status status = v && sorted && v->again && v->nodes ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK) {
        memset(v->again, -1, (uint64_t)count * sizeof(*v->again));
        qsort(sorted, num, sizeof(*sorted), compare_texts);
        for (uint64_t i = 0; i < num; i++)
            trie_add(v, &sorted[i], i ? &sorted[i - 1] : NULL, path);
        for (uint64_t i = 0; num && i < sorted[num - 1].bytes.size; i++)
            v->nodes[path[i]].end = (uint32_t)v->num_nodes;
        *out_vocabulary = v;
    } else {
        grammar_vocabulary_destroy(v);
    }
    free(sorted);
    return status;
}

void grammar_vocabulary_destroy(struct grammar_vocabulary *v)
{
    if (!v)
        return;
    free(v->nodes);
    free(v->again);
    free(v);
}

// --- masks -----------------------------------------------------------------------------

static void walk(struct grammar_matcher *m, const struct grammar_vocabulary *v,
                 uint64_t *mask)
{
    const struct grammar_network *n = m->network;
    const struct trie_node *nodes = v->nodes;
    int32_t path[MOST_TOKEN + 1] = {m->at};
    for (uint64_t i = 0; i < v->num_nodes;) {
        const struct trie_node *node = &nodes[i];
        uint32_t class = n->class_of[node->byte];
        int32_t at = path[node->depth];
        int32_t next = m->rows[(uint64_t)at * n->num_classes + class];
        if (next < 0) {
            next = next == UNKNOWN ? step(m, at, class) : DEAD;
            if (m->status != TN_OK)
                return;
            if (next < 0) {
                i = node->end;
                continue;
            }
        }
        path[node->depth + 1] = next;
        for (int32_t token = node->token; token >= 0; token = v->again[token])
            mask[token / 64] |= UINT64_C(1) << token % 64;
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
    if (!grow(m, &m->masks, first, words, &m->room_masks, sizeof(*m->masks),
              2 * MOST_MASK_WORDS))
        return m->status;
    memset(m->masks + first, 0, words * sizeof(*m->masks));
    m->work = 0;
    walk(m, v, m->masks + first);
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
    if (status == TN_ERR_UNSUPPORTED) { // full of what came before: once more
        status = rebuild(m);
        if (status == TN_OK)
            status = make_mask(m, v, words);
    }
    if (status == TN_OK)
        *out_mask = m->masks + m->sets[m->at].mask;
    return status;
}
