// SPDX-License-Identifier: MIT
// Advance: an operation that frees much more memory than its results take is moved up to
// where all its inputs are computed. Examples are gradients of weights: in the order of the
// graph they come last, so the inputs of each would live until then.
#include <string.h>
#include <tenon/checked.h>
#include "../base/shape.h"
#include "plan.h"

#define LEAST                                                                              \
    (1 << 20)          // bytes that it frees; operations that free less stay in the
                       // graph's order
#define SMALL 1024     // bytes of a result that is computed early for such an operation
#define MOST_INPUTS 16 // inputs of such an operation: each is compared with all others

struct advancer {
    struct plan_work *work;
    struct plan_op *sorted;
    uint32_t *first_reader; // by base: the first of its operands, or NONE
    uint32_t *next_reader;  // by operand, over all operations: the next of the same base
    uint32_t *reader;       // by operand: its operation
    uint32_t *left;         // by base: operands of operations that are not sorted yet
    uint32_t *pending;      // operations that may release memory now
    bool *is_sorted;        // by operation
    uint32_t num_sorted, num_pending, num_operands;
};

static uint32_t advancer_base_of(const struct plan_work *work, const struct operand *in)
{
    bool is_memory = in->value != NONE && !work->values[in->value].is_number;
    return is_memory ? work->values[in->value].base : NONE;
}

static void advancer_list(struct advancer *r)
{
    const struct plan_work *work = r->work;
    uint32_t at = 0;
    memset(r->first_reader, 0xff, work->num_values * sizeof(*r->first_reader));
    for (uint32_t i = 0; i < work->num_ops; i++) {
        for (uint32_t k = 0; k < work->ops[i].num_inputs; k++, at++) {
            uint32_t base = advancer_base_of(work, &work->ops[i].inputs[k]);
            if (base == NONE)
                continue;
            r->reader[at] = i;
            r->next_reader[at] = r->first_reader[base];
            r->first_reader[base] = at;
            r->left[base]++;
        }
    }
}

static bool advancer_is_ready(const struct advancer *r, const struct plan_op *op)
{
    for (uint32_t k = 0; k < op->num_inputs; k++) {
        uint32_t value = op->inputs[k].value;
        uint32_t producer = value == NONE ? NONE : r->work->values[value].producer;
        if (producer != NONE && !r->is_sorted[producer])
            return false;
    }
    return true;
}

// How many operands of the operation read the base of operand `first`; 0: an operand before
// `first` reads it, too.
static uint32_t advancer_count_reads(const struct plan_work *work, const struct plan_op *op,
                                     uint32_t first)
{
    uint32_t base = advancer_base_of(work, &op->inputs[first]), count = 0;
    for (uint32_t k = 0; k < op->num_inputs; k++) {
        bool reads = base != NONE && advancer_base_of(work, &op->inputs[k]) == base;
        if (reads && k < first)
            return 0;
        count += reads;
    }
    return count;
}

// Whether memory of the arena, or of an array that is donated, is free behind the
// operation, or an output of it takes it over.
static bool advance_releases(const struct advancer *r, uint32_t op)
{
    const struct plan_work *work = r->work;
    const struct plan_op *o = &work->ops[op];
    uint64_t taken = 0, released = 0;
    if (o->num_inputs > MOST_INPUTS)
        return false;
    for (uint32_t k = 0; k < o->num_outputs; k++)
        taken = tn_saturated_add(taken, layout_bytes(&work->values[o->outputs[k]].layout));
    for (uint32_t k = 0; k < o->num_inputs; k++) {
        uint32_t count = advancer_count_reads(work, o, k);
        if (count == 0)
            continue;
        const struct plan_value *v = &work->values[work->values[o->inputs[k].value].base];
        bool is_kept = v->is_output || (v->leaf != NONE && !plan_is_donated(work, v));
        if (!is_kept && r->left[work->values[o->inputs[k].value].base] == count)
            released = tn_saturated_add(released, layout_bytes(&v->layout));
    }
    return released >= taken && released - taken >= LEAST;
}

