// SPDX-License-Identifier: MIT
// Which shapes of a plan's launches get kernels of their own.
#ifndef VULKAN_DISPATCH_SPECIAL_RULE_H
#define VULKAN_DISPATCH_SPECIAL_RULE_H

#include <stdbool.h>
#include <stdint.h>
#include "../device/hash.h"

struct vk_special_rule {
    uint32_t least_launches; // of a plan; one with fewer gets no kernels of one shape
    // A shape gets a kernel beside the general one if it has `least_equal` launches and the
    // plan fewer than `most_kernels` kernels. A general kernel that no launch keeps is
    // replaced.
    uint32_t least_equal, most_kernels;
    uint32_t runs; // of the plan before the thread begins
};
extern const struct vk_special_rule vk_special_rule;

// A launch as the rule sees it: the hash of its kernel, and of the kernel with the words of
// its shape. Equal hashes mean equal kernels and shapes.
struct vk_special_launch {
    struct vk_hash kernel, shape; // shape {0, 0}: it has none
    uint32_t words;               // that it reads, of shape and values
};

// Numbers the kernels of one shape that a plan gets, from 0: by launch into `out`, and
// UINT32_MAX for one that keeps its kernel. Gives how many there are. False: out of memory.
bool vk_special_choose(const struct vk_special_rule *rule,
                       const struct vk_special_launch *launches, uint32_t count,
                       uint32_t *out, uint32_t *out_num);

#endif // VULKAN_DISPATCH_SPECIAL_RULE_H
