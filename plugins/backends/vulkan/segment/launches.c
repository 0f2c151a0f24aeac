// SPDX-License-Identifier: MIT
// Tells launches, as they are planned, to a program that asks for them.
#include "launches.h"

#include <stdlib.h>
#include "measure.h"
#include "../dispatch/special.h"

_Static_assert(sizeof(tn_vulkan_constant) == 2 * sizeof(uint32_t),
               "a constant is told as two words");

// The lists of words that a launch reads. Those of constants lie one behind the other where
// it has several.
struct told {
    uint32_t push[VK_MOST_PUSH];
    struct spirv_words lists[VK_MAX_OPERANDS + 1]; // of constants; then what is pushed
    uint32_t num_lists;
    uint32_t *joined; // owned; NULL: there is one list at most
};

// Adds the constants that an operand holds: one without a size has those that the plan got
// last, and the launch pushes where they begin.
static void add_constants(const struct vk_plan *plan, const struct vk_dispatch *dispatch,
                          const struct vk_operand *operand, uint32_t binding,
                          struct told *told)
{
    uint32_t at = (uint32_t)(operand->offset / sizeof(uint32_t));
    uint32_t count = (uint32_t)(operand->size / sizeof(uint32_t));
    if (operand->size == 0) {
        at = dispatch->constants[0];
        count = dispatch->constants[1] - at;
        told->push[0] = 0;
    }
    told->lists[told->num_lists++] =
        (struct spirv_words){plan->constants + at, count, binding};
}

// Whether no earlier list has the same words: a program's operands may show a list twice.
static bool is_first(const struct told *told, uint32_t list)
{
    for (uint32_t i = 0; i < list; i++)
        if (told->lists[i].words == told->lists[list].words)
            return false;
    return true;
}

// A list that two bindings have is read at the last of them: the other one is that of an
// operand without memory.
static bool segment_launches_is_last(const struct told *told, uint32_t list)
{
    for (uint32_t i = list + 1; i < told->num_lists; i++)
        if (told->lists[i].words == told->lists[list].words)
            return false;
    return true;
}

// Puts the lists of constants one behind the other. False: out of memory.
static bool segment_launches_join(struct told *told, tn_planned_launch *launch)
{
    uint32_t count = 0, size = 0;
    for (uint32_t i = 0; i < told->num_lists; i++) {
        count += is_first(told, i);
        size += told->lists[i].count;
    }
    if (count > 1 && !(told->joined = malloc((size + 1) * sizeof(uint32_t))))
        return false;
    launch->constants = count > 1 ? told->joined : told->lists[0].words;
    for (uint32_t i = 0; i < told->num_lists; i++) {
        const struct spirv_words *list = &told->lists[i];
        if (!is_first(told, i))
            continue;
        if (told->joined)
            memcpy(told->joined + launch->num_constants, list->words,
                   list->count * sizeof(uint32_t));
        launch->num_constants += list->count;
    }
    return true;
}

static tn_status segment_launches_tell(struct vk_plan *plan, uint32_t dispatch,
                                       const struct vk_pipeline_desc *desc,
                                       struct told *told, const tn_planned_launch *launch)
{
    const struct vk_instance *instance = plan->device->instance;
    if (instance->planned)
        instance->planned(instance->planned_context, launch);
    uint64_t number =
        instance->wanted ? instance->wanted(instance->measure_context, launch) : 0;
    if (number == 0)
        return TN_OK;
    uint32_t baked = 0;
    for (uint32_t i = 0; i < told->num_lists; i++)
        if (segment_launches_is_last(told, i) && told->lists[i].count > 0 &&
            told->lists[i].count <= SPIRV_MOST_BAKED)
            told->lists[baked++] = told->lists[i];
    if (desc->num_push > 0)
        told->lists[baked++] = (struct spirv_words){told->push, desc->num_push, SPIRV_PUSH};
    return vk_measure_plan(plan, dispatch, desc, told->lists, baked, number);
}

tn_status vk_launches_tell_one(struct vk_plan *plan, uint32_t index, const tn_step *step)
{
    const struct vk_dispatch *dispatch = &plan->dispatches[index];
    const struct vk_pipeline *pipeline = dispatch->pipeline;
    struct vk_pipeline_desc own = vk_pipeline_describe(vk_special_plain(plan, index));
    const struct vk_pipeline_desc *desc = &own;
    struct vk_hash code = vk_pipeline_describe(pipeline).key;
    uint64_t ranges[2 * VK_MAX_OPERANDS];
    struct told told = {.num_lists = 0};
    tn_planned_launch launch = {.struct_size = sizeof(launch),
                                .device = plan->device->track,
                                .step = plan_step_name(step),
                                .name = desc->name,
                                .code = {code.lo, code.hi},
                                .pipeline = {pipeline->key.lo, pipeline->key.hi},
                                .code_bytes = pipeline->size,
                                .spec = desc->num_spec ? &desc->spec->id : NULL,
                                .push = told.push,
                                .ranges = ranges,
                                .num_spec = desc->num_spec,
                                .num_push = desc->num_push,
                                .num_operands = desc->num_bindings};
    memcpy(launch.groups, dispatch->groups, sizeof(launch.groups));
    if (desc->num_push > 0)
        memcpy(told.push, plan->push + dispatch->first_push,
               desc->num_push * sizeof(told.push[0]));
    for (uint32_t i = 0; i < desc->num_bindings; i++) {
        const struct vk_operand *operand = &plan->operands[dispatch->first_operand + i];
        bool is_constants = operand->slot == VK_SLOT_CONSTANTS;
        ranges[2 * i] = is_constants ? 0 : operand->offset;
        ranges[2 * i + 1] = operand->size;
        if (is_constants)
            add_constants(plan, dispatch, operand, i, &told);
    }
    if (!segment_launches_join(&told, &launch))
        return plan->device->host->fail(plan->device->host, TN_ERR_MEMORY, "out of memory");
    own.num_bindings = dispatch->num_operands; // as its set has them
    tn_status status = segment_launches_tell(plan, index, desc, &told, &launch);
    free(told.joined);
    return status;
}

tn_status vk_launches_tell(struct vk_plan *plan, const tn_segment *segment)
{
    tn_status status = vk_special_make(plan);
    for (uint32_t i = 0; i < plan->num_dispatches && status == TN_OK; i++)
        status = vk_launches_tell_one(plan, i,
                                      tn_segment_step(segment, plan->dispatches[i].step));
    return status;
}
