// SPDX-License-Identifier: MIT
// Checks SPIR-V of op packs, and what a launch gives to it, before a driver gets it.
// Drivers do not validate: a damaged module, or one with another layout, crashes the
// process or the device.
//
// Not a full validator: errors that a compiler hardly makes are not checked.
#ifndef VULKAN_SPIRV_SPIRV_CHECK_H
#define VULKAN_SPIRV_SPIRV_CHECK_H

#include "../device/device.h"

// Arguments that a launch gives to a module.
struct spirv_wants {
    const char *entry;     // a compute entry point of this name; NULL: "main"
    uint32_t num_bindings; // of set 0
    uint32_t num_push;     // words of push constants
    uint32_t num_spec;
    const tn_vulkan_constant *spec; // num_spec specialisation constants
};

// Whether a driver may get the code. If not, `reason` says what is wrong ("has no entry
// point ...").
bool vk_spirv_check(const struct vk_facts *facts, const struct vk_code *code,
                    const struct spirv_wants *wants, char reason[VK_REASON]);

#endif // VULKAN_SPIRV_SPIRV_CHECK_H
