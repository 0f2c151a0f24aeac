// SPDX-License-Identifier: MIT
// Values: elements in a device's memory, counted, shared by arrays and views.
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/memory.h"
#include "../base/shape.h"
#include "../plugin/host.h"
#include "device.h"
#include "fate.h"

void stats_add_bytes(struct sched_stats *stats, int64_t bytes)
{
    if (bytes <= 0) {
        atomic_fetch_sub_explicit(&stats->buffer_bytes, (uint64_t)-bytes,
                                  memory_order_relaxed);
        return;
    }
    uint64_t now = atomic_fetch_add_explicit(&stats->buffer_bytes, (uint64_t)bytes,
                                             memory_order_relaxed) +
                   (uint64_t)bytes;
    uint64_t peak = atomic_load_explicit(&stats->buffer_peak, memory_order_relaxed);
    while (peak < now && !atomic_compare_exchange_weak_explicit(&stats->buffer_peak, &peak,
                                                                now, memory_order_relaxed,
                                                                memory_order_relaxed))
        ;
}

tn_status storage_create(struct device *device, uint64_t size, struct storage **out)
{
    if (size == 0)
        size = 1;
    if (device->info.max_buffer_size && size > device->info.max_buffer_size)
        return fail(TN_ERR_MEMORY, "device %s: a buffer of %llu bytes, at most %llu fit",
                    device->name, (unsigned long long)size,
                    (unsigned long long)device->info.max_buffer_size);
    struct storage *storage = mem_zalloc(sizeof(*storage));
    if (!storage)
        return TN_ERR_MEMORY;
    fail_clear();
    tn_status status = device->ops->buffer_create(device->handle, size, &storage->buffer);
    if (status != TN_OK) {
        mem_free(storage);
        return device_failed(device, "buffer_create", status);
    }
    storage->device = device;
    storage->size = size;
    atomic_init(&storage->refs, 1);
    stats_add_bytes(sched_stats(device->runtime), (int64_t)size);
    *out = storage;
    return TN_OK;
}

void storage_retain(struct storage *storage)
{
    atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
}

void storage_release(struct storage *storage)
{
    // acq_rel: the last owner must see every use of the others before it destroys.
    if (!storage || atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) != 1)
        return;
    device_drop_buffer(storage->device, storage->buffer, storage->size,
                       atomic_load_explicit(&storage->point, memory_order_acquire));
    fate_release(storage->fate);
    mem_free(storage);
}

tn_status storage_wait(struct storage *storage)
{
    tn_status status = device_wait(
        storage->device, atomic_load_explicit(&storage->point, memory_order_acquire));
    return status == TN_OK ? fate_end(storage->fate) : status;
}

tn_status storage_wait_outside(struct storage *storage)
{
    const struct device *device = storage->device;
    bool blocks = atomic_load_explicit(&storage->point, memory_order_acquire) >
                  atomic_load_explicit(&device->reached, memory_order_acquire);
    tn_status status = blocks ? callback_check(device->runtime) : TN_OK;
    return status == TN_OK ? storage_wait(storage) : status;
}

tn_status storage_read(struct storage *storage, uint64_t offset, void *data, uint64_t size)
{
    struct device *device = storage->device;
    tn_status status = storage_wait_outside(storage);
    if (status != TN_OK || size == 0)
        return status;
    fail_clear();
    status = device->ops->buffer_read(device->handle, storage->buffer, offset, data, size);
    return status == TN_OK ? TN_OK : device_failed(device, "buffer_read", status);
}

tn_status storage_write(struct storage *storage, uint64_t offset, const void *data,
                        uint64_t size)
{
    struct device *device = storage->device;
    if (size == 0)
        return TN_OK;
    fail_clear();
    tn_status status =
        device->ops->buffer_write(device->handle, storage->buffer, offset, data, size);
    return status == TN_OK ? TN_OK : device_failed(device, "buffer_write", status);
}

tn_status value_create(struct storage *storage, uint64_t offset, const tn_layout *layout,
                       struct value **out)
{
    struct value *value = mem_alloc(sizeof(*value));
    if (!value)
        return TN_ERR_MEMORY;
    *value = (struct value){.storage = storage, .offset = offset, .layout = *layout};
    atomic_init(&value->refs, 1);
    *out = value;
    return TN_OK;
}

void value_retain(struct value *value)
{
    atomic_fetch_add_explicit(&value->refs, 1, memory_order_relaxed);
}

void value_release(struct value *value)
{
    if (!value || atomic_fetch_sub_explicit(&value->refs, 1, memory_order_acq_rel) != 1)
        return;
    storage_release(value->storage);
    mem_free(value->host_copy);
    mem_free(value);
}

tn_status value_from_host(tn_runtime *runtime, const tn_type *type, const void *data,
                          struct value **out)
{
    struct device **devices;
    uint32_t count;
    struct storage *storage;
    uint64_t size = type_bytes(type);
    tn_layout layout = layout_contiguous(type);
    tn_status status = devices_open(runtime, &devices, &count);
    if (status == TN_OK)
        status = storage_create(devices[0], size, &storage);
    if (status != TN_OK)
        return status;
    status = storage_write(storage, 0, data, size);
    if (status == TN_OK)
        status = value_create(storage, 0, &layout, out);
    if (status != TN_OK)
        storage_release(storage);
    return status;
}
