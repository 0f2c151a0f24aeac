// SPDX-License-Identifier: MIT
// Order: operations become segments, each one submission to one device after its transfers
// and what the host runs. On one device there is one segment, in the order of the graph.
// Siblings on devices that join steps: siblings.c. With several devices, a segment
// takes all operations that are ready on its device, also those that it makes ready itself.
//
// Ready operations wait in one heap a device, one for transfers and one for what the host
// runs; the earliest in the graph comes first. So sorting n operations and operands takes
// O(n log n), however often work moves from one device to another.
#include <string.h>
#include <tenon/run_memory.h>
#include "../base/fail.h"
#include "../base/shape.h"
#include "plan.h"

// A binary heap of operation indices, the smallest on top.
struct heap {
    uint32_t *items;
    uint32_t count, capacity;
};

struct sorter {
    struct plan_work *work;
    struct plan *plan;
    struct plan_op *sorted;
    uint32_t *missing; // by operation: operands whose producers are not sorted yet
    // For each operation a list of the operands that read its outputs: `first_user` is by
    // operation, `next_user` by operand. `user`, by operand: the operation that reads it.
    // The next effect of a domain follows an effect as if it read an operand, one more for
    // each operation behind all others.
    uint32_t *first_user, *next_user;
    uint32_t *user;
    struct heap *ready;    // by device; then for transfers, and for host operations
    uint32_t num_starting; // ready operations that start work beside the devices
    uint32_t num_sorted, max_segments, num_operands;
};

// --- ready operations ------------------------------------------------------------------

static tn_status plan_order_heap_push(struct heap *heap, uint32_t item)
{
    tn_status status = mem_grow((void **)&heap->items, &heap->capacity, heap->count + 1,
                                sizeof(*heap->items));
    if (status != TN_OK)
        return status;
    uint32_t i = heap->count++;
    for (; i > 0 && heap->items[(i - 1) / 2] > item; i = (i - 1) / 2)
        heap->items[i] = heap->items[(i - 1) / 2];
    heap->items[i] = item;
    return TN_OK;
}

static uint32_t plan_order_heap_pop(struct heap *heap)
{
    uint32_t top = heap->items[0], last = heap->items[--heap->count], i = 0;
    for (uint32_t child; (child = 2 * i + 1) < heap->count; i = child) {
        if (child + 1 < heap->count && heap->items[child + 1] < heap->items[child])
            child++;
        if (heap->items[child] >= last)
            break;
        heap->items[i] = heap->items[child];
    }
    heap->items[i] = last;
    return top;
}

static bool is_starting(const struct plan_op *op)
{
    return op->kind == OP_HOST && (op->prim->record.flags & TN_PRIM_STARTS);
}

static tn_status add_ready(struct sorter *s, uint32_t op)
{
    const struct plan_op *o = &s->work->ops[op];
    uint32_t devices = s->work->num_devices;
    s->num_starting += is_starting(o);
    uint32_t which = o->kind == OP_TRANSFER ? devices
                     : o->kind == OP_HOST   ? devices + 1
                                            : o->device;
    return plan_order_heap_push(&s->ready[which], op);
}

static void add_user(struct sorter *s, uint32_t producer, uint32_t use, uint32_t user)
{
    s->user[use] = user;
    s->next_user[use] = s->first_user[producer];
    s->first_user[producer] = use;
    s->missing[user]++;
}

// Lists, for each operation, the operands that read its outputs. An operand is numbered
// across all operations.
static tn_status find_users(struct sorter *s)
{
    const struct plan_work *work = s->work;
    uint32_t use = 0, last_effect[MAX_DOMAINS + 1];
    tn_status status = TN_OK;
    memset(last_effect, 0xff, sizeof(last_effect));
    memset(s->first_user, 0xff, work->num_ops * sizeof(*s->first_user));
    for (uint32_t i = 0; i < work->num_ops && status == TN_OK; i++) {
        const struct plan_op *op = &work->ops[i];
        for (uint32_t k = 0; k < op->num_inputs; k++, use++) {
            uint32_t value = op->inputs[k].value;
            uint32_t producer = value == NONE ? NONE : work->values[value].producer;
            if (producer != NONE)
                add_user(s, producer, use, i);
        }
        uint32_t domain = op->prim ? op->prim->domain : 0;
        if (domain && last_effect[domain] != NONE)
            add_user(s, last_effect[domain], s->num_operands + i, i);
        last_effect[domain] = i;
        if (s->missing[i] == 0)
            status = add_ready(s, i);
    }
    return status;
}

static tn_status sorter_init(struct sorter *s)
{
    uint64_t num_operands = 0, num_ops = s->work->num_ops;
    for (uint32_t i = 0; i < num_ops; i++)
        num_operands += s->work->ops[i].num_inputs;
    if (num_operands + num_ops >= NONE)
        return fail(TN_ERR_UNSUPPORTED, "the graph has %llu operands, at most %u fit",
                    (unsigned long long)(num_operands + num_ops), NONE - 1);
    s->num_operands = (uint32_t)num_operands;
    s->sorted = mem_alloc(num_ops * sizeof(*s->sorted));
    s->missing = mem_zalloc(num_ops * sizeof(*s->missing));
    s->first_user = mem_alloc(num_ops * sizeof(*s->first_user));
    s->next_user = mem_alloc((num_operands + num_ops) * sizeof(*s->next_user));
    s->user = mem_alloc((num_operands + num_ops) * sizeof(*s->user));
    s->ready = mem_zalloc((s->work->num_devices + 2) * sizeof(*s->ready));
    bool made = s->sorted && s->missing && s->first_user && s->next_user && s->user;
    return made && s->ready ? find_users(s) : TN_ERR_MEMORY;
}

