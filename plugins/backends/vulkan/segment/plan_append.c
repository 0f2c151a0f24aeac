// SPDX-License-Identifier: MIT
#include "plan_append.h"

#include <string.h>
#include "vulkan/attention/plan_attention.h"
#include "plan_products.h"
#include "plan_updates.h"

#define MOST_FUSED 4 // programs of the query, of keys and values, and of the output

// --- what fits -------------------------------------------------------------------------

// Whether all programs of the step are beside operand `operand`.
static bool has_programs_at(const tn_step *step, uint32_t operand)
{
    for (uint32_t i = 0; i < step->num_fused; i++)
        if (tn_step_fused(step, i)->operand != operand)
            return false;
    return true;
}

static const char *plan_append_module_of(const struct vk_attention *a)
{
    return a->q->dtype == TN_F16   ? "attention_append_f16"
           : a->q->dtype == TN_F32 ? "attention_append_f32"
                                   : "";
}

bool append_begins(const struct vk_plan *plan, const tn_step *step)
{
    const struct vk_flavour *flavour = plan->device->flavour;
    if (plan_own_kind(plan->device, step) != KERNEL_ATTENTION ||
        step->value_size != sizeof(tn_value) || !has_programs_at(step, step->num_inputs))
        return false;
    const struct vk_attention a = vk_attention_of(step);
    return vk_attention_may_append(&a) && tn_step_output(step, 0)->layout.offset % 4 == 0 &&
           plan->device->facts.limits.max_operands >= VK_ATTENTION_APPEND_OPERANDS &&
           module_find(flavour->modules, flavour->num_modules, plan_append_module_of(&a));
}

uint32_t append_input(uint32_t count)
{
    return count < 3 ? count : 0;
}

