// SPDX-License-Identifier: MIT
// Open addressing with lock-free readers. A slot's key is written once, before its value is
// published, and a removed key leaves a tombstone. Growing and clearing publish a new
// table; readers may still be in the old one, which stays until lookup_finish.
#include "lookup.h"

#include <stdatomic.h>
#include "memory.h"

struct lookup_slot {
    struct hash key;
    // NULL: free. Stored (release) after the key; loaded (acquire) before the key is read.
    void *_Atomic value;
};

struct lookup_table {
    struct lookup_table *older; // replaced by this one; owned
    uint32_t mask, count;       // capacity - 1; slots in use, with tombstones
    struct lookup_slot slots[];
};

// The value of a removed key. Probes continue past it.
static char tombstone;

static struct lookup_slot *lookup_find(struct lookup_table *table, struct hash key,
                                       void **out)
{
    uint64_t i = key.lo & table->mask;
    // Ends at a free slot: at most half of the slots are in use.
    for (;; i = (i + 1) & table->mask) {
        struct lookup_slot *slot = &table->slots[i];
        *out = atomic_load_explicit(&slot->value, memory_order_acquire);
        if (!*out || hash_equal(slot->key, key))
            return slot;
    }
}

void *lookup_get(const struct lookup *lookup, struct hash key)
{
    void *value = NULL;
    struct lookup_table *table = atomic_load_explicit(&lookup->table, memory_order_acquire);
    if (table)
        lookup_find(table, key, &value);
    return value == &tombstone ? NULL : value;
}

static struct lookup_table *table_create(uint32_t capacity, struct lookup_table *older)
{
    struct lookup_table *table =
        mem_zalloc(sizeof(*table) + capacity * sizeof(table->slots[0]));
    if (table) {
        table->mask = capacity - 1;
        table->older = older;
    }
    return table;
}

static void lookup_insert(struct lookup_table *table, struct hash key, void *value)
{
    void *found;
    struct lookup_slot *slot = lookup_find(table, key, &found);
    if (!found) {
        slot->key = key;
        table->count++;
    }
    atomic_store_explicit(&slot->value, value, memory_order_release);
}

static struct lookup_table *lookup_grown(struct lookup_table *old)
{
    struct lookup_table *table = table_create(old ? (old->mask + 1) * 2 : 64, old);
    for (uint32_t i = 0; table && old && i <= old->mask; i++) {
        void *value = atomic_load_explicit(&old->slots[i].value, memory_order_relaxed);
        if (value && value != &tombstone)
            lookup_insert(table, old->slots[i].key, value);
    }
    return table;
}

tn_status lookup_put(struct lookup *lookup, struct hash key, void *value)
{
    struct lookup_table *table = atomic_load(&lookup->table);
    if (!table || (table->count + 1) * 2 > table->mask) {
        table = lookup_grown(table);
        if (!table)
            return TN_ERR_MEMORY;
        lookup_insert(table, key, value);
        atomic_store_explicit(&lookup->table, table, memory_order_release);
        return TN_OK;
    }
    lookup_insert(table, key, value);
    return TN_OK;
}

tn_status lookup_clear(struct lookup *lookup)
{
    struct lookup_table *old = atomic_load(&lookup->table);
    if (!old || !old->count)
        return TN_OK;
    struct lookup_table *table = table_create(64, old);
    if (!table)
        return TN_ERR_MEMORY;
    atomic_store_explicit(&lookup->table, table, memory_order_release);
    return TN_OK;
}

void lookup_remove(struct lookup *lookup, const void *value)
{
    struct lookup_table *table = atomic_load(&lookup->table);
    for (uint32_t i = 0; table && i <= table->mask; i++)
        if (atomic_load_explicit(&table->slots[i].value, memory_order_relaxed) == value)
            atomic_store_explicit(&table->slots[i].value, &tombstone, memory_order_release);
}

void lookup_finish(struct lookup *lookup)
{
    struct lookup_table *table = atomic_load(&lookup->table);
    while (table) {
        struct lookup_table *older = table->older;
        mem_free(table);
        table = older;
    }
    atomic_store(&lookup->table, NULL);
}
