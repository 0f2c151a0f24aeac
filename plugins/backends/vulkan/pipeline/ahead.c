// SPDX-License-Identifier: MIT
#include "ahead.h"

#include <signal.h>
#include <stdlib.h>
#include "processors.h"

// TENON_THREADS, which the host has checked, or one a core that the process may use; the
// caller's is one of them.
static uint32_t threads_beside(const tn_host *host, long busy)
{
    const char *text = host->config(host, "TENON_THREADS");
    long count = text && *text ? strtol(text, NULL, 10) : 0;
    if (count < 1)
        count = processors_usable();
    count -= busy;
    return count < 1 ? 0 : count > VK_AHEAD_THREADS ? VK_AHEAD_THREADS : (uint32_t)count;
}

// False: no thread may be started.
static bool pipeline_ahead_begin(struct vk_ahead *ahead)
{
    if (ahead->begun)
        return true;
    uint32_t max = threads_beside(ahead->host, 1 + (long)ahead->num_others);
    if (max == 0 || ahead->reached + 1 >= ahead->num_steps ||
        pthread_mutex_init(&ahead->lock, NULL))
        return false;
    for (uint32_t i = 0; i < max; i++)
        ahead->threads[i] = (struct vk_ahead_thread){.ahead = ahead, .number = i};
    ahead->max_threads = max;
    ahead->next = ahead->reached + 1;
    ahead->begun = true;
    return true;
}

// Plans the next step, as thread `thread`. False: there is none.
static bool plan_next(struct vk_ahead *ahead, uint32_t thread)
{
    uint32_t step = 0;
    pthread_mutex_lock(&ahead->lock);
    bool any = !ahead->stop && ahead->next < ahead->num_steps;
    if (any)
        step = ahead->next++;
    pthread_mutex_unlock(&ahead->lock);
    if (any)
        ahead->plan(ahead->context, thread, step);
    return any;
}

static void *pipeline_ahead_run(void *argument)
{
    struct vk_ahead_thread *thread = argument;
    while (plan_next(thread->ahead, thread->number))
        continue;
    return NULL;
}

// Signals stay with the application's threads.
static bool pipeline_ahead_start(struct vk_ahead_thread *thread)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread->handle, NULL, pipeline_ahead_run, thread) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void vk_ahead_more(struct vk_ahead *ahead, bool is_helper)
{
    if (!ahead || (!is_helper && !pipeline_ahead_begin(ahead)))
        return;
    pthread_mutex_lock(&ahead->lock);
    if (!ahead->stop && ahead->next < ahead->num_steps &&
        ahead->num_threads < ahead->max_threads &&
        pipeline_ahead_start(&ahead->threads[ahead->num_threads]))
        ahead->num_threads++;
    pthread_mutex_unlock(&ahead->lock);
}

bool vk_ahead_help(struct vk_ahead *ahead)
{
    return ahead && ahead->begun && plan_next(ahead, ahead->max_threads);
}

void vk_ahead_reach(struct vk_ahead *ahead, uint32_t step)
{
    ahead->reached = step;
    if (!ahead->begun)
        return;
    pthread_mutex_lock(&ahead->lock);
    if (ahead->next <= step)
        ahead->next = step + 1;
    pthread_mutex_unlock(&ahead->lock);
}

void vk_ahead_finish(struct vk_ahead *ahead)
{
    if (!ahead->begun)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->stop = true; // no further thread is started
    pthread_mutex_unlock(&ahead->lock);
    for (uint32_t i = 0; i < ahead->num_threads; i++)
        pthread_join(ahead->threads[i].handle, NULL);
    pthread_mutex_destroy(&ahead->lock);
}
