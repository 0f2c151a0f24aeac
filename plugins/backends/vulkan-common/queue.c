// SPDX-License-Identifier: MIT
// Submitting and waiting: one vkQueueSubmit a submission; points are values of a timeline
// semaphore.
#include "executable.h"

// The recording that takes the least work: one for these very buffers, an idle one, a new
// one, or the one submitted longest ago, which is waited for.
static tn_status pick_recording(tn_device *device, tn_executable *executable,
                                const tn_binding *bindings, struct vk_recording **out)
{
    for (uint32_t i = 0; i < executable->num_recordings; i++) {
        if (vk_recording_is_bound_to(&executable->recordings[i], bindings,
                                     executable->num_slots)) {
            *out = &executable->recordings[i];
            return TN_OK;
        }
    }
    uint64_t reached = 0;
    VkResult result =
        device->vk->GetSemaphoreCounterValue(device->handle, device->timeline, &reached);
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkGetSemaphoreCounterValue");
    struct vk_recording *oldest = NULL;
    for (uint32_t i = 0; i < executable->num_recordings; i++)
        if (!oldest || executable->recordings[i].point < oldest->point)
            oldest = &executable->recordings[i];
    if (oldest && oldest->point <= reached) {
        *out = oldest;
        return TN_OK;
    }
    if (executable->num_recordings < VK_MAX_RECORDINGS) {
        *out = &executable->recordings[executable->num_recordings];
        tn_status status = vk_recording_create(device, executable, *out);
        executable->num_recordings += status == TN_OK;
        return status;
    }
    *out = oldest;
    return vk_wait(device, oldest->point);
}

static VkResult submit_commands(tn_device *device, VkCommandBuffer commands, uint64_t point)
{
    const VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &point};
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &timeline,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &device->timeline};
    pthread_mutex_lock(&device->queue_lock);
    VkResult result = device->vk->QueueSubmit(device->queue, 1, &info, VK_NULL_HANDLE);
    pthread_mutex_unlock(&device->queue_lock);
    return result;
}

tn_status vk_submit(tn_device *device, const tn_submission *submission, uint64_t *out_point)
{
    tn_executable *executable = submission->executable;
    struct vk_recording *recording = NULL;
    tn_status status = vk_check_lost(device);
    if (status == TN_OK)
        status = pick_recording(device, executable, submission->bindings, &recording);
    if (status == TN_OK)
        status = vk_recording_update(device, executable, recording, submission->bindings);
    if (status != TN_OK)
        return status;
    VkResult result = submit_commands(device, recording->commands, device->point + 1);
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkQueueSubmit");
    recording->point = ++device->point;
    *out_point = recording->point;
    if (!recording->queries)
        return TN_OK;
    // Times are read as soon as they are there; a traced run is not an overlapped one.
    status = vk_wait(device, recording->point);
    if (status == TN_OK)
        vk_trace_recording(device, executable, recording);
    return status;
}

tn_status vk_wait(tn_device *device, uint64_t point)
{
    bool is_known = atomic_load(&device->lost);
    VkResult result = device->vk->WaitSemaphores(
        device->handle,
        &(VkSemaphoreWaitInfo){.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                               .semaphoreCount = 1,
                               .pSemaphores = &device->timeline,
                               .pValues = &point},
        UINT64_MAX);
    // Whoever waited gives the memory back next, so the work must be over: out of memory
    // for a wait, all of the queue is waited for.
    if (result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST) {
        pthread_mutex_lock(&device->queue_lock);
        result = device->vk->DeviceWaitIdle(device->handle);
        pthread_mutex_unlock(&device->queue_lock);
    }
    if (result != VK_SUCCESS && !is_known)
        return vk_fail(device, result, "vkWaitSemaphores");
    return vk_check_lost(device);
}
