// SPDX-License-Identifier: MIT
// Steps of a segment that share a launch. A group has the position of its first step. A
// group of products whose results one program reads has the position of the last step,
// which has the program, and a group of attention and what it reads that of the attention.
// Another step joins where no step in between depends on it, or it on them, by the memory
// that they access.
#ifndef VULKAN_SEGMENT_GROUPS_H
#define VULKAN_SEGMENT_GROUPS_H

#include "../dispatch/plan.h"

#define GROUP_MAX_STEPS 12

// Steps of one kind, which one kernel computes.
struct vk_group_kind {
    uint32_t most; // steps of a launch, up to GROUP_MAX_STEPS
    // Whether the steps fit one launch, and are faster so. The first count - 1 fit. With
    // one step: whether it may be in a group.
    bool (*fit)(const struct vk_plan *plan, const tn_step *const *steps, uint32_t count);
    // Plans the launch of two steps or more, which do not depend on each other.
    tn_status (*plan)(struct vk_plan *plan, const tn_step *const *steps, uint32_t count);
};

// The group of a step: zero: it has none.
struct vk_group_position {
    const struct vk_group_kind *kind;
    uint32_t count; // steps, at the position of the one that has the launch
    uint32_t steps[GROUP_MAX_STEPS];
    bool is_joint; // the first step, which comes last, reads the results of the others
    bool is_taken; // the launch of another step has the step
};

struct vk_groups {
    const tn_segment *segment;            // borrowed
    struct vk_group_position positions[]; // by step
};

// Finds the groups of the segment, for free(). NULL: there are none, or memory is short,
// and then each step has its own launches.
struct vk_groups *vk_groups_find(const struct vk_plan *plan, const tn_segment *segment);

// Plans the group of which the step that is planned is the first; *out_done when the step
// is planned, by itself or before.
tn_status vk_groups_plan(struct vk_plan *plan, bool *out_done);

#endif // VULKAN_SEGMENT_GROUPS_H
