// SPDX-License-Identifier: MIT
// An LRU cache: a map by content hash, and a list of its entries by age of their last use.
#include "lru.h"

void lru_init(struct lru *lru, uint64_t limit, uint32_t max_count,
              void (*destroy)(struct lru_entry *entry))
{
    *lru = (struct lru){.limit = limit, .max_count = max_count, .destroy = destroy};
    pthread_mutex_init(&lru->lock, NULL);
}

void lru_retain(struct lru_entry *entry)
{
    atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
}

void lru_release(const struct lru *lru, struct lru_entry *entry)
{
    // acq_rel: the last owner must see every use of the others before it destroys.
    if (entry && atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) == 1)
        lru->destroy(entry);
}

// Releases the entries of a list that is linked by `older`.
static void release_list(struct lru *lru, struct lru_entry *list)
{
    while (list) {
        struct lru_entry *next = list->older;
        lru_release(lru, list);
        list = next;
    }
}

void lru_finish(struct lru *lru)
{
    release_list(lru, lru->newest);
    map_finish(&lru->entries);
    pthread_mutex_destroy(&lru->lock);
}

static void unlink_entry(struct lru *lru, struct lru_entry *entry)
{
    *(entry->newer ? &entry->newer->older : &lru->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &lru->oldest) = entry->newer;
}

static void link_newest(struct lru *lru, struct lru_entry *entry)
{
    entry->newer = NULL;
    entry->older = lru->newest;
    *(lru->newest ? &lru->newest->newer : &lru->oldest) = entry;
    lru->newest = entry;
}

struct lru_entry *lru_get(struct lru *lru, struct hash key)
{
    pthread_mutex_lock(&lru->lock);
    struct lru_entry *entry = map_get(&lru->entries, key);
    if (entry) {
        lru_retain(entry);
        if (entry != lru->newest) {
            unlink_entry(lru, entry);
            link_newest(lru, entry);
        }
    }
    pthread_mutex_unlock(&lru->lock);
    return entry;
}

// Unlinks the oldest entries until the limits hold. Gives them, with the cache's
// references, as a list linked by `older`, so that the caller can release them without the
// lock.
static struct lru_entry *lru_evict(struct lru *lru)
{
    struct lru_entry *evicted = NULL;
    while ((lru->bytes > lru->limit || lru->count > lru->max_count) &&
           lru->oldest != lru->newest) {
        struct lru_entry *oldest = lru->oldest;
        unlink_entry(lru, oldest);
        map_remove(&lru->entries, oldest->key);
        lru->bytes -= oldest->bytes;
        lru->count--;
        oldest->older = evicted;
        evicted = oldest;
    }
    return evicted;
}

uint32_t lru_put(struct lru *lru, struct lru_entry *entry)
{
    struct lru_entry *evicted = NULL;
    uint32_t count = 0;
    pthread_mutex_lock(&lru->lock);
    if (!map_get(&lru->entries, entry->key) &&
        map_put(&lru->entries, entry->key, entry) == TN_OK) {
        lru_retain(entry);
        link_newest(lru, entry);
        lru->bytes += entry->bytes;
        count = ++lru->count;
        evicted = lru_evict(lru);
        count -= lru->count;
    }
    pthread_mutex_unlock(&lru->lock);
    release_list(lru, evicted);
    return count;
}

uint64_t lru_bytes(struct lru *lru)
{
    pthread_mutex_lock(&lru->lock);
    uint64_t bytes = lru->bytes;
    pthread_mutex_unlock(&lru->lock);
    return bytes;
}
