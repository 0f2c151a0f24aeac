// SPDX-License-Identifier: MIT
// Environment variables for one call of dlopen.
//
// setenv() may free what a getenv() of another thread is reading. Here the environment is
// replaced by a longer copy, and put back by one store; a reader finds one or the other,
// and both stay in memory. A variable that another thread sets in between may be lost, or
// leave the added ones behind; both only happen to programs that set variables with threads
// running.
#ifndef OPENBLAS_ENVIRONMENT_H
#define OPENBLAS_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

struct variable {
    const char *name, *value; // value NULL: left alone
    bool replaces;            // else only where the variable is not set
};

struct environment {
    char **before, **with;
};

// Borrowed from the environment; NULL when unset.
const char *environment_get(const char *name);

// Adds them, or as if there were none of them when out of memory. By one thread at a time.
struct environment environment_add(const struct variable *variables, size_t count);
void environment_restore(const struct environment *environment);

#endif // OPENBLAS_ENVIRONMENT_H
