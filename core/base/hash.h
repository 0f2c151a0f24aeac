// SPDX-License-Identifier: MIT
// A 128-bit hash of content, the same in every process, and a map keyed by it.
#ifndef CORE_BASE_HASH_H
#define CORE_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/status.h>

// Not cryptographic: keys that must withstand malice use SHA-256 (libsodium).
struct hash {
    uint64_t lo, hi;
};

struct hash hash_start(uint64_t seed);
struct hash hash_u64(struct hash h, uint64_t value);
struct hash hash_bytes(struct hash h, const void *bytes, size_t size);
struct hash hash_text(struct hash h, const char *text); // and its length
struct hash hash_join(struct hash h, struct hash other);
static inline bool hash_equal(struct hash a, struct hash b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

// A map from hashes to borrowed pointers, with open addressing. Zero is an empty map. One
// thread at a time.
struct map {
    struct map_entry {
        struct hash key;
        void *value; // NULL: free
    } * entries;
    uint32_t capacity, count;
};
void *map_get(const struct map *map, struct hash key);            // NULL: absent
tn_status map_put(struct map *map, struct hash key, void *value); // replaces; not NULL
void map_remove(struct map *map, struct hash key);
void map_finish(struct map *map);

#endif // CORE_BASE_HASH_H
