// SPDX-License-Identifier: MIT
// A reduction over any axes of an array, and how it is spread over a device.
#ifndef KERNELS_VULKAN_REDUCE_PLAN_REDUCE_H
#define KERNELS_VULKAN_REDUCE_PLAN_REDUCE_H

#include "../launch.h"

#define REDUCE_GROUP 256 // invocations of a workgroup

// Rows so long are reduced by the core's other way to run an expression with reductions,
// which spreads each row over the device, unless there are enough rows for all of it.
#define REDUCE_LONG_ROW 65536
#define REDUCE_FEW_ROWS 64

struct reduction {
    uint64_t num_outputs, num_reduced;
    uint32_t num_kept_axes, num_reduced_axes;
    uint32_t extent[TN_MAX_RANK], stride[TN_MAX_RANK]; // of kept axes, then of reduced ones
    uint32_t splits; // ranges of an output's elements; above 1: a second launch joins them
    uint32_t lanes;  // invocations that reduce a split: a power of two up to 256
};

// The axes that a step with a reduction reduces.
uint32_t reduction_axes(const tn_step *step);
struct reduction reduction_describe(const tn_layout *x, uint32_t reduced, bool is_software);
// Invocations that join the splits of one output.
uint32_t reduction_second_lanes(const struct reduction *first);

// Bytes of the splits of all outputs.
uint64_t reduction_splits_bytes(const struct reduction *r);

// The reduction's name, of `length` bytes: "sum".
const char *reduction_name(const tn_step *step, uint32_t *length);

// Sums `count` contiguous splits of `n` f32 each (f64 for an output of f64), at the
// beginning of the scratch memory, into output 0.
tn_status vk_plan_sum_splits(const tn_vulkan_plan *plan, uint64_t n, uint32_t count);

#endif // KERNELS_VULKAN_REDUCE_PLAN_REDUCE_H
