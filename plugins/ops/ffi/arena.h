// SPDX-License-Identifier: MIT
// Shared by readers of a manifest: an arena, which owns all that is read; the first
// failure; and the nearest known name, for messages.
#ifndef FFI_ARENA_H
#define FFI_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/status.h>

struct ffi_arena_block;

enum { ARENA_MAX = 8 << 20 }; // bytes

// Zero is an empty arena.
struct ffi_arena {
    struct ffi_arena_block *blocks;
    size_t used;
    bool is_full; // the arena has reached ARENA_MAX
};

// Zeroed memory aligned to 16 bytes, freed by arena_finish. NULL when there is none.
void *arena_alloc(struct ffi_arena *arena, size_t size);
// A copy of `text`, likewise.
char *arena_text(struct ffi_arena *arena, const char *text);
void arena_finish(struct ffi_arena *arena);

// The first failure. Later ones are ignored, so readers need not check after each step.
struct problem {
    tn_status status;
    char text[600];
};

// Records the failure unless there is one. Returns the first one's status.
tn_status problem_set(struct problem *problem, tn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// The name in `names` (ended by NULL) with the fewest edits from `name`, or NULL when none
// is near.
const char *nearest_name(const char *name, const char *const *names);

#endif // FFI_ARENA_H
