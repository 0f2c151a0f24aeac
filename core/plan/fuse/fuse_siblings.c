// SPDX-License-Identifier: MIT
// Sibling reductions: groups that reduce rows of one array become one row program with
// several outputs, which reads the array once.
//
// The merged group runs at the position of its later half. So nothing may read a value of
// the earlier half before, which also excludes that the later half depends on the earlier
// one through others.
#include "group.h"

static bool sibling_is_whole(const tn_layout *layout)
{
    for (int32_t i = 0; i < layout->rank; i++)
        if (layout->extent[i] > 1 && layout->stride[i] == 0)
            return false;
    return true;
}

static bool sibling_reads(const struct group *group, const struct operand *in)
{
    for (uint32_t i = 0; i < group->num_inputs; i++)
        if (fuse_same_operand(&group->inputs[i], in))
            return true;
    return false;
}

// Whether group `a` reads a value of group `b`.
static bool sibling_depends(const struct fuser *f, uint32_t a, uint32_t b)
{
    const struct group *group = &f->groups[a];
    for (uint32_t i = 0; i < group->num_inputs; i++)
        if (fuse_group_of_value(f, group->inputs[i].value) == b)
            return true;
    return false;
}

// Whether the group reduces rows, and a device has not declined its siblings.
static bool has_rows(const struct fuser *f, const struct group *group)
{
    return group->merged_into == NONE && group->num_reductions > 0 && group->row_axes > 0 &&
           !f->work->ops[group->last_op].siblings_refused;
}

// Whether groups `g` and `h`, of which `h` reads the operand, are siblings.
static bool are_siblings(struct fuser *f, uint32_t g, uint32_t h, const struct operand *in)
{
    const struct group *a = &f->groups[g], *b = &f->groups[h];
    if (!has_rows(f, a) || a->device != b->device ||
        !fuse_same_elements(&a->shape, &b->shape) || !sibling_reads(a, in) ||
        sibling_depends(f, g, h) || sibling_depends(f, h, g) ||
        !fuse_may_merge(f, NONE, g, h))
        return false;
    return a->last_op < b->last_op ? !fuse_needed_before(f, g, b->last_op)
                                   : !fuse_needed_before(f, h, a->last_op);
}

// A group that reads the operand and is a sibling of group `h`, or NONE.
static uint32_t find_sibling(struct fuser *f, uint32_t h, const struct operand *in)
{
    const struct plan_work *work = f->work;
    uint32_t base = work->values[in->value].base;
    for (uint32_t i = work->values[base].first_use; i != NONE; i = work->uses[i].next) {
        uint32_t g = fuse_find_group(f, work->uses[i].op);
        if (g != NONE && g != h && are_siblings(f, g, h, in))
            return g;
    }
    return NONE;
}

tn_status fuse_siblings(struct fuser *f, uint32_t h)
{
    tn_status status = TN_OK;
    if (!has_rows(f, &f->groups[h]))
        return TN_OK;
    for (uint32_t i = 0; i < f->groups[h].num_inputs && status == TN_OK; i++) {
        const struct operand in = f->groups[h].inputs[i]; // merging moves the list
        if (f->work->values[in.value].is_number || !sibling_is_whole(&in.layout))
            continue;
        for (uint32_t g = find_sibling(f, h, &in); g != NONE && status == TN_OK;
             g = find_sibling(f, h, &in)) {
            status = fuse_merge(f, h, g);
            f->groups[h].has_siblings = true;
        }
    }
    return status;
}
