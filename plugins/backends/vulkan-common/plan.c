// SPDX-License-Identifier: MIT
// Collects the dispatches of a segment, and decides where memory barriers are needed.
#include "plan.h"

#include <stdlib.h>
#include "program.h"

// Makes room for `need` elements of `size` bytes; `array` points to the array's pointer.
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
    for (uint32_t i = 0; i < plan->num_dispatches; i++)
        vk_pipeline_release(plan->device, plan->dispatches[i].pipeline);
    free(plan->dispatches);
    free(plan->operands);
    free(plan->constants);
}

uint32_t plan_memory(const struct vk_plan *plan, uint32_t slot)
{
    if (slot >= plan->num_slots || plan->slots[slot].alias == 0)
        return slot;
    return plan->slots[slot].alias - 1;
}

static bool conflicts(const struct vk_plan *plan, const struct vk_operand *a,
                      const struct vk_operand *b)
{
    return plan_memory(plan, a->slot) == plan_memory(plan, b->slot) &&
           ((a->access | b->access) & VK_WRITES) && a->offset < b->offset + b->size &&
           b->offset < a->offset + a->size;
}

// Most dispatches without a barrier between them: bounds the search of needs_barrier. A
// barrier so rare costs nothing.
#define MAX_IN_FLIGHT 256

// Whether the launch depends on a dispatch since the last barrier: both access the same
// bytes, and at least one of the two writes them.
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
    return TN_OK;
}

// The length of each of `rows` rows for so many groups: few are empty, since even an empty
// workgroup takes time, and lengths are few, since each is a pipeline of its own.
static uint64_t row_length(uint64_t groups, uint64_t rows, uint32_t most)
{
    uint64_t unit = most / 64 + 1, length = (groups + rows - 1) / rows;
    length = (length + unit - 1) / unit * unit;
    return length < most ? length : most;
}

// Lays workgroups out along x; more than the device takes go into rows.
static tn_status set_grid(const struct vk_plan *plan, struct vk_dispatch *dispatch,
                          const struct vk_launch *launch)
{
    const tn_host *host = plan->device->host;
    const VkPhysicalDeviceProperties *properties = &plan->device->facts.properties;
    const uint32_t *most = properties->limits.maxComputeWorkGroupCount;
    uint64_t rows = (launch->groups + most[0] - 1) / most[0];
    uint64_t grid[3] = {launch->groups, rows, 1};
    if (rows > 1)
        grid[0] = row_length(launch->groups, rows, most[0]);
    if (launch->fixed_grid)
        memcpy(grid, (uint64_t[]){launch->groups_x, launch->groups_y, launch->groups_z},
               sizeof(grid));
    for (int axis = 0; axis < 3; axis++) {
        if (grid[axis] > most[axis])
            return host->fail(host, TN_ERR_UNSUPPORTED,
                              "%llu workgroups along %c, but %s takes at most %u",
                              (unsigned long long)grid[axis], "xyz"[axis],
                              properties -> deviceName, most[axis]);
        dispatch->groups[axis] = (uint32_t)grid[axis];
    }
    return TN_OK;
}

#define SETS_LOOK_BACK 8 // earlier dispatches; chains of steps alternate between buffers

// The descriptor set for a dispatch that is added now: that of a recent dispatch with equal
// pipeline and operands, whose descriptors the device still has in its caches, or a new
// one.
static uint32_t choose_set(struct vk_plan *plan, const struct vk_dispatch *dispatch,
                           const struct vk_operand *operands)
{
    uint32_t count = plan->num_dispatches;
    for (uint32_t back = 1; back <= SETS_LOOK_BACK && back <= count; back++) {
        const struct vk_dispatch *before = &plan->dispatches[count - back];
        if (before->pipeline == dispatch->pipeline &&
            memcmp(plan->operands + before->first_operand, operands,
                   dispatch->num_operands * sizeof(*operands)) == 0)
            return before->set;
    }
    plan->num_bindings += dispatch->num_operands;
    return plan->num_sets++;
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
    status = set_grid(plan, &dispatch, launch);
    if (!launch->fixed_grid && !launch->no_grid_row && dispatch.groups[1] > 1)
        desc.grid_row = dispatch.groups[0];
    if (status == TN_OK)
        status = vk_pipeline_get(plan->device, &desc, &dispatch.pipeline);
    if (status != TN_OK)
        return status;
    dispatch.set = choose_set(plan, &dispatch, launch->operands);
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
