// SPDX-License-Identifier: MIT
// A small backend, and the same with one fault each: its memory is the host's, a thread of
// its own interprets programs and calls kernels. Without a FAULT_... it is sound. The name
// of a fault is that of the check that must find it.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "backend_device.h"
#include "backend_import.h"
#include "backend_run.h"
#include "backend_share.h"

// --- segments --------------------------------------------------------------------------

static int32_t step_check(tn_device *device, const tn_step *step, const char **out_reason)
{
    (void)device;
#ifdef FAULT_SEGMENT_OPERATIONS
    (void)out_reason;
    return 1;
#endif
#ifdef FAULT_SEGMENT_TAKES_NONE
    if (step->program && step->program->flags & TN_EXPR_TAKES) {
        *out_reason = "it gathers";
        return 0;
    }
#endif
    const char *reason = reason_against(step);
    if (reason)
        *out_reason = reason;
    return reason == NULL;
}

static tn_status segment_compile(tn_device *device, const tn_segment *segment,
                                 tn_executable **out_executable)
{
    const tn_host *host = device->host;
    if (check_lost(device) != TN_OK)
        return check_lost(device);
    for (uint32_t i = 0; i < segment->num_steps; i++) {
        tn_status status = check_step(host, step_at(segment, i));
        if (status != TN_OK)
            return status;
    }
    tn_executable *executable = host->alloc(host, sizeof(*executable), 0);
#ifdef FAULT_SEGMENT_MEMORY
    executable->seen = NULL;
#endif
    if (!executable)
        return TN_ERR_MEMORY;
    *executable = (tn_executable){*segment, segment, NULL};
    return prepare_steps(host, executable, out_executable);
}

static void executable_destroy(tn_device *device, tn_executable *executable)
{
    if (executable)
        finish_steps(device->host, executable, executable->segment.num_steps);
#ifndef FAULT_SEGMENT_FREES
    device->host->free(device->host, executable);
#endif
    (void)device, (void)executable;
}

// --- queues ----------------------------------------------------------------------------

static void finish_work(struct queue *queue, struct work *work)
{
    tn_device *device = queue->device;
#ifndef FAULT_QUEUE_REPLAY
    device->host->free(device->host, work->bindings);
#endif
    pthread_mutex_lock(&device->lock);
    if (work->status != TN_OK) {
        queue->failed = work->point;
        queue->status = work->status;
#ifdef FAULT_FAMILY_CPU_FAILURE_QUEUES
        for (int i = 0; i < NUM_QUEUES; i++) { // a failure of all
            device->queues[i].failed = work->point;
            device->queues[i].status = work->status;
        }
#endif
    }
    queue->reached = work->point;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
}

// The lock is held.
static int is_ready(const tn_device *device, const struct work *work)
{
#ifdef FAULT_QUEUE_WAITS
    return 1;
#endif
    for (uint32_t i = 0; i < work->num_waits; i++)
        if (reached_of(device, work->waits[i].queue) < work->waits[i].value)
            return 0;
    return 1;
}

// The status of the work that it waits for, where that counts.
static tn_status status_before(const tn_device *device, const struct work *work)
{
    (void)device, (void)work;
#ifdef FAULT_FAMILY_CPU_FAILURE_WAITS
    for (uint32_t i = 0; i < work->num_waits; i++)
        if (work->waits[i].queue != TN_QUEUE_HOST &&
            device->queues[work->waits[i].queue].failed == work->waits[i].value)
            return device->queues[work->waits[i].queue].status;
#endif
    return TN_OK;
}

static void run_work(tn_device *device, struct work *work)
{
    work->status = status_before(device, work);
#ifdef FAULT_QUEUE_APART
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one_at_a_time);
#endif
    if (work->status == TN_OK)
        work->status = run_segment(device->host, work->executable, work->bindings);
#ifdef FAULT_QUEUE_APART
    pthread_mutex_unlock(&one_at_a_time);