static void sorter_finish(struct sorter *s)
{
    for (uint32_t i = 0; s->ready && i < s->work->num_devices + 2; i++)
        mem_free(s->ready[i].items);
    mem_free(s->ready);
    mem_free(s->user);
    mem_free(s->next_user);
    mem_free(s->first_user);
    mem_free(s->missing);
    mem_free(s->sorted);
}

// --- segments --------------------------------------------------------------------------

static tn_status add_segment(struct sorter *s, uint32_t device, uint32_t transfers,
                             uint32_t hosts, uint32_t steps)
{
    struct plan *plan = s->plan;
    tn_status status = mem_grow((void **)&plan->segments, &s->max_segments,
                                plan->num_segments + 1, sizeof(*plan->segments));
    if (status != TN_OK)
        return status;
    plan->segments[plan->num_segments++] = (struct plan_segment){
        .device = device,
        .first_transfer = plan->num_transfers,
        .num_transfers = transfers,
        .first_host = plan->num_hosts,
        .num_hosts = hosts,
        .first_step = plan->num_steps,
        .num_steps = steps,
    };
    plan->num_transfers += transfers;
    plan->num_hosts += hosts;
    plan->num_steps += steps;
    return TN_OK;
}

// Appends the ready operations of one heap to `sorted`, and those that become ready
// meanwhile. A device's heap stops once a host operation of TN_PRIM_STARTS is ready, which
// then comes next; the host's heap stops behind such an operation, so that devices go on
// beside the work that it starts.
static tn_status append_ready(struct sorter *s, uint32_t which, uint32_t *out_count)
{
    struct heap *heap = &s->ready[which];
    tn_status status = TN_OK;
    bool is_device = which < s->work->num_devices, has_started = false;
    *out_count = 0;
    while (heap->count > 0 && status == TN_OK && !has_started &&
           !(is_device && s->num_starting > 0)) {
        uint32_t op = plan_order_heap_pop(heap);
        has_started = is_starting(&s->work->ops[op]);
        s->num_starting -= has_started;
        s->sorted[s->num_sorted++] = s->work->ops[op];
        ++*out_count;
        for (uint32_t use = s->first_user[op]; use != NONE && status == TN_OK;
             use = s->next_user[use])
            if (--s->missing[s->user[use]] == 0)
                status = add_ready(s, s->user[use]);
    }
    return status;
}

static tn_status plan_order_sort(struct sorter *s)
{
    uint32_t num_devices = s->work->num_devices;
    while (s->num_sorted < s->work->num_ops) {
        uint32_t before = s->num_sorted, transfers, hosts = 0, steps = 0, device = 0;
        tn_status status = append_ready(s, num_devices, &transfers);
        if (status == TN_OK)
            status = append_ready(s, num_devices + 1, &hosts);
        while (device < num_devices && s->ready[device].count == 0)
            device++;
        if (status == TN_OK && device < num_devices)
            status = append_ready(s, device, &steps);
        if (status == TN_OK)
            status =
                add_segment(s, device < num_devices ? device : 0, transfers, hosts, steps);
        if (status != TN_OK)
            return status;
        if (s->num_sorted == before)
            return fail(TN_ERR_INTERNAL, "the graph has a cycle");
    }
    return TN_OK;
}

// --- plan_order ------------------------------------------------------------------------

static bool has_effects(const struct plan_work *work)
{
    bool found = false;
    for (uint32_t i = 0; i < work->num_ops && !found; i++)
        found = work->ops[i].prim && (work->ops[i].prim->record.flags & TN_PRIM_EFFECT);
    return found;
}

// Drops operations whose outputs have no elements, unless some operation has an effect.
static void drop_empty(struct plan_work *work)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < work->num_ops; i++) {
        const struct plan_op *op = &work->ops[i];
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

void plan_renumber(struct plan_work *work)
{
    for (uint32_t i = 0; i < work->num_ops; i++)
        for (uint32_t k = 0; k < work->ops[i].num_outputs; k++)
            work->values[work->ops[i].outputs[k]].producer = i;
    for (uint32_t i = 0; i < work->num_values; i++)
        work->values[i].producer = work->values[work->values[i].base].producer;
}

// Whether the host has something to do between steps.
static bool has_breaks(const struct plan_work *work)
{
    bool found = false;
    for (uint32_t i = 0; i < work->num_ops && !found; i++)
        found = work->ops[i].kind == OP_TRANSFER || work->ops[i].kind == OP_HOST;
    return found;
}

bool plan_may_advance(const struct plan_work *work)
{
    return work->num_devices == 1 && !has_breaks(work) && !has_effects(work);
}

tn_status plan_order(struct plan_work *work, struct plan *plan)
{
    if (has_effects(work))
        plan_renumber(work); // views follow their base
    else
        drop_empty(work);
    tn_status ordered = plan_siblings(work);
    if (ordered != TN_OK)
        return ordered;
    if (work->num_ops == 0)
        return TN_OK;
    struct sorter s = {.work = work, .plan = plan};
    if (work->num_devices == 1 && !has_breaks(work)) {
        if (plan_may_advance(work))
            ordered = plan_advance(work);
        return ordered == TN_OK ? add_segment(&s, 0, 0, 0, work->num_ops) : ordered;
    }
    tn_status status = sorter_init(&s);
    if (status == TN_OK)
        status = plan_order_sort(&s);
    if (status == TN_OK) {
        memcpy(work->ops, s.sorted, work->num_ops * sizeof(*s.sorted));
        plan_renumber(work);
    }
    sorter_finish(&s);
    return status;
}
