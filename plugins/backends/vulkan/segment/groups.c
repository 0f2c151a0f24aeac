// SPDX-License-Identifier: MIT
#include "groups.h"

#include <stdlib.h>
#include "plan_append.h"
#include "plan_joint.h"
#include "plan_products.h"
#include "plan_updates.h"

#define MAX_ACCESSES 64 // of a step; one with more stays where it is
#define LOOK_AHEAD 16   // steps between two of a group: bounds the search

// --- memory ----------------------------------------------------------------------------

struct accesses {
    struct vk_operand list[MAX_ACCESSES];
    uint32_t count;
    bool too_many;
};

static void segment_groups_add(struct accesses *a, struct vk_operand operand)
{
    if (a->count < MAX_ACCESSES)
        a->list[a->count++] = operand;
    else
        a->too_many = true;
}

static void add_value(struct accesses *a, const tn_value *value, uint32_t access)
{
    if (value->layout.dtype != TN_DTYPE_NONE && !(value->flags & TN_VALUE_FUSED))
        segment_groups_add(a, plan_operand(value, access));
}

// Adds what a step writes as results, those of its programs included.
static void add_results(const tn_step *step, struct accesses *a)
{
    for (uint32_t i = 0; i < step->num_outputs; i++)
        add_value(a, tn_step_output(step, i), VK_WRITES);
    for (uint32_t i = 0; i < step->num_fused; i++) {
        const tn_fused *fused = tn_step_fused(step, i);
        for (uint32_t k = 0; k < fused->num_outputs; k++)
            add_value(a, tn_fused_output(step, fused, k), VK_WRITES);
    }
}

// Adds what a step reads and writes, with the programs beside its kernel.
static void segment_groups_add_step(const tn_step *step, struct accesses *a)
{
    for (uint32_t i = 0; i < step->num_inputs; i++)
        add_value(a, tn_step_input(step, i), VK_READS);
    for (uint32_t i = 0; i < step->num_fused; i++) {
        const tn_fused *fused = tn_step_fused(step, i);
        for (uint32_t k = 0; k < fused->num_inputs; k++)
            add_value(a, tn_fused_input(step, fused, k), VK_READS);
    }
    add_results(step, a);
    if (step->scratch_size > 0)
        segment_groups_add(a, plan_scratch(step, 0, step->scratch_size));
}

