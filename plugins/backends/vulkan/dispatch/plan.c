// SPDX-License-Identifier: MIT
// Collects the dispatches of a segment, and decides where memory barriers are needed.
#include "plan.h"

#include <stdlib.h>
#include "../program/program.h"

// Makes room for `need` elements of `size` bytes; `array` points to the array's pointer.
static tn_status dispatch_plan_grow(struct vk_plan *plan, void *array, uint32_t *max,
                                    uint32_t need, size_t size)
{
    void **at = array;
    if (need <= *max)
        return TN_OK;
    uint32_t more = 2 * *max > need ? 2 * *max : need + 16;
    void *moved = realloc(*at, more * size);
    if (!moved)
        return plan->device->host->fail(plan->device->host, TN_ERR_MEMORY, "out of memory");
    *at = moved;
    *max = more;
    return TN_OK;
}

void plan_finish(struct vk_plan *plan)
{
    for (uint32_t i = 0; i < plan->num_dispatches; i++)
        vk_pipeline_release(plan->device, plan->dispatches[i].pipeline);
    free(plan->dispatches);
    free(plan->operands);
    free(plan->push);
    free(plan->constants);
}

uint32_t plan_memory(const struct vk_plan *plan, uint32_t slot)
{
    if (slot >= plan->num_slots || plan->slots[slot].alias == 0)
        return slot;
    return plan->slots[slot].alias - 1;
}

bool plan_conflicts(const struct vk_plan *plan, const struct vk_operand *a,
                    const struct vk_operand *b)
{
    return plan_memory(plan, a->slot) == plan_memory(plan, b->slot) &&
           ((a->access | b->access) & VK_WRITES) && a->offset < b->offset + b->size &&
           b->offset < a->offset + a->size;
}

// Most dispatches without a barrier between them: bounds the search of needs_barrier. A
// barrier so rare costs nothing.
#define MAX_IN_FLIGHT 256

// Whether a launch depends on a dispatch since the last barrier: both access the same
// bytes, and at least one of the two writes them.
static bool needs_barrier(const struct vk_plan *plan, const struct vk_operand *operands,
                          uint32_t num_operands)
{
    uint32_t in_flight = 0;
    for (int64_t i = (int64_t)plan->num_dispatches - 1; i >= 0; i--) {
        const struct vk_dispatch *before = &plan->dispatches[i];
        for (uint32_t j = 0; j < before->num_operands; j++)
            for (uint32_t k = 0; k < num_operands; k++)
                if (plan_conflicts(plan, &plan->operands[before->first_operand + j],
                                   &operands[k]))
                    return true;
        if (before->barrier)
            return false;
        if (++in_flight == MAX_IN_FLIGHT)
            return true;
    }
    return false;
}

static tn_status dispatch_plan_check_limits(const struct vk_plan *plan,
                                            const struct vk_pipeline_desc *desc,
                                            const struct vk_operand *operands,
                                            const uint32_t groups[3])
{
    const tn_host *host = plan->device->host;
    const tn_vulkan_limits *limits = &plan->device->facts.limits;
    const char *device = plan->device->facts.properties.deviceName;
    for (uint32_t i = 0; i < desc->num_bindings; i++)
        if (operands[i].size > limits->max_range)
            return host->fail(host, TN_ERR_UNSUPPORTED,
                              "kernel %s: operand %u spans %llu bytes, but %s binds at "
                              "most %llu",
                              desc->name, i, (unsigned long long)operands[i].size, device,
                              (unsigned long long)limits->max_range);
    for (int axis = 0; axis < 3; axis++)
        if (groups[axis] > limits->max_groups[axis])
            return host->fail(host, TN_ERR_UNSUPPORTED,
                              "kernel %s: got %u workgroups along %c, but %s takes at most "
                              "%u",
                              desc->name, groups[axis], "xyz"[axis], device,
                              limits -> max_groups[axis]);
    return TN_OK;
}

#define SETS_LOOK_BACK 8 // earlier dispatches; chains of steps alternate between buffers

// The descriptor set for the plan's dispatch `index`: that of a recent dispatch with equal
// pipeline and operands, whose descriptors the device still has in its caches, or a new
// one.
static uint32_t choose_set(struct vk_plan *plan, uint32_t index,
                           const struct vk_dispatch *dispatch,
                           const struct vk_operand *operands)
{
    for (uint32_t back = 1; back <= SETS_LOOK_BACK && back <= index; back++) {
        const struct vk_dispatch *before = &plan->dispatches[index - back];
        if (before->pipeline == dispatch->pipeline && dispatch->num_operands > 0 &&
            memcmp(plan->operands + before->first_operand, operands,
                   dispatch->num_operands * sizeof(*operands)) == 0)
            return before->set;
    }
    plan->num_bindings += dispatch->num_operands;
    return plan->num_sets++;
}

void plan_choose_sets(struct vk_plan *plan)
{
    plan->num_sets = plan->num_bindings = 0;
    for (uint32_t i = 0; i < plan->num_dispatches; i++) {
        struct vk_dispatch *dispatch = &plan->dispatches[i];
        dispatch->set =
            choose_set(plan, i, dispatch, plan->operands + dispatch->first_operand);
    }
}

// Makes room for one more dispatch.
static tn_status grow_for(struct vk_plan *plan, const struct vk_pipeline_desc *desc)
{
    tn_status status =
        dispatch_plan_grow(plan, &plan->dispatches, &plan->max_dispatches,
                           plan->num_dispatches + 1, sizeof(*plan->dispatches));
    if (status == TN_OK)
        status = dispatch_plan_grow(plan, &plan->operands, &plan->max_operands,
                                    plan->num_operands + desc->num_bindings,
                                    sizeof(*plan->operands));
    if (status == TN_OK)
        status = dispatch_plan_grow(plan, &plan->push, &plan->max_push,
                                    plan->num_push + desc->num_push, sizeof(*plan->push));
    return status;
}

