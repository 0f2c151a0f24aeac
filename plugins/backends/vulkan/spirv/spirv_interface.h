// SPDX-License-Identifier: MIT
// What a SPIR-V module declares, compared with a launch: its push-constant block, its
// specialisation constants, its workgroup and shared memory.
#ifndef VULKAN_SPIRV_SPIRV_INTERFACE_H
#define VULKAN_SPIRV_SPIRV_INTERFACE_H

#include "spirv_check.h"

// Whether the module and the launch agree; if not, `reason` says what differs. The words
// are whole instructions, and the bound is not 0.
bool spirv_interface_fits(const struct vk_facts *facts, const struct vk_code *code,
                          const struct spirv_wants *wants, char reason[VK_REASON]);

// Whether the device takes workgroups of this size.
bool spirv_group_fits(const struct vk_facts *facts, const uint32_t size[3],
                      char reason[VK_REASON]);

#endif // VULKAN_SPIRV_SPIRV_INTERFACE_H
