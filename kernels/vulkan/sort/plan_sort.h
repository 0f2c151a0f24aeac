// SPDX-License-Identifier: MIT
// Sorts indices along an axis, for kernels that scatter.
#ifndef KERNELS_VULKAN_SORT_PLAN_SORT_H
#define KERNELS_VULKAN_SORT_PLAN_SORT_H

#include "../launch.h"

// Indices `first` .. `first + count - 1` of input `input`, which is contiguous, along an
// axis of `extent`.
struct vk_indices {
    uint32_t input;
    uint64_t first, count, extent; // below 2^32
};
// Sorts the indices, in the step's scratch memory from its beginning on. *out_keys: `count`
// u32 in ascending order, each an index counted from the front, or `extent` for an index
// out of range. *out_positions: the positions of these keys among the indices, ascending
// for equal keys.
tn_status vk_plan_sort(const tn_vulkan_plan *plan, const struct vk_indices *indices,
                       tn_vulkan_operand *out_keys, tn_vulkan_operand *out_positions);
// Bytes of scratch memory for vk_plan_sort. UINT64_MAX: more than 64 bits can count.
uint64_t vk_sort_scratch(uint64_t count, uint64_t extent);

#endif // KERNELS_VULKAN_SORT_PLAN_SORT_H
