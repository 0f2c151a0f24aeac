// SPDX-License-Identifier: MIT
// Segments. Other backends generate code or record commands here; this one stores the
// number of slots, which submit() checks.
#include "null.h"

int32_t null_step_check(tn_device *device, const tn_step *step, const char **out_reason)
{
    (void)device, (void)step, (void)out_reason;
    return 1; // every step is accepted, as none is run
}

uint32_t null_fusion_limit(tn_device *device)
{
    (void)device;
    return TN_EXPR_MAX_INSNS;
}

tn_status null_segment_compile(tn_device *device, const tn_segment *segment,
                               tn_executable **out_executable)
{
    const tn_host *host = device->host;
    if (null_check_lost(device) != TN_OK)
        return TN_ERR_DEVICE;
    tn_executable *executable = host->alloc(host, sizeof(*executable), 0);
    if (!executable)
        return TN_ERR_MEMORY;
    *executable = (tn_executable){.num_slots = segment->num_slots};
    *out_executable = executable;
    return TN_OK;
}

void null_executable_destroy(tn_device *device, tn_executable *executable)
{
    device->host->free(device->host, executable);
}
