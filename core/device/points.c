// SPDX-License-Identifier: MIT
// Waits for timeline points, and keeps the highest point known to be reached in each queue.
#include <stdio.h>
#include "../base/fail.h"
#include "../base/thread.h"
#include "../plugin/load/plugins.h"
#include "mover.h"
#include "outcome.h"

#define MOST_BEHIND 16 // submissions that are waited for as one moment

uint32_t device_queue_of_thread(const struct device *device)
{
    return (thread_number() - 1) % device->num_queues;
}

void device_note_reached(struct device *device, tn_point point)
{
    counter_raise(&device->queues[point.queue].reached, point.value);
}

void device_note_long(struct device *device, tn_point point)
{
    counter_raise(&device->queues[point.queue].last_long, point.value);
}

bool storage_ends_soon(const struct storage *storage)
{
    const struct device *device = storage->device;
    for (uint32_t i = 0; i < device->num_timelines; i++) {
        const struct device_queue *queue = &device->queues[i];
        uint64_t use = atomic_load_explicit(&storage->last_use[i], memory_order_acquire);
        uint64_t reached = atomic_load_explicit(&queue->reached, memory_order_acquire);
        if (use <= reached)
            continue;
        if (use - reached > MOST_BEHIND || device_is_host_timeline(device, i) ||
            atomic_load_explicit(&queue->last_long, memory_order_acquire) > reached)
            return false;
    }
    return true;
}

tn_status device_failed(struct device *device, const char *slot, tn_status status)
{
    status = fail_from(status, "%s of %s", slot, plugin_id(device->plugin));
    if (status == TN_ERR_DEVICE)
        atomic_store_explicit(&device->lost, true, memory_order_release);
    fail_prefix("device %s: ", device->name);
    return status;
}

tn_status device_wait_status(struct device *device, tn_point point)
{
    if (device_is_host_timeline(device, point.queue)) {
        mover_wait(device, point.value);
        return TN_OK;
    }
    fail_clear();
    uint64_t begin = trace_begin(device->runtime->trace);
    tn_status status = device->ops->wait(device->handle, point.queue, point.value);
    trace_end(device->runtime->trace, begin, "wait",
              "\"device\":\"%s\",\"queue\":%u,\"point\":%llu", device->name, point.queue,
              (unsigned long long)point.value);
    if (status != TN_OK)
        status = device_failed(device, "wait", status);
    device_note_reached(device,
                        point); // after a failure, too, no work up to the point runs
    device_sweep(device, point.queue);
    outcomes_settle(device, point);
    return status;
}

tn_status device_wait(struct device *device, tn_point point)
{
    bool is_reached = device_has_reached(device, point) &&
                      !atomic_load_explicit(&device->lost, memory_order_acquire);
    tn_status status = is_reached ? TN_OK : device_wait_status(device, point);
    return status == TN_ERR_DEVICE ? status : TN_OK;
}

void device_drain(struct device *device, tn_point point)
{
    char message[FAIL_TEXT_SIZE]; // this thread's pending error: waiting may overwrite it
    if (device_has_reached(device, point))
        return;
    fail_save(message);
    device_wait(device, point);
    fail_restore(message);
}