// Makes the pipeline exist for a plan that is thrown away, which holds a reference until
// then.
static tn_status dispatch_plan_make_ahead(struct vk_plan *plan,
                                          const struct vk_pipeline_desc *desc)
{
    struct vk_pipeline *pipeline;
    tn_status status =
        vk_pipeline_get(plan->device, desc, plan->ahead, plan->is_ahead, &pipeline);
    if (status == TN_OK && pipeline)
        plan->dispatches[plan->num_dispatches++] =
            (struct vk_dispatch){.pipeline = pipeline};
    return status;
}

tn_status plan_add(struct vk_plan *plan, const struct vk_pipeline_desc *desc,
                   const struct vk_operand *operands, const uint32_t *push,
                   const uint32_t groups[3])
{
    if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0)
        return TN_OK;
    tn_status status = dispatch_plan_check_limits(plan, desc, operands, groups);
    if (status == TN_OK)
        status = grow_for(plan, desc);
    if (status != TN_OK)
        return status;
    if (plan->is_ahead)
        return dispatch_plan_make_ahead(plan, desc);
    struct vk_dispatch dispatch = {.first_operand = plan->num_operands,
                                   .num_operands = desc->num_bindings,
                                   .first_push = plan->num_push,
                                   .num_push = desc->num_push,
                                   .groups = {groups[0], groups[1], groups[2]},
                                   .step = plan->step,
                                   .constants = {plan->last_constant, plan->num_constants},
                                   .values = desc->values,
                                   .barrier =
                                       needs_barrier(plan, operands, desc->num_bindings)};
    status = vk_pipeline_get(plan->device, desc, plan->ahead, plan->is_ahead,
                             &dispatch.pipeline);
    if (status != TN_OK)
        return status;
    dispatch.set = choose_set(plan, plan->num_dispatches, &dispatch, operands);
    if (desc->num_push > 0)
        memcpy(plan->push + plan->num_push, push, desc->num_push * sizeof(*push));
    if (desc->num_bindings > 0)
        memcpy(plan->operands + plan->num_operands, operands,
               desc->num_bindings * sizeof(*operands));
    plan->num_push += desc->num_push;
    plan->num_operands += desc->num_bindings;
    plan->dispatches[plan->num_dispatches++] = dispatch;
    return TN_OK;
}

tn_status plan_launch(struct vk_plan *plan, const struct vk_launch *launch)
{
    struct vk_pipeline_desc desc = launch->pipeline;
    tn_vulkan_constant spec[LAUNCH_MAX_SPEC + 1];
    uint32_t groups[3];
    tn_vulkan_rows(&plan->device->facts.limits, launch->groups, groups);
    desc.num_bindings = launch->num_operands;
    desc.num_push = launch->num_push;
    desc.num_spec = launch->num_spec;
    desc.spec = spec;
    memcpy(spec, launch->spec, launch->num_spec * sizeof(spec[0]));
    if (groups[1] > 1)
        spec[desc.num_spec++] = (tn_vulkan_constant){SPEC_GRID_ROW, groups[0]};
    return plan_add(plan, &desc, launch->operands, launch->push, groups);
}

tn_status plan_constants(struct vk_plan *plan, const uint32_t *words, uint32_t count,
                         uint32_t *out_at)
{
    return plan_constants_at(plan, words, count, 4, out_at);
}

tn_status plan_constants_at(struct vk_plan *plan, const uint32_t *words, uint32_t count,
                            uint32_t alignment, uint32_t *out_at)
{
    uint32_t at = (plan->num_constants + alignment - 1) / alignment * alignment;
    tn_status status = dispatch_plan_grow(plan, &plan->constants, &plan->max_constants,
                                          at + count, sizeof(*plan->constants));
    if (status != TN_OK)
        return status;
    for (uint32_t i = plan->num_constants; i < at; i++)
        plan->constants[i] = 0;
    memcpy(plan->constants + at, words, count * sizeof(*words));
    plan->num_constants = at + count;
    plan->last_constant = at;
    *out_at = at;
    return TN_OK;
}

struct vk_operand plan_operand(const tn_value *value, uint32_t access)
{
    const tn_layout *layout = &value->layout;
    int64_t last = layout->offset;
    for (int32_t axis = 0; axis < layout->rank; axis++)
        if (layout->stride[axis] > 0 && layout->extent[axis] > 0)
            last += layout->stride[axis] * (layout->extent[axis] - 1);
    uint64_t size = ((uint64_t)last + 1) * dtype_bytes(layout->dtype);
    return (struct vk_operand){.slot = value->slot,
                               .access = access,
                               .offset = value->offset,
                               .size = (size + 3) / 4 * 4};
}

struct vk_operand plan_program_input(const tn_step *step, uint32_t input)
{
    tn_value value = *tn_step_input(step, input);
    value.layout.offset += (int64_t)tn_taken_reach(step->program, step->params, input);
    return plan_operand(&value, VK_READS);
}

struct vk_operand plan_scratch(const tn_step *step, uint64_t offset, uint64_t size)
{
    return (struct vk_operand){.slot = step->scratch_slot,
                               .access = VK_READS | VK_WRITES,
                               .offset = step->scratch_offset + offset,
                               .size = (size + 3) / 4 * 4};
}
