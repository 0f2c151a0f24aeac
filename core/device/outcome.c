// SPDX-License-Identifier: MIT
// Outcomes of a queue are settled in point order; those of copies by the mover are settled
// by outcome_finish() before their points are reached. A cause in the same queue has an
// earlier point, so it is settled already; a cause in another queue is settled by
// settle_causes().
#include "outcome.h"

#include <stdio.h>
#include "../base/fail.h"
#include "../base/memory.h"

enum { UNSETTLED = 1 };       // no tn_status, which is 0 or negative
enum { MAX_UNSETTLED = 256 }; // of one queue, before back-pressure
enum { DRAINED = 64 };        // outcomes to wait for at once then: a wait a call cost 40 ns

struct outcome {
    atomic_uint refs;
    atomic_int status; // UNSETTLED, or the tn_status of the work
    struct device *device;
    uint32_t queue;
    uint64_t value;           // of the work's point
    struct outcome *next;     // in the queue's list; under the queue's lock
    char *message;            // owned; written before `status`; may be NULL
    uint32_t num_causes;      // under the queue's lock; 0 once settled
    struct outcome *causes[]; // owns references
};

tn_status outcome_create(struct device *device, uint32_t queue,
                         struct outcome *const *causes, uint32_t num_causes,
                         struct outcome **out)
{
    struct outcome *outcome = mem_zalloc(sizeof(*outcome) + num_causes * sizeof(causes[0]));
    if (!outcome)
        return TN_ERR_MEMORY;
    outcome->device = device;
    outcome->queue = queue;
    atomic_init(&outcome->refs, 1);
    atomic_init(&outcome->status, UNSETTLED);
    for (uint32_t i = 0; i < num_causes; i++) {
        if (outcome_succeeded(causes[i]))
            continue;
        outcome_retain(causes[i]);
        outcome->causes[outcome->num_causes++] = causes[i];
    }
    *out = outcome;
    return TN_OK;
}

void outcome_retain(struct outcome *outcome)
{
    atomic_fetch_add_explicit(&outcome->refs, 1, memory_order_relaxed);
}

