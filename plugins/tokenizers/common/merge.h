// SPDX-License-Identifier: MIT
// Merges: pairs of symbols that become one symbol, in the order in which they were learnt.
#ifndef TOKENIZERS_MERGE_H
#define TOKENIZERS_MERGE_H

#include "vocabulary.h"

// Two symbols that become one. A merge's index is its rank: 0 comes first.
struct merge {
    uint32_t left, right, result;
};

struct merges {
    struct merge *items;
    uint32_t count;
    uint32_t *slots;    // hash table: rank + 1; 0: empty
    uint32_t num_slots; // a power of two
};

// Reads the merges; texts that they need become symbols.
tn_status merges_init(const tn_host *host, const tn_metadata_list *metadata,
                      struct vocabulary *v, struct merges *out);
void merges_finish(const tn_host *host, struct merges *m);

// Memory for words, reused from word to word. Zeroed at first.
struct merge_space {
    void *memory;
    uint64_t capacity; // symbols
};

// Returns room for the `count` symbols of a word, at least 1, which the caller fills before
// merges_apply; NULL when out of memory.
uint32_t *merge_symbols(const tn_host *host, struct merge_space *space, uint64_t count);
// Merges `count` symbols in place; returns how many are left.
uint64_t merges_apply(const struct merges *m, struct merge_space *space, uint64_t count);

#endif // TOKENIZERS_MERGE_H
