// SPDX-License-Identifier: MIT
// A compiled segment: its dispatches, and recordings of them.
#ifndef VULKAN_COMMON_EXECUTABLE_H
#define VULKAN_COMMON_EXECUTABLE_H

#include "plan.h"

// A buffer bound to a slot. Not by its address, which a later buffer may have.
struct vk_bound {
    uint64_t serial;
    uint64_t offset;
};

// A command buffer with its descriptor sets, for one choice of buffers. While it is pending
// its sets may not change, so there are a few: a replay with other buffers takes an idle
// one and rewrites what differs.
struct vk_recording {
    VkDescriptorPool pool;
    VkDescriptorSet *sets; // one a dispatch
    VkCommandBuffer commands;
    VkQueryPool queries;    // two a dispatch, when a trace is written
    struct vk_bound *bound; // what the sets point to; one a slot
    uint64_t point;         // of its last submission
    bool written;           // bindings and sets are valid
    bool recorded;
};
#define VK_MAX_RECORDINGS 4

struct tn_executable {
    tn_segment segment; // what it points to outlives the executable
    struct vk_plan plan;
    tn_buffer *constants; // NULL: none
    struct vk_recording recordings[VK_MAX_RECORDINGS];
    uint32_t num_recordings;
    uint32_t num_slots;
};

static inline const tn_step *segment_step(const tn_segment *segment, uint32_t index)
{
    return (const tn_step *)((const char *)segment->steps +
                             (uint64_t)index * segment->step_size);
}

// record.c: makes `recording` point to `bindings` and be ready to submit.
tn_status vk_recording_create(tn_device *device, const tn_executable *executable,
                              struct vk_recording *recording);
tn_status vk_recording_update(tn_device *device, const tn_executable *executable,
                              struct vk_recording *recording, const tn_binding *bindings);
void vk_recording_destroy(tn_device *device, struct vk_recording *recording);

// Whether its sets point to these very buffers.
bool vk_recording_is_bound_to(const struct vk_recording *recording,
                              const tn_binding *bindings, uint32_t num_slots);

// trace.c: reports the times of a finished submission.
void vk_trace_recording(tn_device *device, const tn_executable *executable,
                        const struct vk_recording *recording);

#endif // VULKAN_COMMON_EXECUTABLE_H
