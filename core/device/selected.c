// SPDX-License-Identifier: MIT
// For applications that divide work among devices: the open ones, and the packings that
// their kernels read.
#include <stdio.h>
#include <string.h>
#include <tenon/selected.h>
#include "../base/fail.h"
#include "../base/memory.h"
#include "device_set.h"

static uint64_t spare_bytes(const struct device *device)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < device->num_queues; i++)
        bytes += atomic_load(&device->queues[i].spares.bytes);
    return bytes;
}

uint64_t device_available(struct device *device)
{
    tn_memory_info info = {.struct_size = sizeof(info)};
    if (!TN_HAS(device->ops, memory_info) ||
        device->ops->memory_info(device->handle, &info) != TN_OK || !info.available)
        return 0;
    return info.available + spare_bytes(device);
}

static tn_selected_device selected_device_describe(struct device *device)
{
    tn_selected_device out = {.struct_size = sizeof(out),
                              .flags = device->info.flags,
                              .memory_size = device->info.memory_size,
                              .is_lost = atomic_load(&device->lost)};
    snprintf(out.device, sizeof(out.device), "%s", device->name);
    memcpy(out.name, device->info.name, sizeof(out.name));
    memcpy(out.share_id, device->info.share_id, sizeof(out.share_id));
    out.available = out.is_lost ? 0 : device_available(device);
    return out;
}

tn_status tn_selected_devices(tn_runtime *runtime, tn_selected_device *out, uint64_t *count)
{
    struct device **devices;
    uint32_t num_devices;
    tn_status status = fail_if_null("selected_devices", "the runtime", runtime);
    if (status == TN_OK)
        status = fail_if_null("selected_devices", "count", count);
    if (status == TN_OK)
        status = devices_open(runtime, &devices, &num_devices);
    if (status != TN_OK)
        return status;
    uint32_t size = out && out->struct_size ? out->struct_size : TN_END_OF(out, reserved);
    for (uint64_t i = 0; out && i < *count && i < num_devices; i++) {
        tn_selected_device one = selected_device_describe(devices[i]);
        char *to = (char *)out + i * size;
        memcpy(to, &one, size < sizeof(one) ? size : sizeof(one));
        memcpy(to, &size, sizeof(size));
    }
    *count = num_devices;
    return TN_OK;
}

tn_status tn_selected_packing(tn_runtime *runtime, const char *device, const char *format,
                              const tn_packing **out_packing)
{
    const char *const missing = !device        ? "the device's name"
                                : !format      ? "the format's name"
                                : !out_packing ? "the output pointer"
                                               : NULL;
    struct device *found;
    tn_status status = fail_if_null("selected_packing", "the runtime", runtime);
    if (status == TN_OK && missing)
        status = fail_if_null("selected_packing", missing, NULL);
    if (status == TN_OK)
        status = device_find(runtime, "selected_packing", device, &found);
    if (status != TN_OK)
        return status;
    const tn_backend *ops = found->ops;
    const tn_packing *packing = NULL;
    for (uint32_t i = 0; !packing && TN_HAS(ops, packing_size) && i < ops->num_packings;
         i++) {
        const char *record = (const char *)ops->packings + (size_t)i * ops->packing_size;
        packing = (const tn_packing *)(const void *)record;
        packing = strcmp(packing->format, format) == 0 ? packing : NULL;
    }
    *out_packing = packing;
    return TN_OK;
}
