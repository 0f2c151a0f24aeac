// SPDX-License-Identifier: MIT
// The thread that joins.
#include "join.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// From a rank's failure until the others stop joining: they may be as good as done.
static const int64_t PATIENCE_NS = 1000 * INT64_C(1000000);
static const int64_t LOOK_NS = 20 * INT64_C(1000000);

struct join_thread {
    join_work *work;
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool has_ended, is_left; // is_left: the thread frees this
    tn_status status;
    char why[JOIN_REASON];
};

static void joining_free(struct join_thread *joining)
{
    pthread_cond_destroy(&joining->changed);
    pthread_mutex_destroy(&joining->lock);
    free(joining);
}

static void *joining_main(void *user)
{
    struct join_thread *joining = user;
    tn_status status = joining->work(joining->user, joining->why);
    pthread_mutex_lock(&joining->lock);
    joining->status = status;
    joining->has_ended = true;
    bool is_left = joining->is_left;
    pthread_cond_signal(&joining->changed);
    pthread_mutex_unlock(&joining->lock);
    if (is_left)
        joining_free(joining);
    return NULL;
}

static int64_t joining_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

// Any rank's failure: each is waited for.
static const struct watch_failure *joining_failure(struct watch *watch)
{
    watch_poll(watch, NULL, 0);
    return watch->num_failures > 0 ? &watch->failures[0] : NULL;
}

// Waits for the thread; NULL when it has ended, else who failed. The lock is held.
static const struct watch_failure *joining_wait(struct join_thread *joining,
                                                struct watch *watch)
{
    const struct watch_failure *failure = NULL;
    int64_t failed_at = 0;
    while (!joining->has_ended) {
        int64_t now = joining_clock(), until = now + LOOK_NS;
        failure = joining_failure(watch);
        failed_at = failure && !failed_at ? now : failed_at;
        if (failure && now - failed_at > PATIENCE_NS)
            return failure;
        struct timespec at = {until / INT64_C(1000000000), until % INT64_C(1000000000)};
        pthread_cond_timedwait(&joining->changed, &joining->lock, &at);
    }
    return NULL;
}

static tn_status joining_begin(struct join_thread *joining, pthread_t *out_thread)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes))
        return TN_ERR_MEMORY;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&joining->lock, NULL);
    pthread_cond_init(&joining->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return pthread_create(out_thread, NULL, joining_main, joining) ? TN_ERR_MEMORY : TN_OK;
}

static tn_status joining_run(const tn_host *host, struct watch *watch, const char *text,
                             struct join_thread *joining)
{
    pthread_t thread;
    int rank = -1;
    if (joining_begin(joining, &thread) != TN_OK) {
        free(joining);
        return host->fail(host, TN_ERR_MEMORY, "no thread to join the world with");
    }
    pthread_mutex_lock(&joining->lock);
    const struct watch_failure *failure = joining_wait(joining, watch);
    joining->is_left = failure != NULL;
    pthread_mutex_unlock(&joining->lock);
    if (failure) {
        pthread_detach(thread);
        sscanf(text, "rank=%d", &rank);
        return host->fail(host, TN_ERR_IO,
                          "rank %d %s; rank %d was joining the world, for which all wait",
                          failure->rank, failure->words, rank);
    }
    pthread_join(thread, NULL);
    tn_status status = joining->status;
    if (status != TN_OK)
        host->fail(host, status, "%s", joining->why);
    joining_free(joining);
    return status;
}

tn_status join_run(const tn_host *host, struct watch *watch, const char *text,
                   join_work *work, void *user)
{
    char why[JOIN_REASON] = "";
    if (watch->fd < 0) {
        tn_status status = work(user, why);
        return status == TN_OK ? TN_OK : host->fail(host, status, "%s", why);
    }
    struct join_thread *joining = calloc(1, sizeof(*joining));
    if (!joining)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    joining->work = work;
    joining->user = user;
    return joining_run(host, watch, text, joining);
}