#endif
}

static void *run_queue(void *context)
{
    struct queue *queue = context;
    tn_device *device = queue->device;
    for (;;) {
        pthread_mutex_lock(&device->lock);
        while (queue->reached == queue->submitted && !device->is_ending)
            pthread_cond_wait(&device->changed, &device->lock);
        int has_work = queue->reached < queue->submitted;
        struct work work = queue->ring[(queue->reached + 1) % MAX_QUEUED];
        while (has_work && !is_ready(device, &work))
            pthread_cond_wait(&device->changed, &device->lock);
#ifdef FAULT_QUEUE_ORDER
        if (queue->submitted > queue->reached + 1) { // the next but one goes first
            struct work *other = &queue->ring[(queue->reached + 2) % MAX_QUEUED];
            tn_executable *e = work.executable;
            tn_binding *b = work.bindings;
            work.executable = other->executable;
            work.bindings = other->bindings;
            other->executable = e;
            other->bindings = b;
        }
#endif
        pthread_mutex_unlock(&device->lock);
        if (!has_work)
            return NULL;
#ifdef FAULT_QUEUE_LOST_HANGS
        while (IS_LOST(device)) // what it had to do is never done
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
#endif
        run_work(device, &work);
        finish_work(queue, &work);
    }
}

static tn_binding *copy_bindings(tn_device *device, const tn_submission *s)
{
    uint64_t size = s->num_bindings * sizeof(tn_binding);
    tn_binding *copy = device->host->alloc(device->host, size, 0);
    if (copy && size)
#ifdef FAULT_SEGMENT_RECORDS_BINDINGS
        memcpy(copy, s->bindings, size);
#else
        for (uint64_t i = 0; i < s->num_bindings; i++)
            copy[i] = *tn_submission_binding(s, i);
#endif
#ifdef FAULT_QUEUE_BINDINGS
    for (uint64_t i = 0; copy && i < s->num_bindings; i++)
        copy[i].offset = 0;
#endif
    return copy;
}

static tn_status submit(tn_device *device, const tn_submission *s, uint64_t *out_point)
{
    if (check_lost(device) != TN_OK)
        return check_lost(device);
    struct queue *queue = &device->queues[s->queue];
    tn_binding *bindings = copy_bindings(device, s);
    if (!bindings)
        return TN_ERR_MEMORY;
    struct work work = {.executable = s->executable, .bindings = bindings};
    for (; work.num_waits < s->num_waits && work.num_waits < MAX_WAITS; work.num_waits++)
        work.waits[work.num_waits] = s->waits[work.num_waits];
    pthread_mutex_lock(&device->lock);
#ifdef FAULT_QUEUE_HOST_BLOCKS
    while (!is_ready(device, &work))
        pthread_cond_wait(&device->changed, &device->lock);
#endif
    while (queue->submitted - queue->reached >= MAX_QUEUED - 2)
        pthread_cond_wait(&device->changed, &device->lock);
#ifdef FAULT_QUEUE_AT_ONCE
    uint64_t point = queue->submitted + 1; // somebody else's too
    pthread_mutex_unlock(&device->lock);
    nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
    pthread_mutex_lock(&device->lock);
#else
    uint64_t point = queue->submitted + 1;
#endif
    queue->submitted = work.point = point;
    queue->ring[point % MAX_QUEUED] = work;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    *out_point = point;
#ifdef FAULT_QUEUE_POINTS
    *out_point = (point + 1) / 2;
#endif
    return TN_OK;
}

