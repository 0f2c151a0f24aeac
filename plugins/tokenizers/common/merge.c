// SPDX-License-Identifier: MIT
// Reads merges, and applies them to a word.
//
// Of all adjacent pairs in a word the one of lowest rank is merged, the leftmost of equals,
// until no pair has a merge. Short words search all pairs each time; long words keep the
// pairs in a heap, so that n symbols take n log n steps.
#include <inttypes.h>
#include <string.h>
#include "merge.h"

#define NO_RANK UINT32_MAX
#define NONE UINT32_MAX

enum { SHORT_WORD = 32 }; // most symbols of a word that is searched

// --- the table -------------------------------------------------------------------------

static uint32_t *merge_slot(const struct merges *m, uint32_t left, uint32_t right)
{
    uint64_t hash = ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t mask = m->num_slots - 1;
    uint32_t at = (uint32_t)(hash >> 32) & mask;
    for (; m->slots[at]; at = (at + 1) & mask) {
        const struct merge *merge = &m->items[m->slots[at] - 1];
        if (merge->left == left && merge->right == right)
            break;
    }
    return &m->slots[at];
}

static uint32_t token_merge_rank_of(const struct merges *m, uint32_t left, uint32_t right)
{
    uint32_t slot = *merge_slot(m, left, right);
    return slot ? slot - 1 : NO_RANK;
}

// Reads "left right" as a merge. `joined` has room for both joined.
static tn_status read_merge(const tn_host *host, const tn_metadata_list *metadata,
                            uint64_t index, tn_text text, struct vocabulary *v,
                            char *joined, struct merge *out)
{
    int32_t left, right, result;
    const char *space = text.size > 1 ? memchr(text.data + 1, ' ', text.size - 1) : NULL;
    uint64_t before = space ? (uint64_t)(space - text.data) : 0;
    uint64_t behind = space ? text.size - before - 1 : 0;
    if (!behind)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: 'tokenizer.ggml.merges': merge %" PRIu64
                          " is '%.64s', expected two texts with a space between",
                          metadata->name, index, text.data ? text.data : "");
    memcpy(joined, text.data, before);
    memcpy(joined + before, space + 1, behind);
    tn_status status = vocabulary_intern(host, v, joined, before, &left);
    if (status == TN_OK)
        status = vocabulary_intern(host, v, joined + before, behind, &right);
    if (status == TN_OK)
        status = vocabulary_intern(host, v, joined, before + behind, &result);
    if (status == TN_OK)
        *out = (struct merge){(uint32_t)left, (uint32_t)right, (uint32_t)result};
    return status;
}

static tn_status read_merges(const tn_host *host, const tn_metadata_list *metadata,
                             const tn_text *texts, struct vocabulary *v, struct merges *m,
                             uint64_t count)
{
    uint64_t longest = 0;
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < count; i++)
        longest = texts[i].size > longest ? texts[i].size : longest;
    char *joined = host->alloc(host, longest, 0);
    if (!joined)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; status == TN_OK && i < count; i++) {
        struct merge *merge = &m->items[i];
        status = read_merge(host, metadata, i, texts[i], v, joined, merge);
        if (status)
            break;
        uint32_t *slot = merge_slot(m, merge->left, merge->right);
        if (!*slot)
            *slot = (uint32_t)i + 1;
        m->count = (uint32_t)i + 1;
    }
    host->free(host, joined);
    return status;
}

tn_status merges_init(const tn_host *host, const tn_metadata_list *metadata,
                      struct vocabulary *v, struct merges *out)
{
    static const char key[] = "tokenizer.ggml.merges";
    const uint64_t most = 1u << 28;
    const tn_text *texts;
    uint64_t count;
    *out = (struct merges){0};
    tn_status status = read_texts(host, metadata, key, &texts, &count);
    if (status)
        return status;
    if (count > most)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s' has %" PRIu64 " merges, expected at most %" PRIu64,
                          metadata->name, key, count, most);
    for (out->num_slots = 16; out->num_slots < 2 * count;)
        out->num_slots *= 2;
    out->items = clear_alloc(host, count, sizeof(*out->items));
    out->slots = clear_alloc(host, out->num_slots, sizeof(*out->slots));
    status = out->items && out->slots ? read_merges(host, metadata, texts, v, out, count)
                                      : TN_ERR_MEMORY;
    if (status)
        merges_finish(host, out);
    return status;
}

void merges_finish(const tn_host *host, struct merges *m)
{
    host->free(host, m->items);
    host->free(host, m->slots);
    *m = (struct merges){0};
}

// --- a short word ----------------------------------------------------------------------

