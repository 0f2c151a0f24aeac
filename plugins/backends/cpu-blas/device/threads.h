// SPDX-License-Identifier: MIT
// A thread pool for parallel loops. Its threads start with the first loop that is long
// enough, spin briefly after each loop, and then sleep.
//
// Threads. Any. The pool runs one loop at a time: a caller that finds the pool busy runs
// its whole loop itself.
#ifndef CPU_BLAS_THREADS_H
#define CPU_BLAS_THREADS_H

#include <stdint.h>
#include <tenon/host.h>

struct cpu_pool;

// Runs the indices [begin, end). `worker` is 0 on the calling thread, else the number of
// the pool's thread, below num_threads.
typedef void pool_body(void *context, int64_t begin, int64_t end, uint32_t worker);

// Processors in the affinity mask; at least 1, at most 256.
uint32_t pool_processors(void);

// Gives a pool for `num_threads` threads, the caller included. Starts none yet.
tn_status pool_create(const tn_host *host, uint32_t num_threads,
                      struct cpu_pool **out_pool);

// Joins the threads. NULL is fine.
void pool_destroy(struct cpu_pool *pool);

// Calls body for pieces that cover [0, n), each at least `grain` long except the last;
// returns when all calls have returned. A worker above 0 is in one call at a time, so
// memory of its own needs no lock.
void pool_run(struct cpu_pool *pool, int64_t n, int64_t grain, pool_body *body,
              void *context);

#endif // CPU_BLAS_THREADS_H
