// SPDX-License-Identifier: MIT
// Assign: values get memory (enum home). A leaf stays in its own memory. An operation that
// may work in place takes over the memory of an input that it is the last to read: of a
// value that is no output, or of a donated leaf. So values form chains, each in the memory
// of its first value. A chain that begins with a leaf lies in the leaf's memory. A chain
// that ends with an output gets a storage of its own in each run. All other chains share
// one arena a device, where an offset is reused once the live range of its chain ends.
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../graph/rules.h"
#include "plan.h"
#include "pool.h"

// The memory of chains and of scratch in one device's arena.
struct arena_ranges {
    struct pool_range *list; // by their first step
    uint32_t count, capacity;
};

struct assigner {
    struct plan_work *work;
    struct plan *plan;
    struct arena_ranges *ranges; // by device
    uint32_t max_storages;
    uint32_t held; // scratch memory of the operations from this one on is kept
};

// --- live ranges -----------------------------------------------------------------------

static uint64_t value_bytes(const struct plan_value *value)
{
    return layout_bytes(&value->layout);
}

static void find_lifetimes(struct plan_work *work)
{
    for (uint32_t i = 0; i < work->num_values; i++) {
        work->values[i].death = 0;
        work->values[i].takes = NONE;
        work->values[i].memory = i;
    }
    for (uint32_t step = 0; step < work->num_ops; step++) {
        const struct plan_op *op = &work->ops[step];
        for (uint32_t k = 0; k < op->num_outputs; k++)
            work->values[op->outputs[k]].death = step;
        for (uint32_t k = 0; k < op->num_inputs; k++)
            if (op->inputs[k].value != NONE)
                work->values[work->values[op->inputs[k].value].base].death = step;
    }
    for (uint32_t i = 0; i < work->num_values; i++)
        work->values[i].last_use = work->values[i].death;
}

// --- in-place operations ---------------------------------------------------------------

