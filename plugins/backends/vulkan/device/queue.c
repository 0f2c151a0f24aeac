// SPDX-License-Identifier: MIT
// Queues: submitting, and waiting. The values of timeline points are those of the queue's
// timeline semaphore. Small work for a queue that is busy is handed over together, by one
// vkQueueSubmit that signals the last of the points.
#include "device.h"

// How long a wait polls the semaphore before sleeping in the driver, from which waking
// takes 30 us and more: with 1 ms, a language model's steps of 2.6 ms took 2.7 to 3.1 on an
// H200. Not with a software driver, which needs the processor for the work.
#define POLL_NS 20000000

// Pending submissions of a queue from which on further ones may be held back.
#define BUSY 2

tn_status vk_timeline_create(tn_device *device, VkSemaphore *out)
{
    const VkExportSemaphoreCreateInfo export = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkResult result = device->vk->CreateSemaphore(
        device->handle,
        &(VkSemaphoreCreateInfo){
            .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
            .pNext =
                &(VkSemaphoreTypeCreateInfo){
                    .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                    .pNext =
                        device->exports && device->facts.share_timelines ? &export : NULL,
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

// Records a barrier for work that was submitted before the host wrote what it waits for: a
// submission makes only earlier writes visible. In commands of its own, because it takes an
// NVIDIA H200 0.9 us of each submission that has it.
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
    if (device->queues[index].joined.pool)
        device->vk->DestroyCommandPool(device->handle, device->queues[index].joined.pool,
                                       NULL);
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

// Fills *out. True: the host is waited for.
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

static VkResult ask_reached(tn_device *device, struct vk_queue *queue);

static void note_given(struct vk_queue *queue, uint64_t value)
{
    atomic_store(&queue->given, value);
    queue->signalled[queue->num_signalled++ % VK_NUM_SIGNALLED] = value;
}

// Commands for held work, which are not pending; VK_NULL_HANDLE: there are none.
static VkCommandBuffer take_joined(tn_device *device, struct vk_queue *queue)
{
    struct vk_joined *joined = &queue->joined;
    uint32_t i = joined->next;
    if (!joined->pool && vk_pool_create(device, &joined->pool) != TN_OK)
        return VK_NULL_HANDLE;
    if (!joined->commands[i] &&
        vk_commands_create(device, joined->pool, &joined->commands[i]) != TN_OK)
        return VK_NULL_HANDLE;
    if (atomic_load(&queue->reached) < joined->points[i])
        ask_reached(device, queue);
    return atomic_load(&queue->reached) < joined->points[i] ? VK_NULL_HANDLE
                                                            : joined->commands[i];
}

// The host reads results through mapped memory, after waiting.
static void record_end(tn_device *device, VkCommandBuffer commands)
{
    device->vk->CmdPipelineBarrier(
        commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
        &(VkMemoryBarrier){.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                           .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                           .dstAccessMask = VK_ACCESS_HOST_READ_BIT},
        0, NULL, 0, NULL);
}

// Records held work into one command buffer. False: that cannot be done now.
static bool join_held(tn_device *device, struct vk_queue *queue, VkCommandBuffer *out)
{
    const struct vk_device_api *vk = device->vk;
    *out = take_joined(device, queue);
    if (!*out ||
        vk->BeginCommandBuffer(
            *out, &(VkCommandBufferBeginInfo){
                      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT}) != VK_SUCCESS)
        return false;
    for (uint32_t i = 0; i < queue->num_held; i++)
        queue->held[i].record(device, *out, queue->held[i].context);
    if (vk_memory_is_mapped(device))
        record_end(device, *out);
    return vk->EndCommandBuffer(*out) == VK_SUCCESS;
}

// Hands over held work, and sets `given`. If the driver refuses, the points of the work are
// never reached: the device counts as lost. The lock is held.
static VkResult give_held(tn_device *device, struct vk_queue *queue)
{
    const uint64_t value = atomic_load(&queue->point);
    const VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value};
    VkCommandBuffer commands[VK_MOST_HELD];
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .pNext = &timeline,
                         .commandBufferCount = queue->num_held,
                         .pCommandBuffers = commands,
                         .signalSemaphoreCount = 1,
                         .pSignalSemaphores = &queue->timeline};
    if (queue->num_held == 0)
        return VK_SUCCESS;
    bool is_joined = queue->num_held > 1 && join_held(device, queue, &commands[0]);
    for (uint32_t i = 0; i < queue->num_held && !is_joined; i++)
        commands[i] = queue->held[i].commands;
    if (is_joined) {
        info.commandBufferCount = 1;
        queue->joined.points[queue->joined.next] = value;
        queue->joined.next = (queue->joined.next + 1) % VK_NUM_JOINED;
    }
    VkResult result = device->vk->QueueSubmit(queue->handle, 1, &info, VK_NULL_HANDLE);
    if (result == VK_SUCCESS)
        note_given(queue, value);
    else if (queue->num_held > 1)
        vk_lose(device);
    else
        atomic_store(&queue->point, value - 1);
    queue->num_held = 0;
    return result;
}

// Hands over held work up to a point that a caller waits for.
static VkResult give_until(tn_device *device, struct vk_queue *queue, uint64_t value)
{
    if (atomic_load(&queue->given) >= value)
        return VK_SUCCESS;
    pthread_mutex_lock(&queue->lock);
    VkResult result = give_held(device, queue);
    pthread_mutex_unlock(&queue->lock);
    return result;
}

tn_status vk_hand_over(tn_device *device, uint32_t queue, uint64_t value)
{
    return vk_check(device, give_until(device, &device->queues[queue], value),
                    "vkQueueSubmit");
}

// The first point from `value` on that a submission to the driver signals.
static uint64_t signalled_from(struct vk_queue *queue, uint64_t value)
{
    uint64_t first = value;
    pthread_mutex_lock(&queue->lock);
    for (uint32_t i = 1; i <= VK_NUM_SIGNALLED && i <= queue->num_signalled; i++) {
        uint64_t point = queue->signalled[(queue->num_signalled - i) % VK_NUM_SIGNALLED];
        if (point < value)
            break;
        first = point;
    }
    pthread_mutex_unlock(&queue->lock);
    return first;
}

// Whether the queue has so much pending work that a new submission may be held back.
static bool is_busy(tn_device *device, struct vk_queue *queue)
{
    uint64_t given = atomic_load(&queue->given);
    if (given < atomic_load(&queue->reached) + BUSY)
        return false;
    return ask_reached(device, queue) == VK_SUCCESS &&
           given >= atomic_load(&queue->reached) + BUSY;
}

// The lock is held.
static VkResult submit_held(tn_device *device, struct vk_queue *queue,
                            const struct vk_work *work)
{
    VkResult result = work->work.record ? VK_SUCCESS : give_held(device, queue);
    if (result != VK_SUCCESS)
        return result;
    queue->held[queue->num_held++] = work->work;
    atomic_fetch_add(&queue->point, 1);
    if (work->work.record && queue->num_held < VK_MOST_HELD && is_busy(device, queue))
        return VK_SUCCESS;
    return give_held(device, queue);
}

static VkResult submit_after(tn_device *device, struct vk_queue *queue,
                             const struct vk_work *work)
{
    struct waits waits;
    const VkCommandBuffer both[] = {device->host_commands, work->work.commands};
    const uint32_t first =
        collect_waits(device, work->waits, work->num_waits, &waits) ? 0 : 1;
    VkResult result = give_held(device, queue);
    const uint64_t value = atomic_load(&queue->point) + 1;
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
    if (result == VK_SUCCESS)
        result = device->vk->QueueSubmit(queue->handle, 1, &info, VK_NULL_HANDLE);
    if (result == VK_SUCCESS) {
        atomic_store(&queue->point, value);
        note_given(queue, value);
    }
    return result;
}

tn_status vk_queue_submit(tn_device *device, uint32_t index, const struct vk_work *work,
                          uint64_t *out_value)
{
    struct vk_queue *queue = &device->queues[index];
    VkResult result = VK_SUCCESS;
    for (uint32_t i = 0; i < work->num_waits && result == VK_SUCCESS; i++)
        if (work->waits[i].queue != TN_QUEUE_HOST)
            result = give_until(device, &device->queues[work->waits[i].queue],
                                work->waits[i].value);
    pthread_mutex_lock(&queue->lock);
    if (result == VK_SUCCESS)
        result = work->num_waits > 0 ? submit_after(device, queue, work)
                                     : submit_held(device, queue, work);
    uint64_t value = atomic_load(&queue->point);
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
static bool vk_queue_poll(tn_device *device, struct vk_queue *queue, uint64_t value)
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
    VkResult result = VK_SUCCESS;
    for (uint32_t i = 0; i < vk_num_queues(device) && result == VK_SUCCESS; i++)
        result = give_held(device, &device->queues[i]);
    if (result == VK_SUCCESS)
        result = device->vk->DeviceWaitIdle(device->handle);
    for (uint32_t i = 0; i < vk_num_queues(device); i++)
        pthread_mutex_unlock(&device->queues[i].lock);
    return result;
}

static VkResult vk_queue_wait_for(tn_device *device, struct vk_queue *queue, uint64_t value)
{
    VkResult result = give_until(device, queue, value);
    if (result == VK_SUCCESS && atomic_load(&queue->given) < value)
        result = VK_ERROR_DEVICE_LOST; // the driver refused held work
    if (result != VK_SUCCESS)
        return result;
    if (!device->is_software && vk_queue_poll(device, queue, value))
        return VK_SUCCESS;
    value = signalled_from(queue, value);
    result = device->vk->WaitSemaphores(
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

// A device that the driver gave up runs nothing that could wait: its error is not reported.
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
        VkResult result = vk_queue_wait_for(device, queue, value);
        if (result != VK_SUCCESS && !was_lost)
            return vk_fail(device, result, "vkWaitSemaphores");
    }
    return vk_check_lost(device);
}
