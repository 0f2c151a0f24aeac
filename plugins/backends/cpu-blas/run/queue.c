// SPDX-License-Identifier: MIT
// Queues. Work runs on the submitting thread, except when that thread will not wait soon
// (TN_SUBMIT_ASYNC), when earlier work of the queue is unfinished, or when the work waits
// for unreached points of other queues or of the host. Then it runs on the queue's own
// thread, started when first needed.
#include "run.h"

#include <stdio.h>
#include <string.h>

#define MAX_FAILURES 256 // most failed submissions that a queue remembers

tn_status cpu_queue_init(struct cpu_queue *queue)
{
    const tn_host *host = queue->device->host;
    queue->last = &queue->first;
    if (pthread_mutex_init(&queue->lock, NULL))
        return host->fail(host, TN_ERR_MEMORY, "no mutex for the queue");
    if (pthread_cond_init(&queue->changed, NULL)) {
        pthread_mutex_destroy(&queue->lock);
        return host->fail(host, TN_ERR_MEMORY, "no condition for the queue");
    }
    return TN_OK;
}

// --- points ----------------------------------------------------------------------------

static bool is_reached(struct cpu_queue *queue, uint64_t value)
{
    return atomic_load_explicit(&queue->reached, memory_order_acquire) >= value;
}

static struct cpu_queue *queue_at(const tn_device *device, uint32_t index)
{
    return &device->queues[index == TN_QUEUE_HOST ? device->num_queues : index];
}

