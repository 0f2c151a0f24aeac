// SPDX-License-Identifier: MIT
// The life of a runtime: which process opened it, and what of it is still in use.
//
// Threads. Any; the counters are atomic. Counting says what an application forgot, it does
// not make closing a runtime beside other calls a correct program.
#ifndef CORE_BASE_LIFE_H
#define CORE_BASE_LIFE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/status.h>

struct life {
    uint64_t process;           // that opened it; life.c numbers processes
    _Atomic uint64_t scopes;    // open
    _Atomic uint64_t kept;      // arrays of tn_keep
    _Atomic uint64_t functions; // of tn_function_create
    _Atomic uint64_t runs;      // plans that run in a call
};

static inline void life_add(_Atomic uint64_t *count)
{
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

// Release: who then finds the count 0 sees all that its user did.
static inline void life_remove(_Atomic uint64_t *count)
{
    atomic_fetch_sub_explicit(count, 1, memory_order_release);
}

// Fails only when out of memory.
tn_status life_begin(struct life *life);

// Whether the runtime came into this process by fork(): threads and devices stayed behind,
// and its locks may be held by threads that are not here.
bool life_is_inherited(const struct life *life);

// Fails for an inherited runtime: all calls but closing do.
tn_status life_check(const struct life *life);

// Fails when something of the runtime is still in use; says how much of what.
tn_status life_check_unused(const struct life *life);

#endif // CORE_BASE_LIFE_H
