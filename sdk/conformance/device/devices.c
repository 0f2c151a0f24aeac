// SPDX-License-Identifier: MIT
// Lists devices, and opens runtimes for them.
#include "devices.h"

#include <fnmatch.h>

static void devices_add(struct devices *devices, const tn_device_summary *d)
{
    char name[64];
    const char *wanted = devices->kit->devices;
    format_text(name, sizeof(name), "%.40s:%u", d->backend, d->index);
    if (d->reason[0] || d->flags & TN_DEVICE_COMPUTES_NOTHING ||
        devices->count == MAX_DEVICES || (wanted && fnmatch(wanted, name, 0) != 0))
        return;
    struct tried_device *device = &devices->items[devices->count++];
    bool is_slow = d->flags & TN_DEVICE_SOFTWARE;
    memcpy(device->name, name, sizeof(name));
    device->is_slow = is_slow;
    device->is_exact = d->flags & TN_DEVICE_HOST_MEMORY && !is_slow;
}

void devices_find(struct devices *devices, struct kit *k)
{
    const char *why;
    uint64_t count = 0;
    tn_device_summary *all = NULL;
    *devices = (struct devices){.kit = k};
    tn_runtime *runtime = subject_runtime(k, NULL, &why);
    if (!runtime)
        return; // the group `entry` reports why
    if (tn_devices(runtime, NULL, &count) == TN_OK && count)
        all = calloc(count, sizeof(*all));
    for (uint64_t i = 0; all && i < count; i++)
        all[i].struct_size = sizeof(*all);
    if (all && tn_devices(runtime, all, &count) == TN_OK)
        for (uint64_t i = 0; i < count; i++)
            devices_add(devices, &all[i]);
    free(all);
    tn_runtime_close(runtime);
}

void devices_close(struct devices *devices)
{
    for (uint32_t i = 0; i < devices->count; i++)
        tn_runtime_close(devices->items[i].runtime);
    devices->count = 0;
}

tn_runtime *device_runtime_with(struct devices *devices, uint32_t index,
                                const char *kernels, const char **out_why)
{
    return subject_runtime_on(devices->kit, devices->items[index].name, kernels, out_why);
}

tn_runtime *device_runtime(struct devices *devices, uint32_t index, const char **out_why)
{
    struct tried_device *device = &devices->items[index];
    if (!device->runtime)
        device->runtime = device_runtime_with(devices, index, NULL, out_why);
    return device->runtime;
}