// Lists the reads and writes of a step: its own, and those of steps that its program reads.
static void list_accesses(const struct vk_groups *groups, uint32_t at, struct accesses *a)
{
    const struct vk_group_position *group = &groups->positions[at];
    a->count = 0;
    a->too_many = false;
    segment_groups_add_step(tn_segment_step(groups->segment, at), a);
    for (uint32_t i = 1; i < group->count && group->is_joint; i++)
        segment_groups_add_step(tn_segment_step(groups->segment, group->steps[i]), a);
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

// Whether step `from` may run at the position of step `to`, which comes before.
static bool may_move(const struct vk_plan *plan, const struct vk_groups *groups,
                     uint32_t from, uint32_t to)
{
    struct accesses own, other;
    bool may = true;
    list_accesses(groups, from, &own);
    for (uint32_t i = to; i < from && may; i++) {
        list_accesses(groups, i, &other);
        may = are_independent(plan, &own, &other);
    }
    return may;
}

// --- products whose results one program reads ------------------------------------------

// Whether step `from` may run at the position of step `to`, which comes behind: no step in
// between depends on it, or it on them.
static bool may_wait(const struct vk_plan *plan, const struct vk_groups *groups,
                     uint32_t from, uint32_t to)
{
    struct accesses own, other;
    bool may = true;
    list_accesses(groups, from, &own);
    for (uint32_t i = from + 1; i < to && may; i++) {
        list_accesses(groups, i, &other);
        may = are_independent(plan, &own, &other);
    }
    return may;
}

// Whether step `other` writes nothing that the product `own` reads, and its kernel reads
// nothing that the product writes. Its program may write over the product's result.
static bool may_run_together(const struct vk_plan *plan, const tn_step *own,
                             const tn_step *other)
{
    struct accesses inputs = {.count = 0}, outputs = {.count = 0};
    for (uint32_t i = 0; i < own->num_inputs; i++)
        add_value(&inputs, tn_step_input(own, i), VK_READS);
    for (uint32_t i = 0; i < other->num_inputs; i++)
        add_value(&inputs, tn_step_input(other, i), VK_READS);
    add_results(other, &outputs);
    bool may = are_independent(plan, &inputs, &outputs);
    outputs.count = 0;
    inputs.count = 0;
    for (uint32_t i = 0; i < other->num_inputs; i++)
        add_value(&inputs, tn_step_input(other, i), VK_READS);
    add_value(&outputs, tn_step_output(own, 0), VK_WRITES);
    return may && are_independent(plan, &inputs, &outputs);
}

static const struct vk_group_kind products = {6, products_fit, products_plan};
static const struct vk_group_kind updates = {UPDATES_MAX_STEPS, updates_fit, updates_plan};
static const struct vk_group_kind joint = {JOINT_MAX_STEPS + 1, joint_fits, joint_plan};
static const struct vk_group_kind appends = {APPEND_MAX_STEPS, append_fits, append_plan};

// The step before `last` that writes the value, not too far away and in no other launch; or
// `last`.
static uint32_t segment_groups_find_writer(const struct vk_groups *groups, uint32_t last,
                                           const tn_value *value)
{
    for (uint32_t i = last; i > 0 && last - i < LOOK_AHEAD; i--) {
        const tn_step *step = tn_segment_step(groups->segment, i - 1);
        if (step->num_outputs == 1 && tn_step_output(step, 0)->id == value->id)
            return groups->positions[i - 1].is_taken ? last : i - 1;
    }
    return last;
}

// Finds the products whose results the program of step `last` reads as their last reader.
static void find_joint(const struct vk_plan *plan, struct vk_groups *groups, uint32_t last)
{
    const tn_segment *segment = groups->segment;
    struct vk_group_position *group = &groups->positions[last];
    const tn_step *steps[JOINT_MAX_STEPS + 1] = {tn_segment_step(segment, last)};
    const tn_fused *fused = tn_step_fused(steps[0], 0);
    group->steps[0] = last;
    group->count = 1;
    for (uint32_t i = 0; i < fused->num_inputs; i++) {
        const tn_value *value = tn_fused_input(steps[0], fused, i);
        if ((value->flags & TN_VALUE_FUSED) || !(value->flags & TN_VALUE_LAST))
            continue;
        uint32_t from = segment_groups_find_writer(groups, last, value);
        steps[group->count] = tn_segment_step(segment, from);
        if (from == last || !joint_fits(plan, steps, group->count + 1) ||
            !may_wait(plan, groups, from, last) ||
            !may_run_together(plan, steps[group->count], steps[0]))
            continue;
        group->steps[group->count++] = from;
        groups->positions[from].is_taken = true;
    }
    group->kind = &joint;
    group->is_joint = group->is_taken = group->count > 1;
    group->count = group->is_joint ? group->count : 0;
}

// --- attention that writes rows to its caches ------------------------------------------

// Whether attention writes nothing that the step `own`, which joins it, accesses.
static bool segment_groups_may_join(const struct vk_plan *plan, const tn_step *own,
                                    const tn_step *attention)
{
    struct accesses inputs = {.count = 0}, outputs = {.count = 0};
    segment_groups_add_step(own, &inputs);
    add_results(attention, &outputs);
    if (attention->scratch_size > 0)
        segment_groups_add(&outputs, plan_scratch(attention, 0, attention->scratch_size));
    return are_independent(plan, &inputs, &outputs);
}

// Finds the steps that make what the attention of step `last` reads: both updates, or none.
static void find_appended(const struct vk_plan *plan, struct vk_groups *groups,
                          uint32_t last)
{
    struct vk_group_position *group = &groups->positions[last];
    const tn_step *steps[APPEND_MAX_STEPS] = {tn_segment_step(groups->segment, last)};
    uint32_t count = 1;
    group->steps[0] = last;
    while (count < APPEND_MAX_STEPS) {
        const tn_value *value = tn_step_input(steps[0], append_input(count));
        uint32_t from = segment_groups_find_writer(groups, last, value);
        steps[count] = tn_segment_step(groups->segment, from);
        if (from == last || !append_fits(plan, steps, count + 1) ||
            !may_wait(plan, groups, from, last) ||
            !segment_groups_may_join(plan, steps[count], steps[0]))
            break;
        group->steps[count++] = from;
    }
    if (count < 3)
        return;
    for (uint32_t i = 0; i < count; i++)
        groups->positions[group->steps[i]].is_taken = true;
    group->kind = &appends;
    group->is_joint = true;
    group->count = count;
}

// --- groups ----------------------------------------------------------------------------

// The kind of group that the step may be in, or NULL.
static const struct vk_group_kind *segment_groups_kind_of(const struct vk_plan *plan,
                                                          const tn_step *step)
{
    const struct vk_flavour *flavour = plan->device->flavour;
    if (flavour->products && products.fit(plan, &step, 1))
        return &products;
    if (updates.fit(plan, &step, 1))
        return &updates;
    return flavour->siblings && flavour->siblings->fit(plan, &step, 1) ? flavour->siblings
                                                                       : NULL;
}

static void segment_find_group(const struct vk_plan *plan, struct vk_groups *groups,
                               uint32_t first, const struct vk_group_kind *kind)
{
    const tn_segment *segment = groups->segment;
    struct vk_group_position *group = &groups->positions[first];
    const tn_step *steps[GROUP_MAX_STEPS] = {tn_segment_step(segment, first)};
    uint32_t end = segment->num_steps - first > LOOK_AHEAD ? first + LOOK_AHEAD + 1
                                                           : segment->num_steps;
    group->kind = kind;
    group->steps[0] = first;
    group->count = 1;
    for (uint32_t i = first + 1; i < end && group->count < kind->most; i++) {
        steps[group->count] = tn_segment_step(segment, i);
        if (groups->positions[i].is_taken || !kind->fit(plan, steps, group->count + 1) ||
            !may_move(plan, groups, i, first))
            continue;
        group->steps[group->count++] = i;
        groups->positions[i].is_taken = true;
    }
}

struct vk_groups *vk_groups_find(const struct vk_plan *plan, const tn_segment *segment)
{
    uint32_t num_steps = segment->num_steps;
    bool any = false;
    if (num_steps < 2)
        return NULL;
    struct vk_groups *groups =
        calloc(1, sizeof(*groups) + num_steps * sizeof(groups->positions[0]));
    if (!groups)
        return NULL;
    groups->segment = segment;
    for (uint32_t i = 1; i < num_steps && plan->device->flavour->joint; i++)
        if (joint_begins(plan, tn_segment_step(segment, i)))
            find_joint(plan, groups, i);
    for (uint32_t i = 2; i < num_steps; i++)
        if (!groups->positions[i].is_taken &&
            append_begins(plan, tn_segment_step(segment, i)))
            find_appended(plan, groups, i);
    for (uint32_t i = 0; i < num_steps; i++) {
        const struct vk_group_kind *kind =
            groups->positions[i].is_taken
                ? NULL
                : segment_groups_kind_of(plan, tn_segment_step(segment, i));
        if (kind)
            segment_find_group(plan, groups, i, kind);
        any = any || groups->positions[i].count > 1;
    }
    if (any)
        return groups;
    free(groups);
    return NULL;
}

tn_status vk_groups_plan(struct vk_plan *plan, bool *out_done)
{
    const struct vk_groups *groups = plan->groups;
    const struct vk_group_position *group = groups ? &groups->positions[plan->step] : NULL;
    const tn_step *steps[GROUP_MAX_STEPS];
    *out_done = group && (group->is_taken || group->count > 1);
    if (!*out_done || group->count < 2)
        return TN_OK;
    for (uint32_t i = 0; i < group->count; i++)
        steps[i] = tn_segment_step(groups->segment, group->steps[i]);
    return group->kind->plan(plan, steps, group->count);
}
