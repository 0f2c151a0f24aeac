// SPDX-License-Identifier: MIT
// The queue: a submission's point is reached before the call returns.
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

tn_status null_wait(tn_device *device, uint64_t point)
{
    const tn_host *host = device->host;
    uint64_t reached = device->reached;
    if (point <= reached)
        return null_check_lost(device);
    return host->fail(host, TN_ERR_INTERNAL,
                      "waiting for point %" PRIu64 ", submitted up to %" PRIu64, point,
                      reached);
}
