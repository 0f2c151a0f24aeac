// SPDX-License-Identifier: MIT
// A compiled segment: its plan, and recordings of the plan as command buffers.
#ifndef VULKAN_SEGMENT_EXECUTABLE_H
#define VULKAN_SEGMENT_EXECUTABLE_H

#include "../dispatch/plan.h"

// The memory bound to a slot: a block, by its serial, and an offset. To descriptors a new
// buffer at the position of an old one is the same. Zero: nothing is bound.
struct vk_bound {
    uint64_t block;
    uint64_t offset;
};

// A command buffer with its descriptor sets, for one choice of buffers. The sets may not
// change while the command buffer is pending, so an executable has several recordings. A
// submission with new buffers takes an idle recording and rewrites the descriptors that
// differ.
struct vk_recording {
    const struct vk_plan *plan; // of the executable
    VkDescriptorPool pool;
    VkDescriptorSet *sets; // as the plan numbers them
    VkCommandBuffer commands;
    VkQueryPool queries;    // timestamps, two for each dispatch; only with a trace
    struct vk_bound *bound; // memory that the sets point to; one a slot
    tn_buffer *counters;    // of the plan; NULL: none
    uint32_t queue;         // of its last submission
    bool written;           // `bound` and `sets` are valid
    bool recorded;          // `commands` is valid
    uint64_t point;         // of its last submission
    uint32_t version;       // of the plan when it was recorded
    uint64_t used_at;       // the executable's num_uses at its last submission
};
#define VK_KEPT_RECORDINGS 4 // made before the least recently used one is rewritten
#define VK_MAX_RECORDINGS 16 // limit: all may be pending at the same time

struct tn_executable {
    tn_segment segment; // the steps and slots it points to outlive the executable
    struct vk_plan plan;
    tn_buffer *constants; // of the plan; NULL: none
    uint32_t num_slots;
    uint32_t num_recordings;

    // Guards num_recordings and the fields below. Never held while waiting for the device.
    pthread_mutex_t lock;
    struct vk_bound *wanted; // buffers of the submission that is being prepared; one a slot
    VkCommandPool pool;      // of all recordings
    struct vk_recording recordings[VK_MAX_RECORDINGS];
    uint64_t num_uses;
    uint32_t version; // of the plan: times that its dispatches changed

    // Held over a traced run, until its timestamps are read, and over a measured one.
    pthread_mutex_t trace_lock;
    atomic_bool is_measured; // some of its dispatches have still to be measured
};

// record.c. The executable's lock is held.
tn_status vk_recording_create(tn_device *device, tn_executable *executable,
                              struct vk_recording *recording);
// Makes a recording ready for `submission`, whose buffers executable->wanted describes:
// updates its sets and records its commands as needed. The recording is idle, or bound to
// these buffers already.
tn_status vk_recording_update(tn_device *device, struct vk_recording *recording,
                              const tn_submission *submission);
// Records a plan's dispatches, with the barriers between them, into the recording's
// commands. Its sets are those of the plan, or of a plan that differs in pipelines and
// pushed words.
void vk_record_dispatches(tn_device *device, const struct vk_plan *plan,
                          const struct vk_recording *recording);
// Records a recording's dispatches behind other recordings', into commands of a queue: for
// vk_held. Its plan does not change.
void vk_record_beside(tn_device *device, VkCommandBuffer commands, const void *recording);
// The barrier between two dispatches of which one waits for the other.
void vk_record_barrier(tn_device *device, VkCommandBuffer commands);
void vk_recording_destroy(tn_device *device, const tn_executable *executable,
                          struct vk_recording *recording);

// Whether the recording's sets point to the buffers in executable->wanted.
bool vk_recording_is_bound(const tn_executable *executable,
                           const struct vk_recording *recording);

// Whether dispatches are timed for the trace.
static inline bool vk_is_traced(const tn_device *device, const tn_executable *executable)
{
    return device->trace && device->facts.timestamps && executable->plan.num_dispatches > 0;
}

// trace.c: reports the times of a finished submission.
void vk_trace_recording(tn_device *device, const tn_executable *executable,
                        const struct vk_recording *recording);

#endif // VULKAN_SEGMENT_EXECUTABLE_H
