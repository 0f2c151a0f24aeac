// SPDX-License-Identifier: MIT
#include "groups.h"

#include <stdlib.h>
#include "plan_products.h"

#define MAX_ACCESSES 64 // of a step; one with more stays where it is
#define LOOK_AHEAD 16   // steps behind the first of a group: bounds the search

// --- memory ----------------------------------------------------------------------------

struct accesses {
    struct vk_operand list[MAX_ACCESSES];
    uint32_t count;
    bool too_many;
};

static void add(struct accesses *a, struct vk_operand operand)
{
    if (a->count < MAX_ACCESSES)
        a->list[a->count++] = operand;
    else
        a->too_many = true;
}

static void add_value(struct accesses *a, const tn_value *value, uint32_t access)
{
    if (value->layout.dtype != TN_DTYPE_NONE && !(value->flags & TN_VALUE_FUSED))
        add(a, plan_operand(value, access));
}

// What a step reads and writes, with the programs beside its kernel.
static void list_accesses(const tn_step *step, struct accesses *a)
{
    a->count = 0;
    a->too_many = false;
    for (uint32_t i = 0; i < step->num_inputs; i++)
        add_value(a, tn_step_input(step, i), VK_READS);
    for (uint32_t i = 0; i < step->num_outputs; i++)
        add_value(a, tn_step_output(step, i), VK_WRITES);
    for (uint32_t i = 0; i < step->num_fused; i++) {
        const tn_fused *fused = tn_step_fused(step, i);
        for (uint32_t k = 0; k < fused->num_inputs; k++)
            add_value(a, tn_fused_input(step, fused, k), VK_READS);
        for (uint32_t k = 0; k < fused->num_outputs; k++)
            add_value(a, tn_fused_output(step, fused, k), VK_WRITES);
    }
    if (step->scratch_size > 0)
        add(a, plan_scratch(step, 0, step->scratch_size));
}

static bool are_independent(const struct vk_plan *plan, const struct accesses *a,
                            const struct accesses *b)
{
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = 0; k < b->count; k++)
            if (plan_conflicts(plan, &a->list[i], &b->list[k]))
                return false;
    return !a->too_many && !b->too_many;
}

// Whether step `from` may run at the place of step `to`, which comes before.
static bool may_move(const struct vk_plan *plan, const tn_segment *segment, uint32_t from,
                     uint32_t to)
{
    struct accesses own, other;
    bool may = true;
    list_accesses(tn_segment_step(segment, from), &own);
    for (uint32_t i = to; i < from && may; i++) {
        list_accesses(tn_segment_step(segment, i), &other);
        may = are_independent(plan, &own, &other);
    }
    return may;
}

// --- groups ----------------------------------------------------------------------------

static const struct vk_group_kind products = {6, products_fit, products_plan};

// The kind of which the step may be one of several, or NULL.
static const struct vk_group_kind *kind_of(const struct vk_plan *plan, const tn_step *step)
{
    const struct vk_flavour *flavour = plan->device->flavour;
    if (flavour->products && products.fit(plan, &step, 1))
        return &products;
    return flavour->siblings && flavour->siblings->fit(plan, &step, 1) ? flavour->siblings
                                                                       : NULL;
}

static void find_group(const struct vk_plan *plan, struct vk_groups *groups, uint32_t first,
                       const struct vk_group_kind *kind)
{
    const tn_segment *segment = groups->segment;
    struct vk_group_place *group = &groups->places[first];
    const tn_step *steps[GROUP_MAX_STEPS] = {tn_segment_step(segment, first)};
    uint32_t end = segment->num_steps - first > LOOK_AHEAD ? first + LOOK_AHEAD + 1
                                                           : segment->num_steps;
    group->kind = kind;
    group->steps[0] = first;
    group->count = 1;
    for (uint32_t i = first + 1; i < end && group->count < kind->most; i++) {
        steps[group->count] = tn_segment_step(segment, i);
        if (groups->places[i].is_later || !kind->fit(plan, steps, group->count + 1) ||
            !may_move(plan, segment, i, first))
            continue;
        group->steps[group->count++] = i;
        groups->places[i].is_later = true;
    }
}

struct vk_groups *vk_groups_find(const struct vk_plan *plan, const tn_segment *segment)
{
    uint32_t num_steps = segment->num_steps;
    bool any = false;
    if ((!plan->device->flavour->products && !plan->device->flavour->siblings) ||
        num_steps < 2)
        return NULL;
    struct vk_groups *groups =
        calloc(1, sizeof(*groups) + num_steps * sizeof(groups->places[0]));
    if (!groups)
        return NULL;
    groups->segment = segment;
    for (uint32_t i = 0; i < num_steps; i++) {
        const struct vk_group_kind *kind =
            groups->places[i].is_later ? NULL : kind_of(plan, tn_segment_step(segment, i));
        if (kind)
            find_group(plan, groups, i, kind);
        any = any || groups->places[i].count > 1;
    }
    if (any)
        return groups;
    free(groups);
    return NULL;
}

tn_status vk_groups_plan(struct vk_plan *plan, bool *out_done)
{
    const struct vk_groups *groups = plan->groups;
    const struct vk_group_place *group = groups ? &groups->places[plan->step] : NULL;
    const tn_step *steps[GROUP_MAX_STEPS];
    *out_done = group && (group->is_later || group->count > 1);
    if (!*out_done || group->is_later)
        return TN_OK;
    for (uint32_t i = 0; i < group->count; i++)
        steps[i] = tn_segment_step(groups->segment, group->steps[i]);
    return group->kind->plan(plan, steps, group->count);
}
