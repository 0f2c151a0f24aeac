// SPDX-License-Identifier: MIT
// Merges: pairs of symbols that become one, in the order in which they were learnt.
#ifndef TOKENIZERS_MERGE_H
#define TOKENIZERS_MERGE_H

#include "vocabulary.h"

// Two symbols that become one. The number of a merge is its rank: 0 comes first.
struct merge {
    uint32_t left, right, result;
};

struct merges {
    struct merge *items;
    uint32_t count;
    uint32_t *slots;    // of the hash table: rank + 1, or 0
    uint32_t num_slots; // a power of two
};

// Reads the merges; their texts become symbols.
tn_status merges_init(const tn_host *host, const tn_metadata_list *metadata,
                      struct vocabulary *v, struct merges *out);
void merges_finish(const tn_host *host, struct merges *m);

// Memory for words, kept from one to the next. Zeroed to begin with.
struct merge_space {
    void *memory;
    uint64_t capacity; // symbols
};

// The symbols of a word, of which there is room for `count`, at least 1; NULL when out of
// memory. To be filled before merges_apply.
uint32_t *merge_symbols(const tn_host *host, struct merge_space *space, uint64_t count);
// Merges `count` symbols in place; returns how many are left.
uint64_t merges_apply(const struct merges *m, struct merge_space *space, uint64_t count);

#endif // TOKENIZERS_MERGE_H
