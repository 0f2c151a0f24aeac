// SPDX-License-Identifier: MIT
// Matches a network of rules byte by byte, as Earley's parser does: any grammar, left
// recursion and ambiguity included, at the cost of a bounded number of items a byte.
//
// An item is a state of a rule, and the frame in which it runs: the rule, and the set of
// items that called it. A set is determined by the items that bytes lead to, its kernel, so
// that equal ones are found again: sets are the states of an automaton that is made as it
// is used. Frames point to older sets, never to later ones.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "match.h"

bool grammar_matcher_grow(struct grammar_matcher *m, void *items, uint64_t used,
                          uint64_t count, uint64_t *room, uint64_t size, uint64_t most)
{
    return grammar_grow(&m->status, items, used, count, room, size, most,
                        "states of texts at once: it is too ambiguous");
}

// --- items -----------------------------------------------------------------------------

static uint64_t grammar_match_mix(uint64_t x)
{
    x ^= x >> 31;
    return (uint64_t)((unsigned __int128)x * UINT64_C(0x9e3779b97f4a7c15) >> 17);
}

static uint64_t grammar_match_key_of(struct item item)
{
    return ((uint64_t)(uint32_t)item.state << 32 | (uint32_t)item.frame) + 1;
}

static void seen_put(struct grammar_matcher *m, uint64_t key)
{
    uint64_t at = grammar_match_mix(key) & (m->room_seen - 1);
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

// Puts an item on the list of items to follow, once for each set.
static void grammar_match_push(struct grammar_matcher *m, int32_t state, int32_t frame)
{
    struct item item = {state, frame};
    uint64_t key = grammar_match_key_of(item),
             at = grammar_match_mix(key) & (m->room_seen - 1);
    if (!m->network->states[state].is_productive)
        return;
    for (m->work++; m->seen[at]; at = (at + 1) & (m->room_seen - 1))
        if (m->seen[at] == key)
            return;
    m->seen[at] = key;
    if (2 * ++m->num_seen > m->room_seen && !seen_grow(m))
        return;
    if (grammar_matcher_grow(m, &m->todo, m->num_todo, 1, &m->room_todo, sizeof(item),
                             MOST_ITEMS))
        m->todo[m->num_todo++] = item;
}

static void grammar_match_keep(struct grammar_matcher *m, struct item item)
{
    if (grammar_matcher_grow(m, &m->items, m->num_items, 1, &m->room_items, sizeof(item),
                             MOST_ITEMS))
        m->items[m->num_items++] = item;
}

// The frame for a rule that the set under construction calls.
static int32_t frame_for(struct grammar_matcher *m, int32_t rule, int32_t set)
{
    if (m->frame_set[rule] == set)
        return m->frame_of[rule];
    if (!grammar_matcher_grow(m, &m->frames, m->num_frames, 1, &m->room_frames,
                              sizeof(*m->frames), MOST_ITEMS))
        return 0;
    m->frames[m->num_frames] = (struct frame){rule, set};
    m->frame_set[rule] = set;
    m->frame_of[rule] = (int32_t)m->num_frames;
    return (int32_t)m->num_frames++;
}

// A rule has ended: the items that called it go on.
static void grammar_match_complete(struct grammar_matcher *m, int32_t number, int32_t set)
{
    struct frame frame = m->frames[number];
    if (frame.set < 0) {
        m->sets[set].may_end = true;
        return;
    }
    if (frame.set == set)
        return; // the rule had the empty text: its call has gone on already
    const struct item_set *caller = &m->sets[frame.set];
    m->work += (uint64_t)caller->num_calls;
    for (int32_t i = 0; i < caller->num_calls && m->work < m->most_work; i++) {
        struct item call = m->items[caller->calls + i];
        const struct grammar_state *s = &m->network->states[call.state];
        if (s->other == frame.rule)
            grammar_match_push(m, s->next, call.frame);
    }
}

static void grammar_match_take(struct grammar_matcher *m, struct item item, int32_t set)
{
    const struct grammar_network *n = m->network;
    const struct grammar_state *s = &n->states[item.state];
    switch (s->kind) {
    case GRAMMAR_ACCEPT:
        grammar_match_complete(m, item.frame, set);
        break;
    case GRAMMAR_SPLIT:
        grammar_match_push(m, s->next, item.frame);
        grammar_match_push(m, s->other, item.frame);
        break;
    case GRAMMAR_CALL:
        grammar_match_push(m, n->starts[s->other],
                           s->is_tail ? item.frame : frame_for(m, s->other, set));
        if (n->is_nullable[s->other] && !s->is_tail)
            grammar_match_push(m, s->next, item.frame);
        break;
    default:
        break;
    }
}

// Appends the followed items of one kind to the pool; gives the index of the first.
static int32_t keep_kind(struct grammar_matcher *m, uint64_t taken, uint8_t kind,
                         int32_t *out_count)
{
    int32_t first = (int32_t)m->num_items;
    for (uint64_t i = 0; i < taken; i++) {
        const struct grammar_state *s = &m->network->states[m->todo[i].state];
        if (s->kind == kind && !s->is_tail)
            grammar_match_keep(m, m->todo[i]);
    }
    *out_count = (int32_t)m->num_items - first;
    return first;
}

// Follows all items that a set's kernel leads to without a byte.
static void close_set(struct grammar_matcher *m, int32_t set)
{
    memset(m->seen, 0, m->room_seen * sizeof(*m->seen));
    m->num_seen = m->num_todo = 0;
    for (int32_t i = 0; i < m->sets[set].num_kernel; i++) {
        struct item item = m->items[m->sets[set].kernel + i];
        grammar_match_push(m, item.state, item.frame);
    }
    for (uint64_t i = 0; i < m->num_todo && m->status == TN_OK; i++) {
        grammar_match_take(m, m->todo[i], set);
        if (m->status != TN_OK || m->work < m->most_work)
            continue;
        m->is_slow = true;
        m->status = lm_fail(TN_ERR_UNSUPPORTED,
                            "the grammar is too ambiguous: more than %" PRIu64
                            " steps behind one text",
                            m->most_work);
    }
    struct item_set *s = &m->sets[set];
    s->scans = keep_kind(m, m->num_todo, GRAMMAR_BYTES, &s->num_scans);
    s->calls = keep_kind(m, m->num_todo, GRAMMAR_CALL, &s->num_calls);
}

// --- sets ------------------------------------------------------------------------------

static int compare_items(const void *a, const void *b)
{
    uint64_t x = grammar_match_key_of(*(const struct item *)a),
             y = grammar_match_key_of(*(const struct item *)b);
    return x < y ? -1 : x > y;
}

static bool grammar_match_rehash(struct grammar_matcher *m)
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

// The set whose kernel is the items of the pool from `kernel` on; they leave the pool if
// the set exists already.
static int32_t grammar_match_set_of(struct grammar_matcher *m, uint64_t kernel)
{
    uint64_t count = m->num_items - kernel, hash = 0, left = 0;
    if (count > 1)
        qsort(m->items + kernel, count, sizeof(struct item), compare_items);
    for (uint64_t i = 0; i < count; i++) { // drops repeated items
        struct item item = m->items[kernel + i];
        if (left > 0 &&
            grammar_match_key_of(item) == grammar_match_key_of(m->items[kernel + left - 1]))
            continue;
        m->items[kernel + left++] = item;
        hash = grammar_match_mix(hash ^ grammar_match_key_of(item)) ^ hash >> 9;
    }
    m->num_items = kernel + left;
    if (2 * m->num_sets >= m->num_buckets && !grammar_match_rehash(m))
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
    uint64_t coarse = (uint64_t)GRAMMAR_COARSE * m->num_sets;
    if (!grammar_matcher_grow(m, &m->sets, m->num_sets, 1, &m->room_sets, sizeof(*m->sets),
                              MOST_SETS) ||
        !grammar_matcher_grow(m, &m->rows, m->num_rows, row, &m->room_rows,
                              sizeof(*m->rows), MOST_ROWS) ||
        !grammar_matcher_grow(m, &m->coarse, coarse, GRAMMAR_COARSE, &m->room_coarse,
                              sizeof(*m->coarse), GRAMMAR_COARSE * MOST_SETS))
        return DEAD;
    int32_t set = (int32_t)m->num_sets++;
    m->buckets[at] = set + 1;
    for (uint32_t i = 0; i < row; i++)
        m->rows[m->num_rows++] = UNKNOWN;
    for (uint32_t i = 0; i < GRAMMAR_COARSE; i++)
        m->coarse[coarse + i] = UNKNOWN;
    m->sets[set] = (struct item_set){
        .hash = hash, .kernel = (int32_t)kernel, .num_kernel = (int32_t)left, .mask = -1};
    close_set(m, set);
    return m->status == TN_OK ? set : DEAD;
}

// The set that a byte of a class leads to; DEAD also after a failure.
static int32_t grammar_match_step(struct grammar_matcher *m, int32_t set, uint32_t class)
{
    const struct grammar_network *n = m->network;
    uint64_t kernel = m->num_items;
    uint8_t byte = m->representative[class];
    for (int32_t i = 0; i < m->sets[set].num_scans; i++) {
        struct item item = m->items[m->sets[set].scans + i];
        const struct grammar_state *s = &n->states[item.state];
        if (n->sets[s->other].bits[byte / 64] >> byte % 64 & 1)
            grammar_match_keep(m, (struct item){s->next, item.frame});
    }
    m->work += (uint64_t)m->sets[set].num_scans;
    if (m->status != TN_OK)
        return DEAD;
    int32_t next = m->num_items > kernel ? grammar_match_set_of(m, kernel) : DEAD;
    if (m->status == TN_OK)
        m->rows[(uint64_t)set * n->num_classes + class] = next;
    return next;
}

int32_t grammar_matcher_next(struct grammar_matcher *m, int32_t set, uint8_t byte)
{
    uint32_t class = m->network->class_of[byte];
    int32_t next = m->rows[(uint64_t)set * m->network->num_classes + class];
    return next == UNKNOWN ? grammar_match_step(m, set, class) : next;
}

// --- texts -----------------------------------------------------------------------------

// Forgets all sets, and makes that of the empty text.
static tn_status grammar_match_clear(struct grammar_matcher *m)
{
    m->status = TN_OK;
    m->is_slow = false;
    m->most_work = MOST_WORK;
    m->num_items = m->num_sets = m->num_rows = m->num_masks = m->work = 0;
    m->num_frames = 1;
    if (m->num_buckets)
        memset(m->buckets, 0, m->num_buckets * sizeof(*m->buckets));
    memset(m->frame_set, -1, m->network->num_rules * sizeof(int32_t));
    grammar_match_keep(m, (struct item){m->network->starts[0], 0});
    m->at = grammar_match_set_of(m, 0);
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
        status = grammar_match_clear(m);
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
    free(m->coarse);
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
    m->at = 0; // the set of the empty text
    return m->status == TN_OK ? TN_OK : grammar_match_clear(m);
}

tn_status grammar_matcher_rebuild(struct grammar_matcher *m)
{
    tn_status status = grammar_match_clear(m);
    for (uint64_t i = 0; i < m->size && status == TN_OK; i++) {
        m->work = 0;
        m->at = grammar_matcher_next(m, m->at, (uint8_t)m->text[i]);
        status = m->status;
    }
    return status;
}

static int32_t grammar_match_follow(struct grammar_matcher *m, const char *bytes,
                                    uint64_t size)
{
    int32_t at = m->at;
    for (uint64_t i = 0; i < size && at >= 0; i++) {
        m->work = 0;
        at = grammar_matcher_next(m, at, (uint8_t)bytes[i]);
    }
    return at;
}

tn_status grammar_matcher_append(struct grammar_matcher *m, const char *bytes,
                                 uint64_t size, bool *out_fits)
{
    tn_status status = TN_OK;
    int32_t at = grammar_match_follow(m, bytes, size);
    if (m->status == TN_ERR_UNSUPPORTED &&
        !m->is_slow) { // memory is full of old sets: tried once more without
        status = grammar_matcher_rebuild(m);
        at = status == TN_OK ? grammar_match_follow(m, bytes, size) : DEAD;
    }
    status = m->status;
    if (status != TN_OK)
        return status;
    if (!grammar_matcher_grow(m, &m->text, m->size, size, &m->room_text, 1,
                              UINT64_C(1) << 30))
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
