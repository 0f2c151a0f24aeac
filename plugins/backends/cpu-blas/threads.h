// SPDX-License-Identifier: MIT
// A pool of threads for loops. Its threads start with the first loop that is long enough,
// spin for a moment after each loop, and then sleep.
//
// Threads. One loop at a time: pool_run is called by one thread at a time.
#ifndef CPU_BLAS_THREADS_H
#define CPU_BLAS_THREADS_H

#include <stdint.h>
#include <tenon/host.h>

struct pool;

// `worker` is below the number of threads, and 0 for the caller.
typedef void pool_body(void *context, int64_t begin, int64_t end, uint32_t worker);

// Processors that this process may run on.
uint32_t pool_processors(void);

// Gives a pool for `num_threads` threads, the caller included. Starts none yet.
tn_status pool_create(const tn_host *host, uint32_t num_threads, struct pool **out_pool);

// Joins the threads. NULL is fine.
void pool_destroy(struct pool *pool);

// Calls body for pieces that cover [0, n), each at least `grain` long but the last, and
// returns when all have returned.
void pool_run(struct pool *pool, int64_t n, int64_t grain, pool_body *body, void *context);

#endif // CPU_BLAS_THREADS_H
