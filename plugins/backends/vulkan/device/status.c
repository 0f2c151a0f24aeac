// SPDX-License-Identifier: MIT
// Reports the errors of devices, and whether they are lost.
#include "device.h"

static const char *vk_status_remedy(VkResult result)
{
    switch (result) {
    case VK_ERROR_DEVICE_LOST:
        return ": what was on it is gone: open a new runtime, or name another device in "
               "TENON_BACKEND";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
        return ": free arrays, or compute with smaller ones";
    default:
        return "";
    }
}

tn_status vk_lose(tn_device *device)
{
    atomic_store(&device->lost, true);
    return TN_OK;
}

tn_status vk_fail(tn_device *device, VkResult result, const char *call)
{
    tn_status status = TN_ERR_INTERNAL;
    if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
        result == VK_ERROR_TOO_MANY_OBJECTS || result == VK_ERROR_OUT_OF_POOL_MEMORY)
        status = TN_ERR_MEMORY;
    if (result == VK_ERROR_DEVICE_LOST) {
        status = TN_ERR_DEVICE;
        vk_lose(device);
    }
    return device->host->fail(device->host, status, "%s: %s: %s%s",
                              device->facts.properties.deviceName, call,
                              vk_result_name(result), vk_status_remedy(result));
}

tn_status vk_check(tn_device *device, VkResult result, const char *call)
{
    return result == VK_SUCCESS ? TN_OK : vk_fail(device, result, call);
}

tn_status vk_check_lost(tn_device *device)
{
    if (!atomic_load(&device->lost))
        return TN_OK;
    return device->host->fail(device->host, TN_ERR_DEVICE, "%s was lost before%s",
                              device->facts.properties.deviceName,
                              vk_status_remedy(VK_ERROR_DEVICE_LOST));
}

tn_status vk_ask_lost(tn_device *device)
{
    uint64_t reached;
    tn_status status = vk_check_lost(device);
    if (status != TN_OK)
        return status;
    VkResult result = device->vk->GetSemaphoreCounterValue(
        device->handle, device->queues[0].timeline, &reached);
    return result == VK_ERROR_DEVICE_LOST
               ? vk_fail(device, result, "vkGetSemaphoreCounterValue")
               : TN_OK;
}
