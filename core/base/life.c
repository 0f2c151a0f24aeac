// SPDX-License-Identifier: MIT
// Counts generations of fork() with a pthread_atfork handler. Comparing two generations
// costs less than getpid(), and unlike a pid, a generation is never reused in a child's
// lineage.
#include "life.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include "fail.h"

static _Atomic uint64_t process; // generation; 0: the process that loaded the library
static int atfork_error;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&process, 1, memory_order_relaxed);
}

static void register_atfork(void)
{
    atfork_error = pthread_atfork(NULL, NULL, count_fork);
}

tn_status life_begin(struct life *life)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_atfork);
    if (atfork_error)
        return fail_memory(0);
    life->process = atomic_load_explicit(&process, memory_order_relaxed);
    return TN_OK;
}

bool life_is_inherited(const struct life *life)
{
    return life->process != atomic_load_explicit(&process, memory_order_relaxed);
}

tn_status life_check(const struct life *life)
{
    if (!life_is_inherited(life))
        return TN_OK;
    return fail(TN_ERR_ARGUMENT,
                "the runtime was opened before fork(), and its threads and devices are "
                "the parent's: close it in this process, and open a new one");
}

tn_status life_check_unused(const struct life *life)
{
    static const struct {
        const char *one, *many;
    } words[NUM_LIFE_OBJECTS] = {
        [LIFE_SCOPES] = {"scope", "scopes"},
        [LIFE_KEPT] = {"kept or retained array", "kept or retained arrays"},
        [LIFE_FUNCTIONS] = {"function", "functions"},
        [LIFE_FILES] = {"open file", "open files"},
        [LIFE_EXPORTS] = {"exported array", "exported arrays"},
        [LIFE_GRAPHS] = {"graph", "graphs"},
        [LIFE_RUNS] = {"running evaluation", "running evaluations"},
    };
    char list[160] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < NUM_LIFE_OBJECTS; i++) {
        int64_t n = counts_sum(&life->in_use, i);
        if (n != 0)
            at +=
                (size_t)snprintf(list + at, sizeof(list) - at, "%s%" PRId64 " %s",
                                 at ? ", " : "", n, n == 1 ? words[i].one : words[i].many);
    }
    if (!at)
        return TN_OK;
    return fail(TN_ERR_ARGUMENT,
                "tn_runtime_close: in use by %s: close, release, destroy or wait for them "
                "first; the runtime stays open",
                list);
}
