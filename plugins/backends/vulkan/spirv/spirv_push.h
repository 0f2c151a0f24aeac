// SPDX-License-Identifier: MIT
// Moves lists of words that a module reads from storage buffers to the end of its push
// constants: an invocation gets them without a load from memory.
#ifndef VULKAN_SPIRV_SPIRV_PUSH_H
#define VULKAN_SPIRV_SPIRV_PUSH_H

#include "../device/device.h"

struct spirv_pushed {
    uint32_t binding;      // of the buffer, whose block is an array of uint
    uint32_t first, count; // words of the push constants, behind the module's own
};

// Gives the module, for vk_code.release. Its buffers at these bindings are gone. False:
// `reason` says what the module does with them, or with its push constants, but load
// elements, or that memory is short. The module is whole instructions, as vk_spirv_check
// takes it.
bool spirv_push(const struct vk_code *code, const struct spirv_pushed *lists,
                uint32_t num_lists, struct vk_code *out, char reason[VK_REASON]);

#endif // VULKAN_SPIRV_SPIRV_PUSH_H