static tn_status wait_for(tn_device *device, uint32_t index, uint64_t value)
{
    struct queue *queue = &device->queues[index];
    tn_status status = TN_OK;
#ifdef FAULT_QUEUE_DONE
    return TN_OK;
#endif
#ifdef FAULT_QUEUE_POINTS_ZERO
    if (value == 0)
        return device->host->fail(device->host, TN_ERR_INTERNAL, "point 0 is none");
#endif
    pthread_mutex_lock(&device->lock);
#ifdef FAULT_QUEUE_THREADS
    status = device->waiters ? TN_ERR_INTERNAL : TN_OK; // one at a time
#endif
    device->waiters++;
    while (queue->reached < value)
        pthread_cond_wait(&device->changed, &device->lock);
    device->waiters--;
    if (value && queue->failed == value)
        status = queue->status;
#ifdef FAULT_FAMILY_CPU_FAILURE_ONCE
    if (queue->failed == value)
        queue->failed = 0;
#endif
    pthread_mutex_unlock(&device->lock);
    if (IS_LOST(device))
        return check_lost(device);
#ifdef FAULT_FAMILY_CPU_FAILURE
    return TN_OK;
#endif
    return status == TN_OK
               ? TN_OK
               : device->host->fail(device->host, status, "the work of this point failed");
}

// --- buffers ---------------------------------------------------------------------------

static tn_status buffer_create(tn_device *device, uint64_t size, tn_buffer **out_buffer)
{
    const tn_host *host = device->host;
    uint64_t padded = size;
#ifdef FAULT_BUFFER_HUGE
    padded = (size + 63) / 64 * 64 % (UINT64_C(1) << 40); // overflows
#endif
#ifdef FAULT_BUFFER_SIZES
    static unsigned char small[64]; // one for all
#endif
#ifndef FAULT_QUEUE_LOST_CREATE
    if (check_lost(device) != TN_OK)
        return check_lost(device);
#endif
    tn_buffer *buffer = host->alloc(host, sizeof(*buffer), 0);
    void *bytes = buffer ? host->alloc(host, padded, ALIGNMENT) : NULL;
#ifdef FAULT_BUFFER_MEMORY
    buffer->size = size;
#endif
    if (!bytes) {
        host->free(host, buffer);
        return TN_ERR_MEMORY;
    }
#ifdef FAULT_BUFFER_SIZES
    if (size <= sizeof(small)) {
        host->free(host, bytes);
        bytes = small;
    }
#endif
    *buffer = (tn_buffer){.size = size, .bytes = bytes};
    uint64_t used = atomic_fetch_add(&device->used, size) + size, peak = device->peak;
    while (used > peak && !atomic_compare_exchange_weak(&device->peak, &peak, used))
        continue;
    *out_buffer = buffer;
    return TN_OK;
}

static void buffer_destroy(tn_device *device, tn_buffer *buffer)
{
    if (!buffer)
        return;
    if (buffer->is_imported) {
        import_destroy(device->host, buffer);
        return;
    }
    if (buffer->fd) {
        share_destroy(device->host, buffer);
        return;
    }
#ifndef FAULT_BUFFER_INFO
    atomic_fetch_sub(&device->used, buffer->size);
#endif
#ifdef FAULT_BUFFER_SIZES
    if (buffer->size > 64)
#endif
        device->host->free(device->host, buffer->bytes);
#ifdef FAULT_QUEUE_LOST_FREES
    if (IS_LOST(device))
        return;
#endif
#ifndef FAULT_BUFFER_FREES
    device->host->free(device->host, buffer);
#endif
}

static tn_status buffer_import(tn_device *device, const tn_buffer_import *import,
                               tn_buffer **out_buffer)
{
    return import_buffer(device->host, import, out_buffer);
}

static tn_status buffer_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                              const void *data, uint64_t size)
{
    if (check_lost(device) != TN_OK)
        return check_lost(device);
#ifdef FAULT_BUFFER_COPIES
    size = offset % 4 && offset + (size + 3) / 4 * 4 <= buffer->size ? (size + 3) / 4 * 4
                                                                     : size;
#endif
#ifdef FAULT_BUFFER_THREADS
    static unsigned char staging[1 << 17]; // one for all threads
    if (size <= sizeof(staging)) {
        memcpy(staging, data, size);
        nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
        data = staging;
    }
#endif
    if (size)
        memcpy(buffer->bytes + offset, data, size);
    return TN_OK;
}

