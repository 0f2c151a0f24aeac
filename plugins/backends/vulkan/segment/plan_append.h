// SPDX-License-Identifier: MIT
// Attention of one query over caches to which the steps before it write a row of keys and
// one of values: one launch does both (APPENDS in
// kernels/vulkan/attention/attention_few.comp), with the program that makes the query. So a
// decoder's step has one launch less in each layer.
#ifndef VULKAN_SEGMENT_PLAN_APPEND_H
#define VULKAN_SEGMENT_PLAN_APPEND_H

#include "../dispatch/plan.h"

#define APPEND_MAX_STEPS 4

// Whether the step is attention that may write rows to its caches.
bool append_begins(const struct vk_plan *plan, const tn_step *step);

// The input of the first step, the attention, that step number `count` is to make.
uint32_t append_input(uint32_t count);

// Whether the last of the steps fits the launch: behind the attention the update of the
// keys, that of the values, and the program that makes the query, which may be left out.
// The steps before it fit. The caller ensures that it may run at the position of the
// attention, and that no other step reads the query.
bool append_fits(const struct vk_plan *plan, const tn_step *const *steps, uint32_t count);

// Plans the launch of three steps or four.
tn_status append_plan(struct vk_plan *plan, const tn_step *const *steps, uint32_t count);

#endif // VULKAN_SEGMENT_PLAN_APPEND_H
