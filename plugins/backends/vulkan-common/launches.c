// SPDX-License-Identifier: MIT
// Tells launches, as they are planned, to a program that asks for them.
#include "launches.h"

#include "plan.h"

_Static_assert(sizeof(tn_vulkan_constant) == 2 * sizeof(uint32_t),
               "a constant is told as two words");

// The constants that an operand holds: one without a size has those that the plan got last,
// and the launch pushes where they begin.
static void find_constants(const struct vk_plan *plan, const struct vk_operand *operand,
                           uint32_t *push, tn_planned_launch *launch)
{
    uint32_t at = (uint32_t)(operand->offset / sizeof(uint32_t));
    if (operand->size == 0) {
        at = plan->last_constant;
        push[0] = 0;
    }
    launch->constants = plan->constants + at;
    launch->num_constants = operand->size == 0
                                ? plan->num_constants - at
                                : (uint32_t)(operand->size / sizeof(uint32_t));
}

void vk_launches_tell(const struct vk_plan *plan, const struct vk_pipeline_desc *desc,
                      const struct vk_dispatch *dispatch)
{
    const struct vk_instance *instance = plan->device->instance;
    const struct vk_pipeline *pipeline = dispatch->pipeline;
    uint64_t places[2 * VK_MAX_OPERANDS];
    uint32_t push[VK_MOST_PUSH];
    tn_planned_launch launch = {.struct_size = sizeof(launch),
                                .device = plan->device->track,
                                .step = plan_step_name(plan->planned),
                                .name = desc->name,
                                .code = {desc->key.lo, desc->key.hi},
                                .pipeline = {pipeline->key.lo, pipeline->key.hi},
                                .code_bytes = pipeline->size,
                                .spec = desc->num_spec ? &desc->spec->id : NULL,
                                .push = push,
                                .places = places,
                                .num_spec = desc->num_spec,
                                .num_push = desc->num_push,
                                .num_operands = desc->num_bindings};
    memcpy(launch.groups, dispatch->groups, sizeof(launch.groups));
    if (desc->num_push > 0)
        memcpy(push, plan->push + dispatch->first_push, desc->num_push * sizeof(push[0]));
    for (uint32_t i = 0; i < desc->num_bindings; i++) {
        const struct vk_operand *operand = &plan->operands[dispatch->first_operand + i];
        bool is_constants = operand->slot == VK_SLOT_CONSTANTS;
        places[2 * i] = is_constants ? 0 : operand->offset;
        places[2 * i + 1] = operand->size;
        if (is_constants)
            find_constants(plan, operand, push, &launch);
    }
    instance->planned(instance->planned_context, &launch);
}
