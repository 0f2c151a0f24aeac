// SPDX-License-Identifier: MIT
// A 128-bit hash of content, and a map keyed by it.
//
// Two lanes of 64 bits with different multipliers. In each lane a step is a bijection of
// the state for a fixed word, and of the word for a fixed state: no step loses entropy.
// Every step ends with a full mix, so there is no finalizer, and the low bits serve as a
// table index.
#include "hash.h"

#include <string.h>
#include "fail.h"
#include "memory.h"

static inline uint64_t hash_mix(uint64_t x, uint64_t factor)
{
    x ^= x >> 32;
    x *= factor;
    x ^= x >> 29;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

static inline struct hash hash_step(struct hash h, uint64_t value)
{
    uint64_t other = value * UINT64_C(0x9e3779b97f4a7c15);
    return (struct hash){hash_mix(h.lo ^ value, UINT64_C(0xbf58476d1ce4e5b9)) +
                             UINT64_C(0xc2b2ae3d27d4eb4f),
                         hash_mix(h.hi + other, UINT64_C(0x94d049bb133111eb)) ^
                             UINT64_C(0x165667b19e3779f9)};
}

struct hash hash_start(uint64_t seed)
{
    return hash_step(
        (struct hash){UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b)}, seed);
}

struct hash hash_u64(struct hash h, uint64_t value)
{
    return hash_step(h, value);
}

struct hash hash_bytes(struct hash h, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t word;
    size_t left = size;
    for (; left >= 8; left -= 8, at += 8) {
        memcpy(&word, at, 8);
        h = hash_step(h, word);
    }
    word = 0;
    if (left)
        memcpy(&word, at, left);
    // At most 7 bytes are left, so the top byte is free for the length, which tells "a"
    // from "a\0".
    return hash_step(h, word | (uint64_t)(size & 0xff) << 56);
}

struct hash hash_text(struct hash h, const char *text)
{
    size_t size = strlen(text);
    return hash_bytes(hash_step(h, size), text, size);
}

struct hash hash_join(struct hash h, struct hash other)
{
    // `other` is mixed already, and each lane takes its own half, turned so that the order
    // counts.
    uint64_t low = other.lo << 17 | other.lo >> 47;
    return (struct hash){hash_mix(h.lo ^ low, UINT64_C(0xbf58476d1ce4e5b9)) +
                             UINT64_C(0x9ae16a3b2f90404f),
                         hash_mix(h.hi + other.hi * UINT64_C(0x9e3779b97f4a7c15),
                                  UINT64_C(0x94d049bb133111eb)) ^
                             UINT64_C(0x3c6ef372fe94f82b)};
}

// --- map -------------------------------------------------------------------------------

// Linear probing. Removal moves later entries up, so there are no tombstones.

// Mixes the key, because callers may use pointers and small numbers as keys.
static uint32_t hash_slot_of(const struct map *map, struct hash key)
{
    uint64_t mixed =
        (key.lo ^ (key.hi << 32 | key.hi >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 32) & (map->capacity - 1);
}

static struct map_entry *hash_find(const struct map *map, struct hash key)
{
    uint32_t i = hash_slot_of(map, key);
    while (map->entries[i].value && !hash_equal(map->entries[i].key, key))
        i = (i + 1) & (map->capacity - 1);
    return &map->entries[i];
}

void *map_get(const struct map *map, struct hash key)
{
    return map->capacity ? hash_find(map, key)->value : NULL;
}

static tn_status hash_grow(struct map *map)
{
    if (map->capacity > UINT32_MAX / 4)
        return fail_memory(UINT64_MAX);
    uint32_t capacity = map->capacity ? map->capacity * 2 : 16;
    struct map larger = {.capacity = capacity, .count = map->count};
    larger.entries = mem_zalloc(capacity * sizeof(*larger.entries));
    if (!larger.entries)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < map->capacity; i++)
        if (map->entries[i].value)
            *hash_find(&larger, map->entries[i].key) = map->entries[i];
    mem_free(map->entries);
    *map = larger;
    return TN_OK;
}

tn_status map_put(struct map *map, struct hash key, void *value)
{
    if (map->count >= map->capacity / 8 * 5) {
        tn_status status = hash_grow(map);
        if (status != TN_OK)
            return status;
    }
    struct map_entry *entry = hash_find(map, key);
    if (!entry->value)
        map->count++;
    *entry = (struct map_entry){key, value};
    return TN_OK;
}

void map_remove(struct map *map, struct hash key)
{
    if (!map->capacity)
        return;
    struct map_entry *entry = hash_find(map, key);
    if (!entry->value)
        return;
    uint32_t mask = map->capacity - 1, hole = (uint32_t)(entry - map->entries);
    for (uint32_t i = (hole + 1) & mask; map->entries[i].value; i = (i + 1) & mask) {
        // An entry may move into the hole unless its home slot lies after the hole.
        uint32_t home = hash_slot_of(map, map->entries[i].key);
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        map->entries[hole] = map->entries[i];
        hole = i;
    }
    map->entries[hole].value = NULL;
    map->count--;
}

void map_finish(struct map *map)
{
    mem_free(map->entries);
    *map = (struct map){0};
}
