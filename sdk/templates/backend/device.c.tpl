// SPDX-License-Identifier: @LICENSE@
// The one device, its buffers, and the table by which the host finds them.
#include <string.h>
#include "backend.h"

// --- devices ---------------------------------------------------------------------------

// A backend of real devices asks its driver here. Without any device it may fail with
// TN_ERR_NOT_FOUND and a sentence that says what helps.
static tn_status device_count(const tn_host *host, uint32_t *out_count)
{
    (void)host;
    *out_count = 1;
    return TN_OK;
}

static tn_status device_info(const tn_host *host, uint32_t index, tn_device_info *out)
{
    if (index != 0)
        return host->fail(host, TN_ERR_ARGUMENT, "device %u: there is only device 0",
                          index);
    const tn_device_info info = {
        .struct_size = out->struct_size,
        .flags = TN_DEVICE_HOST_MEMORY,
        .name = "@NAME@: one thread, plain loops",
        .driver = "@NAME@ 0.1.0",
        .features = "f16,f64,i8,i16,i64",
        .buffer_alignment = 64,
        .num_queues = 1,
    };
    // An older host knows fewer fields.
    memcpy(out, &info, out->struct_size < sizeof(info) ? out->struct_size : sizeof(info));
    return TN_OK;
}

static tn_status device_open(const tn_host *host, uint32_t index, tn_device **out_device)
{
    if (index != 0)
        return host->fail(host, TN_ERR_ARGUMENT, "device %u: there is only device 0",
                          index);
    tn_device *device = host->alloc(host, sizeof(*device), 0);
    if (!device)
        return TN_ERR_MEMORY;
    *device = (tn_device){.host = host};
    if (pthread_mutex_init(&device->lock, NULL)) {
        host->free(host, device);
        return host->fail(host, TN_ERR_MEMORY, "no mutex for the queue");
    }
    *out_device = device;
    return TN_OK;
}

static void device_close(tn_device *device)
{
    if (!device)
        return;
    pthread_mutex_destroy(&device->lock);
    device->host->free(device->host, device);
}

// --- buffers: plain memory -------------------------------------------------------------

static tn_status buffer_create(tn_device *device, uint64_t size, tn_buffer **out_buffer)
{
    const tn_host *host = device->host;
    tn_buffer *buffer = host->alloc(host, sizeof(*buffer), 0);
    unsigned char *bytes = buffer ? host->alloc(host, size, 64) : NULL;
    if (!bytes) {
        host->free(host, buffer);
        return TN_ERR_MEMORY; // alloc has recorded the failure
    }
    *buffer = (tn_buffer){size, bytes};
    *out_buffer = buffer;
    return TN_OK;
}

static void buffer_destroy(tn_device *device, tn_buffer *buffer)
{
    if (!buffer)
        return;
    device->host->free(device->host, buffer->bytes);
    device->host->free(device->host, buffer);
}

static tn_status buffer_write(tn_device *device, tn_buffer *buffer, uint64_t offset,
                              const void *data, uint64_t size)
{
    (void)device;
    memcpy(buffer->bytes + offset, data, size);
    return TN_OK;
}

static tn_status buffer_read(tn_device *device, tn_buffer *buffer, uint64_t offset,
                             void *data, uint64_t size)
{
    (void)device;
    memcpy(data, buffer->bytes + offset, size);
    return TN_OK;
}

static void *buffer_map(tn_device *device, tn_buffer *buffer)
{
    (void)device;
    return buffer->bytes;
}

// The most instructions of a program that the core fuses from several primitives.
static uint32_t fusion_limit(tn_device *device)
{
    (void)device;
    return TN_EXPR_MAX_INSNS;
}

// --- the plugin ------------------------------------------------------------------------

// Families of kernels that queue.c runs. They suffice for every primitive: each one is an
// expression, has a reference in C, or decomposes into primitives of these two kinds.
static const char *const families[] = {TN_FAMILY_EXPR, TN_FAMILY_CPU, NULL};

static const tn_backend backend = {
    .struct_size = sizeof(backend),
    .name = "@NAME@",
    .families = families,
    .device_count = device_count,
    .device_info = device_info,
    .device_open = device_open,
    .device_close = device_close,
    .fusion_limit = fusion_limit,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .buffer_write = buffer_write,
    .buffer_read = buffer_read,
    .buffer_map = buffer_map,
    .segment_compile = segment_compile,
    .executable_destroy = executable_destroy,
    .submit = submit,
    .wait = wait,
    .packings = packings,
    .num_packings = NUM_PACKINGS,
    .packing_size = sizeof(packings[0]),
};

static const void *query(const char *id)
{
    return strcmp(id, TN_IFACE_BACKEND) == 0 ? &backend : query_weights(id);
}

TN_PLUGIN("@ID@", "0.1.0", "@VENDOR@", .query = query);
