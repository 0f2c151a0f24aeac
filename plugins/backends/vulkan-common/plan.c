// SPDX-License-Identifier: MIT
// Collecting launches, and the barriers between them.
#include "plan.h"

#include <stdlib.h>
#include "program.h"

// Makes room for `need` elements; doubles.
static tn_status grow(struct vk_plan *plan, void *array, uint32_t *max, uint32_t need,
                      size_t size)
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
    free(plan->dispatches);
    free(plan->operands);
    free(plan->constants);
}

// Slots that may be bound to the same bytes count as one.
static uint32_t memory_of(const struct vk_plan *plan, uint32_t slot)
{
    if (slot >= plan->num_slots || plan->slots[slot].alias == 0)
        return slot;
    return plan->slots[slot].alias - 1;
}

static bool conflicts(const struct vk_plan *plan, const struct vk_operand *a,
                      const struct vk_operand *b)
{
    return memory_of(plan, a->slot) == memory_of(plan, b->slot) &&
           ((a->access | b->access) & VK_WRITES) && a->offset < b->offset + b->size &&
           b->offset < a->offset + a->size;
}

// Dispatches without a barrier between them. One more barrier among so many costs nothing,
// and planning looks at no more than these for each dispatch.
#define MAX_IN_FLIGHT 256

// Whether the new dispatch touches what one since the last barrier wrote, or writes what
// one reads. The ranges in flight are those of the dispatches since then.
static bool needs_barrier(const struct vk_plan *plan, const struct vk_launch *launch)
{
    uint32_t in_flight = 0;
    for (int64_t i = (int64_t)plan->num_dispatches - 1; i >= 0; i--) {
        const struct vk_dispatch *before = &plan->dispatches[i];
        for (uint32_t j = 0; j < before->num_operands; j++)
            for (uint32_t k = 0; k < launch->num_operands; k++)
                if (conflicts(plan, &plan->operands[before->first_operand + j],
                              &launch->operands[k]))
                    return true;
        if (before->barrier)
            return false;
        if (++in_flight == MAX_IN_FLIGHT)
            return true;
    }
    return false;
}

static tn_status check_limits(const struct vk_plan *plan, const struct vk_launch *launch)
{
    const tn_host *host = plan->device->host;
    for (uint32_t i = 0; i < launch->num_operands; i++)
        if (launch->operands[i].size > plan->device->facts.max_range)
            return host->fail(host, TN_ERR_UNSUPPORTED,
                              "operand %u spans %llu bytes, but %s binds at most %llu", i,
                              (unsigned long long)launch->operands[i].size,
                              plan->device->facts.properties.deviceName,
                              (unsigned long long)plan->device->facts.max_range);
    if (launch->groups > UINT64_C(65535) * 65535)
        return host->fail(host, TN_ERR_UNSUPPORTED, "%llu workgroups are too many",
                          (unsigned long long)launch->groups);
    return TN_OK;
}

static void set_grid(struct vk_dispatch *dispatch, const struct vk_launch *launch)
{
    uint64_t groups = launch->groups;
    dispatch->groups[0] = (uint32_t)(groups < 65535 ? groups : 65535);
    dispatch->groups[1] = (uint32_t)((groups + 65534) / 65535);
    dispatch->groups[2] = launch->groups_z ? launch->groups_z : 1;
    if (launch->fixed_grid) {
        dispatch->groups[0] = launch->groups_x;
        dispatch->groups[1] = launch->groups_y;
    }
}

tn_status plan_launch(struct vk_plan *plan, const struct vk_launch *launch)
{
    if (launch->fixed_grid ? launch->groups_x == 0 || launch->groups_y == 0
                           : launch->groups == 0)
        return TN_OK;
    tn_status status = check_limits(plan, launch);
    if (status == TN_OK)
        status = grow(plan, &plan->dispatches, &plan->max_dispatches,
                      plan->num_dispatches + 1, sizeof(*plan->dispatches));
    if (status == TN_OK)
        status = grow(plan, &plan->operands, &plan->max_operands,
                      plan->num_operands + launch->num_operands, sizeof(*plan->operands));
    if (status != TN_OK)
        return status;
    struct vk_pipeline_desc desc = launch->pipeline;
    desc.num_bindings = launch->num_operands;
    desc.num_push = launch->num_push;
    struct vk_dispatch dispatch = {.first_operand = plan->num_operands,
                                   .num_operands = launch->num_operands,
                                   .num_push = launch->num_push,
                                   .step = plan->step,
                                   .barrier = needs_barrier(plan, launch)};
    status = vk_pipeline_get(plan->device, &desc, &dispatch.pipeline);
    if (status != TN_OK)
        return status;
    set_grid(&dispatch, launch);
    memcpy(dispatch.push, launch->push, sizeof(dispatch.push));
    memcpy(plan->operands + plan->num_operands, launch->operands,
           launch->num_operands * sizeof(launch->operands[0]));
    plan->num_operands += launch->num_operands;
    plan->dispatches[plan->num_dispatches++] = dispatch;
    return TN_OK;
}

tn_status plan_constants(struct vk_plan *plan, const uint32_t *words, uint32_t count,
                         uint32_t *out_at)
{
    uint32_t at = (plan->num_constants + 3) / 4 * 4;
    tn_status status = grow(plan, &plan->constants, &plan->max_constants, at + count,
                            sizeof(*plan->constants));
    if (status != TN_OK)
        return status;
    for (uint32_t i = plan->num_constants; i < at; i++)
        plan->constants[i] = 0;
    memcpy(plan->constants + at, words, count * sizeof(*words));
    plan->num_constants = at + count;
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

struct vk_operand plan_scratch(const tn_step *step, uint64_t offset, uint64_t size)
{
    return (struct vk_operand){.slot = step->scratch_slot,
                               .access = VK_READS | VK_WRITES,
                               .offset = step->scratch_offset + offset,
                               .size = (size + 3) / 4 * 4};
}
