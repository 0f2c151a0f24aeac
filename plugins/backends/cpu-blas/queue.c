// SPDX-License-Identifier: MIT
// The queue. Work runs on the thread that submits it, unless that thread will not wait soon
// (TN_SUBMIT_ASYNC) or earlier work is still on its way: then on the queue's own thread,
// started when first needed.
#include "device.h"

#include <stdio.h>
#include <string.h>

#define MAX_FAILURES 256 // that are remembered

tn_status cpu_queue_init(tn_device *device)
{
    struct cpu_queue *queue = &device->queue;
    queue->last = &queue->first;
    if (pthread_mutex_init(&queue->lock, NULL))
        return device->host->fail(device->host, TN_ERR_MEMORY, "no mutex for the queue");
    if (pthread_cond_init(&queue->changed, NULL)) {
        pthread_mutex_destroy(&queue->lock);
        return device->host->fail(device->host, TN_ERR_MEMORY,
                                  "no condition for the queue");
    }
    return TN_OK;
}

// Frees all of the failures but the last `keep`.
static void forget_failures(tn_device *device, uint32_t keep)
{
    struct cpu_queue *queue = &device->queue;
    struct cpu_submission **list = &queue->failures;
    while (*list && keep > 0) {
        list = &(*list)->next;
        keep--;
    }
    while (*list) {
        struct cpu_submission *work = *list;
        *list = work->next;
        queue->forgotten = work->point > queue->forgotten ? work->point : queue->forgotten;
        device->host->free(device->host, work);
    }
}

void cpu_queue_finish(tn_device *device)
{
    struct cpu_queue *queue = &device->queue;
    pthread_mutex_lock(&queue->lock);
    queue->stopping = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    if (queue->started)
        pthread_join(queue->thread, NULL);
    forget_failures(device, 0);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
}

static void run_queued(tn_device *device, struct cpu_submission *work)
{
    struct cpu_queue *queue = &device->queue;
    work->status = cpu_executable_run(device, work->what.executable, work->what.bindings);
    memcpy(work->message, device->message, sizeof(work->message));

    pthread_mutex_lock(&queue->lock);
    uint64_t point = work->point;
    bool failed = work->status != TN_OK;
    if (failed) {
        work->next = queue->failures;
        queue->failures = work;
        forget_failures(device, MAX_FAILURES);
    }
    atomic_store_explicit(&queue->reached, point, memory_order_release);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    if (!failed)
        device->host->free(device->host, work);
}

static void *queue_main(void *argument)
{
    tn_device *device = argument;
    struct cpu_queue *queue = &device->queue;
    for (;;) {
        pthread_mutex_lock(&queue->lock);
        while (!queue->first && !queue->stopping)
            pthread_cond_wait(&queue->changed, &queue->lock);
        struct cpu_submission *work = queue->first;
        if (work) {
            queue->first = work->next;
            if (!queue->first)
                queue->last = &queue->first;
        }
        pthread_mutex_unlock(&queue->lock);
        if (!work)
            return NULL;
        run_queued(device, work);
    }
}

static tn_status start_thread(tn_device *device)
{
    struct cpu_queue *queue = &device->queue;
    if (queue->started)
        return TN_OK;
    int error = pthread_create(&queue->thread, NULL, queue_main, device);
    if (error)
        return device->host->fail(device->host, TN_ERR_MEMORY,
                                  "the queue's thread could not be started: error %d",
                                  error);
    queue->started = true;
    return TN_OK;
}

static tn_status enqueue(tn_device *device, const tn_submission *submission,
                         uint64_t *out_point)
{
    struct cpu_queue *queue = &device->queue;
    tn_status status = start_thread(device);
    if (status != TN_OK)
        return status;
    size_t bindings_size = submission->num_bindings * sizeof(tn_binding);
    struct cpu_submission *work =
        device->host->alloc(device->host, sizeof(*work) + bindings_size, 0);
    if (!work)
        return TN_ERR_MEMORY;
    *work = (struct cpu_submission){.what = *submission, .point = queue->submitted + 1};
    if (bindings_size > 0) // the caller's are his again after the return
        memcpy(work->bindings, submission->bindings, bindings_size);
    work->what.bindings = work->bindings;
    pthread_mutex_lock(&queue->lock);
    queue->submitted = work->point;
    *out_point = work->point; // before the work can be done and freed
    *queue->last = work;
    queue->last = &work->next;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return TN_OK;
}

tn_status cpu_submit(tn_device *device, const tn_submission *submission,
                     uint64_t *out_point)
{
    struct cpu_queue *queue = &device->queue;
    bool idle =
        atomic_load_explicit(&queue->reached, memory_order_acquire) == queue->submitted;
    if (!idle || (submission->flags & TN_SUBMIT_ASYNC))
        return enqueue(device, submission, out_point);

    tn_status status =
        cpu_executable_run(device, submission->executable, submission->bindings);
    if (status != TN_OK)
        return status;
    queue->submitted++;
    atomic_store_explicit(&queue->reached, queue->submitted, memory_order_release);
    *out_point = queue->submitted;
    return TN_OK;
}

// The failure of `point`, if it failed, or if that is no longer known. With the lock held.
static tn_status find_failure(struct cpu_queue *queue, uint64_t point, char *out_message)
{
    for (const struct cpu_submission *f = queue->failures; f; f = f->next) {
        if (f->point == point) {
            memcpy(out_message, f->message, CPU_MESSAGE_SIZE);
            return f->status;
        }
    }
    if (point > queue->forgotten)
        return TN_OK;
    snprintf(out_message, CPU_MESSAGE_SIZE,
             "%d later submissions failed: how this one ended is no longer known",
             MAX_FAILURES);
    return TN_ERR_INTERNAL;
}

tn_status cpu_wait(tn_device *device, uint64_t point)
{
    struct cpu_queue *queue = &device->queue;
    char message[CPU_MESSAGE_SIZE];

    pthread_mutex_lock(&queue->lock);
    while (atomic_load_explicit(&queue->reached, memory_order_acquire) < point)
        pthread_cond_wait(&queue->changed, &queue->lock);
    tn_status status = find_failure(queue, point, message);
    pthread_mutex_unlock(&queue->lock);
    if (status == TN_OK)
        return TN_OK;
    return device->host->fail(device->host, status, "%s", message);
}
