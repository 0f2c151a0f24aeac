// SPDX-License-Identifier: MIT
// Links a program into a kernel's module: where the kernel stores an element of an operand,
// it calls the program's function with the element's number and the element instead, and
// where it loads one, it calls the function with the number and gets the element.
//
// The kernel is SPIR-V of any origin. It reaches the operand's memory through access chains
// into a block that has an array of elements and nothing else: of vectors of two words for
// a dtype of 64 bits, say. Its other instructions stay as they are.
#ifndef VULKAN_SPIRV_SPIRV_FUSE_H
#define VULKAN_SPIRV_SPIRV_FUSE_H

#include "../device/device.h"

struct spirv_fused {
    uint32_t binding; // of the kernel's operand
    tn_dtype dtype;   // of its elements
    uint32_t count;   // above 1: an element is a vector of so many
    bool is_output;
    bool has_i16; // the device computes with 16-bit integers
    // A module made for this. Its entry point is the function, or calls it alone: of an
    // output (uint number, W_ element), of an input (uint number) -> W_ element, with the
    // types of kernels/vulkan/program/types.glsl.
    const struct vk_code *program;
    const uint32_t *bindings; // by binding of the program's module: that of the launch
    uint32_t num_bindings;
};

// Gives the linked module, for vk_code.release. False: `reason` says what the kernel's
// module does that cannot be linked ("reads binding 2, ..."), or that memory is short. The
// kernel is whole instructions, as vk_spirv_check takes it.
bool spirv_fuse(const struct vk_code *kernel, const struct spirv_fused *fused,
                struct vk_code *out, char reason[VK_REASON]);

#endif // VULKAN_SPIRV_SPIRV_FUSE_H
