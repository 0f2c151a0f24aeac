// SPDX-License-Identifier: MIT
// Assign: values get homes. Leaves keep theirs, outputs get memory of their own for each
// run, all others share the plan's arena on their device: an offset is reused as soon as
// the value in it is dead. An operation that may work in place takes over a dying input's
// memory; an output takes over a leaf that was given away.
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../graph/rules.h"
#include "plan.h"
#include "pool.h"

struct assigner {
    struct plan_work *work;
    struct plan *plan;
    struct pool *pools;
    uint32_t max_storages;
};

// --- lifetimes -------------------------------------------------------------------------

static uint64_t value_bytes(const struct pvalue *value)
{
    return (uint64_t)layout_elements(&value->layout) * dtype_size(value->layout.dtype);
}

static void find_lifetimes(struct plan_work *work)
{
    for (uint32_t i = 0; i < work->num_values; i++)
        work->values[i].birth = work->values[i].death = 0;
    for (uint32_t step = 0; step < work->num_ops; step++) {
        const struct pop *op = &work->ops[step];
        for (uint32_t k = 0; k < op->num_outputs; k++)
            work->values[op->outputs[k]].birth = work->values[op->outputs[k]].death = step;
        for (uint32_t k = 0; k < op->num_inputs; k++)
            if (op->inputs[k].value != NONE)
                work->values[work->values[op->inputs[k].value].base].death = step;
    }
}

// --- taking over -----------------------------------------------------------------------

// Each read of `base` by this operation walks it whole and in order, like its output.
static bool only_read_in_order(const struct plan_work *work, const struct pop *op,
                               uint32_t base)
{
    for (uint32_t k = 0; k < op->num_inputs; k++) {
        const struct operand *in = &op->inputs[k];
        if (in->value == NONE || work->values[in->value].base != base)
            continue;
        if (in->layout.offset != 0 || !layout_is_contiguous(&in->layout) ||
            layout_elements(&in->layout) != layout_elements(&work->values[base].layout))
            return false;
    }
    return true;
}

static bool may_take_over(const struct plan_work *work, const struct pop *op, uint32_t step,
                          uint32_t input, uint32_t output)
{
    const struct operand *in = &op->inputs[input];
    const struct pvalue *out = &work->values[op->outputs[output]];
    if (in->value == NONE)
        return false;
    uint32_t base = work->values[in->value].base;
    const struct pvalue *v = &work->values[base];
    if (v->death != step || v->is_output || v->is_number || v->device != out->device ||
        value_bytes(v) != value_bytes(out) ||
        dtype_size(v->layout.dtype) != dtype_size(out->layout.dtype))
        return false;
    if (op->kind == OP_PROGRAM)
        return only_read_in_order(work, op, base);
    if (!op->prim || op->prim->in_place_of[output] != input + 1)
        return false;
    for (uint32_t k = 0; k < op->num_inputs; k++) // no other operand in the same memory
        if (k != input && op->inputs[k].value != NONE &&
            work->values[op->inputs[k].value].base == base)
            return false;
    return only_read_in_order(work, op, base);
}

// --- homes ------------------------------------------------------------------------------

static tn_status add_storage(struct assigner *a, struct pvalue *value, uint32_t donated)
{
    struct plan *plan = a->plan;
    tn_status status = mem_grow((void **)&plan->storages, &a->max_storages,
                                plan->num_storages + 1, sizeof(*plan->storages));
    if (status != TN_OK)
        return status;
    value->home = HOME_STORAGE;
    value->home_index = plan->num_storages;
    value->home_offset = 0;
    plan->storages[plan->num_storages++] =
        (struct plan_storage){value->device, donated, value_bytes(value)};
    return TN_OK;
}

static bool is_donated(const struct plan_work *work, const struct pvalue *value)
{
    return value->leaf != NONE && value->leaf < 64 &&
           (work->task->donate >> value->leaf & 1) &&
           work->task->leaves[value->leaf]->node->kind == NODE_INPUT;
}

static tn_status place_output(struct assigner *a, const struct pop *op, uint32_t step,
                              uint32_t output)
{
    struct plan_work *work = a->work;
    struct pvalue *out = &work->values[op->outputs[output]];
    for (uint32_t k = 0; k < op->num_inputs; k++) {
        if (op->kind == OP_TRANSFER || !may_take_over(work, op, step, k, output))
            continue;
        struct pvalue *in = &work->values[work->values[op->inputs[k].value].base];
        if (out->is_output && in->home == HOME_LEAF && is_donated(work, in)) {
            in->death = NONE; // taken
            return add_storage(a, out, in->leaf);
        }
        if (!out->is_output && in->home == HOME_ARENA) {
            out->home = HOME_ARENA;
            out->home_index = out->device;
            out->home_offset = in->home_offset;
            in->death = NONE;
            return TN_OK;
        }
    }
    if (out->is_output)
        return add_storage(a, out, NONE);
    out->home = HOME_ARENA;
    out->home_index = out->device;
    return pool_take(&a->pools[out->device], value_bytes(out), &out->home_offset);
}

