// SPDX-License-Identifier: MIT
// Buffers of a module that writes several: a result may lie in the memory of an input, so
// they are decorated Aliased, and none stays NonWritable. Drivers take buffers for distinct
// memory otherwise (SPIR-V specification, 2.18.2), and load an input that is NonWritable
// again behind the store of another result: NVIDIA's does so for Aliased ones, too. A
// module with one result stays as it is: each of its elements is stored behind what it is
// made of.
#ifndef VULKAN_PIPELINE_SPIRV_ALIAS_H
#define VULKAN_PIPELINE_SPIRV_ALIAS_H

#include "../device/device.h"

// Gives the module with other decorations, for vk_code.release; the same words, without a
// release, where it writes one binding or none. Buffers that the module itself decorates
// Restrict or Aliased stay as they are, as do modules that are not whole instructions,
// which the driver refuses. False: memory is short.
bool spirv_alias_buffers(const struct vk_code *code, struct vk_code *out);

#endif // VULKAN_PIPELINE_SPIRV_ALIAS_H
