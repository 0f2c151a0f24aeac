// SPDX-License-Identifier: MIT
// The state of the small backend of backend.c: its device, whose loss it tells, and the
// points of its timelines.
#ifndef BACKEND_DEVICE_H
#define BACKEND_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <tenon/plugin.h>
#include "backend_run.h"

enum { ALIGNMENT = 64, MAX_QUEUED = 256, NUM_QUEUES = 2, MAX_WAITS = 4 };

struct work {
    tn_executable *executable;
    tn_binding *bindings; // owned
    tn_point waits[MAX_WAITS];
    uint32_t num_waits;
    uint64_t point;
    tn_status status;
};

struct queue {
    tn_device *device;
    pthread_t thread;
    struct work ring[MAX_QUEUED];
    uint64_t submitted, reached; // points
    uint64_t failed;             // the last point that did
    tn_status status;            // of that one
};

struct tn_device {
    const tn_host *host;
    pthread_mutex_t lock; // of all queues
    pthread_cond_t changed;
    struct queue queues[NUM_QUEUES];
    uint64_t signalled; // by the host
    int is_ending;
    int waiters;
    _Atomic uint64_t used, peak;
    atomic_int is_lost;
};

#ifdef FAULT_QUEUE_LOST_OTHERS
static atomic_int one_is_lost;
#define IS_LOST(device) ((void)(device), atomic_load(&one_is_lost))
#else
#define IS_LOST(device) atomic_load(&(device)->is_lost)
#endif

static tn_status check_lost(tn_device *device)
{
    const tn_host *host = device->host;
    if (!IS_LOST(device))
        return TN_OK;
#ifdef FAULT_QUEUE_LOST
    return TN_OK;
#elif defined(FAULT_QUEUE_LOST_STATUS)
    return host->fail(host, TN_ERR_INTERNAL, "the device is lost");
#elif defined(FAULT_QUEUE_LOST_SILENT)
    return TN_ERR_DEVICE;
#endif
    return host->fail(host, TN_ERR_DEVICE, "the device is lost: open another one");
}

// --- the host's timeline ---------------------------------------------------------------

// The lock is held.
static uint64_t reached_of(const tn_device *device, uint32_t queue)
{
    if (queue != TN_QUEUE_HOST)
        return device->queues[queue].reached;
#ifdef FAULT_QUEUE_HOST
    return UINT64_MAX;
#endif
    return device->signalled;
}

#ifndef FAULT_QUEUE_HOST_SLOT
static tn_status signal_host(tn_device *device, uint64_t value)
{
    pthread_mutex_lock(&device->lock);
    device->signalled = value;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
#ifdef FAULT_QUEUE_LOST_HOST
    return check_lost(device);
#endif
    return TN_OK;
}
#endif

#endif // BACKEND_DEVICE_H
