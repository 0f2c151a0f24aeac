// SPDX-License-Identifier: MIT
// A reduction over any axes of an array, and how it is spread over a device.
#ifndef VULKAN_DISPATCH_PLAN_REDUCE_H
#define VULKAN_DISPATCH_PLAN_REDUCE_H

#include "kernels.h"

#define REDUCE_GROUP 256 // invocations of a workgroup

struct reduction {
    uint64_t num_outputs, num_reduced;
    uint32_t num_kept_axes, num_reduced_axes;
    uint32_t extent[TN_MAX_RANK], stride[TN_MAX_RANK]; // of kept axes, then of reduced ones
    uint32_t splits; // parts of an output's elements; above 1: a second launch joins them
    uint32_t lanes;  // invocations that reduce a part: a power of two up to 256
};

// The axes that a step with a reduction reduces.
uint32_t reduction_axes(const tn_step *step);
struct reduction reduction_describe(const tn_layout *x, uint32_t reduced, bool is_software);
// Invocations that join the parts of one output.
uint32_t reduction_second_lanes(const struct reduction *first);

// Bytes of the parts of all outputs.
uint64_t reduction_parts_bytes(const struct reduction *r);

// The reduction's name, of `length` bytes: "sum".
const char *reduction_name(const tn_step *step, uint32_t *length);

#endif // VULKAN_DISPATCH_PLAN_REDUCE_H
