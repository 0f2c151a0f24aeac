// SPDX-License-Identifier: MIT
// Radix sorts of rows, for base.sort/1 and base.argsort/1.
#ifndef KERNELS_VULKAN_SORT_RADIX_H
#define KERNELS_VULKAN_SORT_RADIX_H

#include "order.h"

// Whether a radix sort of the rows of an order, which is measured, is faster than merging.
bool vk_radix_suits(const struct vk_order *order);

// Bytes of scratch memory for vk_plan_radix. UINT64_MAX: more than 64 bits can count.
uint64_t vk_radix_scratch(const struct vk_order *order, bool positions);

// Sorts the rows of input 0: output `order->output` has the elements, or with `positions`
// their positions.
tn_status vk_plan_radix(const tn_vulkan_plan *plan, const struct vk_order *order,
                        bool positions);

#endif // KERNELS_VULKAN_SORT_RADIX_H
