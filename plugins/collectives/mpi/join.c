// SPDX-License-Identifier: MIT
// The thread that makes MPI calls which wait for other ranks.
#include "join.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// Time from a rank's failure until this rank gives up: the calls may be almost done, and
// libraries with fault tolerance return.
static const int64_t PATIENCE_NS = 1000 * INT64_C(1000000);
static const int64_t LOOK_NS = 20 * INT64_C(1000000);

struct join_thread {
    struct join_call call;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool has_ended, is_left; // is_left: the thread frees this struct
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
    tn_status status = joining->call.run(joining->call.user, joining->why);
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

// Waits for the thread; NULL when it has ended, else the failure. The lock is held.
static const struct watch_failure *joining_wait(struct join_thread *joining)
{
    const struct watch_failure *failure = NULL;
    int64_t failed_at = 0;
    while (!joining->has_ended) {
        int64_t now = joining_clock(), until = now + LOOK_NS;
        failure = joining->call.failure(joining->call.user);
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

static tn_status joining_run(struct join_thread *joining, char *why, bool *out_is_left)
{
    const struct join_call call = joining->call;
    pthread_t thread;
    if (joining_begin(joining, &thread) != TN_OK) {
        free(joining);
        snprintf(why, JOIN_REASON, "no thread for a call that waits");
        return TN_ERR_MEMORY;
    }
    pthread_mutex_lock(&joining->lock);
    const struct watch_failure *failure = joining_wait(joining);
    *out_is_left = joining->is_left = failure != NULL;
    pthread_mutex_unlock(&joining->lock);
    if (failure) {
        pthread_detach(thread);
        snprintf(why, JOIN_REASON, "rank %d %s; rank %d was %s", failure->rank,
                 failure->words, call.rank, call.what);
        return TN_ERR_IO;
    }
    pthread_join(thread, NULL);
    tn_status status = joining->status;
    snprintf(why, JOIN_REASON, "%s", joining->why);
    joining_free(joining);
    return status;
}

tn_status join_run(const struct join_call *call, char *why, bool *out_is_left)
{
    why[0] = 0;
    *out_is_left = false;
    if (call->watch->fd < 0)
        return call->run(call->user, why);
    struct join_thread *joining = calloc(1, sizeof(*joining));
    if (!joining) {
        snprintf(why, JOIN_REASON, "out of memory");
        return TN_ERR_MEMORY;
    }
    joining->call = *call;
    return joining_run(joining, why, out_is_left);
}
