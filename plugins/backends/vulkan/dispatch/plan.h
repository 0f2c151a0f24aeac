// SPDX-License-Identifier: MIT
// Plans of segments: each step becomes one dispatch or a few. Constant once the segment is
// compiled.
#ifndef VULKAN_DISPATCH_PLAN_H
#define VULKAN_DISPATCH_PLAN_H

#include "../pipeline/pipeline.h"
#include "vulkan/launch.h"

// In place of a slot: the executable's own buffer of constants.
#define VK_SLOT_CONSTANTS UINT32_MAX
// In place of a slot: counters (kernel_counters), of which each recording has its own.
#define VK_SLOT_COUNTERS (UINT32_MAX - 1)

enum {
    VK_READS = TN_VULKAN_READS,
    VK_WRITES = TN_VULKAN_WRITES,
};

// Bytes [offset, offset + size) of a slot, for one descriptor. Of the constants: size 0 is
// all of them.
struct vk_operand {
    uint32_t slot;
    uint32_t access; // VK_READS, VK_WRITES
    uint64_t offset, size;
};

// One dispatch of code that is made for the step: an expression program. Workgroups find
// their number by workgroup() of kernels/vulkan/program/types.glsl.
#define LAUNCH_MAX_SPEC 16
struct vk_launch {
    struct vk_pipeline_desc pipeline; // plan_launch sets its numbers and `spec`
    struct vk_operand operands[VK_MAX_OPERANDS];
    uint32_t num_operands;
    uint32_t push[VK_MOST_PUSH];
    uint32_t num_push;
    tn_vulkan_constant spec[LAUNCH_MAX_SPEC]; // ids 0, 1, ...
    uint32_t num_spec;
    uint64_t groups; // laid out along x, and along y where x takes no more
};

struct vk_dispatch {
    struct vk_pipeline *pipeline; // with a reference
    uint32_t first_operand, num_operands;
    uint32_t first_push, num_push; // words
    uint32_t groups[3];
    uint32_t step;
    uint32_t set; // descriptor set, shared by dispatches with equal pipeline and operands
    uint32_t constants[2]; // range of the plan's constants that were recorded last for it
    uint64_t values;       // as of vk_pipeline_desc
    bool barrier;          // a memory barrier comes first
};

struct vk_groups;   // groups.h
struct vk_measured; // measure.c
struct vk_special;  // special.c

struct vk_plan {
    tn_device *device;
    struct vk_ahead *ahead;         // plans further steps of the segment on other threads;
                                    // NULL: off
    const struct vk_groups *groups; // steps that share a launch; NULL: there are none
    bool is_ahead;        // to be thrown away: of its dispatches only pipelines count
    const tn_slot *slots; // of the segment; borrowed
    uint32_t num_slots;
    uint32_t step;          // index of the step that is being planned
    const tn_step *planned; // that step
    struct vk_dispatch *dispatches;
    struct vk_operand *operands;
    uint32_t *push;      // words, of all dispatches
    uint32_t *constants; // words
    uint32_t num_dispatches, max_dispatches;
    uint32_t num_operands, max_operands;
    uint32_t num_push, max_push;
    uint32_t num_constants, max_constants;
    uint32_t num_counters;  // words, of all dispatches
    uint32_t last_constant; // where the constants begin that were appended last
    uint32_t num_sets;      // numbered in the order of the dispatches that use them first
    uint32_t num_bindings;  // of all sets
    struct vk_special *special;   // kernels of one shape; NULL: none
    struct vk_measured *measured; // dispatches that are to be measured; NULL: none
};

// Adds a dispatch, after a barrier if needed: desc->num_bindings operands, and
// desc->num_push words. One without workgroups is left out.
tn_status plan_add(struct vk_plan *plan, const struct vk_pipeline_desc *desc,
                   const struct vk_operand *operands, const uint32_t *push,
                   const uint32_t groups[3]);

// plan_add() for a program.
tn_status plan_launch(struct vk_plan *plan, const struct vk_launch *launch);

// Appends words to the constants. *out_at: where they begin, in words, a multiple of 4.
tn_status plan_constants(struct vk_plan *plan, const uint32_t *words, uint32_t count,
                         uint32_t *out_at);
// plan_constants() at a multiple of `alignment` words.
tn_status plan_constants_at(struct vk_plan *plan, const uint32_t *words, uint32_t count,
                            uint32_t alignment, uint32_t *out_at);
void plan_finish(struct vk_plan *plan);

// Numbers the sets of all dispatches anew, whose pipelines and operands have changed.
void plan_choose_sets(struct vk_plan *plan);

// The step's name, for people: its label, or else its primitive.
static inline const char *plan_step_name(const tn_step *step)
{
    if (step->label)
        return step->label;
    return step->primitive ? step->primitive->id : "program";
}

// The slot that stands for this slot's memory: aliases of each other have the same.
uint32_t plan_memory(const struct vk_plan *plan, uint32_t slot);

// Whether both access the same bytes, and one of them writes.
bool plan_conflicts(const struct vk_plan *plan, const struct vk_operand *a,
                    const struct vk_operand *b);

// The bytes of a value, from its offset to its last element.
struct vk_operand plan_operand(const tn_value *value, uint32_t access);
// The bytes that a step with a program may read of an input.
struct vk_operand plan_program_input(const tn_step *step, uint32_t input);
// `size` bytes of the step's scratch memory, from `offset` on.
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
    uint32_t id = launch->num_spec++;
    launch->spec[id] = (tn_vulkan_constant){id, value};
}

// Plans a step with a kernel of family vulkan.glsl/1 or vulkan.spirv/1.
tn_status plan_kernel(struct vk_plan *plan, const tn_step *step);

// The kind of the step's kernel among this backend's own. KERNEL_OTHER: none of these, or
// another plugin's, or the step is a program.
enum kernel_kind plan_own_kind(const tn_device *device, const tn_step *step);

#endif // VULKAN_DISPATCH_PLAN_H