// Whether each operand in the memory of `base` is all of it, read in the order of the
// output's elements: then no element is overwritten before it is read.
static bool only_read_in_order(const struct plan_work *work, const struct plan_op *op,
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

bool plan_is_donated(const struct plan_work *work, const struct plan_value *value)
{
    return task_donates(work->task, value->leaf);
}

// Whether only the epilogue reads the memory of `base`: the kernel and its prologues read
// elements in any order.
static bool is_of_epilogue(const struct plan_work *work, const struct plan_op *op,
                           uint32_t base)
{
    uint32_t first = op->num_inputs; // of the epilogue's own inputs, which are the last
    const struct plan_fused *epilogue = op_epilogue(op);
    for (uint32_t i = 0; i < epilogue->num_inputs; i++)
        first -= epilogue->inputs[i].value != NONE;
    for (uint32_t i = 0; i < first; i++)
        if (op->inputs[i].value != NONE && work->values[op->inputs[i].value].base == base)
            return false;
    return true;
}

// Whether the output may lie in the memory of the input: nobody reads the input after this
// step, in this run or behind it.
static bool may_take_over(const struct plan_work *work, const struct plan_op *op,
                          uint32_t step, uint32_t input, uint32_t output)
{
    const struct operand *in = &op->inputs[input];
    const struct plan_value *out = &work->values[op->outputs[output]];
    if (in->value == NONE)
        return false;
    uint32_t base = work->values[in->value].base;
    const struct plan_value *v = &work->values[base];
    if (v->death != step || v->is_output || v->is_number || v->device != out->device ||
        (v->leaf != NONE && !plan_is_donated(work, v)) ||
        value_bytes(v) != value_bytes(out) ||
        dtype_size(v->layout.dtype) != dtype_size(out->layout.dtype))
        return false;
    if (op->kind == OP_PROGRAM)
        return only_read_in_order(work, op, base);
    if (op_epilogue(op))
        return is_of_epilogue(work, op, base) && only_read_in_order(work, op, base);
    if (!op->prim || op->prim->in_place_of[output] != input + 1)
        return false;
    // Kernels read other operands in any order, and what passes through prologues too, so
    // none may share the memory.
    for (uint32_t k = 0; k < op->num_inputs; k++)
        if (k != input && op->inputs[k].value != NONE &&
            work->values[op->inputs[k].value].base == base)
            return false;
    return only_read_in_order(work, op, base);
}

// Adds output `output` of the operation to the chain of an input, or begins a chain.
static void join_output(struct plan_work *work, const struct plan_op *op, uint32_t step,
                        uint32_t output)
{
    struct plan_value *out = &work->values[op->outputs[output]];
    for (uint32_t k = 0; k < op->num_inputs; k++) {
        if (op->kind == OP_TRANSFER || op->kind == OP_HOST ||
            !may_take_over(work, op, step, k, output))
            continue;
        struct plan_value *in = &work->values[work->values[op->inputs[k].value].base];
        out->takes = work->values[op->inputs[k].value].base;
        out->memory = in->memory;
        in->death = NONE; // no other output takes it over
        break;
    }
    work->values[out->memory].is_kept |= out->is_output;
}

// Finds the chains of values that lie in one memory. Runs over all steps before the first
// value gets its home, since a chain's end decides where it begins.
static void find_chains(struct plan_work *work)
{
    for (uint32_t step = 0; step < work->num_ops; step++) {
        const struct plan_op *op = &work->ops[step];
        for (uint32_t k = 0; k < op->num_outputs; k++)
            join_output(work, op, step, k);
    }
}

// --- homes ------------------------------------------------------------------------------

static tn_status add_storage(struct assigner *a, struct plan_value *value, uint32_t donated)
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

// Adds memory of the device's arena that is in use from this step on.
static tn_status assign_add_range(struct assigner *a, uint32_t device, uint64_t size,
                                  uint32_t step, uint32_t *out_range)
{
    struct arena_ranges *ranges = &a->ranges[device];
    tn_status status = mem_grow((void **)&ranges->list, &ranges->capacity,
                                ranges->count + 1, sizeof(*ranges->list));
    if (status != TN_OK)
        return status;
    *out_range = ranges->count;
    ranges->list[ranges->count++] =
        (struct pool_range){.size = size, .first = step, .last = a->work->num_ops - 1};
    return TN_OK;
}

static tn_status assign_place_output(struct assigner *a, uint32_t step, uint32_t output)
{
    const struct plan_op *op = &a->work->ops[step];
    struct plan_value *out = &a->work->values[op->outputs[output]];
    if (op->kind == OP_HOST) {
        out->home = HOME_MADE;
        out->home_index = a->plan->num_made;
        a->plan->made_bytes[a->plan->num_made++] = value_bytes(out);
        return TN_OK;
    }
    if (out->takes != NONE) {
        const struct plan_value *in = &a->work->values[out->takes];
        if (in->home == HOME_LEAF)
            return add_storage(a, out, in->leaf);
        out->home = in->home;
        out->home_index = in->home_index;
        out->range = in->range;
        return TN_OK;
    }
    if (out->is_kept)
        return add_storage(a, out, NONE);
    out->home = HOME_ARENA;
    out->home_index = out->device;
    return assign_add_range(a, out->device, value_bytes(out), step, &out->range);
}

// Steps that a device may join to one launch are at most so far apart. This bounds time and
// memory for many such steps in a row.
#define MOST_JOINED 16
#define SMALL_BYTES 131072 // of a value that a postponed step may read

// Ends the live range of the value's memory where this step is the last use. A small value
// stays for some further steps on a device that postpones steps.
static void assign_end_range(struct assigner *a, uint32_t base, uint32_t step)
{
    struct plan_value *v = &a->work->values[base];
    if (v->home != HOME_ARENA || v->death != step)
        return;
    v->death = NONE; // other operands of this step may lie in the same base
    uint32_t left = a->work->num_ops - 1 - step; // steps
    bool keeps = value_bytes(v) <= SMALL_BYTES &&
                 a->work->devices[v->device]->info.flags & TN_DEVICE_DEFERS;
    uint32_t more = !keeps ? 0 : left < MOST_JOINED ? left : MOST_JOINED;
    a->ranges[v->device].list[v->range].last = step + more;
}

static uint64_t fused_operands(const struct plan_op *op)
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < op->num_fused; i++)
        set |= UINT64_C(1) << op->fused[i].operand;
    return set;
}

