// SPDX-License-Identifier: MIT
// Decoration Aliased for the buffers of a module that writes several: a result may lie in
// the memory of an input, and without it drivers read that input again behind the store of
// the result (SPIR-V specification, 2.18.2: buffers are distinct memory unless they are
// Aliased). A module with one result needs none: each of its elements is stored behind what
// it is made of.
#ifndef VULKAN_PIPELINE_SPIRV_ALIAS_H
#define VULKAN_PIPELINE_SPIRV_ALIAS_H

#include "../device/device.h"

// Gives the module with the decorations, for vk_code.release; the same words, without a
// release, where it writes one binding or none. Buffers that the module itself decorates
// Restrict or Aliased stay as they are. False: memory is short. The module is whole
// instructions, as vk_spirv_check takes it.
bool spirv_alias_buffers(const struct vk_code *code, struct vk_code *out);

#endif // VULKAN_PIPELINE_SPIRV_ALIAS_H
