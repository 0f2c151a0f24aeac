// SPDX-License-Identifier: MIT
// The thread that copies between devices; see mover.h.
#include "mover.h"

#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/memory.h"
#include "device_set.h"
#include "outcome.h"

struct mover {
    pthread_mutex_t lock; // guards the members below, and the order of points
    pthread_cond_t added; // a copy was queued, or `stopping` set
    pthread_cond_t ended; // a copy ended
    struct move *first, **last;
    pthread_t thread;
    bool started, stopping;
};

struct mover *mover_create(void)
{
    struct mover *mover = mem_zalloc(sizeof(*mover));
    if (!mover)
        return NULL;
    mover->last = &mover->first;
    pthread_mutex_init(&mover->lock, NULL);
    pthread_cond_init(&mover->added, NULL);
    pthread_cond_init(&mover->ended, NULL);
    return mover;
}

void mover_destroy(struct mover *mover)
{
    if (!mover)
        return;
    pthread_mutex_lock(&mover->lock);
    mover->stopping = true;
    pthread_cond_signal(&mover->added);
    pthread_mutex_unlock(&mover->lock);
    if (mover->started)
        pthread_join(mover->thread, NULL);
    pthread_cond_destroy(&mover->ended);
    pthread_cond_destroy(&mover->added);
    pthread_mutex_destroy(&mover->lock);
    mem_free(mover);
}

struct move *move_create(uint32_t max_causes)
{
    struct move *move = mem_zalloc(sizeof(*move) + max_causes * sizeof(move->causes[0]));
    if (move)
        move->max_causes = max_causes;
    return move;
}

void move_add_cause(struct move *move, struct outcome *cause)
{
    outcome_retain(cause);
    move->causes[move->num_causes++] = cause;
}

void move_destroy(struct move *move)
{
    if (!move)
        return;
    for (uint32_t i = 0; i < move->num_causes; i++)
        outcome_release(move->causes[i]);
    outcome_release(move->outcome);
    mem_free(move);
}

// --- copying ---------------------------------------------------------------------------

static char *mover_map(struct device *device, const tn_buffer *buffer, uint64_t offset)
{
    tn_buffer *it = (tn_buffer *)(uintptr_t)buffer; // buffer_map changes nothing
    char *bytes = TN_HAS(device->ops, buffer_map)
                      ? device->ops->buffer_map(device->handle, it)
                      : NULL;
    return bytes ? bytes + offset : NULL;
}

static tn_status mover_write_bytes(struct device *device, tn_buffer *buffer,
                                   uint64_t offset, const void *data, uint64_t size)
{
    fail_clear();
    tn_status status =
        device->ops->buffer_write(device->handle, buffer, offset, data, size);
    return status == TN_OK ? TN_OK : device_failed(device, "buffer_write", status);
}

static tn_status read_bytes(struct device *device, const tn_buffer *buffer, uint64_t offset,
                            void *data, uint64_t size)
{
    fail_clear();
    tn_status status = device->ops->buffer_read(
        device->handle, (tn_buffer *)(uintptr_t)buffer, offset, data, size);
    return status == TN_OK ? TN_OK : device_failed(device, "buffer_read", status);
}

// Bytes. Below, copying by way of the host is faster than making memory for both devices.
#define SHARED_FROM (UINT64_C(1) << 20)

// Mapped memory may be lost without a failure, so each copy also calls the device of the
// side that is not mapped, or the source, which fails if it is lost.
tn_status buffers_copy(struct device *from, const tn_buffer *from_buffer,
                       uint64_t from_offset, struct device *to, tn_buffer *to_buffer,
                       uint64_t to_offset, uint64_t size)
{
    char *there = mover_map(to, to_buffer, to_offset);
    if (there)
        return read_bytes(from, from_buffer, from_offset, there, size);
    const char *here = (from->info.flags & TN_DEVICE_HOST_MEMORY)
                           ? mover_map(from, from_buffer, from_offset)
                           : NULL;
    if (here)
        return mover_write_bytes(to, to_buffer, to_offset, here, size);
    if (size >= SHARED_FROM && devices_share(from, to)) {
        tn_status status = buffers_copy_shared(from, from_buffer, from_offset, to,
                                               to_buffer, to_offset, size);
        if (status == TN_OK || status == TN_ERR_DEVICE)
            return status;
        fail_clear(); // by way of the host
    }
    void *bytes = mem_alloc(size);
    if (!bytes)
        return TN_ERR_MEMORY;
    tn_status status = read_bytes(from, from_buffer, from_offset, bytes, size);
    if (status == TN_OK)
        status = mover_write_bytes(to, to_buffer, to_offset, bytes, size);
    mem_free(bytes);
    return status;
}

tn_status buffer_fill(struct device *device, tn_buffer *buffer, uint64_t offset,
                      uint64_t size, tn_dtype dtype, uint64_t number)
{
    char *bytes = mem_alloc(size);
    if (!bytes)
        return TN_ERR_MEMORY;
    for (uint64_t at = 0; at < size; at += dtype_size(dtype))
        dtype_store_bits(dtype, bytes + at, number);
    tn_status status = mover_write_bytes(device, buffer, offset, bytes, size);
    mem_free(bytes);
    return status;
}

