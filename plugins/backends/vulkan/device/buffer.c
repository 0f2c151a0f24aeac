// SPDX-License-Identifier: MIT
// Buffers: ranges of device memory, and copies between them and the host.
#include "device.h"

#include <unistd.h>

// Bytes that are copied through staging at a time.
#define STAGING_SIZE (UINT64_C(16) << 20)

// Bytes. Reading uncached memory over the bus is slow: for more bytes a copy on the device
// is faster.
#define MAX_BUS_READ 256

static tn_status vk_buffer_make(tn_device *device, uint64_t size, enum vk_memory_kind kind,
                                tn_buffer **out_buffer)
{
    tn_buffer *buffer = device->host->alloc(device->host, sizeof(*buffer), 0);
    if (!buffer)
        return TN_ERR_MEMORY;
    tn_status status = vk_memory_take(device, size, kind, buffer);
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
    return status != TN_OK ? status
                           : vk_buffer_make(device, size, VK_MEMORY_OWN, out_buffer);
}

tn_status vk_buffer_create_visible(tn_device *device, uint64_t size, tn_buffer **out_buffer)
{
    const struct vk_memory_type *types = device->memory.types;
    if (types[VK_MEMORY_OWN].is_mapped) {
        tn_status status = vk_buffer_make(device, size, VK_MEMORY_OWN, out_buffer);
        if (status != TN_OK || (*out_buffer)->map)
            return status;
        vk_buffer_destroy(device, *out_buffer);
        return vk_buffer_make(device, size, VK_MEMORY_STAGING, out_buffer);
    }
    if (types[VK_MEMORY_WINDOW].is_mapped &&
        vk_buffer_make(device, size, VK_MEMORY_WINDOW, out_buffer) == TN_OK)
        return TN_OK;
    return vk_buffer_make(device, size, VK_MEMORY_STAGING, out_buffer);
}

void vk_buffer_give_own(tn_device *device, tn_buffer *buffer)
{
    if (buffer->handle)
        device->vk->DestroyBuffer(device->handle, buffer->handle, NULL);
    if (buffer->memory)
        device->vk->FreeMemory(device->handle, buffer->memory, NULL);
    if (buffer->fd >= 0)
        close(buffer->fd);
}

void vk_buffer_destroy(tn_device *device, tn_buffer *buffer)
{
    if (!buffer)
        return;
    if (buffer->block)
        vk_memory_give(device, buffer);
    else
        vk_buffer_give_own(device, buffer);
    device->host->free(device->host, buffer);
}

void *vk_buffer_map(tn_device *device, tn_buffer *buffer)
{
    bool lost = atomic_load(&device->lost) || vk_ask_lost(device) != TN_OK;
    return device->memory.host_cached && !lost ? buffer->map : NULL;
}

// --- staging: for memory that the host cannot read or write directly -------------------

static tn_status commands_ready(tn_device *device, struct vk_staging *staging)
{
    tn_status status = TN_OK;
    if (!staging->pool)
        status = vk_pool_create(device, &staging->pool);
    if (status == TN_OK && !staging->commands)
        status = vk_commands_create(device, staging->pool, &staging->commands);
    return status;
}

static tn_status staging_ready(tn_device *device, struct vk_staging *staging)
{
    tn_status status = TN_OK;
    if (!staging->buffer)
        status = vk_buffer_make(device, STAGING_SIZE, VK_MEMORY_STAGING, &staging->buffer);
    return status == TN_OK ? commands_ready(device, staging) : status;
}

void vk_staging_finish(tn_device *device, struct vk_staging *staging)
{
    vk_buffer_destroy(device, staging->buffer);
    if (staging->pool)
        device->vk->DestroyCommandPool(device->handle, staging->pool, NULL);
}

// Locks a queue's staging and returns the queue's index: an idle queue if there is one, so
// that the copy waits for nothing. Once work waits for the host, the queue that only
// copies: what the host is about to signal may depend on this copy.
static uint32_t lock_staging(tn_device *device)
{
    if (atomic_load(&device->waits_for_host) && device->facts.copy_queue) {
        pthread_mutex_lock(&device->queues[device->facts.num_queues].staging.lock);
        return device->facts.num_queues;
    }
    for (uint32_t i = 0; i < device->facts.num_queues; i++) {
        struct vk_queue *queue = &device->queues[i];
        if (!vk_queue_has_reached(device, i, atomic_load(&queue->point)))
            continue;
        if (pthread_mutex_trylock(&queue->staging.lock) == 0)
            return i;
    }
    pthread_mutex_lock(&device->queues[0].staging.lock);
    return 0;
}

static void unlock_staging(tn_device *device, uint32_t index)
{
    pthread_mutex_unlock(&device->queues[index].staging.lock);
}

void vk_record_copy(tn_device *device, VkCommandBuffer commands, const struct vk_copy *copy)
{
    const struct vk_device_api *vk = device->vk;
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
    vk->CmdCopyBuffer(commands, copy->from->handle, copy->to->handle, 1,
                      &(VkBufferCopy){.srcOffset = copy->from->offset + copy->from_offset,
                                      .dstOffset = copy->to->offset + copy->to_offset,
                                      .size = copy->size});
    vk->CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                           VK_PIPELINE_STAGE_HOST_BIT |
                               VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                           0, 1, &after, 0, NULL, 0, NULL);
}