static uint64_t apply_short(const struct merges *m, uint32_t *symbols, uint64_t count)
{
    uint32_t ranks[SHORT_WORD]; // of the pair of symbols i and i + 1
    for (uint64_t i = 0; i + 1 < count; i++)
        ranks[i] = token_merge_rank_of(m, symbols[i], symbols[i + 1]);
    while (count > 1) {
        uint64_t best = 0;
        for (uint64_t i = 1; i + 1 < count; i++)
            if (ranks[i] < ranks[best])
                best = i;
        if (ranks[best] == NO_RANK)
            break;
        symbols[best] = m->items[ranks[best]].result;
        count--;
        for (uint64_t i = best + 1; i < count; i++) {
            symbols[i] = symbols[i + 1];
            ranks[i - 1] = ranks[i];
        }
        if (best + 1 < count)
            ranks[best] = token_merge_rank_of(m, symbols[best], symbols[best + 1]);
        if (best > 0)
            ranks[best - 1] = token_merge_rank_of(m, symbols[best - 1], symbols[best]);
    }
    return count;
}

// --- a long word -----------------------------------------------------------------------

// Symbols as a linked list, and pairs that may be merged as a heap of rank << 32 |
// position. A pair whose symbols have changed meanwhile is skipped when it comes out.
struct long_word {
    uint32_t *symbols, *before, *behind;
    uint64_t *heap;
    uint64_t heap_count;
};

static void token_merge_heap_push(struct long_word *w, uint64_t item)
{
    uint64_t at = w->heap_count++;
    for (; at > 0 && w->heap[(at - 1) / 2] > item; at = (at - 1) / 2)
        w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = item;
}

static uint64_t token_merge_heap_pop(struct long_word *w)
{
    uint64_t top = w->heap[0], item = w->heap[--w->heap_count], at = 0;
    for (;;) {
        uint64_t child = 2 * at + 1;
        if (child + 1 < w->heap_count && w->heap[child + 1] < w->heap[child])
            child++;
        if (child >= w->heap_count || w->heap[child] >= item)
            break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = item;
    return top;
}

static void token_merge_push_pair(const struct merges *m, struct long_word *w,
                                  uint32_t left)
{
    uint32_t right = left == NONE ? NONE : w->behind[left];
    uint32_t rank = right == NONE
                        ? NO_RANK
                        : token_merge_rank_of(m, w->symbols[left], w->symbols[right]);
    if (rank != NO_RANK)
        token_merge_heap_push(w, (uint64_t)rank << 32 | left);
}

// Merges the pair that the heap gives, unless its symbols have changed.
static void merge_pair(const struct merges *m, struct long_word *w, uint64_t item)
{
    const struct merge *merge = &m->items[item >> 32];
    uint32_t left = (uint32_t)item;
    uint32_t right = w->symbols[left] == merge->left ? w->behind[left] : NONE;
    if (right == NONE || w->symbols[right] != merge->right)
        return;
    w->symbols[left] = merge->result;
    w->symbols[right] = NONE;
    w->behind[left] = w->behind[right];
    if (w->behind[left] != NONE)
        w->before[w->behind[left]] = left;
    token_merge_push_pair(m, w, w->before[left]);
    token_merge_push_pair(m, w, left);
}

static uint64_t apply_long(const struct merges *m, struct long_word *w, uint64_t count)
{
    uint64_t left = 0;
    for (uint64_t i = 0; i < count; i++) {
        w->before[i] = i ? (uint32_t)i - 1 : NONE;
        w->behind[i] = i + 1 < count ? (uint32_t)i + 1 : NONE;
    }
    for (uint64_t i = 0; i < count; i++)
        token_merge_push_pair(m, w, (uint32_t)i);
    while (w->heap_count)
        merge_pair(m, w, token_merge_heap_pop(w));
    for (uint32_t i = 0; i != NONE; i = w->behind[i])
        w->symbols[left++] = w->symbols[i];
    return left;
}

// --- words -----------------------------------------------------------------------------

// Bytes for each symbol: a heap, with one pair at first and two for each merge; the symbol;
// and its links.
enum { SPACE = 3 * 8 + 3 * 4 };

uint32_t *merge_symbols(const tn_host *host, struct merge_space *space, uint64_t count)
{
    if (count > space->capacity) {
        uint64_t capacity = count + count / 2 + SHORT_WORD;
        host->free(host, space->memory);
        space->memory = clear_alloc(host, capacity, SPACE);
        space->capacity = space->memory ? capacity : 0;
    }
    uint64_t *heap = space->memory;
    return heap ? (uint32_t *)(void *)(heap + 3 * space->capacity) : NULL;
}

uint64_t merges_apply(const struct merges *m, struct merge_space *space, uint64_t count)
{
    uint64_t *heap = space->memory, n = space->capacity;
    uint32_t *symbols = (uint32_t *)(void *)(heap + 3 * n);
    struct long_word word = {
        .heap = heap, .symbols = symbols, .before = symbols + n, .behind = symbols + 2 * n};
    return count <= SHORT_WORD ? apply_short(m, symbols, count)
                               : apply_long(m, &word, count);
}
