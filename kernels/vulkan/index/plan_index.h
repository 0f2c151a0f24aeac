// SPDX-License-Identifier: MIT
// Gathers and scatters along an axis, and the scatters whose updates come in any order.
#ifndef KERNELS_VULKAN_INDEX_PLAN_INDEX_H
#define KERNELS_VULKAN_INDEX_PLAN_INDEX_H

#include "../launch.h"

struct gather {
    uint64_t outer, length, inner; // elements before, along and after the axis
    uint64_t count;                // number of indices
};

// Whether scatter_atomic.comp takes these sums, and is faster as there are many indices.
bool vk_scatter_is_atomic(tn_dtype dtype, const struct gather *g);
// Adds the updates to the output, which x was copied to.
tn_status vk_plan_scatter_atomic(const tn_vulkan_plan *plan, const struct gather *g);

// Whether scatter_split.comp takes these sums of floats; whether the device has its shared
// memory; bytes of its scratch memory.
bool vk_scatter_is_split(tn_dtype dtype, const struct gather *g);
bool vk_scatter_split_fits(const tn_vulkan_limits *limits, const struct gather *g);
uint64_t vk_scatter_split_scratch(tn_dtype dtype, const struct gather *g);
// Adds the updates, in their order, to the output, which x was copied to.
tn_status vk_plan_scatter_split(const tn_vulkan_plan *plan, const struct gather *g);

// Whether scatter_last.comp replaces rows by so many updates; bytes of its scratch memory.
bool vk_scatter_is_last(const struct gather *g);
uint64_t vk_scatter_last_scratch(const struct gather *g);
tn_status vk_plan_scatter_last(const tn_vulkan_plan *plan, const struct gather *g);

#endif // KERNELS_VULKAN_INDEX_PLAN_INDEX_H
