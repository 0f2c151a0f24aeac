// SPDX-License-Identifier: MIT
// Recompute: a large result of an elementwise program, such as an activation, that lives
// through the peak of memory for readers far behind it is computed anew. A program that
// reads the same array behind the peak, such as the activation's derivative, gives it as
// one more result. Devices whose memory is the host's keep such results.
//
// The peak is that of the order which stage `order` will find, as gradients of weights come
// last in the graph's.
#include <string.h>
#include "../base/shape.h"
#include "fuse/group.h"
#include "plan.h"

#define LEAST (1 << 20) // bytes of such a result

struct recomputer {
    struct fuser fuser;
    uint32_t *position; // by operation: where stage `order` will put it
    uint32_t peak;      // the position at which most bytes are alive
};

static bool recompute_is_plain(const struct plan_op *op)
{
    return op->kind == OP_PROGRAM && op->device == 0 &&
           !(op->program->flags & (TN_EXPR_ROWS | TN_EXPR_TAKES));
}

// Whether the operation has one large result, which several read.
static bool recompute_is_large(const struct plan_work *work, const struct plan_op *op)
{
    const struct plan_value *v = &work->values[op->outputs[0]];
    return recompute_is_plain(op) && op->num_outputs == 1 && !v->is_output &&
           v->first_use != NONE && work->uses[v->first_use].next != NONE &&
           layout_bytes(&v->layout) >= LEAST;
}

// --- the peak ---------------------------------------------------------------------------

static tn_status recompute_find_positions(struct recomputer *r)
{
    struct plan_work *work = r->fuser.work;
    struct plan_op *ops = mem_alloc(work->num_ops * sizeof(*ops));
    if (!ops)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < work->num_ops; i++)
        work->ops[i].group = i;
    memcpy(ops, work->ops, work->num_ops * sizeof(*ops));
    plan_renumber(work); // views follow their base
    tn_status status = plan_may_advance(work) ? plan_advance(work) : TN_OK;
    for (uint32_t i = 0; i < work->num_ops; i++)
        r->position[work->ops[i].group] = i;
    memcpy(work->ops, ops, work->num_ops * sizeof(*ops));
    plan_renumber(work);
    mem_free(ops);
    return status;
}

// Finds the positions and the peak.
static tn_status recompute_find_peak(struct recomputer *r)
{
    const struct plan_work *work = r->fuser.work;
    double *change = mem_zalloc((work->num_ops + 1) * sizeof(*change));
    double alive = 0, most = 0;
    tn_status status = change ? recompute_find_positions(r) : TN_ERR_MEMORY;
    for (uint32_t i = 0; i < work->num_ops && status == TN_OK; i++) {
        const struct plan_op *op = &work->ops[i];
        for (uint32_t k = 0; k < op->num_outputs && op->device == 0; k++) {
            const struct plan_value *v = &work->values[op->outputs[k]];
            uint32_t last = r->position[i];
            for (uint32_t u = v->first_use; u != NONE; u = work->uses[u].next)
                if (r->position[work->uses[u].op] > last)
                    last = r->position[work->uses[u].op];
            change[r->position[i]] += (double)layout_bytes(&v->layout);
            if (!v->is_output)
                change[last + 1] -= (double)layout_bytes(&v->layout);
        }
    }
    for (uint32_t i = 0; i < work->num_ops && status == TN_OK; i++) {
        alive += change[i];
        if (alive > most) {
            most = alive;
            r->peak = i;
        }
    }
    mem_free(change);
    return status;
}

// --- conditions -------------------------------------------------------------------------

// Whether all arrays that the operation reads live up to operation `at` anyway.
static bool recompute_has_inputs(const struct plan_work *work, const struct plan_op *op,
                                 uint32_t at)
{
    bool has = true;
    for (uint32_t i = 0; i < op->num_inputs && has; i++) {
        if (op->inputs[i].value == NONE)
            continue;
        const struct plan_value *v = &work->values[op->inputs[i].value];
        const struct plan_value *base = &work->values[v->base];
        has = v->is_number || base->is_output ||
              (base->leaf != NONE && !plan_is_donated(work, base)) ||
              work->uses[work->last_use[v->base]].op >= at;
    }
    return has;
}

// Whether readers of the value before operation `at` run before the peak, and all others
// run behind `at` and behind the peak; with readers on both sides.
static bool recompute_is_split(const struct recomputer *r, const struct plan_value *value,
                               uint32_t at)
{
    const struct plan_work *work = r->fuser.work;
    bool is_early = false, is_late = false, is_split = true;
    for (uint32_t u = value->first_use; u != NONE && is_split; u = work->uses[u].next) {
        uint32_t op = work->uses[u].op;
        is_early |= op < at;
        is_late |= op > at;
        is_split =
            op < at ? r->position[op] < r->peak : op > at && r->position[op] > r->peak;
    }
    return is_split && is_early && is_late;
}