static tn_status assign_ask_scratch(struct plan_work *work, struct plan_op *op)
{
    const struct plan_fused *epilogue = op_epilogue(op);
    uint32_t num_inputs = op_num_inputs(op), num_outputs = epilogue ? 1 : op->num_outputs;
    struct arena_mark mark = arena_mark(&work->stack);
    tn_layout *layouts =
        arena_alloc(&work->stack, (num_inputs + num_outputs) * sizeof(*layouts));
    if (!layouts)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < num_inputs; i++)
        layouts[i] = op->inputs[i].layout;
    for (uint32_t i = 0; i < num_outputs; i++)
        layouts[num_inputs + i] =
            epilogue ? epilogue->layout : work->values[op->outputs[i]].layout;
    tn_kernel_query query = {.struct_size = sizeof(query),
                             .inputs = layouts,
                             .outputs = layouts + num_inputs,
                             .attrs = op->attrs,
                             .num_inputs = num_inputs,
                             .num_outputs = num_outputs,
                             .fused = fused_operands(op),
                             .num_workers = work->devices[op->device]->num_workers};
    tn_status status = op->kind == OP_KERNEL
                           ? rule_scratch(op->kernel, &query, &op->scratch_size)
                           : rule_reference_scratch(op->prim, &query, &op->scratch_size);
    arena_rewind(&work->stack, mark);
    return status;
}

// Whether later steps may leave the kernel's scratch memory alone: up to 16 MiB. A kernel
// that needs more runs for so long that a launch of its own costs little.
static bool may_keep_scratch(const struct plan_op *op)
{
    return op->scratch_size > 0 && op->scratch_size <= UINT64_C(16) << 20;
}

static tn_status place_scratch(struct assigner *a, uint32_t step)
{
    struct plan_op *op = &a->work->ops[step];
    tn_status status = assign_ask_scratch(a->work, op);
    if (status != TN_OK || op->scratch_size == 0)
        return status;
    status = assign_add_range(a, op->device, op->scratch_size, step, &op->scratch_range);
    if (status == TN_OK && !may_keep_scratch(op))
        a->ranges[op->device].list[op->scratch_range].last = step;
    return status;
}

// Whether the device may join two kernels to one launch: it joins steps, and both read a
// common value.
static bool may_be_joined(const struct plan_work *work, const struct plan_op *a,
                          const struct plan_op *b)
{
    bool may = false;
    if (a->kind != OP_KERNEL || b->kind != OP_KERNEL || a->device != b->device ||
        !(work->devices[a->device]->info.flags & TN_DEVICE_GROUPS))
        return false;
    for (uint32_t i = 0; i < a->num_inputs && !may; i++)
        for (uint32_t k = 0; k < b->num_inputs && !may; k++)
            may = a->inputs[i].value != NONE && b->inputs[k].value != NONE &&
                  work->values[a->inputs[i].value].base ==
                      work->values[b->inputs[k].value].base;
    return may;
}

// A kernel needs its scratch memory during its step only. But kernels in a row that a
// device may join to one launch keep theirs up to the last of them.
static void free_scratch(struct assigner *a, uint32_t step)
{
    const struct plan_work *work = a->work;
    bool keeps = false;
    for (uint32_t i = a->held; i < step && !keeps; i++)
        keeps = may_keep_scratch(&work->ops[i]) &&
                may_be_joined(work, &work->ops[i], &work->ops[step]);
    for (; a->held + (keeps ? MOST_JOINED : 0) < step; a->held++) {
        const struct plan_op *op = &work->ops[a->held];
        if (may_keep_scratch(op))
            a->ranges[op->device].list[op->scratch_range].last = step - 1;
    }
}

static tn_status assign_step(struct assigner *a, uint32_t step)
{
    struct plan_work *work = a->work;
    struct plan_op *op = &work->ops[step];
    tn_status status = TN_OK;
    free_scratch(a, step);
    for (uint32_t k = 0; k < op->num_outputs && status == TN_OK; k++)
        status = assign_place_output(a, step, k);
    bool has_scratch =
        op->kind == OP_KERNEL
            ? op->kernel->scratch_size != NULL
            : op->kind == OP_REFERENCE && op->prim->record.reference_scratch != NULL;
    if (has_scratch && status == TN_OK)
        status = place_scratch(a, step);
    if (status != TN_OK)
        return status;
    for (uint32_t k = 0; k < op->num_inputs; k++)
        if (op->inputs[k].value != NONE)
            assign_end_range(a, work->values[op->inputs[k].value].base, step);
    for (uint32_t k = 0; k < op->num_outputs; k++)
        assign_end_range(a, op->outputs[k], step);
    return TN_OK;
}

