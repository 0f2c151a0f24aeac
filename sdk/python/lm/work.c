// SPDX-License-Identifier: MIT
// Work that may last runs on a thread of its own, while the calling thread waits without
// the GIL, and lets Python handle signals now and then. Work may yield: then its thread
// waits until work_next() resumes it.
#include "lm.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Milliseconds between two checks for signals.
#define PATIENCE 50

void *work_new(size_t size, void (*run)(struct lm_work *), void (*free)(struct lm_work *))
{
    struct lm_work *work = calloc(1, size);
    if (!work)
        return PyErr_NoMemory();
    work->run = run;
    work->free = free;
    work->process = getpid();
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&work->lock, NULL);
    pthread_cond_init(&work->changed, &attr);
    pthread_condattr_destroy(&attr);
    return work;
}

static void set_state(struct lm_work *work, enum work_state state)
{
    pthread_mutex_lock(&work->lock);
    work->state = state;
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
}

static void *work_main(void *argument)
{
    struct lm_work *work = argument;
    work->run(work);
    set_state(work, WORK_DONE);
    return NULL;
}

// Starts the work's thread, which blocks all signals.
static bool py_lm_work_begin(struct lm_work *work)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    work->state = WORK_RUNS;
    int error = pthread_create(&work->thread, NULL, work_main, work);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        work->state = WORK_IDLE;
        PyErr_Format(PyExc_RuntimeError, "tenon.lm: no thread can be started: %s",
                     strerror(error));
    }
    return error == 0;
}

// Waits at most PATIENCE. Called with the lock held.
static void work_wait_moment(struct lm_work *work)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PATIENCE * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&work->changed, &work->lock, &until);
}

// Waits until work that runs yields or ends. False: a signal's handler raised.
static bool work_wait_here(struct lm_work *work)
{
    bool raised = false;
    PyThreadState *state = PyEval_SaveThread();
    pthread_mutex_lock(&work->lock);
    while (work->state == WORK_RUNS && !raised) {
        work_wait_moment(work);
        if (work->state != WORK_RUNS)
            break;
        pthread_mutex_unlock(&work->lock);
        PyEval_RestoreThread(state);
        raised = PyErr_CheckSignals() != 0;
        state = PyEval_SaveThread();
        pthread_mutex_lock(&work->lock);
    }
    pthread_mutex_unlock(&work->lock);
    PyEval_RestoreThread(state);
    return !raised;
}

bool work_yield(struct lm_work *work)
{
    pthread_mutex_lock(&work->lock);
    work->state = WORK_YIELDS;
    pthread_cond_broadcast(&work->changed);
    while (work->state == WORK_YIELDS && !work->is_stopped)
        pthread_cond_wait(&work->changed, &work->lock);
    work->state = WORK_RUNS;
    bool goes_on = !work->is_stopped;
    pthread_mutex_unlock(&work->lock);
    return goes_on;
}

bool work_next(struct lm_work *work)
{
    bool is_idle = work->state == WORK_IDLE;
    if (is_idle && !py_lm_work_begin(work))
        return false;
    if (!is_idle && work->state == WORK_YIELDS)
        set_state(work, WORK_RUNS);
    return work_wait_here(work);
}

void work_stop(struct lm_work *work)
{
    pthread_mutex_lock(&work->lock);
    work->is_stopped = true;
    if (work->state == WORK_YIELDS)
        work->state = WORK_RUNS;
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);
}

bool work_end(struct lm_work *work)
{
    return work->state == WORK_IDLE || work_wait_here(work);
}

// The child of a fork() lacks the work's thread, so it frees nothing.
void work_free(struct lm_work *work)
{
    if (!work || work->process != getpid())
        return;
    if (work->state != WORK_IDLE) {
        PyThreadState *state = PyEval_SaveThread();
        pthread_join(work->thread, NULL);
        PyEval_RestoreThread(state);
    }
    pthread_cond_destroy(&work->changed);
    pthread_mutex_destroy(&work->lock);
    if (work->free)
        work->free(work);
    if (work->model)
        model_leave(work->model, work->is_alone);
    Py_XDECREF(work->kept);
    free(work->error);
    free(work);
}

bool work_do(struct lm_work **work, struct lm_work **left)
{
    struct lm_work *w = *work;
    if (!py_lm_work_begin(w))
        return false;
    if (!work_wait_here(w)) {
        w->next = *left;
        *left = w;
        *work = NULL;
        return false;
    }
    return w->status == TN_OK || work_raise(w) != NULL;
}

bool work_settle(struct lm_work **left)
{
    while (*left) {
        struct lm_work *work = *left;
        *left = work->next;
        if (work->process == getpid() && !work_wait_here(work)) {
            work->next = *left;
            *left = work;
            return false;
        }
        work_free(work);
    }
    return true;
}

void work_set(struct lm_work *work, tn_status status)
{
    work->status = status;
    if (status != TN_OK)
        work->error = strdup(tn_lm_error());
}

PyObject *work_raise(const struct lm_work *work)
{
    return py_host->raise_status(work->status, work->error);
}
