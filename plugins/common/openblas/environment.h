// SPDX-License-Identifier: MIT
// Environment variables that are set only during one call of dlopen().
//
// setenv() may free memory that getenv() in another thread is reading. This module replaces
// `environ` by a longer copy instead, and restores the original by one atomic store. A
// concurrent reader sees either array, and neither is ever freed. If another thread sets a
// variable during the call, its change may be lost or the added variables may stay; this
// affects only programs that set variables while threads run.
#ifndef OPENBLAS_ENVIRONMENT_H
#define OPENBLAS_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

struct variable {
    const char *name, *value; // value NULL: the variable is skipped
    bool replaces;            // overwrite a value that is already set
};

struct environment {
    char **original, **extended; // `environ` before and during the call; NULL: unchanged
};

// Borrowed from the environment; NULL when unset.
const char *environment_get(const char *name);

// Adds `variables` to the environment. Leaves the environment alone if none needs adding,
// or when out of memory. One thread at a time.
struct environment environment_add(const struct variable *variables, size_t count);
// Restores the original environment, unless another thread has replaced it in the meantime.
void environment_restore(const struct environment *environment);

#endif // OPENBLAS_ENVIRONMENT_H
