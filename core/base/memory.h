// SPDX-License-Identifier: MIT
// Host memory of the core. All allocations go through here, so that a test can make the
// n-th one fail.
#ifndef CORE_BASE_MEMORY_H
#define CORE_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <tenon/status.h>

// As malloc, calloc, realloc, free, strdup. A NULL result has recorded "out of memory".
void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
void *mem_realloc(void *memory, size_t size);
void mem_free(void *memory);
char *mem_strdup(const char *text);
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *mem_alloc_aligned(size_t size, size_t alignment); // free with mem_free

// Grows an array of *capacity elements to `need` at least, by doubling. On failure the
// array is unchanged.
tn_status mem_grow(void **array, uint32_t *capacity, uint32_t need, size_t element_size);

// For tests: allocation number n from now fails (1: the next); 0 turns it off. Also set by
// TENON_FAIL_ALLOC in builds with tests.
void mem_fail_nth(int64_t n);

// Arena: many small allocations, freed together. Zero is an empty arena.
struct arena {
    struct arena_block *blocks; // the newest first; owned
    unsigned char *next, *end;  // free bytes of the shared block in use
    unsigned char *cleared;     // those up to here are 0
    size_t bytes;               // of all blocks
};
// Cleared memory aligned to 16, or NULL with a failure recorded.
void *arena_alloc(struct arena *arena, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
void arena_finish(struct arena *arena);

// A position in an arena. Rewinding to a mark frees all allocations made since, but keeps
// the arena's first block, so that an arena that is reused as a stack does not call malloc
// again.
struct arena_mark {
    struct arena_block *blocks;
    unsigned char *next, *end;
};
struct arena_mark arena_mark(const struct arena *arena);
void arena_rewind(struct arena *arena, struct arena_mark mark);

#endif // CORE_BASE_MEMORY_H
