// SPDX-License-Identifier: MIT
// Writes what a launch pushes, and what it reads from buffers of constants, into the code
// of its kernel: the module that a compiler makes which knows them.
#ifndef VULKAN_SPIRV_SPIRV_BAKE_H
#define VULKAN_SPIRV_SPIRV_BAKE_H

#include "../device/device.h"

// The words that a launch has in its push constants, or at a binding.
struct spirv_words {
    const uint32_t *words;
    uint32_t count;
    uint32_t binding; // of push constants SPIRV_PUSH
    uint64_t open;    // of push constants, bit i: word i is not known
    // With open words: the binding of a buffer that has the words, or SPIRV_PUSH: open
    // ones stay where they are.
    uint32_t moved;
};
#define SPIRV_PUSH UINT32_MAX
#define SPIRV_MOST_BAKED 4096 // words of a binding: more are a table of data

// Gives the module, for vk_code.release, in which loads of these words are constants, for
// at most VK_MAX_OPERANDS + 1 lists. It keeps other bindings, and those of lists that it
// reads in ways which cannot be baked; it has no push constants if they are a list without
// open words. False: `reason` says what the module does that cannot be baked ("stores to
// what it pushes"), or that memory is short. The module is whole instructions, as
// vk_spirv_check takes it.
bool spirv_bake(const struct vk_code *code, const struct spirv_words *lists,
                uint32_t num_lists, struct vk_code *out, char reason[VK_REASON]);

#endif // VULKAN_SPIRV_SPIRV_BAKE_H
