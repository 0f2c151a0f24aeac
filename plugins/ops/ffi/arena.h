// SPDX-License-Identifier: MIT
// Memory that is freed all at once: what a pack's manifest is read into. And the one
// failure that a reader keeps.
#ifndef FFI_ARENA_H
#define FFI_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/status.h>

struct arena_block;

enum { ARENA_MAX = 8 << 20 }; // bytes

// Zero is an empty arena on the heap. With `room` it lies in ARENA_MAX cleared bytes there,
// which it uses once.
struct arena {
    struct arena_block *blocks;
    unsigned char *room; // aligned to 16
    size_t used;
    bool is_full; // ARENA_MAX was not enough
};

// Cleared memory aligned to 16, or NULL.
void *arena_alloc(struct arena *arena, size_t size);
char *arena_text(struct arena *arena, const char *text);
void arena_finish(struct arena *arena);

// The first failure: later ones are ignored, so that reading goes on without checks.
struct problem {
    tn_status status;
    char text[600];
};

// Records the failure unless there is one. Returns the first one's status.
tn_status problem_set(struct problem *problem, tn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
tn_status problem_set_v(struct problem *problem, tn_status status, const char *format,
                        va_list list);

// The name of `names` (ended by NULL) that differs least from `name`, or NULL when none is
// near.
const char *nearest_name(const char *name, const char *const *names);

#endif // FFI_ARENA_H
