// SPDX-License-Identifier: MIT
// Whether somebody's SPIR-V may be given to a driver. Drivers trust what they are given: a
// damaged module, or one for another layout, crashes the process or the device.
//
// Not a validator: what a compiler's output can hardly get wrong is not looked at.
#ifndef VULKAN_COMMON_SPIRV_CHECK_H
#define VULKAN_COMMON_SPIRV_CHECK_H

#include "device.h"

struct spirv_wants {
    const char *entry;     // a compute entry point of this name; NULL: "main"
    uint32_t num_bindings; // of set 0
};

// False when it may not; then `reason` says what is wrong with it ("has no entry point
// ...").
bool vk_spirv_check(const struct vk_facts *facts, const struct vk_code *code,
                    const struct spirv_wants *wants, char reason[VK_REASON]);

#endif // VULKAN_COMMON_SPIRV_CHECK_H
