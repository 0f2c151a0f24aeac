// SPDX-License-Identifier: MIT
// Long work runs on another thread, while the calling thread waits without the GIL and lets
// Python handle signals now and then. When a handler raises, as that of Ctrl-C does, the
// call returns: the work runs to its end, and its result is dropped.
#include "base.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// Milliseconds between two checks for signals.
#define PATIENCE 50

struct py_helper {
    struct py_helper *next; // next idle thread
    struct py_work *work;
    pthread_cond_t wake, done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t none_left;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct py_helper *idle;
static uint64_t num_left;

// A child of fork() has none of the helper threads.
static void forget_helpers(void)
{
    pthread_mutex_init(&lock, NULL);
    idle = NULL;
    num_left = 0;
}

static void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

static void init_once(void)
{
    cond_init(&none_left);
    pthread_atfork(NULL, NULL, forget_helpers);
}

// Called with the lock held; releases it while the work runs.
static void do_work(struct py_helper *helper)
{
    struct py_work *work = helper->work;
    pthread_mutex_unlock(&lock);
    work->run(work);
    pthread_mutex_lock(&lock);
    helper->work = NULL;
    work->is_done = true;
    if (!work->is_left) {
        pthread_cond_signal(&helper->done);
        return;
    }
    pthread_mutex_unlock(&lock);
    work->finish(work);
    pthread_mutex_lock(&lock);
    helper->next = idle;
    idle = helper;
    if (--num_left == 0)
        pthread_cond_broadcast(&none_left);
}

static void *helper_main(void *argument)
{
    struct py_helper *helper = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!helper->work)
            pthread_cond_wait(&helper->wake, &lock);
        do_work(helper);
    }
    return NULL;
}

// Starts a helper thread, which blocks all signals; NULL where no thread can be started.
static struct py_helper *helper_start(void)
{
    struct py_helper *helper = calloc(1, sizeof(*helper));
    pthread_t thread;
    sigset_t all, before;
    if (!helper)
        return NULL;
    cond_init(&helper->wake);
    cond_init(&helper->done);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, helper_main, helper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        pthread_detach(thread);
        return helper;
    }
    free(helper);
    return NULL;
}

static struct py_helper *helper_take(void)
{
    struct py_helper *helper = idle;
    if (!helper)
        return helper_start();
    idle = helper->next;
    return helper;
}

// Waits at most PATIENCE, called with the lock held. The caller checks its condition again.
static void wait_moment(pthread_cond_t *cond)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PATIENCE * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(cond, &lock, &until);
}

// Whether a signal's handler raised. Called with the lock held; releases it while handlers
// run.
static bool is_interrupted(PyThreadState **state)
{
    pthread_mutex_unlock(&lock);
    PyEval_RestoreThread(*state);
    bool raised = PyErr_CheckSignals() != 0;
    *state = PyEval_SaveThread();
    pthread_mutex_lock(&lock);
    return raised;
}

bool work_wait(struct py_work *work)
{
    pthread_once(&once, init_once);
    bool is_interrupted_now = false;
    PyThreadState *state = PyEval_SaveThread();
    pthread_mutex_lock(&lock);
    // Python handles signals in the first thread only: others need no helper.
    struct py_helper *helper = gettid() == getpid() ? helper_take() : NULL;
    if (!helper) {
        pthread_mutex_unlock(&lock);
        work->run(work);
        PyEval_RestoreThread(state);
        return true;
    }
    helper->work = work;
    pthread_cond_signal(&helper->wake);
    while (!work->is_done && !is_interrupted_now) {
        wait_moment(&helper->done);
        is_interrupted_now = !work->is_done && is_interrupted(&state);
    }
    bool is_done = work->is_done;
    if (is_done) {
        helper->next = idle;
        idle = helper;
    } else {
        work->is_left = true;
        num_left++;
    }
    pthread_mutex_unlock(&lock);
    if (is_done && is_interrupted_now)
        work->finish(work);
    PyEval_RestoreThread(state);
    return !is_interrupted_now;
}

bool work_wait_left(void)
{
    pthread_once(&once, init_once);
    bool raised = false;
    PyThreadState *state = PyEval_SaveThread();
    pthread_mutex_lock(&lock);
    while (num_left > 0 && !raised) {
        wait_moment(&none_left);
        raised = num_left > 0 && is_interrupted(&state);
    }
    pthread_mutex_unlock(&lock);
    PyEval_RestoreThread(state);
    return !raised;
}
