// SPDX-License-Identifier: MIT
// The lock around MPI, for one thread at a time, and the thread that drives works while the
// process computes. A call that waits for other ranks holds MPI without the lock, so that
// the call can be abandoned.
#include <pthread.h>
#include <time.h>
#include "group.h"

// Pause of the thread between two rounds over its works.
static const long PAUSE_NS = 20000;
enum { LOOKS = 50 }; // pauses between two looks for failures

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed, released;
    tn_collective_work *works;
    pthread_t thread;
    bool has_thread, ends, is_held;
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER,
              .changed = PTHREAD_COND_INITIALIZER,
              .released = PTHREAD_COND_INITIALIZER};

// The lock is held.
static void progress_await(void)
{
    while (progress.is_held)
        pthread_cond_wait(&progress.released, &progress.lock);
}

void progress_enter(void)
{
    pthread_mutex_lock(&progress.lock);
    progress_await();
}

void progress_leave(void)
{
    pthread_mutex_unlock(&progress.lock);
}

void progress_hold(void)
{
    progress_enter();
    progress.is_held = true;
    progress_leave();
}

void progress_enter_held(void)
{
    pthread_mutex_lock(&progress.lock);
    progress.is_held = false;
    pthread_cond_broadcast(&progress.released);
}

// Advances all works; true while one is under way. Failures are recorded in groups.
static bool advance_all(bool looks)
{
    bool is_busy = false;
    for (tn_collective_work *work = progress.works; work; work = work->background) {
        if (work->stage == ENDED || work->group->broken[0])
            continue;
        if (work_advance(work) == TN_OK && looks)
            work_look(work);
        is_busy |= work->stage != ENDED && !work->group->broken[0];
    }
    return is_busy;
}

static void *progress_main(void *unused)
{
    (void)unused;
    progress_enter();
    for (uint64_t turn = 0; !progress.ends; turn++) {
        if (!advance_all(turn % LOOKS == 0)) {
            pthread_cond_wait(&progress.changed, &progress.lock);
            progress_await();
            continue;
        }
        progress_leave();
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        progress_enter();
    }
    progress_leave();
    return NULL;
}

bool progress_add(tn_collective_work *work)
{
    if (!progress.has_thread) {
        progress.ends = false;
        progress.has_thread =
            pthread_create(&progress.thread, NULL, progress_main, NULL) == 0;
    }
    if (!progress.has_thread)
        return false;
    work->background = progress.works;
    progress.works = work;
    pthread_cond_signal(&progress.changed);
    return true;
}

void progress_remove(tn_collective_work *work)
{
    tn_collective_work **at = &progress.works;
    while (*at && *at != work)
        at = &(*at)->background;
    if (*at)
        *at = work->background;
}

void progress_stop(void)
{
    progress_enter();
    bool has_thread = progress.has_thread;
    progress.ends = true;
    progress.has_thread = false;
    pthread_cond_signal(&progress.changed);
    progress_leave();
    if (has_thread)
        pthread_join(progress.thread, NULL);
}
