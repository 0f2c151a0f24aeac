// SPDX-License-Identifier: MIT
// A cache keyed by content hash and bounded in bytes and entries. The least recently used
// entry is evicted first. Entries are reference-counted, so one in use outlives its
// eviction.
//
// Threads. Any. `destroy` is called without the lock.
#ifndef CORE_BASE_LRU_H
#define CORE_BASE_LRU_H

#include <pthread.h>
#include <stdatomic.h>
#include "hash.h"

// First member of every cached struct. The creator sets refs, key and bytes before lru_put.
struct lru_entry {
    atomic_uint refs;
    struct hash key;
    uint64_t bytes;
    struct lru_entry *newer, *older; // links of the cache, under its lock
};

struct lru {
    pthread_mutex_t lock;
    struct map entries; // by key
    struct lru_entry *newest, *oldest;
    uint64_t bytes, limit; // the newest entry stays even when it exceeds `limit` alone
    uint32_t count, max_count;
    void (*destroy)(struct lru_entry *entry);
};

void lru_init(struct lru *lru, uint64_t limit, uint32_t max_count,
              void (*destroy)(struct lru_entry *entry));
// Releases all entries of the cache. Entries with other references live on.
void lru_finish(struct lru *lru);

// The entry of this key, with a reference, or NULL.
struct lru_entry *lru_get(struct lru *lru, struct hash key);

// Adds an entry, to which the cache takes a reference of its own. Does nothing when out of
// memory, or when another thread has added the same key. Returns the number of entries that
// were evicted.
uint32_t lru_put(struct lru *lru, struct lru_entry *entry);

uint64_t lru_bytes(struct lru *lru);

void lru_retain(struct lru_entry *entry);
void lru_release(const struct lru *lru, struct lru_entry *entry); // NULL is fine

#endif // CORE_BASE_LRU_H