static bool is_same_layout(const tn_layout *a, const tn_layout *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

// Whether the step writes one row of each head, whose elements lie side by side, to an
// input of the attention.
static bool is_row_update(const struct vk_plan *plan, const tn_step *step,
                          const tn_value *cache)
{
    if (plan_own_kind(plan->device, step) != KERNEL_UPDATE ||
        !updates_fit(plan, &step, 1) || !has_programs_at(step, 1))
        return false;
    const tn_layout *rows = &tn_step_input(step, 1)->layout;
    const tn_layout *start = &tn_step_input(step, 2)->layout;
    int32_t rank = rows->rank;
    return is_same_layout(&cache->layout, &tn_step_output(step, 0)->layout) && rank >= 2 &&
           rows->extent[rank - 2] == 1 && cache->layout.extent[rank - 2] > 1 &&
           (rows->stride[rank - 1] == 1 || rows->extent[rank - 1] == 1) &&
           start->dtype == TN_I32;
}

// Whether the step is a program that makes nothing but the query, in the order in which its
// elements are numbered.
static bool makes_query(const tn_step *step, const tn_value *query)
{
    if (!step->program || step->program->flags & TN_EXPR_ROWS || step->num_outputs != 1 ||
        !(query->flags & TN_VALUE_LAST))
        return false;
    const tn_value *made = tn_step_output(step, 0);
    const tn_layout *out = &made->layout;
    int64_t stride = 1;
    for (int32_t i = out->rank - 1; i >= 0; stride *= out->extent[i--])
        if (out->extent[i] != 1 && out->stride[i] != stride)
            return false;
    return made->slot == query->slot && made->offset == query->offset &&
           out->dtype == query->layout.dtype && query->layout.offset >= out->offset &&
           layout_count(out) == layout_count(&query->layout);
}

// Operands of the launch, those of programs included.
static uint32_t count_operands(const tn_step *const *steps, uint32_t count)
{
    uint32_t operands = VK_ATTENTION_APPEND_OPERANDS;
    for (uint32_t i = 0; i < count; i++) {
        if (steps[i]->program)
            operands += steps[i]->num_inputs + 1;
        for (uint32_t k = 0; k < steps[i]->num_fused; k++) {
            const tn_fused *fused = tn_step_fused(steps[i], k);
            operands += fused->num_inputs + fused->num_outputs + 1;
        }
    }
    return operands;
}

bool append_fits(const struct vk_plan *plan, const tn_step *const *steps, uint32_t count)
{
    const tn_step *last = steps[count - 1];
    const tn_value *made = tn_step_input(steps[0], append_input(count - 1));
    uint32_t most = plan->device->facts.limits.max_operands;
    most = most < VK_MAX_OPERANDS ? most : VK_MAX_OPERANDS;
    if (count_operands(steps, count) > most)
        return false;
    if (count == 4)
        return makes_query(last, made);
    return is_row_update(plan, last, made) &&
           (count == 2 ||
            products_same_value(tn_step_input(steps[1], 2), tn_step_input(last, 2)));
}

// --- the launch ------------------------------------------------------------------------

// The attention as a step that has the caches as outputs and the rows as inputs.
struct appending {
    tn_step step;
    tn_value inputs[VK_ATTENTION_APPENDS], outputs[3];
    tn_value query; // the result of its program
    tn_fused fused[MOST_FUSED];
};

static void plan_append_add_programs(struct appending *a, const tn_step *step,
                                     uint32_t operand)
{
    for (uint32_t i = 0; i < step->num_fused; i++) {
        a->fused[a->step.num_fused] = *tn_step_fused(step, i);
        a->fused[a->step.num_fused++].operand = operand;
    }
}

// The number of the position that the update writes: the index of the axis before the last.
static tn_value start_of(const tn_step *update)
{
    tn_value start = *tn_step_input(update, 2);
    int32_t axis = tn_step_output(update, 0)->layout.rank - 2;
    if (start.layout.rank > 0)
        start.layout.offset += axis * start.layout.stride[0];
    return start;
}

static void add_query(struct appending *a, const tn_step *program)
{
    a->query = *tn_step_output(program, 0);
    a->query.flags |= TN_VALUE_FUSED;
    a->inputs[0].flags |= TN_VALUE_FUSED;
    a->inputs[0].layout.offset -= a->query.layout.offset; // elements count from the first
    a->fused[a->step.num_fused++] = (tn_fused){.operand = 0,
                                               .program = program->program,
                                               .params = program->params,
                                               .inputs = program->inputs,
                                               .outputs = &a->query,
                                               .num_inputs = program->num_inputs,
                                               .num_outputs = 1};
}

tn_status append_plan(struct vk_plan *plan, const tn_step *const *steps, uint32_t count)
{
    struct appending a = {.step = *steps[0]};
    for (uint32_t i = 0; i < steps[0]->num_inputs; i++)
        a.inputs[i] = *tn_step_input(steps[0], i);
    a.inputs[VK_ATTENTION_NEW_K] = *tn_step_input(steps[1], 1);
    a.inputs[VK_ATTENTION_NEW_V] = *tn_step_input(steps[2], 1);
    a.inputs[VK_ATTENTION_START] = start_of(steps[1]);
    a.outputs[0] = *tn_step_output(steps[0], 0);
    a.outputs[1] = *tn_step_output(steps[1], 0);
    a.outputs[2] = *tn_step_output(steps[2], 0);
    a.step.inputs = a.inputs;
    a.step.outputs = a.outputs;
    a.step.num_inputs = VK_ATTENTION_APPENDS;
    a.step.num_outputs = 3;
    a.step.fused = a.fused;
    a.step.num_fused = 0;
    a.step.fused_size = sizeof(a.fused[0]);
    // Programs that all workgroups compute come first: there is not room to push all
    // arguments.
    plan_append_add_programs(&a, steps[0], VK_ATTENTION_APPENDS); // of the output
    if (count > 3)
        add_query(&a, steps[3]);
    plan_append_add_programs(&a, steps[2], VK_ATTENTION_NEW_V);
    plan_append_add_programs(&a, steps[1], VK_ATTENTION_NEW_K);
    return plan_kernel(plan, &a.step);
}
