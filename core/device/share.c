// SPDX-License-Identifier: MIT
// Memory of a device that others use, too, by file descriptor: exported and imported by
// applications, and on the way from one device to another.
#include <string.h>
#include <unistd.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/memory.h"
#include "../base/shape.h"
#include "device.h"
#include "outcome.h"

static bool has_share_id(const struct device *device)
{
    const uint8_t *id = device->info.share_id; // 16 zeros: the device has none
    return id[0] != 0 || memcmp(id, id + 1, sizeof(device->info.share_id) - 1) != 0;
}

// Imports memory by the backend. A failure names the device and the slot.
static tn_status import_fd(struct device *device, const tn_buffer_fd *memory,
                           tn_buffer **out_buffer)
{
    fail_clear();
    tn_status status = device->ops->buffer_import_fd(device->handle, memory, out_buffer);
    return status == TN_OK ? TN_OK : device_failed(device, "buffer_import_fd", status);
}

static tn_status export_fd(struct device *device, const tn_buffer *buffer, uint64_t offset,
                           uint64_t size, tn_buffer_fd *out)
{
    tn_buffer *it = (tn_buffer *)(uintptr_t)buffer; // an export changes nothing
    tn_status status = TN_ERR_MEMORY;
    for (int i = 0; i < 2 && status == TN_ERR_MEMORY; i++) {
        if (i > 0)
            device_trim(device); // spare storages make room
        *out = (tn_buffer_fd){.struct_size = sizeof(*out), .fd = -1};
        fail_clear();
        status = device->ops->buffer_export_fd(device->handle, it, offset, size, out);
    }
    return status == TN_OK ? TN_OK : device_failed(device, "buffer_export_fd", status);
}

static tn_status device_check_shares(const struct device *device)
{
    return has_share_id(device) && TN_HAS(device->ops, buffer_export_fd) &&
                   TN_HAS(device->ops, buffer_import_fd)
               ? TN_OK
               : fail(TN_ERR_UNSUPPORTED, "device %s shares no memory by file descriptors",
                      device->name);
}

// --- importing -------------------------------------------------------------------------

static tn_status check_device(const struct device *device, const tn_shared_memory *shared)
{
    const uint8_t *got = shared->device, *expected = device->info.share_id;
    tn_status status = device_check_shares(device);
    for (uint32_t i = 0; i < sizeof(shared->device) && status == TN_OK; i++)
        if (got[i] != expected[i])
            return fail(TN_ERR_ARGUMENT,
                        "memory of another device than %s: byte %u of its id is 0x%02x, "
                        "expected 0x%02x",
                        device->name, i, got[i], expected[i]);
    return status;
}

// Puts the layout's offset where the elements are.
static tn_status device_share_layout(tn_layout *layout, const tn_shared_memory *shared)
{
    uint64_t size = dtype_size(layout->dtype);
    struct span span;
    if (layout_elements(layout) == 0)
        return fail(TN_ERR_ARGUMENT, "an array without elements has no memory");
    if (shared->offset % size)
        return fail(TN_ERR_ARGUMENT,
                    "offset %llu, expected a multiple of %llu bytes, the size of %s",
                    (unsigned long long)shared->offset, (unsigned long long)size,
                    dtype_name(layout->dtype));
    bool is_far = shared->offset / size > INT64_MAX;
    layout->offset = is_far ? 0 : (int64_t)(shared->offset / size);
    if (is_far || !layout_span(layout, &span) || (uint64_t)span.high > shared->size)
        return fail(TN_ERR_ARGUMENT,
                    "elements from byte %llu on reach outside of %llu bytes",
                    (unsigned long long)shared->offset, (unsigned long long)shared->size);
    return TN_OK;
}

// Work may write memory that begins with the elements and has no gaps.
static tn_status import_storage(struct device *device, const tn_layout *layout,
                                const tn_shared_memory *shared,
                                const struct host_memory *memory, struct storage **out)
{
    tn_buffer *buffer = NULL;
    struct host_memory whole = *memory;
    const tn_buffer_fd fd = {.struct_size = sizeof(fd),
                             .flags = memory->writable ? TN_IMPORT_WRITABLE : 0,
                             .fd = shared->fd,
                             .kind = shared->kind,
                             .size = shared->size};
    whole.size = shared->size;
    tn_status status = import_fd(device, &fd, &buffer);
    bool reusable = memory->writable && shared->offset == 0 && layout_is_contiguous(layout);
    return status == TN_OK ? storage_wrap(device, buffer, &whole, reusable, out) : status;
}

tn_status value_from_fd(tn_runtime *runtime, uint32_t device, const tn_layout *layout,
                        const tn_shared_memory *shared, const struct host_memory *memory,
                        struct value **out)
{
    struct device **devices;
    struct storage *storage = NULL;
    uint32_t count;
    tn_layout placed = *layout;
    tn_status status = devices_open(runtime, &devices, &count);
    if (status == TN_OK)
        status = check_device(devices[device], shared);
    if (status == TN_OK)
        status = device_share_layout(&placed, shared);
    if (status == TN_OK)
        status = import_storage(devices[device], &placed, shared, memory, &storage);
    if (status != TN_OK) {
        if (memory->release)
            memory->release(memory->context);
        return status;
    }
    status = value_create(storage, 0, &placed, out);
    if (status != TN_OK)
        storage_release(storage);
    return status;
}

