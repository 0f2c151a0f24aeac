// SPDX-License-Identifier: MIT
// Queues: one vkQueueSubmit for each submission, and waiting. The values of timeline points
// are those of the queue's timeline semaphore.
#include "device.h"

// How long a wait polls the semaphore before sleeping in the driver, from which waking
// takes 30 us and more: with 1 ms, a language model's steps of 2.6 ms took 2.7 to 3.1 on an
// H200. Not with a software driver, which needs the processor for the work.
#define POLL_NS 20000000

tn_status vk_timeline_create(tn_device *device, VkSemaphore *out)
{
    VkResult result = device->vk->CreateSemaphore(
        device->handle,
        &(VkSemaphoreCreateInfo){
            .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
            .pNext =
                &(VkSemaphoreTypeCreateInfo){
                    .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                    .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE},
        },
        NULL, out);
    if (result != VK_SUCCESS)
        *out = VK_NULL_HANDLE;
    return vk_check(device, result, "vkCreateSemaphore");
}

tn_status vk_pool_create(tn_device *device, VkCommandPool *out)
{
    VkResult result = device->vk->CreateCommandPool(
        device->handle,
        &(VkCommandPoolCreateInfo){.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                   .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                   .queueFamilyIndex = device->facts.queue_family},
        NULL, out);
    if (result != VK_SUCCESS) // the handle is undefined then
        *out = VK_NULL_HANDLE;
    return vk_check(device, result, "vkCreateCommandPool");
}

tn_status vk_commands_create(tn_device *device, VkCommandPool pool, VkCommandBuffer *out)
{
    VkResult result = device->vk->AllocateCommandBuffers(
        device->handle,
        &(VkCommandBufferAllocateInfo){.sType =
                                           VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                       .commandPool = pool,
                                       .commandBufferCount = 1},
        out);
    if (result != VK_SUCCESS)
        *out = NULL;
    return vk_check(device, result, "vkAllocateCommandBuffers");
}

// Work that was submitted before the host wrote what it waits for: submitting made visible
// only what the host wrote before. A barrier of its own, because it takes an NVIDIA H200
// 0.9 us of each submission that has it.
static tn_status record_host_barrier(tn_device *device)
{
    const struct vk_device_api *vk = device->vk;
    VkCommandBuffer commands = device->host_commands;
    VkResult result = vk->BeginCommandBuffer(
        commands,
        &(VkCommandBufferBeginInfo){.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                    .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT});
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkBeginCommandBuffer");
    vk->CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_HOST_BIT,
                           VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                           &(VkMemoryBarrier){.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                              .srcAccessMask = VK_ACCESS_HOST_WRITE_BIT,
                                              .dstAccessMask = VK_ACCESS_SHADER_READ_BIT |
                                                               VK_ACCESS_SHADER_WRITE_BIT},
                           0, NULL, 0, NULL);
    return vk_check(device, vk->EndCommandBuffer(commands), "vkEndCommandBuffer");
}

tn_status vk_host_init(tn_device *device)
{
    tn_status status = vk_timeline_create(device, &device->host_timeline);
    if (status != TN_OK || !vk_has_host_points(&device->facts))
        return status;
    status = vk_pool_create(device, &device->host_pool);
    if (status == TN_OK)
        status = vk_commands_create(device, device->host_pool, &device->host_commands);
    return status == TN_OK ? record_host_barrier(device) : status;
}

void vk_host_finish(tn_device *device)
{
    if (device->host_pool)
        device->vk->DestroyCommandPool(device->handle, device->host_pool, NULL);
    if (device->host_timeline)
        device->vk->DestroySemaphore(device->handle, device->host_timeline, NULL);
}

tn_status vk_queue_init(tn_device *device, uint32_t index)
{
    struct vk_queue *queue = &device->queues[index];
    device->vk->GetDeviceQueue(device->handle, device->facts.queue_family, index,
                               &queue->handle);
    return vk_timeline_create(device, &queue->timeline);
}

void vk_queue_finish(tn_device *device, uint32_t index)
{
    if (device->queues[index].timeline)
        device->vk->DestroySemaphore(device->handle, device->queues[index].timeline, NULL);
}

// --- submitting ------------------------------------------------------------------------

// The semaphores to wait for: the last point of each queue, and of the host.
struct waits {
    VkSemaphore semaphores[VK_MAX_QUEUES + 1];
    uint64_t values[VK_MAX_QUEUES + 1];
    VkPipelineStageFlags stages[VK_MAX_QUEUES + 1];
    uint32_t count;
};

static void add_wait(struct waits *waits, VkSemaphore semaphore, uint64_t value)
{
    if (value == 0)
        return;
    waits->semaphores[waits->count] = semaphore;
    waits->values[waits->count] = value;
    waits->stages[waits->count++] = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
}

// True: the host is waited for.
static bool collect_waits(tn_device *device, const tn_point *points, uint32_t count,
                          struct waits *out)
{
    uint64_t last[VK_MAX_QUEUES] = {0}, host = 0;
    out->count = 0;
    if (count == 0)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t *value = points[i].queue == TN_QUEUE_HOST ? &host : &last[points[i].queue];
        *value = points[i].value > *value ? points[i].value : *value;
    }
    for (uint32_t i = 0; i < device->facts.num_queues; i++)
        add_wait(out, device->queues[i].timeline, last[i]);
    add_wait(out, device->host_timeline, host);
    if (host > 0)
        atomic_store(&device->waits_for_host, true);
    return host > 0;
}

