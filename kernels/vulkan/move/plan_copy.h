// SPDX-License-Identifier: MIT
// Copies of strided regions, also for kernels that begin with one.
#ifndef KERNELS_VULKAN_MOVE_PLAN_COPY_H
#define KERNELS_VULKAN_MOVE_PLAN_COPY_H

#include "../launch.h"

#define MAX_COPIED 16 // most bytes that an invocation of copy.comp or take.comp moves

// Copies input `from` to the elements of output 0 that `region` describes.
tn_status vk_plan_copy(const tn_vulkan_plan *plan, uint32_t from, const tn_layout *region);

#endif // KERNELS_VULKAN_MOVE_PLAN_COPY_H
