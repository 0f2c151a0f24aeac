// SPDX-License-Identifier: MIT
// The arena, the first failure, and the nearest name.
#include "arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ffi_arena_block {
    struct ffi_arena_block *next;
    _Alignas(16) unsigned char bytes[];
};

void *arena_alloc(struct ffi_arena *arena, size_t size)
{
    size = (size + 15) / 16 * 16;
    if (size > ARENA_MAX - arena->used) {
        arena->is_full = true;
        return NULL;
    }
    arena->used += size;
    struct ffi_arena_block *block = calloc(1, sizeof(*block) + size);
    if (!block)
        return NULL;
    block->next = arena->blocks;
    arena->blocks = block;
    return block->bytes;
}

char *arena_text(struct ffi_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = arena_alloc(arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void arena_finish(struct ffi_arena *arena)
{
    for (struct ffi_arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *arena = (struct ffi_arena){0};
}

static tn_status set_problem(struct problem *problem, tn_status status, const char *format,
                             va_list list)
{
    if (problem->status == TN_OK) {
        problem->status = status;
        vsnprintf(problem->text, sizeof(problem->text), format, list);
        for (char *c = problem->text; *c;
             c++) // no control characters of a hostile manifest
            *c = (unsigned char)*c < ' ' ? '?' : *c;
    }
    return problem->status;
}

tn_status problem_set(struct problem *problem, tn_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    set_problem(problem, status, format, list);
    va_end(list);
    return problem->status;
}

// --- nearest name ----------------------------------------------------------------------

enum { MAX_NAME = 48 };

// Edit distance of two names of at most MAX_NAME bytes: insertions, deletions,
// substitutions, and swaps of neighbours (optimal string alignment). Keeps three rows of
// the table.
static size_t ffi_arena_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), rows[3][MAX_NAME + 1] = {0};
    for (size_t j = 0; j <= m; j++)
        rows[1][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[(i + 1) % 3], *last = rows[i % 3], *before = rows[(i + 2) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[(n + 1) % 3][m];
}

const char *nearest_name(const char *name, const char *const *names)
{
    const char *nearest = NULL;
    size_t length = strlen(name), least = length / 3 + 2;
    if (length > MAX_NAME)
        return NULL;
    for (; *names; names++) {
        size_t edits =
            strlen(*names) <= MAX_NAME ? ffi_arena_distance(name, *names) : least;
        if (edits < least) {
            least = edits;
            nearest = *names;
        }
    }
    return nearest;
}
