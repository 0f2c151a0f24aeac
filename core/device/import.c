// SPDX-License-Identifier: MIT
// Imported storages: memory of the application that a device uses in place.
//
// The memory is released exactly once: when no array refers to it and the work that uses it
// has ended. A storage whose work still runs is retired, and each later wait looks whether
// the work is done; closing the device waits for it.
#include <string.h>
#include <tenon/checked.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/memory.h"
#include "../base/shape.h"
#include "outcome.h"

struct import {
    void (*release)(void *context);
    void *context;
    bool reusable; // see storage_is_reusable()
};

// The largest power of two that divides the address and `most`, which is one.
static uint64_t alignment_of(const void *data, uint64_t most)
{
    uint64_t bits = (uint64_t)(uintptr_t)data | most;
    return bits & (~bits + 1);
}

static tn_status import_buffer(struct device *device, const struct host_memory *memory,
                               tn_buffer **out_buffer)
{
    const tn_buffer_import import = {
        .struct_size = sizeof(import),
        .flags = memory->writable ? TN_IMPORT_WRITABLE : 0,
        .memory = memory->data,
        .size = memory->size,
        .alignment = alignment_of(memory->data, UINT64_C(1) << 16),
    };
    if (!TN_HAS(device->ops, buffer_import))
        return fail(TN_ERR_UNSUPPORTED, "device %s uses no memory of the host in place",
                    device->name);
    fail_clear();
    tn_status status = device->ops->buffer_import(device->handle, &import, out_buffer);
    return status == TN_OK ? TN_OK : device_failed(device, "buffer_import", status);
}

tn_status storage_import(struct device *device, const struct host_memory *memory,
                         struct storage **out)
{
    tn_buffer *buffer = NULL;
    tn_status status = import_buffer(device, memory, &buffer);
    uint64_t alignment = device->info.buffer_alignment;
    bool reusable = memory->writable && (uintptr_t)memory->data % alignment == 0;
    return status == TN_OK ? storage_wrap(device, buffer, memory, reusable, out) : status;
}

tn_status storage_wrap(struct device *device, tn_buffer *buffer,
                       const struct host_memory *memory, bool reusable,
                       struct storage **out)
{
    struct storage *storage = mem_alloc_aligned(sizeof(*storage), 64);
    struct import *import = storage ? mem_alloc(sizeof(*import)) : NULL;
    if (!import) {
        mem_free(storage);
        device->ops->buffer_destroy(device->handle, buffer);
        return TN_ERR_MEMORY;
    }
    *import = (struct import){
        .release = memory->release, .context = memory->context, .reusable = reusable};
    *storage = (struct storage){
        .device = device, .buffer = buffer, .size = memory->size, .import = import};
    atomic_init(&storage->refs, 1);
    *out = storage;
    return TN_OK;
}

bool storage_is_reusable(const struct storage *storage)
{
    return !storage->import || storage->import->reusable;
}

// The release function may be the application's: no lock is held.
static void end_import(struct storage *storage)
{
    struct device *device = storage->device;
    struct import import = *storage->import;
    device->ops->buffer_destroy(device->handle, storage->buffer);
    mem_free(storage->import);
    mem_free(storage);
    if (import.release)
        import.release(import.context);
}

void storage_retire(struct storage *storage)
{
    struct device *device = storage->device;
    if (storage_is_idle(storage)) {
        end_import(storage);
        return;
    }
    pthread_mutex_lock(&device->lock);
    storage->next = device->retired;
    device->retired = storage;
    atomic_fetch_add(&device->num_retired, 1);
    pthread_mutex_unlock(&device->lock);
    if (atomic_load_explicit(&device->lost, memory_order_acquire))
        device_trim_retired(device);
    else
        device_sweep_retired(device); // the work may have ended since it was looked at
}

void device_sweep_retired(struct device *device)
{
    struct storage *idle = NULL;
    if (atomic_load(&device->num_retired) == 0)
        return;
    pthread_mutex_lock(&device->lock);
    for (struct storage **link = &device->retired; *link;) {
        struct storage *storage = *link;
        if (!storage_is_idle(storage)) {
            link = &storage->next;
            continue;
        }
        *link = storage->next;
        storage->next = idle;
        idle = storage;
        atomic_fetch_sub(&device->num_retired, 1);
    }
    pthread_mutex_unlock(&device->lock);
    while (idle) {
        struct storage *next = idle->next;
        end_import(idle);
        idle = next;
    }
}

void device_trim_retired(struct device *device)
{
    uint64_t last[MAX_TIMELINES] = {0};
    pthread_mutex_lock(&device->lock);
    for (struct storage *s = device->retired; s; s = s->next)
        for (uint32_t i = 0; i < device->num_timelines; i++) {
            uint64_t use = atomic_load_explicit(&s->last_use[i], memory_order_acquire);
            last[i] = use > last[i] ? use : last[i];
        }
    pthread_mutex_unlock(&device->lock);
    for (uint32_t i = 0; i < device->num_timelines; i++)
        device_drain(device, (tn_point){.queue = i, .value = last[i]});
    device_sweep_retired(device);
}

