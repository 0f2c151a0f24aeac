// SPDX-License-Identifier: MIT
// The lifetime of a runtime: the process that opened it, and counters of objects in use.
//
// Threads. Any; the counters are atomic. They let tn_runtime_close name objects that the
// application forgot. They do not make it correct to close a runtime during other calls.
#ifndef CORE_BASE_LIFE_H
#define CORE_BASE_LIFE_H

#include <stdbool.h>
#include <tenon/status.h>
#include "counts.h"

// Objects in use, counted.
enum life_object {
    LIFE_SCOPES,    // open scopes
    LIFE_KEPT,      // references from tn_keep and tn_retain
    LIFE_FUNCTIONS, // from tn_function_create
    LIFE_EXPORTS,   // from tn_array_export
    LIFE_FILES,     // from tn_file_open
    LIFE_GRAPHS,    // from tn_graph_retain
    LIFE_RUNS,      // plans running now, each in a call of the application
    NUM_LIFE_OBJECTS
};

struct life {
    uint64_t process;     // fork generation that opened the runtime; see life.c
    struct counts in_use; // by enum life_object
};

static inline void life_add(struct life *life, enum life_object object)
{
    counts_add(&life->in_use, object, 1);
}

static inline void life_remove(struct life *life, enum life_object object)
{
    counts_add(&life->in_use, object, -1);
}

// Records the calling process as the one that opened the runtime. Fails only when out of
// memory.
tn_status life_begin(struct life *life);

// True in a child of fork() when the parent opened the runtime. The runtime's threads and
// devices do not exist in the child, and its locks may be held by threads of the parent.
bool life_is_inherited(const struct life *life);

// TN_ERR_ARGUMENT for an inherited runtime. Such a runtime can be closed, nothing else.
tn_status life_check(const struct life *life);

// TN_ERR_ARGUMENT while a counter is not 0. The message lists the counters.
tn_status life_check_unused(const struct life *life);

#endif // CORE_BASE_LIFE_H
