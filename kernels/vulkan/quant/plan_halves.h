// SPDX-License-Identifier: MIT
// Products of many rows of f32 with weights of halves, on cooperative matrices.
#ifndef KERNELS_VULKAN_QUANT_PLAN_HALVES_H
#define KERNELS_VULKAN_QUANT_PLAN_HALVES_H

#include "../matmul/plan_matmul.h"

// Bytes of scratch memory that a device with cooperative matrices needs for a product; 0:
// it runs without them. `w`: as it lies in memory, rows of the product's terms.
uint64_t halves_matrix_scratch(const tn_layout *w, const struct product *p);

// Whether the product runs on cooperative matrices of the device.
bool halves_takes_matrices(const tn_vulkan_limits *limits, const tn_layout *w,
                           const struct product *p);

tn_status halves_plan_matrices(const tn_vulkan_plan *plan, const struct product *p);

#endif // KERNELS_VULKAN_QUANT_PLAN_HALVES_H