// Marks a point reached and wakes the waiters. Sequentially consistent on both sides:
// either the waiter sees the value, or this thread sees a waiter.
static void cpu_queue_reach(struct cpu_queue *queue, uint64_t value)
{
    atomic_store(&queue->reached, value);
    if (atomic_load(&queue->num_waiters) == 0)
        return;
    pthread_mutex_lock(&queue->lock);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

// Blocks until the point is reached. The lock is held.
static void cpu_queue_await(struct cpu_queue *queue, uint64_t value)
{
    atomic_fetch_add(&queue->num_waiters, 1);
    while (atomic_load(&queue->reached) < value)
        pthread_cond_wait(&queue->changed, &queue->lock);
    atomic_fetch_sub(&queue->num_waiters, 1);
}

static bool waits_are_reached(const tn_device *device, const tn_submission *submission)
{
    for (uint32_t i = 0; i < submission->num_waits; i++)
        if (!is_reached(queue_at(device, submission->waits[i].queue),
                        submission->waits[i].value))
            return false;
    return true;
}

static void await_others(const tn_device *device, const tn_submission *submission)
{
    for (uint32_t i = 0; i < submission->num_waits; i++) {
        struct cpu_queue *other = queue_at(device, submission->waits[i].queue);
        if (is_reached(other, submission->waits[i].value))
            continue;
        pthread_mutex_lock(&other->lock);
        cpu_queue_await(other, submission->waits[i].value);
        pthread_mutex_unlock(&other->lock);
    }
}

// --- failures --------------------------------------------------------------------------

// Unlinks all failures but the latest `keep`, and gives them as a list. The lock is held,
// or the queue's thread has ended.
static struct cpu_submission *forget_failures(struct cpu_queue *queue, uint32_t keep)
{
    struct cpu_submission **list = &queue->failures;
    while (*list && keep > 0) {
        list = &(*list)->next;
        keep--;
    }
    struct cpu_submission *forgotten = *list;
    *list = NULL;
    if (forgotten) // the latest in the list
        queue->forgotten = forgotten->point;
    return forgotten;
}

static void free_list(const tn_host *host, struct cpu_submission *list)
{
    while (list) {
        struct cpu_submission *work = list;
        list = work->next;
        host->free(host, work);
    }
}

// The outcome of point `value`; TN_ERR_INTERNAL when it may have failed but its failure was
// dropped. The lock is held.
static tn_status find_failure(const struct cpu_queue *queue, uint64_t value,
                              char *out_message)
{
    for (const struct cpu_submission *f = queue->failures; f; f = f->next) {
        if (f->point == value) {
            memcpy(out_message, f->message, CPU_MESSAGE_SIZE);
            return f->status;
        }
    }
    if (value > queue->forgotten)
        return TN_OK;
    snprintf(out_message, CPU_MESSAGE_SIZE,
             "%d later submissions failed: how this one ended is no longer known",
             MAX_FAILURES);
    return TN_ERR_INTERNAL;
}

// --- the queue's thread ----------------------------------------------------------------

static void run_queued(struct cpu_queue *queue, struct cpu_submission *work)
{
    struct cpu_submission *done = work;
    uint64_t point = work->point;
    await_others(queue->device, &work->submission);
    work->status = cpu_executable_run(queue, &work->submission);
    if (work->status != TN_OK) {
        memcpy(work->message, queue->kernel_host.message, sizeof(work->message));
        pthread_mutex_lock(&queue->lock);
        work->next = queue->failures;
        queue->failures = work;
        done = forget_failures(queue, MAX_FAILURES);
        atomic_store_explicit(&queue->has_failed, true, memory_order_relaxed);
        pthread_mutex_unlock(&queue->lock);
    }
    cpu_queue_reach(queue, point);
    free_list(queue->device->host, done);
}

// The next submission, once all points before it are reached. NULL: none is left, and the
// queue is stopping.
static struct cpu_submission *next_work(struct cpu_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (!queue->first && !queue->stopping)
        pthread_cond_wait(&queue->changed, &queue->lock);
    struct cpu_submission *work = queue->first;
    if (work) {
        // A submitting thread may still run the work before it.
        cpu_queue_await(queue, work->point - 1);
        queue->first = work->next;
        work->next = NULL;
        if (!queue->first)
            queue->last = &queue->first;
    }
    pthread_mutex_unlock(&queue->lock);
    return work;
}

static void *queue_main(void *argument)
{
    struct cpu_queue *queue = argument;
    for (struct cpu_submission *work; (work = next_work(queue)) != NULL;)
        run_queued(queue, work);
    return NULL;
}

void cpu_queue_finish(struct cpu_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->stopping = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    if (queue->started)
        pthread_join(queue->thread, NULL);
    free_list(queue->device->host, forget_failures(queue, 0));
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
}

// --- submitting ------------------------------------------------------------------------

// Copies the bindings and waits too: they are borrowed only until submit returns.
static struct cpu_submission *copy_submission(const tn_host *host,
                                              const tn_submission *submission)
{
    size_t bindings_size = submission->num_bindings * sizeof(tn_binding);
    size_t waits_size = submission->num_waits * sizeof(tn_point);
    struct cpu_submission *work =
        host->alloc(host, sizeof(*work) + bindings_size + waits_size, 0);
    if (!work)
        return NULL;
    *work = (struct cpu_submission){.submission = *submission};
    tn_point *waits = (tn_point *)(work->bindings + submission->num_bindings);
    for (uint64_t i = 0; i < submission->num_bindings; i++)
        work->bindings[i] = *tn_submission_binding(submission, i);
    if (waits_size > 0)
        memcpy(waits, submission->waits, waits_size);
    work->submission.bindings = work->bindings;
    work->submission.binding_size = sizeof(tn_binding);
    work->submission.waits = waits;
    return work;
}

// Starts the queue's thread if there is none yet. Returns pthread_create's error, or 0. The
// lock is held.
static int start_thread(struct cpu_queue *queue)
{
    if (queue->started)
        return 0;
    int error = pthread_create(&queue->thread, NULL, queue_main, queue);
    queue->started = error == 0;
    return error;
}

static tn_status cpu_queue_enqueue(struct cpu_queue *queue, const tn_submission *submission,
                                   uint64_t *out_point)
{
    const tn_host *host = queue->device->host;
    struct cpu_submission *work = copy_submission(host, submission);
    if (!work)
        return TN_ERR_MEMORY;
    pthread_mutex_lock(&queue->lock);
    int error = start_thread(queue);
    if (error == 0) {
        work->point = atomic_fetch_add(&queue->submitted, 1) + 1;
        *out_point = work->point; // before the thread can run and free `work`
        *queue->last = work;
        queue->last = &work->next;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    if (error == 0)
        return TN_OK;
    host->free(host, work);
    return host->fail(host, TN_ERR_MEMORY,
                      "the queue's thread could not be started: error %d", error);
}

// Claims the next point, if all work of the queue is done.
static bool claim_next_point(struct cpu_queue *queue, uint64_t *out_point)
{
    uint64_t last = atomic_load_explicit(&queue->reached, memory_order_acquire);
    *out_point = last + 1;
    return atomic_compare_exchange_strong(&queue->submitted, &last, last + 1);
}

tn_status cpu_submit(tn_device *device, const tn_submission *submission,
                     uint64_t *out_point)
{
    struct cpu_queue *queue = &device->queues[submission->queue];
    uint64_t point;
    if ((submission->flags & TN_SUBMIT_ASYNC) || !waits_are_reached(device, submission) ||
        !claim_next_point(queue, &point))
        return cpu_queue_enqueue(queue, submission, out_point);

    tn_status status = cpu_executable_run(queue, submission);
    cpu_queue_reach(queue, point); // after a failure no caller knows this point
    if (status == TN_OK)
        *out_point = point;
    return status;
}

tn_status cpu_signal(tn_device *device, uint64_t value)
{
    cpu_queue_reach(queue_at(device, TN_QUEUE_HOST), value);
    return TN_OK;
}

tn_status cpu_wait(tn_device *device, uint32_t index, uint64_t value)
{
    struct cpu_queue *queue = &device->queues[index];
    char message[CPU_MESSAGE_SIZE];

    if (value == 0)
        return TN_OK;
    if (is_reached(queue, value) &&
        !atomic_load_explicit(&queue->has_failed, memory_order_relaxed))
        return TN_OK;
    pthread_mutex_lock(&queue->lock);
    cpu_queue_await(queue, value);
    tn_status status = find_failure(queue, value, message);
    pthread_mutex_unlock(&queue->lock);
    if (status == TN_OK)
        return TN_OK;
    return device->host->fail(device->host, status, "%s", message);
}