static void advancer_note(struct advancer *r, uint32_t base)
{
    for (uint32_t at = r->first_reader[base]; at != NONE; at = r->next_reader[at])
        if (!r->is_sorted[r->reader[at]] && r->num_pending < r->num_operands)
            r->pending[r->num_pending++] = r->reader[at];
}

static void advancer_sort_in(struct advancer *r, uint32_t op)
{
    const struct plan_work *work = r->work;
    const struct plan_op *o = &work->ops[op];
    r->sorted[r->num_sorted++] = *o;
    r->is_sorted[op] = true;
    for (uint32_t k = 0; k < o->num_inputs; k++) {
        uint32_t base = advancer_base_of(work, &o->inputs[k]);
        if (base != NONE && --r->left[base] <= 2)
            advancer_note(r, base);
    }
    for (uint32_t k = 0; k < o->num_outputs; k++)
        advancer_note(r, o->outputs[k]);
}

// Sorts in what the operation waits for where all of it is small and could run at once, as
// a count of steps.
static void take_small(struct advancer *r, uint32_t op)
{
    const struct plan_work *work = r->work;
    for (uint32_t k = 0; k < work->ops[op].num_inputs; k++) {
        uint32_t value = work->ops[op].inputs[k].value;
        uint32_t producer = value == NONE ? NONE : work->values[value].producer;
        if (producer == NONE || r->is_sorted[producer])
            continue;
        const struct plan_op *o = &work->ops[producer];
        bool is_small = advancer_is_ready(r, o);
        for (uint32_t i = 0; i < o->num_outputs && is_small; i++)
            is_small = layout_bytes(&work->values[o->outputs[i]].layout) <= SMALL;
        if (is_small)
            advancer_sort_in(r, producer);
    }
}

// Takes the latest operation that may release memory: its inputs are the newest.
static void take_pending(struct advancer *r)
{
    while (r->num_pending > 0) {
        uint32_t op = r->pending[--r->num_pending];
        if (r->is_sorted[op] || !advance_releases(r, op))
            continue;
        take_small(r, op);
        if (advancer_is_ready(r, &r->work->ops[op]))
            advancer_sort_in(r, op);
    }
}

static void advancer_run(struct advancer *r)
{
    struct plan_work *work = r->work;
    advancer_list(r);
    for (uint32_t i = 0; i < work->num_ops; i++) {
        if (r->is_sorted[i])
            continue;
        advancer_sort_in(r, i);
        take_pending(r);
    }
    memcpy(work->ops, r->sorted, work->num_ops * sizeof(*r->sorted));
    plan_renumber(work);
}

tn_status plan_advance(struct plan_work *work)
{
    uint64_t num_operands = 0, num_ops = work->num_ops;
    for (uint32_t i = 0; i < num_ops; i++)
        num_operands += work->ops[i].num_inputs;
    if (num_ops < 3 || num_operands >= NONE)
        return TN_OK;
    struct arena_mark mark = arena_mark(&work->stack);
    struct advancer r = {.work = work, .num_operands = (uint32_t)num_operands};
    r.sorted = arena_alloc(&work->stack, num_ops * sizeof(*r.sorted));
    r.first_reader =
        arena_alloc(&work->stack, (work->num_values + 1) * sizeof(*r.first_reader));
    r.left = arena_alloc(&work->stack, (work->num_values + 1) * sizeof(*r.left));
    r.next_reader = arena_alloc(&work->stack, (num_operands + 1) * sizeof(*r.next_reader));
    r.reader = arena_alloc(&work->stack, (num_operands + 1) * sizeof(*r.reader));
    r.pending = arena_alloc(&work->stack, (num_operands + 1) * sizeof(*r.pending));
    r.is_sorted = arena_alloc(&work->stack, num_ops * sizeof(*r.is_sorted));
    bool made = r.sorted && r.first_reader && r.left && r.next_reader && r.reader &&
                r.pending && r.is_sorted;
    if (made) {
        memset(r.is_sorted, 0, num_ops * sizeof(*r.is_sorted));
        memset(r.left, 0, work->num_values * sizeof(*r.left));
        advancer_run(&r);
    }
    arena_rewind(&work->stack, mark);
    return made ? TN_OK : TN_ERR_MEMORY;
}
