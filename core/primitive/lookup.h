// SPDX-License-Identifier: MIT
// A table from content hashes to things that live as long as the table. Reading takes no
// lock, so that names, expressions and programs are found at the cost of a hash.
//
// Threads. lookup_get: any, at any time. The other functions: one thread at a time, which
// the owner sees to with a lock of its own.
#ifndef CORE_PRIMITIVE_LOOKUP_H
#define CORE_PRIMITIVE_LOOKUP_H

#include "../base/hash.h"

// Zero is an empty table. `table` is published whole; a table that was outgrown stays until
// lookup_finish, because a reader may still be in it.
struct lookup {
    struct lookup_table *_Atomic table;
};

void *lookup_get(const struct lookup *lookup, struct hash key); // NULL: absent
tn_status lookup_put(struct lookup *lookup, struct hash key, void *value);
tn_status lookup_clear(struct lookup *lookup);
// Makes every key of `value` absent. Never fails.
void lookup_remove(struct lookup *lookup, const void *value);
void lookup_finish(struct lookup *lookup);

#endif // CORE_PRIMITIVE_LOOKUP_H
