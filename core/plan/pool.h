// SPDX-License-Identifier: MIT
// Best-fit allocator of offsets in one device's arena, used while a plan is made. No memory
// is touched.
#ifndef CORE_PLAN_POOL_H
#define CORE_PLAN_POOL_H

#include "../base/hash.h"

struct pool_block;

// Free ranges never touch: adjacent ones are joined at once. `end` is the arena's size so
// far. All offsets and sizes are multiples of the alignment. `end` fits 64 bits, so no sum
// of a block's offset and size wraps. Starts as zeros but for alignment and device.
struct pool {
    uint64_t end, alignment; // bytes
    const char *device;      // name, for messages
    struct pool_block *blocks;
    uint32_t count, capacity;
    uint32_t root, unused;   // treap, list of unused blocks: index of a block + 1; 0: empty
    struct map starts, ends; // offset -> index of a block + 1
};

// Allocates `size` bytes: from the smallest free range that is large enough (the lowest of
// equal ones), else at the end. O(log n) in the number of free ranges.
tn_status pool_take(struct pool *pool, uint64_t size, uint64_t *out_offset);
// Frees a range that pool_take gave for this size.
tn_status pool_give(struct pool *pool, uint64_t offset, uint64_t size);
void pool_finish(struct pool *pool);

#endif // CORE_PLAN_POOL_H