// --- the thread ------------------------------------------------------------------------

// Waits for what the copy reads and for what uses the memory that it writes.
static tn_status wait_for_others(const struct move *move)
{
    tn_status status = TN_OK;
    if (move->after) // whether that work failed or not
        device_drain(move->after, move->after_point);
    for (uint32_t i = 0; i < move->num_causes && status == TN_OK; i++) {
        status =
            device_wait(outcome_device(move->causes[i]), outcome_point(move->causes[i]));
        if (status == TN_OK)
            status = outcome_end(move->causes[i]);
    }
    for (uint32_t i = 0; i < move->to->num_timelines && status == TN_OK; i++)
        if (move->to_uses[i] > 0)
            status =
                device_wait(move->to, (tn_point){.queue = i, .value = move->to_uses[i]});
    return status;
}

static tn_status mover_copy(const struct move *move)
{
    if (move->size == 0)
        return TN_OK;
    return move->from ? buffers_copy(move->from, move->from_buffer, move->from_offset,
                                     move->to, move->to_buffer, move->to_offset, move->size)
                      : buffer_fill(move->to, move->to_buffer, move->to_offset, move->size,
                                    move->dtype, move->number);
}

static tn_status mover_run(const struct move *move)
{
    struct trace *trace = move->to->runtime->trace;
    tn_status status = wait_for_others(move);
    uint64_t begin = trace_begin(trace);
    if (status == TN_OK)
        status = mover_copy(move);
    if (move->size > 0)
        trace_end(trace, begin, move->from ? "transfer" : "upload",
                  "\"bytes\":%llu,\"from\":\"%s\",\"to\":\"%s\"",
                  (unsigned long long)move->size, move->from ? move->from->name : "",
                  move->to->name);
    return status;
}

// Reaches the point, so that the device's work that waits for it begins. A failure marks
// the device lost, which later reads report.
static void mover_reach(struct device *device, uint64_t value)
{
    device_note_reached(device, (tn_point){.queue = device->num_queues, .value = value});
    fail_clear();
    tn_status status = device->ops->signal(device->handle, value);
    if (status != TN_OK)
        device_failed(device, "signal", status);
}

static void clean_up(struct device *device, uint64_t value)
{
    outcomes_settle(device, (tn_point){.queue = device->num_queues, .value = value});
    device_sweep(device, 0);
}

static void mover_end(struct mover *mover, struct move *move, tn_status status)
{
    if (move->outcome)
        outcome_finish(move->outcome, status);
    if (move->from)
        mover_reach(move->from, move->from_value);
    mover_reach(move->to, move->to_value);
    pthread_mutex_lock(&mover->lock);
    pthread_cond_broadcast(&mover->ended);
    pthread_mutex_unlock(&mover->lock);
    if (move->from)
        clean_up(move->from, move->from_value);
    clean_up(move->to, move->to_value);
    move_destroy(move);
}

static struct move *next_move(struct mover *mover)
{
    pthread_mutex_lock(&mover->lock);
    while (!mover->first && !mover->stopping)
        pthread_cond_wait(&mover->added, &mover->lock);
    struct move *move = mover->first;
    if (move) {
        mover->first = move->next;
        if (!mover->first)
            mover->last = &mover->first;
    }
    pthread_mutex_unlock(&mover->lock);
    return move;
}

static void *mover_main(void *context)
{
    struct mover *mover = context;
    for (struct move *move; (move = next_move(mover));)
        mover_end(mover, move, mover_run(move));
    return NULL;
}

// --- queueing --------------------------------------------------------------------------

// The lock is held.
static tn_status mover_start(struct mover *mover)
{
    if (mover->started)
        return TN_OK;
    int error = pthread_create(&mover->thread, NULL, mover_main, mover);
    if (error)
        return fail(TN_ERR_MEMORY,
                    "the thread that copies between devices could not be started: error %d",
                    error);
    mover->started = true;
    return TN_OK;
}

tn_status mover_add(tn_runtime *runtime, struct move *move, uint64_t *out_to,
                    uint64_t *out_from)
{
    struct mover *mover = runtime->devices->mover;
    pthread_mutex_lock(&mover->lock);
    tn_status status = mover_start(mover);
    if (status == TN_OK) {
        *out_to = move->to_value = ++move->to->host_points;
        if (move->from)
            *out_from = move->from_value = ++move->from->host_points;
        if (move->outcome)
            outcome_begin(move->outcome, move->to_value);
        *mover->last = move; // the thread may end it from now on
        mover->last = &move->next;
        pthread_cond_signal(&mover->added);
    }
    pthread_mutex_unlock(&mover->lock);
    if (status != TN_OK)
        move_destroy(move);
    return status;
}

void mover_wait(struct device *device, uint64_t value)
{
    struct mover *mover = device->runtime->devices->mover;
    const tn_point point = {.queue = device->num_queues, .value = value};
    pthread_mutex_lock(&mover->lock);
    while (!device_has_reached(device, point))
        pthread_cond_wait(&mover->ended, &mover->lock);
    pthread_mutex_unlock(&mover->lock);
}