// Settled outcomes drop their causes, so recursion is one level.
void outcome_release(struct outcome *outcome)
{
    if (!outcome || atomic_fetch_sub_explicit(&outcome->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < outcome->num_causes; i++)
        outcome_release(outcome->causes[i]);
    mem_free(outcome->message);
    mem_free(outcome);
}

static struct device_queue *outcome_queue_of(const struct outcome *outcome)
{
    return &outcome->device->queues[outcome->queue];
}

static int status_of(const struct outcome *outcome)
{
    return atomic_load_explicit(&outcome->status, memory_order_acquire);
}

tn_point outcome_point(const struct outcome *outcome)
{
    return (tn_point){.queue = outcome->queue, .value = outcome->value};
}

struct device *outcome_device(const struct outcome *outcome)
{
    return outcome->device;
}

void outcome_finish(struct outcome *outcome, tn_status status)
{
    if (status != TN_OK)
        outcome->message = mem_strdup(fail_text());
    atomic_store_explicit(&outcome->status, status, memory_order_release);
}

bool outcome_succeeded(const struct outcome *outcome)
{
    return !outcome || status_of(outcome) == TN_OK;
}

tn_status outcome_known(const struct outcome *outcome)
{
    int status = outcome ? status_of(outcome) : TN_OK;
    if (status == UNSETTLED || status == TN_OK)
        return TN_OK;
    return fail(status, "%s",
                outcome->message ? outcome->message
                                 : "earlier work that this needs failed");
}

// The lock is held.
static tn_point backlog_of(const struct device_queue *queue, uint32_t number)
{
    tn_point point = {.queue = number};
    if (queue->num_outcomes <= MAX_UNSETTLED)
        return point;
    const struct outcome *outcome = queue->oldest;
    for (uint32_t i = 0; i < DRAINED; i++)
        outcome = outcome->next;
    point.value = outcome->value;
    return point;
}

tn_point outcomes_backlog(struct device *device, uint32_t number)
{
    struct device_queue *queue = &device->queues[number];
    pthread_mutex_lock(&queue->lock);
    tn_point point = backlog_of(queue, number);
    pthread_mutex_unlock(&queue->lock);
    return point;
}

// A sorted insert, because threads that submit to one queue arrive here in any order.
tn_point outcome_begin(struct outcome *outcome, uint64_t value)
{

    struct device_queue *queue = outcome_queue_of(outcome);
    outcome->value = value;
    outcome_retain(outcome);
    pthread_mutex_lock(&queue->lock);
    struct outcome **link = queue->newest && queue->newest->value < value
                                ? &queue->newest->next
                                : &queue->oldest;
    while (*link && (*link)->value < value)
        link = &(*link)->next;
    outcome->next = *link;
    *link = outcome;
    if (!outcome->next)
        queue->newest = outcome;
    queue->num_outcomes++;
    tn_point backlog = backlog_of(queue, outcome->queue);
    pthread_mutex_unlock(&queue->lock);
    return backlog;
}

// The status and a copy of the message of the first cause that failed. Under the lock of
// the outcome's queue, because settling drops causes.
static tn_status failed_cause(const struct outcome *outcome, char **out_message)
{
    for (uint32_t i = 0; i < outcome->num_causes; i++) {
        const struct outcome *cause = outcome->causes[i];
        int status = status_of(cause);
        if (status == TN_OK)
            continue;
        *out_message = cause->message ? mem_strdup(cause->message) : NULL;
        return status;
    }
    return TN_OK;
}

static void outcome_settle(struct outcome *outcome);

// Settles the causes. Their points are reached, because the work began after its causes
// ended. Causes that alternate between queues make this recurse, at most as deep as there
// are listed outcomes (MAX_UNSETTLED a queue).
static void settle_causes(struct outcome *outcome)
{
    struct device_queue *queue = outcome_queue_of(outcome);
    for (uint32_t i = 0;; i++) {
        struct outcome *cause = NULL;
        pthread_mutex_lock(&queue->lock);
        bool more = i < outcome->num_causes;
        if (more && status_of(outcome->causes[i]) == UNSETTLED) {
            cause = outcome->causes[i];
            outcome_retain(cause);
        }
        pthread_mutex_unlock(&queue->lock);
        if (cause) {
            settle_causes(cause);
            outcome_settle(cause);
        }
        outcome_release(cause);
        if (!more)
            return;
    }
}

// Asks the backend for the status of the work, whose causes are settled, and stores it.
// Several threads may settle one outcome at the same time: the backend gives each the same
// answer, and the first stores it.
static void outcome_settle(struct outcome *outcome)
{
    struct device *device = outcome->device;
    struct device_queue *queue = outcome_queue_of(outcome);
    char *message = NULL;
    fail_clear();
    tn_status status = device->ops->wait(device->handle, outcome->queue, outcome->value);
    if (status != TN_OK) {
        status = device_failed(device, "wait", status);
        message = mem_strdup(fail_text());
    }
    pthread_mutex_lock(&queue->lock);
    uint32_t num_causes = outcome->num_causes;
    bool first = status_of(outcome) == UNSETTLED;
    if (first) {
        if (status == TN_OK)
            status = failed_cause(outcome, &message);
        outcome->message = message;
        outcome->num_causes = 0;
        atomic_store_explicit(&outcome->status, status, memory_order_release);
    }
    pthread_mutex_unlock(&queue->lock);
    if (!first)
        mem_free(message);
    for (uint32_t i = 0; first && i < num_causes; i++)
        outcome_release(outcome->causes[i]);
}

// Takes the outcome off its queue's list. False when another thread already did. Under the
// queue's lock.
static bool outcome_unlist(struct device_queue *queue, struct outcome *outcome)
{
    struct outcome **link = &queue->oldest, *before = NULL;
    while (*link && *link != outcome) {
        before = *link;
        link = &before->next;
    }
    if (*link != outcome)
        return false;
    *link = outcome->next;
    if (queue->newest == outcome)
        queue->newest = before;
    queue->num_outcomes--;
    return true;
}

// Takes `done`, unless it is NULL, off the queue's list. Gives the oldest listed outcome up
// to the point, retained, and whether it has causes; NULL: none.
static struct outcome *next_outcome(struct device *device, tn_point point,
                                    struct outcome *done, bool *out_has_causes)
{
    struct device_queue *queue = &device->queues[point.queue];
    pthread_mutex_lock(&queue->lock);
    bool is_mine = done && outcome_unlist(queue, done);
    struct outcome *outcome = queue->oldest;
    if (outcome && outcome->value > point.value)
        outcome = NULL;
    if (outcome) {
        outcome_retain(outcome);
        *out_has_causes = outcome->num_causes > 0;
    }
    pthread_mutex_unlock(&queue->lock);
    if (is_mine)
        outcome_release(done); // the list's reference
    return outcome;
}

void outcomes_settle(struct device *device, tn_point point)
{
    char message[FAIL_TEXT_SIZE]; // this thread's pending error: settling may overwrite it
    bool has_causes = false;
    struct outcome *outcome = next_outcome(device, point, NULL, &has_causes);
    if (!outcome)
        return;
    fail_save(message);
    while (outcome) {
        struct outcome *done = outcome;
        if (status_of(outcome) == UNSETTLED) {
            if (has_causes)
                settle_causes(outcome);
            outcome_settle(outcome);
        }
        outcome = next_outcome(device, point, done, &has_causes);
        outcome_release(done);
    }
    fail_restore(message);
}

tn_status outcome_end(struct outcome *outcome)
{
    if (outcome && status_of(outcome) == UNSETTLED)
        outcomes_settle(outcome->device, outcome_point(outcome));
    return outcome_known(outcome);
}
