// SPDX-License-Identifier: MIT
// Counters that threads advance often and read rarely. Each thread adds to the counters of
// one of COUNT_PARTS parts, so that threads rarely write one cache line. A sum is exact
// while no thread adds.
//
// The first threads have a part each that nobody else writes: an addition there is a load
// and a store, a fifth of the time of an atomic addition. Later threads share the others.
//
// Threads. Any.
#ifndef CORE_BASE_COUNTS_H
#define CORE_BASE_COUNTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "thread.h"

#define COUNT_OWNED 16 // parts of one thread each
#define COUNT_PARTS 32
#define MAX_COUNTS 8

// All zero at first.
struct counts {
    struct {
        char apart[LINES_APART]; // no cache line holds counters of two parts, or what is
                                 // before them
        _Atomic int64_t count[MAX_COUNTS];
    } part[COUNT_PARTS];
    char apart[LINES_APART];
};

// Release: a thread that reads the sum sees all writes before each addition in it.
// `thread` is the calling thread's number: a caller that adds several times reads it once,
// since in a shared library each read is a call.
static inline void counts_add_as(struct counts *counts, unsigned thread, uint32_t index,
                                 int64_t amount)
{
    const uint32_t shared = COUNT_OWNED + thread % (COUNT_PARTS - COUNT_OWNED);
    const bool is_owned = thread < COUNT_OWNED;
    _Atomic int64_t *count = &counts->part[is_owned ? thread : shared].count[index];
    if (is_owned)
        atomic_store_explicit(count,
                              atomic_load_explicit(count, memory_order_relaxed) + amount,
                              memory_order_release);
    else
        atomic_fetch_add_explicit(count, amount, memory_order_release);
}

static inline void counts_add(struct counts *counts, uint32_t index, int64_t amount)
{
    counts_add_as(counts, thread_number(), index, amount);
}

static inline int64_t counts_sum(const struct counts *counts, uint32_t index)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < COUNT_PARTS; i++)
        sum += atomic_load_explicit(&counts->part[i].count[index], memory_order_acquire);
    return sum;
}

#endif // CORE_BASE_COUNTS_H
