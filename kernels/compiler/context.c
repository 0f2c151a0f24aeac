// SPDX-License-Identifier: MIT
#include "context.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size; // bytes behind the chunk
    alignas(max_align_t) unsigned char bytes[];
};

enum {
    FIRST_CHUNK = 64 << 10,
    MOST_CHUNK = 4 << 20,
    FIRST_BUCKETS = 2048, // a power of two
};

static struct arena_chunk *add_chunk(struct compiler *c, size_t size)
{
    size_t room = c->memory < FIRST_CHUNK ? FIRST_CHUNK : c->memory;
    room = room > MOST_CHUNK ? MOST_CHUNK : room;
    room = size > room ? size : room;
    if (room > MOST_MEMORY - c->memory)
        room = size;
    if (room > MOST_MEMORY - c->memory)
        compiler_fail(c, NULL, "the source needs more than %d MiB of memory to compile",
                      MOST_MEMORY >> 20);
    struct arena_chunk *chunk = calloc(1, sizeof(*chunk) + room);
    if (!chunk)
        compiler_fail(c, NULL, "out of memory: no %zu bytes", room);
    chunk->size = room;
    c->memory += room;
    // A chunk that is full at once goes behind the one that still has room.
    struct arena_chunk **at = c->chunks && room == size ? &c->chunks->next : &c->chunks;
    chunk->next = *at;
    *at = chunk;
    return chunk;
}

void *compiler_allocate(struct compiler *c, size_t size)
{
    if (size > MOST_MEMORY)
        compiler_fail(c, NULL, "the source needs more than %d MiB of memory to compile",
                      MOST_MEMORY >> 20);
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct arena_chunk *chunk = c->chunks;
    if (!chunk || size > chunk->size - chunk->used)
        chunk = add_chunk(c, size);
    void *memory = chunk->bytes + chunk->used;
    chunk->used += size;
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

static bool run(struct compiler *c, void (*work)(struct compiler *, void *), void *context)
{
    if (setjmp(c->failed))
        return false;
    work(c, context);
    return true;
}

bool compiler_run(struct compiler *c, void (*work)(struct compiler *, void *),
                  void *context)
{
    bool ok = run(c, work, context);
    while (c->chunks) {
        struct arena_chunk *chunk = c->chunks;
        c->chunks = chunk->next;
        free(chunk);
    }
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

void compiler_fail(struct compiler *c, const struct place *at, const char *format, ...)
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
