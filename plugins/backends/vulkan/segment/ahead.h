// SPDX-License-Identifier: MIT
// Makes the pipelines of a segment's later steps on threads, while the caller makes that of
// the step it is at: compilers and drivers take from one to a hundred milliseconds for
// each.
//
// The caller plans all steps in order. Where a pipeline is missing, helpers plan steps that
// the caller has not come to, into plans that are thrown away: all that stays are
// pipelines. What fails there fails again, and is reported, when the caller comes to it. A
// segment whose pipelines are all there starts no thread.
#ifndef VULKAN_SEGMENT_AHEAD_H
#define VULKAN_SEGMENT_AHEAD_H

#include "../dispatch/plan.h"

#define AHEAD_MAX_THREADS 15 // beside the caller

// Plans one step.
typedef tn_status vk_plan_step(struct vk_plan *plan, const tn_step *step);

// Plans all steps of the segment into `plan`, in order, until one fails.
tn_status vk_ahead_plan(const tn_segment *segment, vk_plan_step *plan_step,
                        struct vk_plan *plan);

// A pipeline is about to be made for `plan`: one more thread looks for the next one, if
// there are steps left and threads allowed, TENON_THREADS or one a core in all.
void vk_ahead_more(const struct vk_plan *plan);

// The caller has to wait for a pipeline: plans one more step ahead meanwhile. False when
// nothing is left.
bool vk_ahead_help(const struct vk_plan *plan);

#endif // VULKAN_SEGMENT_AHEAD_H
