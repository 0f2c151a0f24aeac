// SPDX-License-Identifier: MIT
// Kernels of one shape: where many launches of a plan are equal in all but operands and
// values, they get a pipeline whose code has their extents, strides and offsets.
//
// A launch waits for the first word that it reads of what is pushed, and a loop of unknown
// length is not unrolled. The kernels of a plan stay as few as they are, but for
// `most_kernels`: the rule, with what it was measured by, is in docs/kernels.md.
//
// The plan begins with kernels of any shape. Once it has run often, a thread makes the
// others, and the runs behind record them.
#ifndef VULKAN_DISPATCH_SPECIAL_H
#define VULKAN_DISPATCH_SPECIAL_H

#include "plan.h"
#include "special_rule.h"

// Chooses kernels of one shape for a plan; makes none of them.
tn_status vk_special_plan(struct vk_plan *plan);
// Makes these kernels, if they are not made, and puts them in place; without runs.
tn_status vk_special_make(struct vk_plan *plan);
// The pipeline that a dispatch had before.
const struct vk_pipeline *vk_special_plain(const struct vk_plan *plan, uint32_t dispatch);
// Whether the plan will stay as it is.
bool vk_special_is_settled(const struct vk_plan *plan);
// Counts a run. True: the plan has been changed, and recordings of it are old. The
// executable's lock is held.
bool vk_special_count_run(struct vk_plan *plan);
// Waits for the thread, and releases the pipelines. No work of the plan is pending.
void vk_special_finish(struct vk_plan *plan);

#endif // VULKAN_DISPATCH_SPECIAL_H
