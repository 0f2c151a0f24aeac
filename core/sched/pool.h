// SPDX-License-Identifier: MIT
// Offsets in one device's arena: taken and given back while a plan is made.
#ifndef CORE_SCHED_POOL_H
#define CORE_SCHED_POOL_H

#include "../base/hash.h"

struct pool_block;

// Free ranges, never touching: two neighbours are merged at once. `end` is the arena's size
// so far, a multiple of the alignment, as are all offsets and sizes in it; it fits 64 bits,
// so no sum of a block's offset and size wraps. Starts as zeros but for alignment, device.
struct pool {
    uint64_t end, alignment;
    const char *device; // its name
    struct pool_block *blocks;
    uint32_t count, capacity;
    uint32_t root, unused;   // + 1; 0: none
    struct map starts, ends; // offset -> number of a block + 1
};

// Room for `size` bytes: the smallest free range that is large enough, the lowest of equal
// ones, or new room at the end. In O(log n) of the free ranges.
tn_status pool_take(struct pool *pool, uint64_t size, uint64_t *out_offset);
// Gives back what pool_take gave for this size.
tn_status pool_give(struct pool *pool, uint64_t offset, uint64_t size);
void pool_finish(struct pool *pool);

#endif // CORE_SCHED_POOL_H