static tn_status assign_offsets(struct assigner *a)
{
    struct plan_work *work = a->work;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < work->num_devices && status == TN_OK; i++) {
        const struct device *d = work->devices[i];
        uint64_t alignment = d->info.buffer_alignment > 64 ? d->info.buffer_alignment : 64;
        status = pool_assign(d->name, alignment, &work->stack, a->ranges[i].list,
                             a->ranges[i].count, &a->plan->arena_size[i]);
    }
    for (uint32_t i = 0; i < work->num_values && status == TN_OK; i++) {
        struct plan_value *v = &work->values[i];
        if (v->home == HOME_ARENA)
            v->home_offset = a->ranges[v->home_index].list[v->range].offset;
    }
    for (uint32_t i = 0; i < work->num_ops && status == TN_OK; i++) {
        struct plan_op *op = &work->ops[i];
        if (op->scratch_size > 0)
            op->scratch_offset = a->ranges[op->device].list[op->scratch_range].offset;
    }
    return status;
}

static void assign_leaves(struct plan_work *work)
{
    for (uint32_t i = 0; i < work->num_values; i++) {
        struct plan_value *v = &work->values[i];
        if (v->leaf != NONE && v->base == i) {
            v->home = HOME_LEAF;
            v->home_index = v->leaf;
        }
    }
}

// Gives a storage to a value that is needed and that neither a leaf nor an operation has:
// stage order dropped its operation, since the value has no elements.
static tn_status place_dropped(struct assigner *a, uint32_t value)
{
    struct plan_value *v = &a->work->values[a->work->values[value].base];
    bool is_dropped = v->home == HOME_NONE && v->producer == NONE && !v->is_number;
    return is_dropped ? add_storage(a, v, NONE) : TN_OK;
}

// Before the operations: one with several outputs may take over the memory of such a value.
static tn_status place_all_dropped(struct assigner *a)
{
    const struct plan_work *work = a->work;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < work->num_values && status == TN_OK; i++)
        if (work->values[i].is_output)
            status = place_dropped(a, i);
    for (uint32_t i = 0; i < work->num_ops; i++)
        for (uint32_t k = 0; k < work->ops[i].num_inputs && status == TN_OK; k++)
            if (work->ops[i].inputs[k].value != NONE)
                status = place_dropped(a, work->ops[i].inputs[k].value);
    return status;
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
        const struct plan_value *v =
            &work->values[work->value_of[work->task->outputs[i]->id]];
        const struct plan_value *base = &work->values[v->base];
        plan->outputs[i] = (struct plan_output){
            .slot = {base->home, base->home_index},
            .offset = base->home_offset,
            .layout = v->layout,
        };
    }
    return TN_OK;
}

static tn_status assign_make_room(const struct plan_work *work, struct plan *plan)
{
    uint64_t made = 0;
    for (uint32_t i = 0; i < work->num_ops; i++)
        made += work->ops[i].kind == OP_HOST ? work->ops[i].num_outputs : 0;
    if (made > 0)
        plan->made_bytes = arena_alloc(&plan->arena, made * sizeof(*plan->made_bytes));
    return made > 0 && !plan->made_bytes ? TN_ERR_MEMORY : TN_OK;
}

tn_status plan_assign(struct plan_work *work, struct plan *plan)
{
    struct assigner a = {.work = work, .plan = plan};
    a.ranges = mem_zalloc(work->num_devices * sizeof(*a.ranges));
    plan->arena_size =
        arena_alloc(&plan->arena, work->num_devices * sizeof(*plan->arena_size));
    tn_status status = a.ranges && plan->arena_size ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = assign_make_room(work, plan);
    find_lifetimes(work);
    find_chains(work);
    assign_leaves(work);
    if (status == TN_OK)
        status = place_all_dropped(&a);
    for (uint32_t i = 0; i < work->num_ops && status == TN_OK; i++)
        status = assign_step(&a, i);
    if (status == TN_OK)
        status = assign_offsets(&a);
    if (status == TN_OK)
        status = describe_outputs(&a);
    for (uint32_t i = 0; a.ranges && i < work->num_devices; i++)
        mem_free(a.ranges[i].list);
    mem_free(a.ranges);
    return status;
}
