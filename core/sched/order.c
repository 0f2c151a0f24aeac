// SPDX-License-Identifier: MIT
// Order: operations become segments, one submission to one device each, with the transfers
// that come before it. With one device there is one segment, in the order of the graph;
// with several, everything that is ready on the device at hand runs before another's turn.
#include <string.h>
#include "../base/fail.h"
#include "../base/shape.h"
#include "plan.h"

struct sorter {
    struct plan_work *work;
    struct plan *plan;
    struct pop *sorted;
    bool *done;
    uint32_t num_sorted, max_segments, max_transfers;
};

static bool is_ready(const struct sorter *s, const struct pop *op)
{
    for (uint32_t i = 0; i < op->num_inputs; i++) {
        if (op->inputs[i].value == NONE)
            continue;
        uint32_t producer = s->work->values[op->inputs[i].value].producer;
        if (producer != NONE && !s->done[producer])
            return false;
    }
    return true;
}

static void take(struct sorter *s, uint32_t op)
{
    s->done[op] = true;
    s->sorted[s->num_sorted++] = s->work->ops[op];
}

// All ready transfers, before the next segment.
static uint32_t take_transfers(struct sorter *s)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < s->work->num_ops; i++) {
        const struct pop *op = &s->work->ops[i];
        if (!s->done[i] && op->kind == OP_TRANSFER && is_ready(s, op)) {
            take(s, i);
            taken++;
        }
    }
    return taken;
}

static uint32_t take_steps(struct sorter *s, uint32_t device)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < s->work->num_ops; i++) {
        const struct pop *op = &s->work->ops[i];
        if (!s->done[i] && op->kind != OP_TRANSFER && op->device == device &&
            is_ready(s, op)) {
            take(s, i);
            taken++;
        }
    }
    return taken;
}

static tn_status add_segment(struct sorter *s, uint32_t device, uint32_t transfers,
                             uint32_t steps)
{
    struct plan *plan = s->plan;
    struct plan_segment *grown = arena_alloc(
        &plan->arena, (plan->num_segments + 1) * sizeof(*grown)); // few: copies are cheap
    if (!grown)
        return TN_ERR_MEMORY;
    if (plan->num_segments)
        memcpy(grown, plan->segments, plan->num_segments * sizeof(*grown));
    plan->segments = grown;
    grown[plan->num_segments++] = (struct plan_segment){
        .device = device,
        .first_transfer = plan->num_transfers,
        .num_transfers = transfers,
        .first_step = plan->num_steps,
        .num_steps = steps,
    };
    plan->num_transfers += transfers;
    plan->num_steps += steps;
    return TN_OK;
}

static tn_status sort(struct sorter *s)
{
    while (s->num_sorted < s->work->num_ops) {
        uint32_t before = s->num_sorted;
        uint32_t transfers = take_transfers(s);
        uint32_t steps = 0, device = 0;
        for (; device < s->work->num_devices && steps == 0; device++)
            steps = take_steps(s, device);
        tn_status status = add_segment(s, device - 1, transfers, steps);
        if (status != TN_OK)
            return status;
        if (s->num_sorted == before)
            return fail(TN_ERR_INTERNAL, "the graph has a cycle");
    }
    return TN_OK;
}

// Operations whose outputs have no elements have nothing to do.
static void drop_empty(struct plan_work *work)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < work->num_ops; i++) {
        const struct pop *op = &work->ops[i];
        bool empty = true;
        for (uint32_t k = 0; k < op->num_outputs && empty; k++)
            empty = layout_elements(&work->values[op->outputs[k]].layout) == 0;
        for (uint32_t k = 0; k < op->num_outputs; k++)
            work->values[op->outputs[k]].producer = empty ? NONE : kept;
        if (!empty)
            work->ops[kept++] = work->ops[i];
    }
    work->num_ops = kept;
    for (uint32_t i = 0; i < work->num_values; i++) // views follow their base
        work->values[i].producer = work->values[work->values[i].base].producer;
}

static void renumber(struct plan_work *work)
{
    for (uint32_t i = 0; i < work->num_ops; i++)
        for (uint32_t k = 0; k < work->ops[i].num_outputs; k++)
            work->values[work->ops[i].outputs[k]].producer = i;
}

tn_status plan_order(struct plan_work *work, struct plan *plan)
{
    drop_empty(work);
    if (work->num_ops == 0)
        return TN_OK;
    struct sorter s = {.work = work, .plan = plan};
    if (work->num_devices == 1)
        return add_segment(&s, 0, 0, work->num_ops);
    s.sorted = mem_alloc(work->num_ops * sizeof(*s.sorted));
    s.done = mem_zalloc(work->num_ops * sizeof(*s.done));
    tn_status status = s.sorted && s.done ? sort(&s) : TN_ERR_MEMORY;
    if (status == TN_OK) {
        memcpy(work->ops, s.sorted, work->num_ops * sizeof(*s.sorted));
        renumber(work);
    }
    mem_free(s.sorted);
    mem_free(s.done);
    return status;
}