static tn_status buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset,
                             void *data, uint64_t size)
{
    (void)device;
#ifndef FAULT_QUEUE_LOST_READ
    if (check_lost(device) != TN_OK)
        return check_lost(device);
#endif
    if (size)
        memcpy(data, buffer->bytes + offset, size);
    return TN_OK;
}

static tn_status buffer_read_after(tn_device *device, tn_buffer *buffer, uint64_t offset,
                                   void *data, uint64_t size, tn_point after)
{
#ifdef FAULT_QUEUE_READ_AFTER
    (void)after;
    tn_status status = TN_OK;
#else
    tn_status status = wait_for(device, after.queue, after.value);
#endif
    return status == TN_OK ? buffer_read(device, buffer, offset, data, size) : status;
}

static void *buffer_map(tn_device *device, tn_buffer *buffer)
{
#ifdef FAULT_BUFFER_MAP
    static unsigned char seen[1 << 20]; // how it was, not how it is
    memcpy(seen, buffer->bytes, buffer->size < sizeof(seen) ? buffer->size : sizeof(seen));
    return seen;
#endif
#ifdef FAULT_QUEUE_LOST_MAP
    return buffer->bytes;
#endif
    return IS_LOST(device) ? NULL : buffer->bytes;
}

static tn_status memory_info(tn_device *device, tn_memory_info *out)
{
    tn_memory_info info = {.struct_size = out->struct_size,
                           .used = device->used,
                           .peak = device->peak,
                           .reserved = device->used};
    memcpy(out, &info, out->struct_size < sizeof(info) ? out->struct_size : sizeof(info));
    return TN_OK;
}

// --- devices ---------------------------------------------------------------------------

static tn_status device_count(const tn_host *host, uint32_t *out_count)
{
    (void)host;
    *out_count = 1;
#ifdef FAULT_BACKEND_COUNT
    static uint32_t times;
    *out_count += times++;
#endif
    return TN_OK;
}

static tn_status device_info(const tn_host *host, uint32_t index, tn_device_info *out)
{
    (void)host, (void)index;
    tn_device_info info = {.struct_size = out->struct_size,
                           .flags = TN_DEVICE_HOST_MEMORY | TN_DEVICE_HOST_POINTS |
                                    TN_DEVICE_FUSES | TN_DEVICE_TAKES | TN_DEVICE_ROWS,
                           .name = "interpreter",
                           .driver = "acme 1.0",
                           .features = "f16,f64,i64",
                           .buffer_alignment = ALIGNMENT,
                           .num_queues = NUM_QUEUES,
                           .share_id = {0xac}};
    size_t size = out->struct_size < sizeof(info) ? out->struct_size : sizeof(info);
#ifdef FAULT_BACKEND_INFO
    size = size > 400 ? 400 : size; // features and numbers are left as they are
#endif
#ifdef FAULT_BACKEND_INFO_SIZE
    size = sizeof(info);
#endif
    memcpy(out, &info, size);
    return TN_OK;
}

#ifdef FAULT_BACKEND_OPENS
static int is_open;
#endif

static tn_status start_parts(tn_device *device)
{
    const tn_host *host = device->host;
    void *something = host->alloc(host, 100, 0); // so that there is more than one
#ifdef FAULT_BACKEND_MEMORY
    memset(something, 0, 100);
#endif
    if (!something)
        return TN_ERR_MEMORY;
    host->free(host, something);
#ifdef FAULT_BACKEND_OPENS
    if (is_open)
        return host->fail(host, TN_ERR_DEVICE, "it is open already");
    is_open = 1;
#endif
    if (pthread_mutex_init(&device->lock, NULL) ||
        pthread_cond_init(&device->changed, NULL))
        return host->fail(host, TN_ERR_MEMORY, "no lock for the queues");
    for (int i = 0; i < NUM_QUEUES; i++) {
        device->queues[i].device = device;
        if (pthread_create(&device->queues[i].thread, NULL, run_queue, &device->queues[i]))
            abort(); // no such host is tried
    }
    return TN_OK;
}

