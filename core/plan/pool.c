// SPDX-License-Identifier: MIT
// The free ranges of an arena. Maps by start and by end find the adjacent ranges. A treap
// ordered by size and offset finds the smallest range that is large enough: a search tree
// whose nodes have random priorities, the highest at the root, so that its expected depth
// is logarithmic.
#include "pool.h"

#include <inttypes.h>
#include <tenon/checked.h>
#include "../base/fail.h"
#include "../base/memory.h"

// A free range. Blocks are referred to by index + 1; 0: no block.
struct pool_block {
    uint64_t offset, size, priority;
    uint32_t left, right; // children; of an unused block `left` is the next unused one
};

static struct pool_block *plan_pool_block(const struct pool *pool, uint32_t number)
{
    return &pool->blocks[number - 1];
}

// --- the treap -------------------------------------------------------------------------

static bool goes_before(const struct pool_block *a, const struct pool_block *b)
{
    return a->size < b->size || (a->size == b->size && a->offset < b->offset);
}

static uint32_t *plan_pool_side(struct pool_block *at, const struct pool_block *b)
{
    return goes_before(b, at) ? &at->left : &at->right;
}

static void tree_insert(struct pool *pool, uint32_t number)
{
    struct pool_block *b = plan_pool_block(pool, number);
    uint32_t *link = &pool->root, *less = &b->left, *more = &b->right;
    while (*link && plan_pool_block(pool, *link)->priority >= b->priority)
        link = plan_pool_side(plan_pool_block(pool, *link), b);
    // Splits the subtree below: blocks before `b` go to its left, those after to its right.
    uint32_t rest = *link;
    *link = number;
    while (rest) {
        struct pool_block *r = plan_pool_block(pool, rest);
        uint32_t **end = goes_before(r, b) ? &less : &more;
        **end = rest;
        *end = goes_before(r, b) ? &r->right : &r->left;
        rest = **end;
    }
    *less = *more = 0;
}

static void tree_remove(struct pool *pool, uint32_t number)
{
    const struct pool_block *b = plan_pool_block(pool, number);
    uint32_t *link = &pool->root, less = b->left, more = b->right;
    while (*link != number)
        link = plan_pool_side(plan_pool_block(pool, *link), b);
    while (less && more) {
        bool lower =
            plan_pool_block(pool, less)->priority > plan_pool_block(pool, more)->priority;
        *link = lower ? less : more;
        link = lower ? &plan_pool_block(pool, less)->right
                     : &plan_pool_block(pool, more)->left;
        *(lower ? &less : &more) = *link;
    }
    *link = less ? less : more;
}

static uint32_t tree_find(const struct pool *pool, uint64_t size)
{
    uint32_t best = 0;
    for (uint32_t at = pool->root; at;) {
        bool fits = plan_pool_block(pool, at)->size >= size;
        best = fits ? at : best;
        at = fits ? plan_pool_block(pool, at)->left : plan_pool_block(pool, at)->right;
    }
    return best;
}

// --- free ranges -----------------------------------------------------------------------

static struct hash plan_pool_key_of(uint64_t offset)
{
    return (struct hash){offset, 0};
}

static uint32_t plan_pool_find(const struct map *map, uint64_t offset)
{
    return (uint32_t)(uintptr_t)map_get(map, plan_pool_key_of(offset));
}

static tn_status add_free(struct pool *pool, uint64_t offset, uint64_t size)
{
    uint32_t number = pool->unused;
    if (!number) {
        tn_status status = mem_grow((void **)&pool->blocks, &pool->capacity,
                                    pool->count + 1, sizeof(*pool->blocks));
        if (status != TN_OK)
            return status;
        number = ++pool->count;
    } else {
        pool->unused = plan_pool_block(pool, number)->left;
    }
    *plan_pool_block(pool, number) = (struct pool_block){
        .offset = offset, .size = size, .priority = hash_u64(hash_start(0), offset).lo};
    void *value = (void *)(uintptr_t)number;
    tn_status status = map_put(&pool->starts, plan_pool_key_of(offset), value);
    if (status == TN_OK)
        status = map_put(&pool->ends, plan_pool_key_of(offset + size), value);
    tree_insert(pool, number);
    return status;
}

static void drop_free(struct pool *pool, uint32_t number)
{
    struct pool_block *b = plan_pool_block(pool, number);
    map_remove(&pool->starts, plan_pool_key_of(b->offset));
    map_remove(&pool->ends, plan_pool_key_of(b->offset + b->size));
    tree_remove(pool, number);
    b->left = pool->unused;
    pool->unused = number;
}

// --- allocation ------------------------------------------------------------------------

// Rounds a size up to a multiple of the alignment, at least one.
static tn_status pool_round(const struct pool *pool, uint64_t size, uint64_t *out_size)
{
    if (tn_checked_round_up(size ? size : 1, pool->alignment, out_size))
        return TN_OK;
    return fail(TN_ERR_MEMORY,
                "device %s: %" PRIu64 " bytes, rounded up to %" PRIu64
                ", do not fit 64 bits",
                pool->device, size, pool->alignment);
}

// Allocates at the end of the arena, from the free block there if there is one.
static tn_status pool_grow(struct pool *pool, uint64_t size, uint64_t *out_offset)
{
    uint32_t last = plan_pool_find(&pool->ends, pool->end);
    uint64_t offset = last ? plan_pool_block(pool, last)->offset : pool->end, end;
    if (!tn_checked_add(offset, size, &end))
        return fail(TN_ERR_MEMORY,
                    "device %s: %" PRIu64 " bytes behind %" PRIu64 " bytes of other values "
                    "of this graph do not fit 64 bits: evaluate it in parts",
                    pool->device, size, offset);
    if (last)
        drop_free(pool, last);
    pool->end = end;
    *out_offset = offset;
    return TN_OK;
}

tn_status pool_take(struct pool *pool, uint64_t size, uint64_t *out_offset)
{
    tn_status status = pool_round(pool, size, &size);
    if (status != TN_OK)
        return status;
    uint32_t best = tree_find(pool, size);
    if (!best)
        return pool_grow(pool, size, out_offset);
    const struct pool_block found = *plan_pool_block(pool, best);
    drop_free(pool, best);
    *out_offset = found.offset;
    return found.size == size ? TN_OK
                              : add_free(pool, found.offset + size, found.size - size);
}

tn_status pool_give(struct pool *pool, uint64_t offset, uint64_t size)
{
    tn_status status = pool_round(pool, size, &size);
    if (status != TN_OK)
        return status;
    uint32_t left = plan_pool_find(&pool->ends, offset),
             right = plan_pool_find(&pool->starts, offset + size);
    if (left) {
        offset = plan_pool_block(pool, left)->offset;
        size += plan_pool_block(pool, left)->size;
        drop_free(pool, left);
    }
    if (right) {
        size += plan_pool_block(pool, right)->size;
        drop_free(pool, right);
    }
    return add_free(pool, offset, size);
}

void pool_finish(struct pool *pool)
{
    mem_free(pool->blocks);
    map_finish(&pool->starts);
    map_finish(&pool->ends);
}
