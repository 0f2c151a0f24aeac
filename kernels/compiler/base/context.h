// SPDX-License-Identifier: MIT
// One compilation: its memory, its names, its first error.
//
// A compilation stops at its first error: compiler_fail() does not return. All memory is an
// arena's, which ends with the compilation, so nothing is freed by hand. Sizes are bounded:
// a source that wants more than MOST_MEMORY fails like any other.
#ifndef KERNELS_COMPILER_CONTEXT_H
#define KERNELS_COMPILER_CONTEXT_H

#include "../compiler.h"

#include <setjmp.h>
#include <stdarg.h>

enum { MOST_MEMORY = 256 << 20 };

// A position in the source. Lines and columns count from 1; columns are bytes.
struct position {
    uint32_t file; // number in compiler.files
    uint32_t line, column;
};

// An identifier or keyword, once for all uses that spell it: names are equal where their
// pointers are. It points to its macro and its symbol, so that nothing is looked up twice.
struct name {
    const char *text; // ends with a NUL
    uint32_t size, hash;
    uint32_t keyword;      // enum keyword of keyword.h; 0: an identifier
    struct macro *macro;   // of the preprocessor; NULL: none
    struct symbol *symbol; // innermost declaration of the front end; NULL: none
    struct name *next;     // in its bucket
};

struct context_chunk;

struct compiler {
    const struct glsl_source *source;
    struct glsl_result *result;
    jmp_buf failed;
    struct context_chunk *chunks; // newest first
    struct context_chunk *spare;  // of earlier compilations, the largest first
    size_t memory;                // bytes of all chunks
    struct name **buckets;
    uint32_t num_buckets, num_names;
    const char **files; // names, by position.file; files[0] is the source's
    uint32_t num_files, max_files;
    struct preprocessed_text *text; // written by the preprocessor; NULL: not wanted
};

// Memory of zeros, aligned for anything, until the compilation ends. Fails when out of
// memory.
void *compiler_allocate(struct compiler *c, size_t size);

// An array of `count` items grown by at least one: returns it, or a copy with *capacity
// items.
void *compiler_grow(struct compiler *c, void *items, uint32_t count, uint32_t *capacity,
                    size_t item_size);

// The name with this text, made where there is none.
struct name *compiler_name(struct compiler *c, const char *text, size_t size);
// compiler_name() where the caller has the hash: FNV-1a, from NAME_HASH by name_hash() for
// each character.
struct name *compiler_name_hashed(struct compiler *c, const char *text, size_t size,
                                  uint32_t hash);

#define NAME_HASH UINT32_C(0x811C9DC5)
static inline uint32_t name_hash(uint32_t hash, char character)
{
    return (uint32_t)((uint64_t)(hash ^ (unsigned char)character) * 16777619 & UINT32_MAX);
}

// The number of a file of this name, for positions: a new one for each call.
uint32_t compiler_file(struct compiler *c, const char *name);

// Does a compilation's work, which may fail, and frees its memory. Returns whether it has
// succeeded; result->words are freed otherwise.
bool compiler_run(struct compiler *c, void (*work)(struct compiler *c, void *context),
                  void *context);

// Frees what compilations have kept for later ones.
void compiler_free_kept(void);

// Ends the compilation with an error at a position (NULL: none). One sentence without a
// full stop: got, expected. Texts of the source go through %.*s and are cut where they are
// long.
_Noreturn void compiler_fail(struct compiler *c, const struct position *at,
                             const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif // KERNELS_COMPILER_CONTEXT_H
