// SPDX-License-Identifier: MIT
// The pool. One word, `state`, describes the current loop: its number, whether it is open,
// and how many threads have joined. A thread joins by incrementing the count while the loop
// is open. A thread that wakes late finds the loop closed, so the caller waits only for
// threads that joined.
#include "threads.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "processors.h"

#define STATE_OPEN UINT64_C(1)
#define STATE_JOINED UINT64_C(2) // one joined thread
#define STATE_JOINED_MASK UINT64_C(0xfffe)
#define STATE_NUMBER UINT64_C(0x10000) // one loop

// How long an idle thread spins before it sleeps, and how often a caller polls before it
// yields. A loop that follows within this time starts at once; waking a sleeping thread
// takes 5 to 50 us.
#define SPIN_NS 50000
#define SPINS_BEFORE_YIELD 2000

#define MAX_THREADS 256

struct cpu_pool {
    const tn_host *host;
    uint32_t num_threads;
    uint32_t num_started; // of num_threads - 1
    bool failed;          // a thread could not be started: do not try again

    _Alignas(64) _Atomic bool is_taken; // a caller has the pool
    _Alignas(64) _Atomic uint64_t state;
    // Threads that may join the current loop: one less than there are pieces, since more
    // would only wait for each other's memory. Written while it is closed.
    _Atomic uint32_t helpers;
    _Alignas(64) _Atomic int64_t next; // first index that no thread has claimed
    _Alignas(64) _Atomic uint32_t sleepers;
    _Atomic uint32_t wake; // futex: changes to wake the sleepers
    _Atomic bool stopping;

    // The current loop. Written only while it is closed.
    pool_body *body;
    void *context;
    int64_t n, piece;

    struct worker {
        struct cpu_pool *pool;
        pthread_t thread;
        uint32_t index; // from 1
    } workers[MAX_THREADS];
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int32_t most)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static uint64_t cpu_threads_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void take_pieces(struct cpu_pool *pool, uint32_t worker)
{
    for (;;) {
        int64_t begin =
            atomic_fetch_add_explicit(&pool->next, pool->piece, memory_order_relaxed);
        if (begin >= pool->n)
            return;
        int64_t end = pool->n - begin < pool->piece ? pool->n : begin + pool->piece;
        pool->body(pool->context, begin, end, worker);
    }
}

// Joins the current loop if it is open, not loop `last`, which this thread has served, and
// has work for one more. If it has not, this thread is done with it, too.
static bool join_loop(struct cpu_pool *pool, uint64_t last, uint64_t *out_number)
{
    uint64_t state = atomic_load_explicit(&pool->state, memory_order_acquire);
    while ((state & STATE_OPEN) && state / STATE_NUMBER != last) {
        uint64_t joined = (state & STATE_JOINED_MASK) / STATE_JOINED;
        if (joined >= atomic_load_explicit(&pool->helpers, memory_order_relaxed)) {
            *out_number = state / STATE_NUMBER;
            return false;
        }
        if (atomic_compare_exchange_weak_explicit(
                &pool->state, &state, state + STATE_JOINED, memory_order_acq_rel,
                memory_order_acquire)) {
            *out_number = state / STATE_NUMBER;
            return true;
        }
    }
    return false;
}

static bool should_wake(struct cpu_pool *pool, uint64_t last)
{
    uint64_t state = atomic_load(&pool->state);
    return ((state & STATE_OPEN) && state / STATE_NUMBER != last) ||
           atomic_load(&pool->stopping);
}

static void cpu_threads_wait_for_work(struct cpu_pool *pool, uint64_t last)
{
    for (uint64_t end = cpu_threads_now_ns() + SPIN_NS; cpu_threads_now_ns() < end;)
        for (int i = 0; i < 64; i++) {
            if (should_wake(pool, last))
                return;
            pause_briefly();
        }
    // Sequentially consistent on both sides: either this thread sees the loop, or the
    // loop's caller sees a sleeper and changes `wake`, on which futex_wait returns.
    uint32_t seen = atomic_load(&pool->wake);
    atomic_fetch_add(&pool->sleepers, 1);
    if (!should_wake(pool, last))
        futex_wait(&pool->wake, seen);
    atomic_fetch_sub(&pool->sleepers, 1);
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct cpu_pool *pool = worker->pool;
    uint64_t number = 0;

    while (!atomic_load(&pool->stopping)) {
        if (join_loop(pool, number, &number)) {
            take_pieces(pool, worker->index);
            atomic_fetch_sub_explicit(&pool->state, STATE_JOINED, memory_order_release);
        } else {
            cpu_threads_wait_for_work(pool, number);
        }
    }
    return NULL;
}

