// SPDX-License-Identifier: MIT
// Buffers: pieces of device memory, and copies between them and the host.
#include "device.h"

// Bytes that go through staging at a time.
#define STAGING_SIZE (UINT64_C(16) << 20)

// Reading uncached memory over the bus is slow: beyond this a copy on the device is
// quicker.
#define MAX_BUS_READ 256

static tn_status create(tn_device *device, uint64_t size, bool staging,
                        tn_buffer **out_buffer)
{
    tn_buffer *buffer = device->host->alloc(device->host, sizeof(*buffer), 0);
    if (!buffer)
        return TN_ERR_MEMORY;
    tn_status status = vk_memory_take(device, size, staging, buffer);
    if (status != TN_OK) {
        device->host->free(device->host, buffer);
        return status;
    }
    *out_buffer = buffer;
    return TN_OK;
}

tn_status vk_buffer_create(tn_device *device, uint64_t size, tn_buffer **out_buffer)
{
    tn_status status = vk_check_lost(device);
    return status != TN_OK ? status : create(device, size, false, out_buffer);
}

tn_status vk_buffer_create_visible(tn_device *device, uint64_t size, tn_buffer **out_buffer)
{
    return create(device, size, !device->memory.host_visible, out_buffer);
}

void vk_buffer_destroy(tn_device *device, tn_buffer *buffer)
{
    if (!buffer)
        return;
    vk_memory_give(device, buffer);
    device->host->free(device->host, buffer);
}

void *vk_buffer_map(tn_device *device, tn_buffer *buffer)
{
    bool lost = atomic_load(&device->lost) || vk_ask_lost(device) != TN_OK;
    return device->memory.host_cached && !lost ? buffer->map : NULL;
}

// --- staging: for devices whose memory the host cannot see -----------------------------

static VkResult create_commands(tn_device *device)
{
    struct vk_staging *staging = &device->staging;
    return device->vk->AllocateCommandBuffers(
        device->handle,
        &(VkCommandBufferAllocateInfo){.sType =
                                           VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                       .commandPool = staging->pool,
                                       .commandBufferCount = 1},
        &staging->commands);
}

static VkResult create_pool(tn_device *device)
{
    return device->vk->CreateCommandPool(
        device->handle,
        &(VkCommandPoolCreateInfo){.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                   .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                   .queueFamilyIndex = device->facts.queue_family},
        NULL, &device->staging.pool);
}

static VkResult create_fence(tn_device *device)
{
    return device->vk->CreateFence(
        device->handle, &(VkFenceCreateInfo){.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO},
        NULL, &device->staging.fence);
}

// What a failed creation leaves in a handle is not a handle.
static tn_status staging_ready(tn_device *device)
{
    struct vk_staging *staging = &device->staging;
    tn_status status = TN_OK;
    if (!staging->buffer)
        status = create(device, STAGING_SIZE, true, &staging->buffer);
    if (status == TN_OK && !staging->pool &&
        (status = vk_check(device, create_pool(device), "vkCreateCommandPool")) != TN_OK)
        staging->pool = VK_NULL_HANDLE;
    if (status == TN_OK && !staging->fence &&
        (status = vk_check(device, create_fence(device), "vkCreateFence")) != TN_OK)
        staging->fence = VK_NULL_HANDLE;
    if (status == TN_OK && !staging->commands &&
        (status = vk_check(device, create_commands(device), "vkAllocateCommandBuffers")) !=
            TN_OK)
        staging->commands = NULL;
    return status;
}

static tn_status record_copy(tn_device *device, const tn_buffer *from, uint64_t from_offset,
                             const tn_buffer *to, uint64_t to_offset, uint64_t size)
{
    const struct vk_device_api *vk = device->vk;
    VkCommandBuffer commands = device->staging.commands;
    VkResult result = vk->BeginCommandBuffer(
        commands,
        &(VkCommandBufferBeginInfo){.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                    .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT});
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkBeginCommandBuffer");
    const VkMemoryBarrier before = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                    .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                                    .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT |
                                                     VK_ACCESS_TRANSFER_WRITE_BIT};
    const VkMemoryBarrier after = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_HOST_READ_BIT |
                                                    VK_ACCESS_SHADER_READ_BIT |
                                                    VK_ACCESS_SHADER_WRITE_BIT};
    vk->CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                           VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &before, 0, NULL, 0, NULL);
    vk->CmdCopyBuffer(commands, from->handle, to->handle, 1,
                      &(VkBufferCopy){.srcOffset = from->offset + from_offset,
                                      .dstOffset = to->offset + to_offset,
                                      .size = size});
    vk->CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                           VK_PIPELINE_STAGE_HOST_BIT |
                               VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                           0, 1, &after, 0, NULL, 0, NULL);
    return vk_check(device, vk->EndCommandBuffer(commands), "vkEndCommandBuffer");
}

