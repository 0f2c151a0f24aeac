// SPDX-License-Identifier: MIT
// Which shapes of a plan's launches get kernels of their own.
#ifndef VULKAN_DISPATCH_SPECIAL_RULE_H
#define VULKAN_DISPATCH_SPECIAL_RULE_H

#include <stdbool.h>
#include <stdint.h>
#include "../device/hash.h"

struct vk_special_rule {
    uint32_t least_launches; // of a plan; with fewer nothing is looked at
    // A shape gets one beside the kernel that other launches keep where it has so many
    // launches, and the plan fewer kernels than this. Where no launch keeps it, it is
    // replaced.
    uint32_t least_equal, most_kernels;
    uint32_t runs; // of the plan before the thread begins
};
extern const struct vk_special_rule vk_special_rule;

// A launch as the rule sees it: its kernel, and that with the words of its shape. The same
// numbers say the same.
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
