// SPDX-License-Identifier: MIT
// Buffers: zeroed host memory. Nothing is computed, so every output reads as zeros, the
// same in each run.
#include "null.h"

#include <string.h>

static void null_buffer_count(tn_device *device, uint64_t size)
{
    uint64_t used = atomic_fetch_add(&device->used, size) + size;
    uint64_t peak = device->peak;
    while (used > peak && !atomic_compare_exchange_weak(&device->peak, &peak, used))
        continue;
}

tn_status null_buffer_create(tn_device *device, uint64_t size, tn_buffer **out_buffer)
{
    const tn_host *host = device->host;
    if (null_check_lost(device) != TN_OK)
        return TN_ERR_DEVICE;
    tn_buffer *buffer = host->alloc(host, sizeof(*buffer), 0);
    void *bytes = buffer ? host->alloc(host, size, 64) : NULL;
    if (!bytes) {
        host->free(host, buffer);
        return TN_ERR_MEMORY;
    }
    memset(bytes, 0, size);
    *buffer = (tn_buffer){.size = size, .bytes = bytes};
    null_buffer_count(device, size);
    *out_buffer = buffer;
    return TN_OK;
}

void null_buffer_destroy(tn_device *device, tn_buffer *buffer)
{
    if (!buffer)
        return;
    if (!buffer->is_imported) {
        atomic_fetch_sub(&device->used, buffer->size);
        device->host->free(device->host, buffer->bytes);
    }
    device->host->free(device->host, buffer);
}

tn_status null_buffer_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                            const void *data, uint64_t size)
{
    if (null_check_lost(device) != TN_OK)
        return TN_ERR_DEVICE;
    memcpy((char *)buffer->bytes + offset, data, size);
    return TN_OK;
}

tn_status null_buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset,
                           void *data, uint64_t size)
{
    if (null_check_lost(device) != TN_OK)
        return TN_ERR_DEVICE;
    memcpy(data, (const char *)buffer->bytes + offset, size);
    return TN_OK;
}

// The application's own memory: only the record of the buffer is allocated and freed here.
tn_status null_buffer_import(tn_device *device, const tn_buffer_import *import,
                             tn_buffer **out_buffer)
{
    const tn_host *host = device->host;
    if (null_check_lost(device) != TN_OK)
        return TN_ERR_DEVICE;
    tn_buffer *buffer = host->alloc(host, sizeof(*buffer), 0);
    if (!buffer)
        return TN_ERR_MEMORY;
    *buffer =
        (tn_buffer){.size = import->size, .bytes = import->memory, .is_imported = true};
    *out_buffer = buffer;
    return TN_OK;
}

void *null_buffer_map(tn_device *device, tn_buffer *buffer)
{
    return device->is_lost ? NULL : buffer->bytes;
}
