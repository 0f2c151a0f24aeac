// SPDX-License-Identifier: MIT
// The device: exactly one, present on every machine.
#include "null.h"

#include <string.h>

tn_status null_device_count(const tn_host *host, uint32_t *out_count)
{
    (void)host;
    *out_count = 1;
    return TN_OK;
}

tn_status null_device_info(const tn_host *host, uint32_t index, tn_device_info *out)
{
    if (index != 0)
        return host->fail(host, TN_ERR_ARGUMENT, "device %u: there is only device 0",
                          index);
    tn_device_info info = {
        .struct_size = out->struct_size,
        .flags = TN_DEVICE_COMPUTES_NOTHING | TN_DEVICE_HOST_MEMORY,
        .name = "nothing",
        .driver = "null 0.1.0",
        .features = "f16,f64,i8,i16,i64,subgroup,shuffle",
        .buffer_alignment = 64,
        .num_queues = 1,
    };
    // An older host's struct is shorter: fill only the bytes that it has.
    memcpy(out, &info, out->struct_size < sizeof(info) ? out->struct_size : sizeof(info));
    return TN_OK;
}

tn_status null_device_open(const tn_host *host, uint32_t index, tn_device **out_device)
{
    if (index != 0)
        return host->fail(host, TN_ERR_ARGUMENT, "device %u: there is only device 0",
                          index);
    tn_device *device = host->alloc(host, sizeof(*device), 0);
    if (!device)
        return TN_ERR_MEMORY;
    *device = (tn_device){.host = host};
    *out_device = device;
    return TN_OK;
}

void null_device_close(tn_device *device)
{
    if (device)
        device->host->free(device->host, device);
}

tn_status null_memory_info(tn_device *device, tn_memory_info *out)
{
    tn_memory_info info = {
        .struct_size = out->struct_size,
        .used = device->used,
        .peak = device->peak,
        .reserved = device->used,
    };
    memcpy(out, &info, out->struct_size < sizeof(info) ? out->struct_size : sizeof(info));
    return TN_OK;
}

// Other backends set this flag when their driver reports the device lost.
tn_status null_lose(tn_device *device)
{
    device->is_lost = true;
    return TN_OK;
}

tn_status null_check_lost(tn_device *device)
{
    const tn_host *host = device->host;
    if (!device->is_lost)
        return TN_OK;
    return host->fail(host, TN_ERR_DEVICE,
                      "the device is lost, with all that was on it: open a new runtime");
}