// Waits for the copy. When that fails the fence may still be pending: it is replaced once
// the queue is empty.
static tn_status wait_copied(tn_device *device)
{
    const struct vk_device_api *vk = device->vk;
    struct vk_staging *staging = &device->staging;
    const char *call = "vkWaitForFences";
    VkResult result =
        vk->WaitForFences(device->handle, 1, &staging->fence, VK_TRUE, UINT64_MAX);
    if (result == VK_SUCCESS) {
        call = "vkResetFences";
        result = vk->ResetFences(device->handle, 1, &staging->fence);
    }
    if (result == VK_SUCCESS)
        return TN_OK;
    pthread_mutex_lock(&device->queue_lock);
    vk->DeviceWaitIdle(device->handle);
    pthread_mutex_unlock(&device->queue_lock);
    vk->DestroyFence(device->handle, staging->fence, NULL);
    staging->fence = VK_NULL_HANDLE;
    return vk_fail(device, result, call);
}

static tn_status copy_now(tn_device *device, const tn_buffer *from, uint64_t from_offset,
                          const tn_buffer *to, uint64_t to_offset, uint64_t size)
{
    struct vk_staging *staging = &device->staging;
    tn_status status = record_copy(device, from, from_offset, to, to_offset, size);
    if (status != TN_OK)
        return status;
    pthread_mutex_lock(&device->queue_lock);
    VkResult result =
        device->vk->QueueSubmit(device->queue, 1,
                                &(VkSubmitInfo){.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                                .commandBufferCount = 1,
                                                .pCommandBuffers = &staging->commands},
                                staging->fence);
    pthread_mutex_unlock(&device->queue_lock);
    status = vk_check(device, result, "vkQueueSubmit");
    return status == TN_OK ? wait_copied(device) : status;
}

static tn_status write_staged(tn_device *device, tn_buffer *buffer, uint64_t offset,
                              const unsigned char *data, uint64_t size)
{
    struct vk_staging *staging = &device->staging;
    pthread_mutex_lock(&staging->lock);
    tn_status status = staging_ready(device);
    for (uint64_t done = 0; status == TN_OK && done < size;) {
        uint64_t part = size - done < STAGING_SIZE ? size - done : STAGING_SIZE;
        memcpy(staging->buffer->map, data + done, part);
        status = copy_now(device, staging->buffer, 0, buffer, offset + done, part);
        done += part;
    }
    pthread_mutex_unlock(&staging->lock);
    return status;
}

static tn_status read_staged(tn_device *device, tn_buffer *buffer, uint64_t offset,
                             unsigned char *data, uint64_t size)
{
    struct vk_staging *staging = &device->staging;
    pthread_mutex_lock(&staging->lock);
    tn_status status = staging_ready(device);
    for (uint64_t done = 0; status == TN_OK && done < size;) {
        uint64_t part = size - done < STAGING_SIZE ? size - done : STAGING_SIZE;
        status = copy_now(device, buffer, offset + done, staging->buffer, 0, part);
        if (status == TN_OK)
            memcpy(data + done, staging->buffer->map, part);
        done += part;
    }
    pthread_mutex_unlock(&staging->lock);
    return status;
}

tn_status vk_buffer_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                          const void *data, uint64_t size)
{
    tn_status status = vk_check_lost(device);
    if (status != TN_OK)
        return status;
    if (!buffer->map)
        return write_staged(device, buffer, offset, data, size);
    memcpy(buffer->map + offset, data, size);
    return TN_OK;
}

tn_status vk_buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset, void *data,
                         uint64_t size)
{
    tn_status status = vk_check_lost(device);
    if (status != TN_OK)
        return status;
    if (!buffer->map || (!device->memory.host_cached && size > MAX_BUS_READ))
        return read_staged(device, buffer, offset, data, size);
    status = vk_ask_lost(device); // a copy by the host tells of no loss
    if (status == TN_OK)
        memcpy(data, buffer->map + offset, size);
    return status;
}
