// SPDX-License-Identifier: MIT
#include "ahead.h"

#include <signal.h>
#include <stdlib.h>
#include "processors.h"

#define MAX_THREADS 15 // beside the caller

struct ahead_thread {
    struct vk_ahead *ahead;
    struct vk_plan plan; // to be thrown away
    pthread_t handle;
};

struct vk_ahead {
    const tn_segment *segment; // borrowed
    vk_plan_step *plan_step;
    bool begun; // the fields below are there; of interest to the caller's thread alone
    pthread_mutex_t lock; // guards the fields below
    bool stop;
    uint32_t next; // the first step that no thread has begun
    uint32_t num_threads, max_threads;
    struct ahead_thread *threads; // max_threads, and one that stands for the caller
};

// TENON_THREADS, which the host has checked, or one a core that the process may use; the
// caller's is one of them.
static uint32_t threads_beside(const tn_host *host)
{
    const char *text = host->config(host, "TENON_THREADS");
    long count = text && *text ? strtol(text, NULL, 10) : 0;
    if (count < 1)
        count = processors_usable();
    return count < 2 ? 0 : count > MAX_THREADS ? MAX_THREADS : (uint32_t)count - 1;
}

static struct vk_plan throwaway(struct vk_ahead *ahead, const struct vk_plan *plan)
{
    return (struct vk_plan){.device = plan->device,
                            .slots = plan->slots,
                            .num_slots = plan->num_slots,
                            .groups = plan->groups,
                            .ahead = ahead,
                            .is_ahead = true};
}

// False: no thread may be started.
static bool begin(struct vk_ahead *ahead, const struct vk_plan *plan)
{
    if (ahead->begun)
        return true;
    uint32_t max = threads_beside(plan->device->host);
    struct ahead_thread *threads = max > 0 && plan->step + 1 < ahead->segment->num_steps
                                       ? calloc(max + 1, sizeof(*threads))
                                       : NULL;
    if (!threads || pthread_mutex_init(&ahead->lock, NULL)) {
        free(threads);
        return false;
    }
    for (uint32_t i = 0; i <= max; i++)
        threads[i] = (struct ahead_thread){.ahead = ahead, .plan = throwaway(ahead, plan)};
    ahead->threads = threads;
    ahead->max_threads = max;
    ahead->next = plan->step + 1;
    ahead->begun = true;
    return true;
}

// Plans the next step into a plan to be thrown away. False: there is none.
static bool plan_next(struct vk_ahead *ahead, struct vk_plan *plan)
{
    pthread_mutex_lock(&ahead->lock);
    bool any = !ahead->stop && ahead->next < ahead->segment->num_steps;
    if (any)
        plan->step = ahead->next++;
    pthread_mutex_unlock(&ahead->lock);
    if (any)
        (void)ahead->plan_step(plan, tn_segment_step(ahead->segment, plan->step));
    return any;
}

static void *run(void *argument)
{
    struct ahead_thread *thread = argument;
    while (plan_next(thread->ahead, &thread->plan))
        continue;
    return NULL;
}

// Signals stay with the application's threads.
static bool start(struct ahead_thread *thread)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread->handle, NULL, run, thread) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void vk_ahead_more(const struct vk_plan *plan)
{
    struct vk_ahead *ahead = plan->ahead;
    if (!ahead || (!plan->is_ahead && !begin(ahead, plan)))
        return;
    pthread_mutex_lock(&ahead->lock);
    if (!ahead->stop && ahead->next < ahead->segment->num_steps &&
        ahead->num_threads < ahead->max_threads &&
        start(&ahead->threads[ahead->num_threads]))
        ahead->num_threads++;
    pthread_mutex_unlock(&ahead->lock);
}

bool vk_ahead_help(const struct vk_plan *plan)
{
    struct vk_ahead *ahead = plan->ahead;
    return ahead && ahead->begun &&
           plan_next(ahead, &ahead->threads[ahead->max_threads].plan);
}

// The caller comes to step plan->step.
static void reach(struct vk_ahead *ahead, const struct vk_plan *plan)
{
    if (!ahead->begun)
        return;
    pthread_mutex_lock(&ahead->lock);
    if (ahead->next <= plan->step)
        ahead->next = plan->step + 1;
    pthread_mutex_unlock(&ahead->lock);
}

// Waits for the helpers, which begin no further step.
static void finish(struct vk_ahead *ahead)
{
    if (!ahead->begun)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->stop = true; // no further thread is started
    pthread_mutex_unlock(&ahead->lock);
    for (uint32_t i = 0; i < ahead->num_threads; i++)
        pthread_join(ahead->threads[i].handle, NULL);
    for (uint32_t i = 0; i <= ahead->max_threads; i++)
        plan_finish(&ahead->threads[i].plan);
    free(ahead->threads);
    pthread_mutex_destroy(&ahead->lock);
}

tn_status vk_ahead_plan(const tn_segment *segment, vk_plan_step *plan_step,
                        struct vk_plan *plan)
{
    struct vk_ahead ahead = {.segment = segment, .plan_step = plan_step};
    tn_status status = TN_OK;
    plan->ahead = &ahead;
    for (plan->step = 0; plan->step < segment->num_steps && status == TN_OK; plan->step++) {
        reach(&ahead, plan);
        status = plan_step(plan, tn_segment_step(segment, plan->step));
    }
    finish(&ahead);
    plan->ahead = NULL;
    return status;
}