// --- values of imported memory ---------------------------------------------------------

static void device_import_release(const struct host_memory *memory)
{
    if (memory->release)
        memory->release(memory->context);
}

// Shifts the layout so that its offset counts from the lowest byte that it reaches: gives
// the bytes from `data` down to that one, and the size of what is reached. False: the
// elements leave the address space. At least one element.
static bool device_import_measure(tn_layout *layout, const void *data, uint64_t *out_below,
                                  uint64_t *out_size)
{
    uint64_t size = dtype_size(layout->dtype), below = 0, reach;
    struct span span;
    for (int32_t i = 0; i < layout->rank; i++) {
        int64_t stride = layout->stride[i];
        if (stride < 0 && (!tn_checked_multiply((uint64_t) - (stride + 1) + 1,
                                                (uint64_t)layout->extent[i] - 1, &reach) ||
                           !tn_checked_add(below, reach, &below)))
            return false;
    }
    if (below > INT64_MAX / size)
        return false;
    layout->offset = (int64_t)below;
    if (!layout_span(layout, &span))
        return false;
    *out_below = below * size;
    *out_size = (uint64_t)span.high;
    return *out_below <= (uintptr_t)data &&
           *out_size <= UINTPTR_MAX - ((uintptr_t)data - *out_below);
}

// Copies the elements of a layout, whose element (0, 0, ...) is at `data`, row-major
// without gaps.
static void device_import_pack(const tn_layout *layout, const char *data, char *out)
{
    int64_t size = (int64_t)dtype_size(layout->dtype), at[TN_MAX_RANK] = {0};
    int32_t last = layout->rank - 1;
    for (int32_t axis = 0; axis >= 0;) {
        const char *from = data;
        for (int32_t i = 0; i < last; i++)
            from += at[i] * layout->stride[i] * size;
        for (int64_t i = 0; i < layout->extent[last]; i++, out += size)
            memcpy(out, from + i * layout->stride[last] * size, (size_t)size);
        for (axis = last - 1; axis >= 0 && ++at[axis] == layout->extent[axis]; axis--)
            at[axis] = 0;
    }
}

static tn_status copy_value(tn_runtime *runtime, uint32_t device, const tn_layout *layout,
                            const void *data, struct value **out)
{
    tn_type type = {.dtype = layout->dtype, .rank = layout->rank};
    memcpy(type.extent, layout->extent, sizeof(type.extent));
    if (layout_elements(layout) == 0 || layout_is_contiguous(layout))
        return value_from_host(runtime, device, &type, data, out);
    char *packed = mem_alloc(type_bytes(&type));
    if (!packed)
        return TN_ERR_MEMORY;
    device_import_pack(layout, data, packed); // rank 0 is contiguous
    tn_status status = value_from_host(runtime, device, &type, packed, out);
    mem_free(packed);
    return status;
}

// Makes the value in place. The memory is taken when *out_taken is set.
static tn_status share_value(tn_runtime *runtime, uint32_t device, const tn_layout *layout,
                             const void *data, const struct host_memory *memory,
                             bool *out_taken, struct value **out)
{
    struct device **devices;
    uint32_t count;
    uint64_t below;
    struct storage *storage;
    struct host_memory whole = *memory;
    tn_layout from_lowest = *layout;
    if (!device_import_measure(&from_lowest, data, &below, &whole.size))
        return fail(TN_ERR_ARGUMENT,
                    "extents and strides reach memory outside of the address space");
    whole.data = (char *)(uintptr_t)data - below;
    tn_status status = devices_open(runtime, &devices, &count);
    if (status == TN_OK)
        status = storage_import(devices[device], &whole, &storage);
    if (status != TN_OK)
        return status;
    *out_taken = true;
    status = value_create(storage, 0, &from_lowest, out);
    if (status != TN_OK)
        storage_release(storage);
    return status;
}

tn_status value_from_memory(tn_runtime *runtime, uint32_t device, const tn_layout *layout,
                            const void *data, const struct host_memory *memory,
                            bool must_share, struct value **out)
{
    bool is_empty = layout_elements(layout) == 0, is_taken = false;
    tn_status status =
        is_empty ? TN_ERR_UNSUPPORTED
                 : share_value(runtime, device, layout, data, memory, &is_taken, out);
    if (status == TN_ERR_UNSUPPORTED && !is_taken && (is_empty || !must_share))
        status = copy_value(runtime, device, layout, data, out);
    if (!is_taken)
        device_import_release(memory);
    return status;
}
