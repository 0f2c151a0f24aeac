// SPDX-License-Identifier: MIT
// An arena: memory that is freed all at once. Holds the parts of an executable; one thread
// uses it at a time.
#ifndef CPU_BLAS_ARENA_H
#define CPU_BLAS_ARENA_H

#include <stdint.h>
#include <string.h>
#include <tenon/host.h>

#define ARENA_CHUNK 16384 // least bytes of a chunk

struct arena_chunk {
    struct arena_chunk *next;
    uint64_t used, size;
    _Alignas(64) unsigned char bytes[];
};

struct cpu_arena {
    const tn_host *host;
    struct arena_chunk *chunks; // the first one is being filled
};

// Allocates `size` cleared bytes, aligned to 16, that the arena owns. NULL when out of
// memory, which the host has reported.
static inline void *arena_alloc(struct cpu_arena *arena, uint64_t size)
{
    struct arena_chunk *chunk = arena->chunks;
    size = (size + 15) & ~UINT64_C(15);
    if (!chunk || chunk->size - chunk->used < size) {
        uint64_t room = size > ARENA_CHUNK ? size : ARENA_CHUNK;
        chunk = arena->host->alloc(arena->host, sizeof(*chunk) + room, 64);
        if (!chunk)
            return NULL;
        *chunk = (struct arena_chunk){.next = arena->chunks, .size = room};
        arena->chunks = chunk;
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += size;
    return memset(memory, 0, size);
}

static inline void arena_finish(struct cpu_arena *arena)
{
    while (arena->chunks) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        arena->host->free(arena->host, chunk);
    }
}

#endif // CPU_BLAS_ARENA_H
