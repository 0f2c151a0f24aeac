// SPDX-License-Identifier: MIT
// Reports GPU timestamps to the host's trace.
#include "executable.h"

#include <stdlib.h>

// Converts device time to host time by taking the end of the last dispatch as now: the
// caller has just waited for that dispatch.
void vk_trace_recording(tn_device *device, const tn_executable *executable,
                        const struct vk_recording *recording)
{
    const struct vk_plan *plan = &executable->plan;
    uint64_t end_ns = vk_now_ns();
    size_t size = 2 * plan->num_dispatches * sizeof(uint64_t);
    uint64_t *ticks = malloc(size);
    VkResult result = VK_ERROR_OUT_OF_HOST_MEMORY;
    if (ticks)
        result = device->vk->GetQueryPoolResults(
            device->handle, recording->queries, 0, 2 * plan->num_dispatches, size, ticks,
            sizeof(ticks[0]), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    if (result == VK_ERROR_DEVICE_LOST)
        vk_lose(device); // the next call reports it
    if (result != VK_SUCCESS) {
        free(ticks);
        return;
    }
    double period = device->facts.properties.limits.timestampPeriod;
    uint64_t last = ticks[2 * plan->num_dispatches - 1];
    for (uint32_t i = 0; i < plan->num_dispatches; i++) {
        const tn_step *step =
            tn_segment_step(&executable->segment, plan->dispatches[i].step);
        double before_end = (double)(last - ticks[2 * i]) * period;
        double duration = (double)(ticks[2 * i + 1] - ticks[2 * i]) * period;
        device->trace->event(
            device->host,
            &(tn_trace_event){.struct_size = sizeof(tn_trace_event),
                              .name = plan_step_name(step),
                              .detail = step->kernel ? step->kernel->name : "program",
                              .track = device->track,
                              .begin_ns = end_ns - (uint64_t)before_end,
                              .duration_ns = (uint64_t)duration});
    }
    free(ticks);
}