tn_status vk_queue_submit(tn_device *device, uint32_t index, VkCommandBuffer commands,
                          const tn_point *points, uint32_t num_points, uint64_t *out_value)
{
    struct vk_queue *queue = &device->queues[index];
    struct waits waits;
    const VkCommandBuffer both[] = {device->host_commands, commands};
    const uint32_t first = collect_waits(device, points, num_points, &waits) ? 0 : 1;
    uint64_t value;
    const VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = waits.count,
        .pWaitSemaphoreValues = waits.values,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value};
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &timeline,
                               .waitSemaphoreCount = waits.count,
                               .pWaitSemaphores = waits.semaphores,
                               .pWaitDstStageMask = waits.stages,
                               .commandBufferCount = 2 - first,
                               .pCommandBuffers = both + first,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &queue->timeline};
    pthread_mutex_lock(&queue->lock);
    value = atomic_load(&queue->point) + 1;
    VkResult result = device->vk->QueueSubmit(queue->handle, 1, &info, VK_NULL_HANDLE);
    if (result == VK_SUCCESS)
        atomic_store(&queue->point, value);
    pthread_mutex_unlock(&queue->lock);
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkQueueSubmit");
    *out_value = value;
    return TN_OK;
}

// --- waiting ---------------------------------------------------------------------------

static void note_reached(struct vk_queue *queue, uint64_t value)
{
    uint64_t known = atomic_load(&queue->reached);
    while (known < value && !atomic_compare_exchange_weak(&queue->reached, &known, value)) {
    }
}

// Reads the semaphore. A lost device's counter may be anything, so a value beyond the last
// submission is ignored; + 1, because `point` may not have been stored yet.
static VkResult ask_reached(tn_device *device, struct vk_queue *queue)
{
    uint64_t value = 0;
    VkResult result =
        device->vk->GetSemaphoreCounterValue(device->handle, queue->timeline, &value);
    if (result == VK_SUCCESS && value <= atomic_load(&queue->point) + 1)
        note_reached(queue, value);
    return result;
}

bool vk_queue_has_reached(tn_device *device, uint32_t index, uint64_t value)
{
    struct vk_queue *queue = &device->queues[index];
    if (atomic_load(&queue->reached) < value)
        ask_reached(device, queue);
    return atomic_load(&queue->reached) >= value;
}

// Polls for POLL_NS at most. True: the point is reached.
static bool poll(tn_device *device, struct vk_queue *queue, uint64_t value)
{
    uint64_t end_ns = vk_now_ns() + POLL_NS;
    do {
        if (ask_reached(device, queue) != VK_SUCCESS)
            return false; // the wait reports the error
        if (atomic_load(&queue->reached) >= value)
            return true;
    } while (vk_now_ns() < end_ns);
    return false;
}

VkResult vk_wait_idle(tn_device *device)
{
    for (uint32_t i = 0; i < vk_num_queues(device); i++)
        pthread_mutex_lock(&device->queues[i].lock);
    VkResult result = device->vk->DeviceWaitIdle(device->handle);
    for (uint32_t i = 0; i < vk_num_queues(device); i++)
        pthread_mutex_unlock(&device->queues[i].lock);
    return result;
}

static VkResult wait_for(tn_device *device, struct vk_queue *queue, uint64_t value)
{
    if (!device->is_software && poll(device, queue, value))
        return VK_SUCCESS;
    VkResult result = device->vk->WaitSemaphores(
        device->handle,
        &(VkSemaphoreWaitInfo){.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                               .semaphoreCount = 1,
                               .pSemaphores = &queue->timeline,
                               .pValues = &value},
        UINT64_MAX);
    // The caller frees the memory next, so the work must be over: if the wait fails, as it
    // does when out of memory, wait for the whole device.
    if (result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST)
        result = vk_wait_idle(device);
    if (result == VK_SUCCESS)
        note_reached(queue, value);
    return result;
}

// A device that the driver gave up runs nothing that could wait, so its error is none here.
tn_status vk_signal(tn_device *device, uint64_t value)
{
    VkResult result = device->vk->SignalSemaphore(
        device->handle,
        &(VkSemaphoreSignalInfo){.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                 .semaphore = device->host_timeline,
                                 .value = value});
    return result == VK_ERROR_DEVICE_LOST ? TN_OK
                                          : vk_check(device, result, "vkSignalSemaphore");
}

tn_status vk_wait(tn_device *device, uint32_t index, uint64_t value)
{
    struct vk_queue *queue = &device->queues[index];
    bool was_lost = atomic_load(&device->lost);
    if (atomic_load(&queue->reached) < value) {
        VkResult result = wait_for(device, queue, value);
        if (result != VK_SUCCESS && !was_lost)
            return vk_fail(device, result, "vkWaitSemaphores");
    }
    return vk_check_lost(device);
}