static tn_status bury(struct assigner *a, uint32_t base, uint32_t step)
{
    struct pvalue *v = &a->work->values[base];
    if (v->home != HOME_ARENA || v->death != step)
        return TN_OK;
    v->death = NONE; // once
    return pool_give(&a->pools[v->device], v->home_offset, value_bytes(v));
}

static tn_status ask_scratch(const struct plan_work *work, struct pop *op)
{
    tn_layout few[16], *layouts = few;
    uint32_t count = op->num_inputs + op->num_outputs;
    if (count > 16 && !(layouts = mem_alloc(count * sizeof(*layouts))))
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < count; i++)
        layouts[i] = i < op->num_inputs
                         ? op->inputs[i].layout
                         : work->values[op->outputs[i - op->num_inputs]].layout;
    tn_kernel_query query = {.struct_size = sizeof(query),
                             .inputs = layouts,
                             .outputs = layouts + op->num_inputs,
                             .attrs = op->attrs,
                             .num_inputs = op->num_inputs,
                             .num_outputs = op->num_outputs};
    tn_status status = rule_scratch(op->kernel, &query, &op->scratch_size);
    if (layouts != few)
        mem_free(layouts);
    return status;
}

// Working memory is free again as soon as the step is placed: the next step may have it.
static tn_status place_scratch(struct assigner *a, struct pop *op)
{
    struct pool *pool = &a->pools[op->device];
    tn_status status = ask_scratch(a->work, op);
    if (status != TN_OK || op->scratch_size == 0)
        return status;
    status = pool_take(pool, op->scratch_size, &op->scratch_offset);
    return status == TN_OK ? pool_give(pool, op->scratch_offset, op->scratch_size) : status;
}

static tn_status assign_step(struct assigner *a, uint32_t step)
{
    struct plan_work *work = a->work;
    struct pop *op = &work->ops[step];
    tn_status status = TN_OK;
    for (uint32_t k = 0; k < op->num_outputs && status == TN_OK; k++)
        status = place_output(a, op, step, k);
    if (op->kind == OP_KERNEL && status == TN_OK)
        status = place_scratch(a, op);
    for (uint32_t k = 0; k < op->num_inputs && status == TN_OK; k++)
        if (op->inputs[k].value != NONE)
            status = bury(a, work->values[op->inputs[k].value].base, step);
    for (uint32_t k = 0; k < op->num_outputs && status == TN_OK; k++)
        status = bury(a, op->outputs[k], step);
    return status;
}

static void home_leaves(struct plan_work *work)
{
    for (uint32_t i = 0; i < work->num_values; i++) {
        struct pvalue *v = &work->values[i];
        if (v->leaf != NONE && v->base == i) {
            v->home = HOME_LEAF;
            v->home_index = v->leaf;
        }
    }
}

// Outputs that no step computes and that are no leaf: they have no elements.
static tn_status home_empty(struct assigner *a)
{
    struct plan_work *work = a->work;
    for (uint32_t i = 0; i < work->num_values; i++) {
        struct pvalue *v = &work->values[i];
        if (v->base == i && v->is_output && v->home == HOME_NONE && !v->is_number) {
            tn_status status = add_storage(a, v, NONE);
            if (status != TN_OK)
                return status;
        }
    }
    return TN_OK;
}

static tn_status describe_outputs(struct assigner *a)
{
    const struct plan_work *work = a->work;
    struct plan *plan = a->plan;
    plan->num_outputs = work->task->num_outputs;
    plan->outputs =
        arena_alloc(&plan->arena, (plan->num_outputs + 1) * sizeof(*plan->outputs));
    if (!plan->outputs)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < plan->num_outputs; i++) {
        const struct pvalue *v = &work->values[work->value_of[work->task->outputs[i]->id]];
        const struct pvalue *base = &work->values[v->base];
        plan->outputs[i] = (struct plan_output){
            .slot = {base->home, base->home_index},
            .offset = base->home_offset,
            .layout = v->layout,
        };
    }
    return TN_OK;
}

tn_status plan_assign(struct plan_work *work, struct plan *plan)
{
    struct assigner a = {.work = work, .plan = plan};
    a.pools = mem_zalloc(work->num_devices * sizeof(*a.pools));
    plan->arena_size =
        arena_alloc(&plan->arena, work->num_devices * sizeof(*plan->arena_size));
    tn_status status = a.pools && plan->arena_size ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t i = 0; i < work->num_devices && status == TN_OK; i++) {
        const struct device *device = work->devices[i];
        a.pools[i].device = device->name;
        a.pools[i].alignment =
            device->info.buffer_alignment > 64 ? device->info.buffer_alignment : 64;
    }
    find_lifetimes(work);
    home_leaves(work);
    for (uint32_t i = 0; i < work->num_ops && status == TN_OK; i++)
        status = assign_step(&a, i);
    if (status == TN_OK)
        status = home_empty(&a);
    if (status == TN_OK)
        status = describe_outputs(&a);
    for (uint32_t i = 0; a.pools && i < work->num_devices; i++) {
        if (plan->arena_size)
            plan->arena_size[i] = a.pools[i].end;
        pool_finish(&a.pools[i]);
    }
    mem_free(a.pools);
    return status;
}
