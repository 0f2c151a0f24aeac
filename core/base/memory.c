// SPDX-License-Identifier: MIT
// Host memory of the core, with fault injection for tests; and arenas.
#include "memory.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/checked.h>
#include "fail.h"

// Fault injection: allocations left until one fails; 0: off, also after the failure.
static _Atomic int64_t countdown;

void mem_fail_nth(int64_t n)
{
    atomic_store(&countdown, n);
}

static bool memory_fails_now(void)
{
    if (atomic_load_explicit(&countdown, memory_order_relaxed) <= 0)
        return 0;
    return atomic_fetch_sub(&countdown, 1) == 1;
}

static void *memory_checked(void *memory, size_t size)
{
    if (!memory)
        fail_memory(size);
    return memory;
}

void *mem_alloc(size_t size)
{
    return memory_checked(memory_fails_now() ? NULL : malloc(size ? size : 1), size);
}

void *mem_zalloc(size_t size)
{
    return memory_checked(memory_fails_now() ? NULL : calloc(1, size ? size : 1), size);
}

void *mem_realloc(void *memory, size_t size)
{
    return memory_checked(memory_fails_now() ? NULL : realloc(memory, size ? size : 1),
                          size);
}

void mem_free(void *memory)
{
    free(memory);
}

void *mem_alloc_aligned(size_t size, size_t alignment)
{
    void *memory = NULL;
    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    if (memory_fails_now() || posix_memalign(&memory, alignment, size ? size : 1))
        memory = NULL;
    return memory_checked(memory, size);
}

char *mem_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = mem_alloc(size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

char *mem_printf(const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int size = vsnprintf(NULL, 0, format, list);
    char *text = size < 0 ? NULL : mem_alloc((size_t)size + 1);
    if (text)
        vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    va_end(list);
    return text;
}

tn_status mem_grow(void **array, uint32_t *capacity, uint32_t need, size_t element_size)
{
    if (need <= *capacity)
        return TN_OK;
    uint64_t wanted = *capacity ? *capacity : element_size > 64 ? 2 : 8;
    while (wanted < need)
        wanted *= 2;
    if (wanted > UINT32_MAX)
        wanted = UINT32_MAX;
    uint64_t size;
    if (!tn_checked_multiply(wanted, element_size, &size))
        return fail_memory(UINT64_MAX);
    void *grown = mem_realloc(*array, size);
    if (!grown)
        return TN_ERR_MEMORY;
    *array = grown;
    *capacity = (uint32_t)wanted;
    return TN_OK;
}

// --- arena -----------------------------------------------------------------------------

// Bytes of the first shared block of an arena and of the largest one; blocks double in
// between. Most arenas stay small: those of a scope that makes one call fit the first
// block, and glibc keeps freed blocks of up to 1032 bytes for each thread, without a lock.
#define ARENA_FIRST ((size_t)1024)
#define ARENA_LAST ((size_t)65536)
// Bytes that are cleared at once, ahead of the allocations: clearing whole blocks took a
// tenth of a call of a function.
#define ARENA_CLEARED ((size_t)256)

struct arena_block {
    struct arena_block *previous;
    uint64_t size;            // bytes of the next shared block
    uint64_t bytes, reserved; // of this block with its header; 0, pads the header to 32
};

// Takes `size` bytes of the shared block, which has them.
static void *memory_take(struct arena *arena, size_t size)
{
    unsigned char *memory = arena->next;
    size_t ready = (size_t)(arena->cleared - memory);
    if (ready < size) {
        size_t room = (size_t)(arena->end - arena->cleared);
        size_t more = size - ready > ARENA_CLEARED ? size - ready : ARENA_CLEARED;
        more = more < room ? more : room;
        memset(arena->cleared, 0, more);
        arena->cleared += more;
    }
    arena->next += size;
    return memory;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX - ARENA_LAST)
        return fail_memory(size), NULL;
    size = (size + 15) & ~(size_t)15;
    if ((size_t)(arena->cleared - arena->next) >= size && arena->next) {
        void *memory = arena->next;
        arena->next += size;
        return memory;
    }
    if ((size_t)(arena->end - arena->next) >= size && arena->next)
        return memory_take(arena, size);
    // A large allocation gets a block of its own; the shared block stays in use.
    size_t shared = arena->blocks ? (size_t)arena->blocks->size : ARENA_FIRST;
    bool large = size > shared / 2;
    size_t bytes = large ? sizeof(struct arena_block) + size : shared;
    struct arena_block *block = large ? mem_zalloc(bytes) : mem_alloc(bytes);
    if (!block)
        return NULL;
    block->reserved = 0;
    arena->bytes += bytes;
    block->previous = arena->blocks;
    block->bytes = bytes;
    block->size = shared < ARENA_LAST ? shared * 2 : ARENA_LAST;
    arena->blocks = block;
    unsigned char *first = (unsigned char *)(block + 1);
    if (large)
        return first;
    arena->next = arena->cleared = first;
    arena->end = (unsigned char *)block + bytes;
    return memory_take(arena, size);
}

char *arena_strdup(struct arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = arena_alloc(arena, size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

void arena_finish(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *block = arena->blocks;
        arena->blocks = block->previous;
        mem_free(block);
    }
    *arena = (struct arena){0};
}

struct arena_mark arena_mark(const struct arena *arena)
{
    return (struct arena_mark){arena->blocks, arena->next, arena->end};
}

void arena_rewind(struct arena *arena, struct arena_mark mark)
{
    unsigned char *used = arena->next, *used_end = arena->end;
    while (arena->blocks != mark.blocks && (mark.blocks || arena->blocks->previous)) {
        struct arena_block *block = arena->blocks;
        arena->blocks = block->previous;
        arena->bytes -= block->bytes;
        mem_free(block);
    }
    if (arena->blocks && !mark.blocks) { // the first block: all of it is free again
        mark.next = (unsigned char *)(arena->blocks + 1);
        mark.end = (unsigned char *)arena->blocks + arena->blocks->bytes;
    }
    // arena_alloc promises cleared memory. In the same block only the bytes up to the
    // former `next` are dirty; in another one nothing is known to be cleared.
    if (!mark.next || used_end != mark.end)
        arena->cleared = mark.next;
    else
        memset(mark.next, 0, (size_t)(used - mark.next));
    arena->next = mark.next;
    arena->end = mark.end;
}
