// SPDX-License-Identifier: MIT
// Many threads: one function called at once, and more signatures than the caches keep.
// Results are right, and what the runtime holds stays within its bounds.
// TENON_TEST_SECONDS: how long the second lasts (2).
#include <pthread.h>
#include <time.h>
#include "../support/common.h"
#include "device/device_set.h"
#include "plan/plan.h"

#define CALLS 200
#define THREADS 64
#define SIGNATURES 200 // lengths of the inputs; each is evaluated in two ways

// y_i = tanh(x_i) + the sum of x.
static tn_status body(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                      uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = bin(s, "add", un(s, "tanh", in[0]), un(s, "sum", in[0]));
    return tn_scope_status(s);
}

struct worker {
    tn_runtime *runtime;
    tn_function *function;
    uint32_t number;
    double until; // seconds of the monotonic clock
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Calls the function, or evaluates its body, for `length` times the element `x`.
static void check_call(const struct worker *w, int64_t length, float x, bool traced)
{
    float *got = malloc((size_t)length * sizeof(*got));
    tn_scope *s = tn_scope_open(w->runtime);
    tn_array *in = ramp(s, 1, length, x, 0), *out = NULL;
    if (traced)
        must(s, tn_function_call(w->function, s, &in, 1, &out, 1));
    else
        must(s, body(s, &in, 1, &out, 1, NULL));
    must(s, tn_read(s, out, got, (uint64_t)length * sizeof(*got)));
    float expected = tanhf(x) + x * (float)length;
    for (int64_t i = 0; i < length; i++)
        if (!(fabsf(got[i] - expected) <= 1e-4f * fabsf(expected)))
            cr_fatal("thread %u, %d elements, element %d: got %.9g, expected %.9g",
                     w->number, (int)length, (int)i, (double)got[i], (double)expected);
    tn_scope_close(s);
    free(got);
}

static void *call_repeatedly(void *context)
{
    const struct worker *w = context;
    for (int i = 0; i < CALLS; i++)
        check_call(w, 32, 0.25f * (float)(w->number + 1) + (float)i, true);
    return NULL;
}

static void *call_with_many_signatures(void *context)
{
    const struct worker *w = context;
    for (uint32_t i = w->number * 7; now() < w->until; i++)
        check_call(w, 1 + i % SIGNATURES, 0.5f + (float)(i % 3), i / SIGNATURES % 2);
    return NULL;
}

static void run_threads(uint32_t count, void *(*main)(void *), tn_function *function,
                        double until)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < count; i++) {
        workers[i] = (struct worker){runtime, function, i, until};
        cr_assert(eq(int, pthread_create(&threads[i], NULL, main, &workers[i]), 0));
    }
    for (uint32_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

TestSuite(threads, .init = setup, .fini = teardown);

Test(threads, two_call_one_function)
{
    tn_function *function;
    must(NULL, tn_function_create(runtime, body, NULL, NULL, &function));
    run_threads(2, call_repeatedly, function, 0);
    cr_assert(le(u64, stats_of(runtime).plans_made, 2));
    tn_function_destroy(function);
}

static void *call_once(void *context)
{
    check_call(context, 1000, 0.5f, true);
    return NULL;
}

static void *close_scope(void *scope)
{
    tn_scope_close(scope);
    return NULL;
}

// The teardown closes the runtime, which is refused while a scope is counted as open.
Test(threads, a_scope_is_closed_by_another_thread)
{
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        tn_scope *s = tn_scope_open(runtime);
        cr_assert(eq(int, pthread_create(&thread, NULL, close_scope, s), 0));
        pthread_join(thread, NULL);
    }
}

// Threads of other queues reuse what one thread released.
Test(threads, memory_goes_round)
{
    tn_function *function;
    must(NULL, tn_function_create(runtime, body, NULL, NULL, &function));
    run_threads(1, call_once, function, 0);
    uint64_t spare = stats_of(runtime).spare_bytes;
    cr_assert(gt(u64, spare, 0));
    for (int i = 0; i < 20; i++)
        run_threads(1, call_once, function, 0);
    cr_assert(eq(u64, stats_of(runtime).spare_bytes, spare));
    tn_runtime_trim(runtime, TN_TRIM_SPARE | TN_TRIM_PEAK);
    cr_assert(eq(u64, stats_of(runtime).spare_bytes, 0));
    cr_assert(eq(u64, stats_of(runtime).buffer_peak, 0));
    run_threads(1, call_once, function, 0);
    cr_assert(gt(u64, stats_of(runtime).buffer_peak, 0));
    tn_function_destroy(function);
}

Test(threads, many_with_many_signatures_stay_within_bounds)
{
    const char *seconds = getenv("TENON_TEST_SECONDS");
    tn_function *function;
    must(NULL, tn_function_create(runtime, body, NULL, NULL, &function));
    run_threads(THREADS, call_with_many_signatures, function,
                now() + (seconds ? atof(seconds) : 2));
    tn_stats stats = stats_of(runtime);
    uint64_t spare_limit = 0;
    for (uint32_t i = 0; i < runtime->devices->count; i++)
        spare_limit += runtime->devices->devices[i]->spare_limit;
    fprintf(stderr, "# %llu calls, %llu plans made, %llu bytes of plans, %llu spare\n",
            (unsigned long long)stats.submissions, (unsigned long long)stats.plans_made,
            (unsigned long long)stats.plan_bytes, (unsigned long long)stats.spare_bytes);
    cr_assert(gt(u64, stats.plan_bytes, 0));
    cr_assert(le(u64, stats.plan_bytes, PLAN_CACHE_LIMIT));
    cr_assert(le(u64, stats.spare_bytes, spare_limit));
    cr_assert(eq(u64, stats.buffer_bytes, 0));
    tn_function_destroy(function);
}