// The program that can compute operation `p` again, or NONE.
static uint32_t recompute_find_program(const struct recomputer *r, uint32_t p)
{
    const struct plan_work *work = r->fuser.work;
    const struct plan_op *op = &work->ops[p];
    const struct plan_value *values = work->values, *result = &values[op->outputs[0]];
    for (uint32_t i = 0; i < op->num_inputs && r->position[p] < r->peak; i++) {
        uint32_t value = op->inputs[i].value, u = NONE;
        if (value != NONE)
            u = values[values[value].base].first_use;
        for (; u != NONE; u = work->uses[u].next) {
            uint32_t at = work->uses[u].op;
            const struct plan_op *q = &work->ops[at];
            if (r->position[at] > r->peak && recompute_is_plain(q) &&
                fuse_same_elements(&values[q->outputs[0]].layout, &result->layout) &&
                recompute_is_split(r, result, at) && recompute_has_inputs(work, op, at))
                return at;
        }
    }
    return NONE;
}

// --- joining ----------------------------------------------------------------------------

// Fills the group with the program of an operation.
static tn_status recompute_add(struct fuser *f, uint32_t op, struct group *group)
{
    const struct plan_op *o = &f->work->ops[op];
    uint32_t map[TN_EXPR_MAX_INSNS];
    *group = (struct group){.merged_into = NONE,
                            .device = o->device,
                            .first_op = op,
                            .last_op = op,
                            .num_ops = 1,
                            .shape = f->work->values[o->outputs[0]].layout};
    f->next_member[op] = NONE;
    tn_status status = fuse_append(f, group, o->program, o->inputs, o->params, map);
    for (uint32_t k = 0; k < o->num_outputs && status == TN_OK; k++)
        status = fuse_add_result(group, o->outputs[k], map[o->program->outputs[k]], false);
    return status;
}

// Readers behind operation `at` read `to`, which lies in memory as the base does.
static void recompute_redirect(struct plan_work *work, uint32_t at, uint32_t base,
                               uint32_t to)
{
    for (uint32_t u = work->values[base].first_use; u != NONE; u = work->uses[u].next) {
        struct plan_op *op = &work->ops[work->uses[u].op];
        for (uint32_t i = 0; i < op->num_inputs && work->uses[u].op > at; i++)
            if (op->inputs[i].value != NONE &&
                work->values[op->inputs[i].value].base == base)
                op->inputs[i].value = to;
    }
}

// Joins both groups and writes the program of `q`, whose last result is `p`'s.
static tn_status recompute_join(struct fuser *f, uint32_t q, uint32_t result)
{
    struct plan_work *work = f->work;
    tn_layout layout = work->values[result].layout; // adding a value moves the others
    uint32_t again;
    tn_status status = work_add_value(work, &layout, 0, &again);
    if (status != TN_OK)
        return status;
    f->groups[1].results[0].value = again;
    status = fuse_merge(f, 0, 1);
    if (status == TN_OK)
        status = fuse_write_op(f, 0, &work->ops[q]);
    work->values[again].producer = q;
    recompute_redirect(work, q, result, again);
    return status;
}

static tn_status recompute_in(struct fuser *f, uint32_t p, uint32_t q)
{
    struct group groups[2] = {{0}};
    f->groups = groups;
    tn_status status = recompute_add(f, q, &groups[0]);
    if (status == TN_OK)
        status = recompute_add(f, p, &groups[1]);
    if (status == TN_OK && fuse_have_room(f, NONE, 0, 1))
        status = recompute_join(f, q, f->work->ops[p].outputs[0]);
    fuse_free_group(&groups[0]);
    fuse_free_group(&groups[1]);
    return status;
}

tn_status plan_recompute(struct plan_work *work)
{
    struct recomputer r = {.fuser.work = work};
    uint32_t p = 0;
    if (work->devices[0]->info.flags & TN_DEVICE_HOST_MEMORY)
        return TN_OK;
    tn_status status = work_list_uses(work);
    while (p < work->num_ops && status == TN_OK && !recompute_is_large(work, &work->ops[p]))
        p++;
    if (p == work->num_ops || status != TN_OK)
        return status;
    r.fuser.next_member = mem_alloc(work->num_ops * 2 * sizeof(*r.fuser.next_member));
    r.position = r.fuser.next_member ? r.fuser.next_member + work->num_ops : NULL;
    status = r.fuser.next_member ? recompute_find_peak(&r) : TN_ERR_MEMORY;
    for (; p < work->num_ops && status == TN_OK; p++) {
        uint32_t q = NONE;
        if (recompute_is_large(work, &work->ops[p]))
            q = recompute_find_program(&r, p);
        if (q != NONE)
            status = recompute_in(&r.fuser, p, q);
    }
    mem_free(r.fuser.next_member);
    return status;
}