uint32_t pool_processors(void)
{
    uint32_t count = processors_usable();
    return count > MAX_THREADS ? MAX_THREADS : count;
}

tn_status pool_create(const tn_host *host, uint32_t num_threads, struct cpu_pool **out_pool)
{
    struct cpu_pool *pool = host->alloc(host, sizeof(*pool), 64);
    if (!pool)
        return TN_ERR_MEMORY;
    *pool = (struct cpu_pool){
        .host = host,
        .num_threads = num_threads > MAX_THREADS ? MAX_THREADS : num_threads,
    };
    *out_pool = pool;
    return TN_OK;
}

static void start_threads(struct cpu_pool *pool)
{
    while (pool->num_started + 1 < pool->num_threads && !pool->failed) {
        struct worker *worker = &pool->workers[pool->num_started];
        *worker = (struct worker){.pool = pool, .index = pool->num_started + 1};
        int error = pthread_create(&worker->thread, NULL, worker_main, worker);
        if (error) {
            pool->failed = true;
            pool->host->log(pool->host, TN_LOG_WARN, "cpu-blas",
                            "thread %u of %u could not be started (error %d): loops run on "
                            "fewer",
                            worker->index + 1, pool->num_threads, error);
            return;
        }
        pool->num_started++;
    }
}

void pool_destroy(struct cpu_pool *pool)
{
    if (!pool)
        return;
    atomic_store(&pool->stopping, true);
    atomic_fetch_add(&pool->wake, 1);
    futex_wake(&pool->wake, INT32_MAX);
    for (uint32_t i = 0; i < pool->num_started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pool->host->free(pool->host, pool);
}

// Opens the loop, works on it, closes it, and waits for the threads that joined.
static void cpu_threads_run_together(struct cpu_pool *pool)
{
    uint64_t number =
        atomic_load_explicit(&pool->state, memory_order_relaxed) / STATE_NUMBER;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    atomic_store(&pool->state, (number + 1) * STATE_NUMBER | STATE_OPEN);
    if (atomic_load(&pool->sleepers) > 0) {
        atomic_fetch_add(&pool->wake, 1);
        futex_wake(&pool->wake, (int32_t)atomic_load(&pool->helpers));
    }
    take_pieces(pool, 0);
    atomic_fetch_and_explicit(&pool->state, ~STATE_OPEN, memory_order_acq_rel);
    for (int spins = 0;
         atomic_load_explicit(&pool->state, memory_order_acquire) & STATE_JOINED_MASK;
         spins++) {
        if (spins < SPINS_BEFORE_YIELD)
            pause_briefly();
        else
            sched_yield();
    }
}

void pool_run(struct cpu_pool *pool, int64_t n, int64_t grain, pool_body *body,
              void *context)
{
    if (n <= 0)
        return;
    if (grain < 1)
        grain = 1;
    if (n <= grain || pool->num_threads == 1 ||
        atomic_exchange_explicit(&pool->is_taken, true, memory_order_acquire)) {
        body(context, 0, n, 0);
        return;
    }
    start_threads(pool);
    // Four pieces a thread balance the load when a thread is delayed.
    int64_t pieces = (int64_t)pool->num_threads * 4;
    pool->piece = (n + pieces - 1) / pieces;
    if (pool->piece < grain)
        pool->piece = grain;
    pool->body = body;
    pool->context = context;
    pool->n = n;
    int64_t helpers = (n + pool->piece - 1) / pool->piece - 1;
    atomic_store_explicit(
        &pool->helpers, helpers < pool->num_threads ? (uint32_t)helpers : pool->num_threads,
        memory_order_relaxed);
    cpu_threads_run_together(pool);
    atomic_store_explicit(&pool->is_taken, false, memory_order_release);
}
