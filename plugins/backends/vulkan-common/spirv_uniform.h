// SPDX-License-Identifier: MIT
// Turns a module's push constants into a uniform buffer.
#ifndef VULKAN_COMMON_SPIRV_UNIFORM_H
#define VULKAN_COMMON_SPIRV_UNIFORM_H

#include "device.h"

// Gives the module, for vk_code.release, whose block of push constants is a uniform buffer
// at a binding of set 0. Its members have 32 or 64 bits, and lie as they did: the device
// has uniformBufferStandardLayout. False: out of memory.
bool spirv_uniform(const struct vk_code *code, uint32_t binding, struct vk_code *out);

#endif // VULKAN_COMMON_SPIRV_UNIFORM_H