// --- exporting -------------------------------------------------------------------------

tn_status value_export_fd(struct value *value, tn_shared_memory *out)
{
    struct storage *storage = value->storage;
    struct device *device = storage->device;
    uint64_t size = dtype_size(value->layout.dtype);
    tn_buffer_fd fd;
    tn_status status = device_check_shares(device);
    if (status == TN_OK && layout_elements(&value->layout) == 0)
        status = fail(TN_ERR_ARGUMENT, "an array without elements has no memory");
    if (status == TN_OK)
        status = storage_wait_outside(storage);
    if (status == TN_OK)
        status = export_fd(device, storage->buffer,
                           value->offset + (uint64_t)value->layout.offset * size,
                           (uint64_t)layout_elements(&value->layout) * size, &fd);
    if (status != TN_OK)
        return status;
    out->fd = fd.fd;
    out->kind = fd.kind;
    out->size = fd.size;
    out->offset = fd.offset;
    memcpy(out->device, device->info.share_id, sizeof(out->device));
    return TN_OK;
}

// --- in place --------------------------------------------------------------------------

// Gives the point of the work that wrote the storage; value 0: it is written. False: the
// host reaches the point, or the work failed.
static bool find_written_point(const struct storage *storage, tn_point *out)
{
    *out = storage_is_written(storage) ? (tn_point){0} : outcome_point(storage->outcome);
    return outcome_known(storage->outcome) == TN_OK &&
           !device_is_host_timeline(storage->device, out->queue);
}

// Gives the point of the writing work to the importer, as a descriptor where `wants` allows
// one; else this thread waits.
static tn_status export_point(struct storage *storage, uint32_t wants, tn_point *out,
                              int32_t *out_fd)
{
    struct device *device = storage->device;
    tn_status status = TN_ERR_UNSUPPORTED;
    if (TN_HAS(device->ops, point_export_fd) && find_written_point(storage, out)) {
        fail_clear();
        status =
            out->value == 0
                ? TN_OK
                : device->ops->point_export_fd(device->handle, *out,
                                               wants & TN_EXPORT_POINT_FD ? out_fd : NULL);
    }
    if (status == TN_OK)
        return TN_OK;
    out->value = 0;
    return status == TN_ERR_UNSUPPORTED ? storage_wait_written(storage)
                                        : device_failed(device, "point_export_fd", status);
}

tn_status value_export(struct value *value, uint32_t wants, tn_run_export *out)
{
    struct storage *storage = value->storage;
    struct device *device = storage->device;
    tn_buffer_export export = {.struct_size = sizeof(export), .fd = -1};
    tn_run_export mine = {.struct_size = out->struct_size, .point_fd = -1};
    tn_point point;
    if (!has_share_id(device) || !TN_HAS(device->ops, buffer_export))
        return fail(TN_ERR_UNSUPPORTED, "others cannot use memory of device %s",
                    device->name);
    fail_clear();
    tn_status status =
        device->ops->buffer_export(device->handle, storage->buffer, wants, &export);
    if (status != TN_OK)
        return device_failed(device, "buffer_export", status);
    status = export_point(storage, wants, &point, &mine.point_fd);
    if (status != TN_OK) {
        if (export.fd >= 0)
            close(export.fd);
        return status;
    }
    mine.queue = point.queue;
    mine.value = point.value;
    mine.memory = export.memory;
    mine.size = export.size;
    mine.num_freed = export.num_freed;
    mine.offset = export.offset + value->offset +
                  (uint64_t)value->layout.offset * dtype_size(value->layout.dtype);
    mine.memory_fd = export.fd;
    mine.number = device->number;
    memcpy(mine.device, device->info.share_id, sizeof(mine.device));
    memcpy(out, &mine, out->struct_size < sizeof(mine) ? out->struct_size : sizeof(mine));
    return TN_OK;
}

// --- from one device to another --------------------------------------------------------

bool devices_share(const struct device *from, const struct device *to)
{
    return TN_HAS(from->ops, buffer_export_fd) && TN_HAS(to->ops, buffer_import_fd) &&
           TN_HAS(to->ops, buffer_copy) && has_share_id(from) &&
           memcmp(from->info.share_id, to->info.share_id, sizeof(to->info.share_id)) == 0;
}

tn_status buffers_copy_shared(struct device *from, const tn_buffer *from_buffer,
                              uint64_t from_offset, struct device *to, tn_buffer *to_buffer,
                              uint64_t to_offset, uint64_t size)
{
    tn_buffer_fd memory;
    tn_buffer *shared = NULL;
    tn_status status = export_fd(from, from_buffer, from_offset, size, &memory);
    if (status != TN_OK)
        return status;
    status = import_fd(to, &memory, &shared);
    close(memory.fd);
    if (status != TN_OK)
        return status;
    fail_clear();
    status =
        to->ops->buffer_copy(to->handle, shared, memory.offset, to_buffer, to_offset, size);
    if (status != TN_OK)
        status = device_failed(to, "buffer_copy", status);
    to->ops->buffer_destroy(to->handle, shared);
    return status;
}
