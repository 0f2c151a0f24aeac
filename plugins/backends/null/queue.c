// SPDX-License-Identifier: MIT
// The queue. submit() reaches its timeline point before it returns. Concurrent submissions
// share only `reached`, which is atomic, so there is no lock. There is one queue, hence no
// points of other queues to wait for. A backend with asynchronous queues reports num_queues
// in device_info and starts work after submission->waits.
#include "null.h"

#include <inttypes.h>

tn_status null_submit(tn_device *device, const tn_submission *submission,
                      uint64_t *out_point)
{
    const tn_host *host = device->host;
    if (null_check_lost(device) != TN_OK)
        return TN_ERR_DEVICE;
    if (submission->num_bindings != submission->executable->num_slots)
        return host->fail(host, TN_ERR_INTERNAL,
                          "submission binds %" PRIu64 " buffers, its segment has %" PRIu32
                          " slots",
                          submission->num_bindings, submission->executable->num_slots);
    *out_point = atomic_fetch_add(&device->reached, 1) + 1;
    return TN_OK;
}

tn_status null_wait(tn_device *device, uint32_t queue, uint64_t value)
{
    const tn_host *host = device->host;
    uint64_t reached = device->reached;
    (void)queue; // 0: the device has one queue
    if (value <= reached)
        return null_check_lost(device);
    return host->fail(host, TN_ERR_INTERNAL,
                      "waiting for point %" PRIu64 ", submitted up to %" PRIu64, value,
                      reached);
}
