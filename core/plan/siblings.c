// SPDX-License-Identifier: MIT
// Siblings: on devices that join steps, kernels that read the same value first follow each
// other, the later ones being moved up to the first as soon as all that they read is
// there. So what they write has memory of its own, and their device can run them as one.
#include <string.h>
#include "plan.h"

// Readers of a value that are looked at for each step: bounds the work for values that very
// many steps read.
#define MOST_READERS 16

struct sibling_order {
    struct plan_work *work;
    struct plan_op *sorted;
    uint32_t *next;  // by operation: the next one that reads the same value first
    uint32_t *first; // by base: the first operation that is not sorted yet, or NONE
    bool *is_sorted; // by operation
    uint32_t num_sorted;
};

// The base of the value that a kernel reads first, of a device that joins steps, or NONE.
static uint32_t read_first(const struct plan_work *work, const struct plan_op *op)
{
    bool joins = op->kind == OP_KERNEL &&
                 (work->devices[op->device]->info.flags & TN_DEVICE_GROUPS) &&
                 !(op->prim && (op->prim->record.flags & TN_PRIM_EFFECT));
    for (uint32_t i = 0; i < op->num_inputs && joins; i++)
        if (op->inputs[i].value != NONE && !work->values[op->inputs[i].value].is_number)
            return work->values[op->inputs[i].value].base;
    return NONE;
}

static bool is_ready(const struct sibling_order *g, const struct plan_op *op)
{
    for (uint32_t i = 0; i < op->num_inputs; i++) {
        uint32_t value = op->inputs[i].value;
        uint32_t producer = value == NONE ? NONE : g->work->values[value].producer;
        if (producer != NONE && !g->is_sorted[producer])
            return false;
    }
    return true;
}

static void sort_in(struct sibling_order *g, uint32_t op)
{
    g->sorted[g->num_sorted++] = g->work->ops[op];
    g->is_sorted[op] = true;
}

// Moves ready readers of a value to `sorted`. A reader of another reader's output waits for
// a later call.
static void take_readers(struct sibling_order *g, uint32_t base)
{
    uint32_t device = g->sorted[g->num_sorted - 1].device, looked_at = 0, num_ready = 0;
    uint32_t ready[MOST_READERS];
    while (g->first[base] != NONE && g->is_sorted[g->first[base]])
        g->first[base] = g->next[g->first[base]];
    for (uint32_t i = g->first[base]; i != NONE && looked_at < MOST_READERS;
         i = g->next[i]) {
        const struct plan_op *op = &g->work->ops[i];
        if (!g->is_sorted[i] && op->device == device && is_ready(g, op))
            ready[num_ready++] = i;
        looked_at++;
    }
    for (uint32_t i = 0; i < num_ready; i++)
        sort_in(g, ready[i]);
}

static void list_readers(struct sibling_order *g)
{
    const struct plan_work *work = g->work;
    for (uint32_t i = 0; i < work->num_values; i++)
        g->first[i] = NONE;
    for (uint32_t left = work->num_ops; left > 0; left--) {
        uint32_t base = read_first(work, &work->ops[left - 1]);
        g->next[left - 1] = base == NONE ? NONE : g->first[base];
        if (base != NONE)
            g->first[base] = left - 1;
    }
}

static void move_siblings(struct sibling_order *g)
{
    struct plan_work *work = g->work;
    list_readers(g);
    for (uint32_t i = 0; i < work->num_ops; i++) {
        uint32_t base = read_first(work, &work->ops[i]);
        if (g->is_sorted[i])
            continue;
        sort_in(g, i);
        if (base != NONE)
            take_readers(g, base);
    }
    memcpy(work->ops, g->sorted, work->num_ops * sizeof(*g->sorted));
    plan_renumber(work);
}

tn_status plan_siblings(struct plan_work *work)
{
    bool any = false;
    for (uint32_t i = 0; i < work->num_devices; i++)
        any = any || (work->devices[i]->info.flags & TN_DEVICE_GROUPS);
    if (!any || work->num_ops < 3)
        return TN_OK;
    struct arena_mark mark = arena_mark(&work->stack);
    struct sibling_order g = {.work = work};
    g.sorted = arena_alloc(&work->stack, work->num_ops * sizeof(*g.sorted));
    g.next = arena_alloc(&work->stack, work->num_ops * sizeof(*g.next));
    g.first = arena_alloc(&work->stack, (work->num_values + 1) * sizeof(*g.first));
    g.is_sorted = arena_alloc(&work->stack, work->num_ops * sizeof(*g.is_sorted));
    bool made = g.sorted && g.next && g.first && g.is_sorted;
    if (made) {
        memset(g.is_sorted, 0, work->num_ops * sizeof(*g.is_sorted));
        move_siblings(&g);
    }
    arena_rewind(&work->stack, mark);
    return made ? TN_OK : TN_ERR_MEMORY;
}
