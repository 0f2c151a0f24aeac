// SPDX-License-Identifier: MIT
// The lifetime of a runtime: the process that opened it, and counters of objects in use.
//
// Threads. Any; the counters are atomic. They let tn_runtime_close name objects that the
// application forgot. They do not make it correct to close a runtime during other calls.
#ifndef CORE_BASE_LIFE_H
#define CORE_BASE_LIFE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/status.h>

struct life {
    uint64_t process;           // fork generation that opened the runtime; see life.c
    _Atomic uint64_t scopes;    // open scopes
    _Atomic uint64_t kept;      // arrays from tn_keep
    _Atomic uint64_t functions; // from tn_function_create
    _Atomic uint64_t runs;      // plans running now, each in a call of the application
};

static inline void life_add(_Atomic uint64_t *count)
{
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

// Release: a thread that reads 0 with acquire sees all writes of the counted object's user.
static inline void life_remove(_Atomic uint64_t *count)
{
    atomic_fetch_sub_explicit(count, 1, memory_order_release);
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
