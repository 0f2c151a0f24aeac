// SPDX-License-Identifier: MIT
#include "context.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- memory -----------------------------------------------------------------------------

// Bytes in [clean, dirty) have the values of an earlier compilation; they are cleared a
// part at a time, so that they are in the first-level cache when they are used.
struct context_chunk {
    struct context_chunk *next;
    size_t used, size; // bytes behind the chunk
    size_t clean, dirty;
    alignas(max_align_t) unsigned char bytes[];
};

enum {
    FIRST_CHUNK = 64 << 10,
    MOST_CHUNK = 4 << 20,
    CLEARED = 4096,
    FIRST_BUCKETS = 2048, // a power of two
    // Memory that is kept for later compilations: most bytes of one, and of how many.
    MOST_KEPT = 5 << 20,
    NUM_KEPT = 4,
};

// A sanitizer shall see each allocation, its bounds and its end.
#if defined(__SANITIZE_ADDRESS__)
#define ONE_BY_ONE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define ONE_BY_ONE 1
#endif
#endif
#ifndef ONE_BY_ONE
#define ONE_BY_ONE 0
#endif

// Chunks of compilations that have ended, the largest first. A compilation takes one list.
static struct context_chunk *_Atomic kept[NUM_KEPT];

static void free_chunks(struct context_chunk *chunk)
{
    while (chunk) {
        struct context_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

static struct context_chunk *context_take_kept(void)
{
    struct context_chunk *list = NULL;
    for (int i = 0; i < NUM_KEPT && !list; i++)
        list = atomic_exchange(&kept[i], NULL);
    return list;
}

static void context_keep(struct context_chunk *list)
{
    for (int i = 0; i < NUM_KEPT && list; i++) {
        struct context_chunk *none = NULL;
        if (atomic_compare_exchange_strong(&kept[i], &none, list))
            return;
    }
    free_chunks(list);
}

void compiler_free_kept(void)
{
    for (int i = 0; i < NUM_KEPT; i++)
        free_chunks(atomic_exchange(&kept[i], NULL));
}

// Moves chunks to the front of *kept_chunks, as long as these have at most *left bytes.
static void sort_out(struct context_chunk *chunk, struct context_chunk **kept_chunks,
                     size_t *left)
{
    for (struct context_chunk *next; chunk; chunk = next) {
        next = chunk->next;
        if (ONE_BY_ONE || chunk->size > *left) {
            free(chunk);
            continue;
        }
        *left -= chunk->size;
        chunk->dirty = chunk->used > chunk->dirty ? chunk->used : chunk->dirty;
        struct context_chunk **at = kept_chunks;
        while (*at && (*at)->size > chunk->size)
            at = &(*at)->next;
        chunk->next = *at;
        *at = chunk;
    }
}

static void end_memory(struct compiler *c)
{
    struct context_chunk *list = NULL;
    size_t left = MOST_KEPT;
    sort_out(c->chunks, &list, &left);
    sort_out(c->spare, &list, &left);
    c->chunks = c->spare = NULL;
    context_keep(list);
}

// A chunk of an earlier compilation, or NULL.
static struct context_chunk *take_spare(struct compiler *c, size_t size)
{
    struct context_chunk **at = &c->spare;
    while (*at && (*at)->size < size)
        at = &(*at)->next;
    struct context_chunk *chunk = *at;
    if (!chunk || chunk->size > MOST_MEMORY - c->memory)
        return NULL;
    *at = chunk->next;
    chunk->used = chunk->clean = 0;
    return chunk;
}

static struct context_chunk *make_chunk(struct compiler *c, size_t size)
{
    size_t room = c->memory < FIRST_CHUNK ? FIRST_CHUNK : c->memory;
    room = room > MOST_CHUNK ? MOST_CHUNK : room;
    room = size > room || ONE_BY_ONE ? size : room;
    if (room > MOST_MEMORY - c->memory)
        room = size;
    if (room > MOST_MEMORY - c->memory)
        compiler_fail(c, NULL, "the source needs more than %d MiB of memory to compile",
                      MOST_MEMORY >> 20);
    struct context_chunk *chunk = calloc(1, sizeof(*chunk) + room);
    if (!chunk)
        compiler_fail(c, NULL, "out of memory: no %zu bytes", room);
    chunk->size = room;
    return chunk;
}

static struct context_chunk *add_chunk(struct compiler *c, size_t size)
{
    struct context_chunk *chunk = take_spare(c, size);
    if (!chunk)
        chunk = make_chunk(c, size);
    c->memory += chunk->size;
    // A chunk that is full at once goes behind the one that still has room.
    struct context_chunk **at =
        c->chunks && chunk->size == size ? &c->chunks->next : &c->chunks;
    chunk->next = *at;
    *at = chunk;
    return chunk;
}

static void context_clear(struct context_chunk *chunk)
{
    size_t end =
        chunk->used > chunk->clean + CLEARED ? chunk->used : chunk->clean + CLEARED;
    end = end > chunk->dirty ? chunk->dirty : end;
    memset(chunk->bytes + chunk->clean, 0, end - chunk->clean);
    chunk->clean = end;
}

void *compiler_allocate(struct compiler *c, size_t size)
{
    if (size > MOST_MEMORY)
        compiler_fail(c, NULL, "the source needs more than %d MiB of memory to compile",
                      MOST_MEMORY >> 20);
    if (!ONE_BY_ONE)
        size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct context_chunk *chunk = c->chunks;
    if (!chunk || size > chunk->size - chunk->used)
        chunk = add_chunk(c, size);
    void *memory = chunk->bytes + chunk->used;
    chunk->used += size;
    if (chunk->used > chunk->clean && chunk->clean < chunk->dirty)
        context_clear(chunk);
    return memory;
}

void *compiler_grow(struct compiler *c, void *items, uint32_t count, uint32_t *capacity,
                    size_t item_size)
{
    if (count < *capacity)
        return items;
    uint32_t wanted = count < 8 ? 16 : count > UINT32_MAX / 2 ? UINT32_MAX : count * 2;
    if (item_size > 0 && wanted > MOST_MEMORY / item_size)
        wanted = count + 1 > MOST_MEMORY / item_size ? UINT32_MAX : count + 1;
    void *grown = compiler_allocate(c, (size_t)wanted * item_size);
    if (count > 0)
        memcpy(grown, items, count * item_size);
    *capacity = wanted;
    return grown;
}

static bool context_run(struct compiler *c, void (*work)(struct compiler *, void *),
                        void *context)
{
    if (setjmp(c->failed))
        return false;
    work(c, context);
    return true;
}

bool compiler_run(struct compiler *c, void (*work)(struct compiler *, void *),
                  void *context)
{
    c->spare = ONE_BY_ONE ? NULL : context_take_kept();
    bool ok = context_run(c, work, context);
    end_memory(c);
    if (ok)
        return true;
    free(c->result->words);
    c->result->words = NULL;
    c->result->num_words = 0;
    return false;
}

// --- names ------------------------------------------------------------------------------

static void grow_buckets(struct compiler *c)
{
    uint32_t num = c->num_buckets ? c->num_buckets * 4 : FIRST_BUCKETS;
    struct name **buckets = compiler_allocate(c, num * sizeof(*buckets));
    for (uint32_t i = 0; i < c->num_buckets; i++)
        for (struct name *name = c->buckets[i], *next; name; name = next) {
            next = name->next;
            name->next = buckets[name->hash & (num - 1)];
            buckets[name->hash & (num - 1)] = name;
        }
    c->buckets = buckets;
    c->num_buckets = num;
}

struct name *compiler_name_hashed(struct compiler *c, const char *text, size_t size,
                                  uint32_t hash)
{
    if (c->num_names >= c->num_buckets)
        grow_buckets(c);
    struct name **bucket = &c->buckets[hash & (c->num_buckets - 1)];
    for (struct name *name = *bucket; name; name = name->next)
        if (name->hash == hash && name->size == size && !memcmp(name->text, text, size))
            return name;
    struct name *name = compiler_allocate(c, sizeof(*name) + size + 1);
    char *copy = (char *)(name + 1);
    memcpy(copy, text, size);
    *name =
        (struct name){.text = copy, .size = (uint32_t)size, .hash = hash, .next = *bucket};
    *bucket = name;
    c->num_names++;
    return name;
}

struct name *compiler_name(struct compiler *c, const char *text, size_t size)
{
    uint32_t hash = NAME_HASH;
    for (size_t i = 0; i < size; i++)
        hash = name_hash(hash, text[i]);
    return compiler_name_hashed(c, text, size, hash);
}

uint32_t compiler_file(struct compiler *c, const char *name)
{
    c->files = compiler_grow(c, c->files, c->num_files, &c->max_files, sizeof(*c->files));
    size_t size = strlen(name) + 1;
    c->files[c->num_files] = memcpy(compiler_allocate(c, size), name, size);
    return c->num_files++;
}

// --- the error --------------------------------------------------------------------------

// The bytes of the character in UTF-8 at `text`; 0: it is none.
static size_t utf8_size(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t size = p[0] < 0x80   ? 1
                  : p[0] < 0xC2 ? 0
                  : p[0] < 0xE0 ? 2
                  : p[0] < 0xF0 ? 3
                  : p[0] < 0xF5 ? 4
                                : 0;
    for (size_t i = 1; i < size; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return size;
}

// One line in UTF-8 without control characters: a terminal shows the message as it is.
static void clean_message(char *message)
{
    for (char *p = message; *p;) {
        size_t size = utf8_size(p);
        bool is_control = (unsigned char)*p < 0x20 || *p == 0x7f;
        if (size == 0 || is_control)
            *p = is_control ? ' ' : '?';
        p += size ? size : 1;
    }
}

void compiler_fail(struct compiler *c, const struct position *at, const char *format, ...)
{
    struct glsl_result *result = c->result;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->message, sizeof(result->message), format, arguments);
    va_end(arguments);
    clean_message(result->message);
    result->line = at ? (int)(at->line & INT32_MAX) : 0;
    result->column = at ? (int)(at->column & INT32_MAX) : 0;
    uint32_t file = at ? at->file : 0;
    const char *name = file < c->num_files ? c->files[file] : "";
    size_t size = strlen(name), room = sizeof(result->file) - 1;
    size_t skipped = size > room ? size - room : 0;
    memcpy(result->file, name + skipped, size - skipped + 1);
    longjmp(c->failed, 1);
}
