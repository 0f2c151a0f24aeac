// SPDX-License-Identifier: MIT
// From steps to launches: each step becomes one dispatch or a few.
#ifndef VULKAN_COMMON_PLAN_H
#define VULKAN_COMMON_PLAN_H

#include "device.h"

// Stands for the executable's own buffer of constants, filled while planning.
#define VK_SLOT_CONSTANTS UINT32_MAX

enum {
    VK_READS = 1,
    VK_WRITES = 2,
};

// Bytes [offset, offset + size) of a slot, as one binding sees them.
struct vk_operand {
    uint32_t slot;
    uint32_t access; // VK_READS, VK_WRITES
    uint64_t offset, size;
};

// One dispatch, as a plan function describes it.
struct vk_launch {
    struct vk_pipeline_desc pipeline; // num_bindings and num_push are filled in
    struct vk_operand operands[VK_MAX_OPERANDS];
    uint32_t num_operands;
    uint32_t push[VK_MAX_PUSH];
    uint32_t num_push;
    uint64_t groups;     // laid out along x and y: number = x + y * 65535
    uint32_t groups_z;   // 0 means 1
    uint32_t fixed_grid; // groups_x and groups_y as they are, instead of `groups`
    uint32_t groups_x, groups_y;
};

struct vk_dispatch {
    struct vk_pipeline *pipeline;
    uint32_t first_operand, num_operands;
    uint32_t push[VK_MAX_PUSH];
    uint32_t num_push;
    uint32_t groups[3];
    uint32_t step;
    bool barrier; // wait for what was launched before
};

struct vk_plan {
    tn_device *device;
    const tn_slot *slots; // of the segment
    uint32_t num_slots;
    uint32_t step; // the one being planned
    struct vk_dispatch *dispatches;
    struct vk_operand *operands;
    uint32_t *constants; // words
    uint32_t num_dispatches, max_dispatches;
    uint32_t num_operands, max_operands;
    uint32_t num_constants, max_constants;
};

// Adds a dispatch. One of no groups is left out.
tn_status plan_launch(struct vk_plan *plan, const struct vk_launch *launch);

// Copies words into the constants and says where they begin (in words, aligned to 4).
tn_status plan_constants(struct vk_plan *plan, const uint32_t *words, uint32_t count,
                         uint32_t *out_at);
void plan_finish(struct vk_plan *plan);

// The binding of an operand: from the value's first byte to its last element.
struct vk_operand plan_operand(const tn_value *value, uint32_t access);
// `size` bytes of the step's scratch from `offset` on.
struct vk_operand plan_scratch(const tn_step *step, uint64_t offset, uint64_t size);

static inline void launch_bind(struct vk_launch *launch, struct vk_operand operand)
{
    launch->operands[launch->num_operands++] = operand;
}
static inline void launch_push(struct vk_launch *launch, uint64_t word)
{
    launch->push[launch->num_push++] = (uint32_t)word;
}
static inline void launch_spec(struct vk_launch *launch, uint32_t value)
{
    launch->pipeline.spec[launch->pipeline.num_spec++] = value;
}

// The payload of our own kernels.
struct vk_own_kernel {
    tn_status (*plan)(struct vk_plan *plan, const tn_step *step);
};

// vulkan.glsl/1 and vulkan.spirv/1.
tn_status plan_foreign(struct vk_plan *plan, const tn_step *step);

#endif // VULKAN_COMMON_PLAN_H
