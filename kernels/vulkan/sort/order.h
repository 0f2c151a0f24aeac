// SPDX-License-Identifier: MIT
// Orders of rows: how elements become the keys of keys.glsl, and sorting by these.
#ifndef KERNELS_VULKAN_SORT_ORDER_H
#define KERNELS_VULKAN_SORT_ORDER_H

#include "../launch.h"

#include <tenon/ops/base_attrs.h>

// The rows, and the layout of the scratch memory from `begin` on: two buffers of keys and
// positions.
struct vk_order {
    uint64_t rows, n, inner;
    tn_dtype dtype;
    bool descending;
    bool from_pairs; // keys and positions are in the second buffer already, in any order
    uint32_t output; // of positions
    uint64_t begin;
    // Set by vk_order_measure():
    uint64_t blocks;
    uint32_t bits, key_bytes;
    uint64_t keys, positions, bytes; // bytes of an array of keys, of positions, of all
};

// Sets these fields. False: more bytes than 64 bits can count.
bool vk_order_measure(struct vk_order *order);

// Fills *out for the rows of x. False likewise.
bool vk_order_describe(const tn_layout *x, const tn_sort_attrs *attrs,
                       struct vk_order *out);

// Keys, or with `is_key` false positions, of buffer `which`, 0 or 1.
tn_vulkan_operand vk_order_pairs(const struct vk_order *order, uint32_t which, bool is_key,
                                 uint16_t access);

// Sorts the rows of input 0, or of the pairs.
tn_status vk_plan_order(const tn_vulkan_plan *plan, const struct vk_order *order);

// Specifies KIND, DESCENDING and INFINITY_HIGH.
void vk_order_specify(struct kernel_launch *launch, tn_dtype dtype, bool descending);

#endif // KERNELS_VULKAN_SORT_ORDER_H
