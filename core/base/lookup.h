// SPDX-License-Identifier: MIT
// A hash table with lock-free readers, for interned names, expressions, programs and
// primitives. Keys are content hashes; values are borrowed and must outlive the table.
//
// Threads. lookup_get: any, at any time. The other functions: one thread at a time, under a
// lock of the table's owner.
#ifndef CORE_BASE_LOOKUP_H
#define CORE_BASE_LOOKUP_H

#include "hash.h"

// Zero is an empty table. Replaced tables stay until lookup_finish, because a reader may
// still be in one.
struct lookup {
    struct lookup_table *_Atomic table;
};

void *lookup_get(const struct lookup *lookup, struct hash key); // NULL: absent
tn_status lookup_put(struct lookup *lookup, struct hash key, void *value);
// Makes every key absent.
tn_status lookup_clear(struct lookup *lookup);
// Makes every key of `value` absent. Never fails.
void lookup_remove(struct lookup *lookup, const void *value);
void lookup_finish(struct lookup *lookup);

#endif // CORE_BASE_LOOKUP_H