static tn_status device_open(const tn_host *host, uint32_t index, tn_device **out_device)
{
    (void)index;
#ifdef FAULT_BACKEND_CONFIG
    const char *threads = host->config(host, "TENON_THREADS");
    if (threads && strtol(threads, NULL, 10) < 1)
        return TN_ERR_ARGUMENT; // and not a word
#endif
    tn_device *device = host->alloc(host, sizeof(*device), 0);
    if (!device)
        return TN_ERR_MEMORY;
    memset(device, 0, sizeof(*device));
    device->host = host;
    tn_status status = start_parts(device);
    if (status != TN_OK) {
        host->free(host, device);
        return status;
    }
    *out_device = device;
    return TN_OK;
}

#ifdef FAULT_BACKEND_THREADS
static void *idle(void *context)
{
    for (;;)
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    return context;
}
#endif

static void device_close(tn_device *device)
{
    if (!device)
        return;
    pthread_mutex_lock(&device->lock);
    device->is_ending = 1;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    for (int i = 0; i < NUM_QUEUES; i++)
        pthread_join(device->queues[i].thread, NULL);
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->lock);
#ifdef FAULT_BACKEND_OPENS
    is_open = 0;
#endif
#ifdef FAULT_BACKEND_FREES
    (void)device->host->alloc(device->host, 10, 0);
#endif
#ifdef FAULT_BACKEND_THREADS
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
#endif
    device->host->free(device->host, device);
}

// --- the table -------------------------------------------------------------------------

#ifdef PACKINGS
#include "backend_packings.h"
#else
#define PACKING_SLOTS
static const void *query_packings(const char *id)
{
    (void)id;
    return NULL;
}
#endif

#ifdef FAULT_BACKEND_TABLE
static const char *const families[] = {TN_FAMILY_EXPR, "cpu.c", NULL};
#else
static const char *const families[] = {FAMILIES};
#endif

static const tn_backend backend = {
    .struct_size = sizeof(backend),
    .name = "cpu-acme", // what faults.py asks for: --devices "cpu*"
    .families = families,
    .device_count = device_count,
    .device_info = device_info,
    .device_open = device_open,
    .device_close = device_close,
    .step_check = step_check,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .buffer_write = buffer_write,
    .buffer_read = buffer_read,
    .buffer_map = buffer_map,
    .segment_compile = segment_compile,
    .executable_destroy = executable_destroy,
    .submit = submit,
    .wait = wait_for,
    .memory_info = memory_info,
    .buffer_import = buffer_import,
    .buffer_export_fd = buffer_export_fd,
#ifndef FAULT_SHARE_FD_SLOT
    .buffer_import_fd = buffer_import_fd,
#endif
    .buffer_copy = buffer_copy,
    .buffer_read_after = buffer_read_after,
    .buffer_export = buffer_export,
#ifndef FAULT_QUEUE_HOST_SLOT
    .signal = signal_host,
#endif
    PACKING_SLOTS};

static tn_status lose(tn_device *device)
{
    atomic_store(&device->is_lost, 1);
#ifdef FAULT_QUEUE_LOST_OTHERS
    atomic_store(&one_is_lost, 1);
#endif
    return TN_OK;
}

static const tn_device_loss device_loss = {
    .struct_size = sizeof(device_loss),
    .lose = lose,
};

static const void *query(const char *id)
{
    if (strcmp(id, TN_IFACE_DEVICE_LOSS) == 0)
        return &device_loss;
    return strcmp(id, TN_IFACE_BACKEND) == 0 ? &backend : query_packings(id);
}

TN_PLUGIN("com.acme.backend", "1.0.0", "Acme", .query = query);