// Records, submits and waits, with the commands of a queue's staging, which is locked.
static tn_status run_now(tn_device *device, uint32_t queue, vk_record *record,
                         const struct vk_copy *copy)
{
    VkCommandBuffer commands = device->queues[queue].staging.commands;
    uint64_t point;
    VkResult result = device->vk->BeginCommandBuffer(
        commands,
        &(VkCommandBufferBeginInfo){.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                    .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT});
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkBeginCommandBuffer");
    record(device, commands, copy);
    tn_status status =
        vk_check(device, device->vk->EndCommandBuffer(commands), "vkEndCommandBuffer");
    if (status == TN_OK)
        status = vk_queue_submit(device, queue,
                                 &(struct vk_work){.work = {.commands = commands}}, &point);
    return status == TN_OK ? vk_wait(device, queue, point) : status;
}

static tn_status copy_now(tn_device *device, uint32_t queue, const tn_buffer *from,
                          uint64_t from_offset, const tn_buffer *to, uint64_t to_offset,
                          uint64_t size)
{
    return run_now(device, queue, vk_record_copy,
                   &(struct vk_copy){from, to, from_offset, to_offset, size});
}

static tn_status write_staged(tn_device *device, tn_buffer *buffer, uint64_t offset,
                              const unsigned char *data, uint64_t size)
{
    uint32_t queue = lock_staging(device);
    struct vk_staging *staging = &device->queues[queue].staging;
    tn_status status = staging_ready(device, staging);
    for (uint64_t done = 0; status == TN_OK && done < size;) {
        uint64_t part = size - done < STAGING_SIZE ? size - done : STAGING_SIZE;
        memcpy(staging->buffer->map, data + done, part);
        status = copy_now(device, queue, staging->buffer, 0, buffer, offset + done, part);
        done += part;
    }
    unlock_staging(device, queue);
    return status;
}

// The queue's staging is locked.
static tn_status read_on(tn_device *device, uint32_t queue, tn_buffer *buffer,
                         uint64_t offset, unsigned char *data, uint64_t size)
{
    struct vk_staging *staging = &device->queues[queue].staging;
    tn_status status = staging_ready(device, staging);
    for (uint64_t done = 0; status == TN_OK && done < size;) {
        uint64_t part = size - done < STAGING_SIZE ? size - done : STAGING_SIZE;
        status = copy_now(device, queue, buffer, offset + done, staging->buffer, 0, part);
        if (status == TN_OK)
            memcpy(data + done, staging->buffer->map, part);
        done += part;
    }
    return status;
}

static tn_status read_staged(tn_device *device, tn_buffer *buffer, uint64_t offset,
                             unsigned char *data, uint64_t size)
{
    uint32_t queue = lock_staging(device);
    tn_status status = read_on(device, queue, buffer, offset, data, size);
    unlock_staging(device, queue);
    return status;
}

tn_status vk_run_commands(tn_device *device, vk_record *record, const struct vk_copy *copy)
{
    tn_status status = vk_check_lost(device);
    if (status != TN_OK)
        return status;
    uint32_t queue = lock_staging(device);
    status = commands_ready(device, &device->queues[queue].staging);
    if (status == TN_OK)
        status = run_now(device, queue, record, copy);
    unlock_staging(device, queue);
    return status;
}

tn_status vk_buffer_copy(tn_device *device, tn_buffer *from, uint64_t from_offset,
                         tn_buffer *to, uint64_t to_offset, uint64_t size)
{
    return vk_run_commands(device, vk_record_copy,
                           &(struct vk_copy){from, to, from_offset, to_offset, size});
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

// Whether reading takes a copy on the device.
static bool vk_buffer_is_staged(const tn_device *device, const tn_buffer *buffer,
                                uint64_t size)
{
    return !buffer->map || (!device->memory.host_cached && size > MAX_BUS_READ);
}

tn_status vk_buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset, void *data,
                         uint64_t size)
{
    tn_status status = vk_check_lost(device);
    if (status != TN_OK)
        return status;
    if (vk_buffer_is_staged(device, buffer, size))
        return read_staged(device, buffer, offset, data, size);
    status = vk_ask_lost(device); // memcpy does not detect a lost device
    if (status == TN_OK)
        memcpy(data, buffer->map + offset, size);
    return status;
}

tn_status vk_buffer_read_after(tn_device *device, tn_buffer *buffer, uint64_t offset,
                               void *data, uint64_t size, tn_point after)
{
    struct vk_staging *staging = &device->queues[after.queue].staging;
    tn_status status = vk_check_lost(device);
    if (status != TN_OK)
        return status;
    if (vk_buffer_is_staged(device, buffer, size) &&
        !atomic_load(&device->waits_for_host) &&
        pthread_mutex_trylock(&staging->lock) == 0) {
        status = read_on(device, after.queue, buffer, offset, data, size);
        unlock_staging(device, after.queue);
        return status;
    }
    status = vk_wait(device, after.queue, after.value);
    return status == TN_OK ? vk_buffer_read(device, buffer, offset, data, size) : status;
}
