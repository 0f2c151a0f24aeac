// SPDX-License-Identifier: MIT
// Ranges take and give memory step by step: each from the smallest free block that is large
// enough (the lowest of equal ones), else at the end. A treap ordered by size and offset
// finds the block: a search tree whose nodes have random priorities, the highest at the
// root, so that its expected depth is logarithmic. Free blocks never touch: adjacent ones
// are joined at once.
//
// Where that leaves gaps, offsets are assigned anew: the largest range first gets the
// lowest offset between those of its time. The smaller arena is kept.
#include "pool.h"

#include <stdbool.h>
#include <stdlib.h>
#include <tenon/checked.h>
#include "../base/fail.h"
#include "../base/hash.h"
#include "../base/memory.h"

#define MOST_FITTED 2048 // ranges that are compared with each other: bounds the time
#define GAPS_DIVISOR 64  // gaps of at most this part of an arena stay

// A part of the arena. Block 0 has no bytes: it stands before the first and behind the
// last.
struct pool_block {
    uint64_t offset, size, priority;
    uint32_t before, behind; // adjacent blocks
    uint32_t left, right;    // children in the treap; 0: none
    bool is_free;            // then it is in the treap
};

struct pool_blocks {
    struct pool_block *blocks;
    uint32_t count, unused; // of blocks; a list of unused ones, by `left`
    uint32_t root;          // of the treap
};

// --- the treap -------------------------------------------------------------------------

static bool goes_before(const struct pool_block *a, const struct pool_block *b)
{
    return a->size < b->size || (a->size == b->size && a->offset < b->offset);
}

static uint32_t *plan_pool_side(struct pool_block *at, const struct pool_block *b)
{
    return goes_before(b, at) ? &at->left : &at->right;
}

static void tree_insert(struct pool_blocks *pool, uint32_t number)
{
    struct pool_block *blocks = pool->blocks, *b = &blocks[number];
    uint32_t *link = &pool->root, *less = &b->left, *more = &b->right;
    b->is_free = true;
    b->priority = hash_u64(hash_start(0), b->offset).lo;
    while (*link && blocks[*link].priority >= b->priority)
        link = plan_pool_side(&blocks[*link], b);
    // Splits the subtree below: blocks before `b` go to its left, those after to its right.
    uint32_t rest = *link;
    *link = number;
    while (rest) {
        struct pool_block *r = &blocks[rest];
        uint32_t **end = goes_before(r, b) ? &less : &more;
        **end = rest;
        *end = goes_before(r, b) ? &r->right : &r->left;
        rest = **end;
    }
    *less = *more = 0;
}

static void tree_remove(struct pool_blocks *pool, uint32_t number)
{
    struct pool_block *blocks = pool->blocks, *b = &blocks[number];
    uint32_t *link = &pool->root, less = b->left, more = b->right;
    b->is_free = false;
    while (*link != number)
        link = plan_pool_side(&blocks[*link], b);
    while (less && more) {
        bool lower = blocks[less].priority > blocks[more].priority;
        *link = lower ? less : more;
        link = lower ? &blocks[less].right : &blocks[more].left;
        *(lower ? &less : &more) = *link;
    }
    *link = less ? less : more;
}

static uint32_t tree_find(const struct pool_blocks *pool, uint64_t size)
{
    uint32_t best = 0;
    for (uint32_t at = pool->root; at;) {
        bool fits = pool->blocks[at].size >= size;
        best = fits ? at : best;
        at = fits ? pool->blocks[at].left : pool->blocks[at].right;
    }
    return best;
}

// --- blocks ----------------------------------------------------------------------------

// Adds a block of no bytes behind another one.
static uint32_t pool_add_block(struct pool_blocks *pool, uint32_t before)
{
    struct pool_block *blocks = pool->blocks, *b = &blocks[before];
    uint32_t number = pool->unused, behind = b->behind;
    if (number)
        pool->unused = blocks[number].left;
    else
        number = pool->count++;
    blocks[number] = (struct pool_block){
        .offset = b->offset + b->size, .before = before, .behind = behind};
    blocks[behind].before = b->behind = number;
    return number;
}

// Joins the block to the one before it, if both are free.
static void pool_join_block(struct pool_blocks *pool, uint32_t number)
{
    struct pool_block *b = &pool->blocks[number], *before = &pool->blocks[b->before];
    if (!b->is_free || !before->is_free)
        return;
    tree_remove(pool, b->before);
    tree_remove(pool, number);
    before->size += b->size;
    before->behind = b->behind;
    pool->blocks[b->behind].before = b->before;
    tree_insert(pool, b->before);
    b->left = pool->unused;
    pool->unused = number;
}

static void pool_give(struct pool_blocks *pool, uint32_t number)
{
    tree_insert(pool, number);
    uint32_t behind = pool->blocks[number].behind;
    pool_join_block(pool, behind);
    pool_join_block(pool, number);
}

