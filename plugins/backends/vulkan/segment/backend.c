// SPDX-License-Identifier: MIT
#include "backend.h"

#include "../pipeline/pipeline.h"

tn_status vk_backend_open(const tn_host *host, uint32_t index,
                          const struct vk_flavour *flavour, tn_device **out_device)
{
    tn_device *device;
    tn_status status = vk_device_open(host, index, flavour, &device);
    if (status != TN_OK)
        return status;
    status = vk_shaders_init(device);
    if (status == TN_OK)
        *out_device = device;
    else
        vk_backend_close(device);
    return status;
}

void vk_backend_close(tn_device *device)
{
    if (!device)
        return;
    vk_wait_idle(device);
    vk_shaders_finish(device);
    vk_device_close(device);
}
