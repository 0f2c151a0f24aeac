// SPDX-License-Identifier: MIT
// GPU timestamps to the host's trace.
#include "executable.h"

#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

// The device's clock is tied to ours by the end of the last dispatch, which was just now.
void vk_trace_recording(tn_device *device, const tn_executable *executable,
                        const struct vk_recording *recording)
{
    const struct vk_plan *plan = &executable->plan;
    uint64_t end_ns = now_ns();
    size_t size = 2 * plan->num_dispatches * sizeof(uint64_t);
    uint64_t *ticks = malloc(size);
    VkResult result = VK_ERROR_OUT_OF_HOST_MEMORY;
    if (ticks)
        result = device->vk->GetQueryPoolResults(
            device->handle, recording->queries, 0, 2 * plan->num_dispatches, size, ticks,
            sizeof(ticks[0]), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    if (result == VK_ERROR_DEVICE_LOST)
        vk_lose(device); // the next call says so
    if (result != VK_SUCCESS) {
        free(ticks);
        return;
    }
    double period = device->facts.properties.limits.timestampPeriod;
    uint64_t last = ticks[2 * plan->num_dispatches - 1];
    for (uint32_t i = 0; i < plan->num_dispatches; i++) {
        const tn_step *step = segment_step(&executable->segment, plan->dispatches[i].step);
        double before_end = (double)(last - ticks[2 * i]) * period;
        double duration = (double)(ticks[2 * i + 1] - ticks[2 * i]) * period;
        const char *name = step->label;
        if (!name)
            name = step->primitive ? step->primitive->id : "program";
        device->trace->event(
            device->host,
            &(tn_trace_event){.struct_size = sizeof(tn_trace_event),
                              .name = name,
                              .detail = step->kernel ? step->kernel->name : "program",
                              .track = device->track,
                              .begin_ns = end_ns - (uint64_t)before_end,
                              .duration_ns = (uint64_t)duration});
    }
    free(ticks);
}