// Gives a block of the size, or 0 when the arena's end would not fit 64 bits.
static uint32_t pool_take(struct pool_blocks *pool, uint64_t size)
{
    struct pool_block *blocks = pool->blocks;
    uint32_t number = tree_find(pool, size), last = blocks[0].before;
    if (number)
        tree_remove(pool, number);
    else if (blocks[last].is_free)
        tree_remove(pool, number = last);
    else
        number = pool_add_block(pool, last);
    struct pool_block *b = &blocks[number];
    if (b->size > size) {
        uint32_t rest = pool_add_block(pool, number);
        blocks[rest].offset = b->offset + size;
        blocks[rest].size = b->size - size;
        tree_insert(pool, rest);
    }
    b->size = size;
    uint64_t end;
    return tn_checked_add(b->offset, size, &end) ? number : 0;
}

// --- ranges ----------------------------------------------------------------------------

// A range whose offset is assigned anew.
struct pool_fitted {
    uint64_t offset, end; // bytes
    uint32_t first, last; // as those of `range`
    struct pool_range *range;
};

static int pool_compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int pool_by_last(const void *a, const void *b)
{
    const struct pool_range *const *x = a, *const *y = b;
    return pool_compare((*x)->last, (*y)->last);
}

static int pool_by_size(const void *a, const void *b) // the largest, then the first one
{
    const struct pool_range *const *x = a, *const *y = b;
    int order = pool_compare((*y)->size, (*x)->size);
    return order ? order : pool_compare((*x)->first, (*y)->first);
}

// Adds the range at the lowest offset where none of the `count` in the list, which are
// ordered by offset, is in use in its steps. Gives its end.
static uint64_t pool_fit(struct pool_fitted *list, uint32_t count, struct pool_range *range)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct pool_fitted *f = &list[i];
        if (f->last < range->first || f->first > range->last)
            continue;
        if (f->offset > at && f->offset - at >= range->size)
            break;
        at = f->end > at ? f->end : at;
    }
    for (; count > 0 && list[count - 1].offset > at; count--)
        list[count] = list[count - 1];
    uint64_t end = tn_saturated_add(at, range->size);
    list[count] = (struct pool_fitted){at, end, range->first, range->last, range};
    return end;
}

// Assigns all offsets anew, the largest range first, if this makes the arena smaller.
static tn_status pool_fit_all(struct arena *stack, struct pool_range **order,
                              uint32_t count, uint64_t *end)
{
    struct pool_fitted *list = arena_alloc(stack, count * sizeof(*list));
    if (!list)
        return TN_ERR_MEMORY;
    qsort(order, count, sizeof(struct pool_range *), pool_by_size);
    uint64_t most = 0;
    for (uint32_t i = 0; i < count && most < *end; i++) {
        uint64_t top = pool_fit(list, i, order[i]);
        most = top > most ? top : most;
    }
    if (most >= *end)
        return TN_OK;
    for (uint32_t i = 0; i < count; i++)
        list[i].range->offset = list[i].offset;
    *end = most;
    return TN_OK;
}

// Takes and gives memory step by step, of sizes that it rounds up. *out_live: the most
// bytes that live at once. False: the arena's end would not fit 64 bits.
static bool pool_walk_steps(struct pool_blocks *pool, uint64_t alignment,
                            struct pool_range *ranges, struct pool_range **order,
                            uint32_t count, uint64_t *out_live)
{
    uint64_t live = 0, most = 0;
    uint32_t given = 0; // of `order`
    for (uint32_t i = 0; i < count; i++)
        order[i] = &ranges[i];
    qsort(order, count, sizeof(struct pool_range *), pool_by_last);
    for (uint32_t i = 0; i < count; i++) {
        struct pool_range *r = &ranges[i];
        for (; order[given]->last < r->first; given++) {
            live -= order[given]->size;
            pool_give(pool, order[given]->block);
        }
        uint64_t size = r->size > 0 ? r->size : 1;
        if (!tn_checked_round_up(size, alignment, &r->size) ||
            !(r->block = pool_take(pool, r->size)))
            return false;
        r->offset = pool->blocks[r->block].offset;
        live += r->size;
        most = live > most ? live : most;
    }
    *out_live = most;
    return true;
}

tn_status pool_assign(const char *device, uint64_t alignment, struct arena *stack,
                      struct pool_range *ranges, uint32_t count, uint64_t *out_end)
{
    struct arena_mark mark = arena_mark(stack);
    uint64_t live, room = count + UINT64_C(1);
    struct pool_range **order = arena_alloc(stack, room * sizeof(*order));
    struct pool_blocks pool = {
        .blocks = arena_alloc(stack, 2 * room * sizeof(*pool.blocks)), .count = 1};
    tn_status status = TN_OK;
    if (!order || !pool.blocks)
        status = TN_ERR_MEMORY;
    else if (!pool_walk_steps(&pool, alignment, ranges, order, count, &live))
        status = fail(TN_ERR_MEMORY,
                      "device %s: values of this graph do not fit 64 bits: evaluate it in "
                      "parts",
                      device);
    else {
        const struct pool_block *last = &pool.blocks[pool.blocks[0].before];
        *out_end = last->offset + last->size;
        if (count <= MOST_FITTED && *out_end - live > *out_end / GAPS_DIVISOR)
            status = pool_fit_all(stack, order, count, out_end);
    }
    arena_rewind(stack, mark);
    return status;
}
