// SPDX-License-Identifier: MIT
// Host memory of the core: one place, so that a test can make the n-th allocation fail.
#ifndef CORE_BASE_MEMORY_H
#define CORE_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <tenon/status.h>

// As malloc, calloc, realloc, free, strdup; NULL records "out of memory".
void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
void *mem_realloc(void *memory, size_t size);
void mem_free(void *memory);
char *mem_strdup(const char *text);
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *mem_alloc_aligned(size_t size, size_t alignment); // free with mem_free

// Makes room for `need` elements in an array that holds *capacity of them; doubles.
tn_status mem_grow(void **array, uint32_t *capacity, uint32_t need, size_t element_size);

// For tests: allocation number n from now fails (1: the next); 0 turns it off. Also set by
// TENON_FAIL_ALLOC in builds with tests.
void mem_fail_nth(int64_t n);

// Arena: many small allocations, freed together. Zero is an empty arena.
struct arena {
    struct arena_block *blocks;
    unsigned char *next, *end;
    size_t bytes; // of all blocks
};
// Cleared memory aligned to 16, or NULL with a failure recorded.
void *arena_alloc(struct arena *arena, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
void arena_finish(struct arena *arena);

#endif // CORE_BASE_MEMORY_H
