// SPDX-License-Identifier: MIT
// Memory that is freed all at once: what an executable consists of.
#ifndef CPU_BLAS_ARENA_H
#define CPU_BLAS_ARENA_H

#include <stdint.h>
#include <string.h>
#include <tenon/host.h>

#define ARENA_CHUNK 16384 // bytes, at least

struct arena_chunk {
    struct arena_chunk *next;
    uint64_t used, size;
    _Alignas(64) unsigned char bytes[];
};

struct arena {
    const tn_host *host;
    struct arena_chunk *chunks; // the first is the one in use
};

// Gives `size` cleared bytes aligned to 16; NULL when out of memory (recorded).
static inline void *arena_alloc(struct arena *arena, uint64_t size)
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

static inline void arena_finish(struct arena *arena)
{
    while (arena->chunks) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        arena->host->free(arena->host, chunk);
    }
}

#endif // CPU_BLAS_ARENA_H
