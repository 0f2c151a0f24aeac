// SPDX-License-Identifier: MIT
// Gathers in programs: on devices with TN_DEVICE_TAKES a primitive by role TN_ROLE_TAKE is
// instruction TAKE, an operation of groups as expressions are. So each operand that an
// elementwise program reads may be gathered; a gather without a group stays the kernel's.
//
// A gather is computed once for each element of its result: operations that read the result
// element by element have it in a register, and the program writes it for others. A gather
// whose result is read in another order (broadcast, transposed) is not fused with these
// readers, so no element is gathered twice.
//
// The arithmetic of indices (of several index arrays, of batches) is a program over the
// indices' extents, often fewer than the result's. Where only one program reads its
// results, and it is cheap, it becomes part of that one: each element computes its index.
#include <string.h>
#include "../../attr/attrs.h"
#include "../../base/dtype.h"
#include "../../base/shape.h"
#include "../../expr/expr.h"
#include "group.h"

// --- one gather ------------------------------------------------------------------------

static int32_t fuse_take_axis_of(const struct plan_op *op)
{
    return expr_axis(&op->prim->record.attrs, op->attrs, op->inputs[0].layout.rank);
}

bool fuse_is_take(const struct plan_work *work, const struct plan_op *op)
{
    const struct device *device = work->devices[op->device];
    if (op->kind != OP_KERNEL || !op->prim || !op->prim->is_take ||
        !(device->info.flags & TN_DEVICE_TAKES))
        return false;
    const tn_layout *x = &op->inputs[0].layout, *indices = &op->inputs[1].layout;
    const tn_layout *out = &work->values[op->outputs[0]].layout;
    int32_t axis = fuse_take_axis_of(op);
    return axis >= 0 && x->extent[axis] > 0 && out->rank == x->rank - 1 + indices->rank &&
           out->dtype == x->dtype && tn_dtype_in(indices->dtype, TN_INTEGER_DTYPES);
}

// Both inputs over the elements of the result [before, indices, behind].
static void fuse_take_spread(const tn_layout *x, const tn_layout *indices, int32_t axis,
                             const tn_layout *out, struct operand *inputs)
{
    tn_layout *from = &inputs[0].layout, *at = &inputs[1].layout;
    *from = *at = *out;
    from->offset = x->offset;
    at->offset = indices->offset;
    at->dtype = indices->dtype;
    for (int32_t i = 0; i < out->rank; i++) {
        int32_t own = i - axis; // axis of the indices
        bool is_own = own >= 0 && own < indices->rank;
        from->stride[i] = is_own    ? 0
                          : own < 0 ? x->stride[i]
                                    : x->stride[i - indices->rank + 1];
        at->stride[i] = is_own ? indices->stride[own] : 0;
    }
}

tn_status fuse_take(struct fuser *f, const struct plan_op *op, struct member *out)
{
    const tn_layout *x = &op->inputs[0].layout, *indices = &op->inputs[1].layout;
    struct operand *inputs = arena_alloc(f->work->arena, 2 * sizeof(*inputs));
    uint64_t *params = arena_alloc(f->work->arena, 2 * sizeof(*params));
    if (!inputs || !params)
        return TN_ERR_MEMORY;
    int32_t axis = fuse_take_axis_of(op);
    inputs[0].value = op->inputs[0].value;
    inputs[1].value = op->inputs[1].value;
    fuse_take_spread(x, indices, axis, &f->work->values[op->outputs[0]].layout, inputs);
    params[0] = (uint64_t)x->extent[axis];
    params[1] = (uint64_t)x->stride[axis];
    out->inputs = inputs;
    out->params = params;
    const tn_expr_insn insns[] = {
        {.op = TN_EXPR_LOAD, .dtype = (uint16_t)tn_dtype_computed(indices->dtype), .a = 1},
        {.op = TN_EXPR_TAKE, .dtype = (uint16_t)tn_dtype_computed(x->dtype)}};
    const uint32_t result = 1;
    const tn_dtype dtypes[] = {x->dtype, indices->dtype};
    const tn_expr_program program = {.struct_size = sizeof(program),
                                     .insns = insns,
                                     .input_dtypes = dtypes,
                                     .output_dtypes = &x->dtype,
                                     .outputs = &result,
                                     .num_insns = 2,
                                     .num_params = 2,
                                     .num_inputs = 2,
                                     .num_outputs = 1,
                                     .name = op->label};
    return program_intern(f->work->exprs, &program, &out->program);
}

// --- arithmetic of indices -------------------------------------------------------------

// Longer arithmetic is computed once an index, by a step of its own.
#define MOST_CHEAP_INSNS 64

bool fuse_is_cheap(const tn_expr_program *program)
{
    bool cheap = !(program->flags & TN_EXPR_ROWS) && program->num_insns <= MOST_CHEAP_INSNS;
    for (uint32_t i = 0; i < program->num_insns && cheap; i++) {
        uint32_t op = program->insns[i].op, class = tn_expr_class(op);
        cheap = op != TN_EXPR_INDEX && op != TN_EXPR_TAKE && class != TN_EXPR_CLASS_ROOT &&
                class != TN_EXPR_CLASS_FUNCTION && class != TN_EXPR_CLASS_CIRCULAR &&
                class != TN_EXPR_CLASS_POWER;
    }
    return cheap;
}

// Whether the operation alone reads the results of operation `p`, each by loading it.
static bool only_reader(const struct plan_work *work, uint32_t p, uint32_t reader)
{
    const struct plan_op *from = &work->ops[p], *op = &work->ops[reader];
    for (uint32_t k = 0; k < from->num_outputs; k++) {
        const struct plan_value *v = &work->values[from->outputs[k]];
        if (v->is_output || v->first_use == NONE || work->uses[v->first_use].op != reader ||
            work->uses[v->first_use].next != NONE)
            return false;
    }
    for (uint32_t i = 0; i < op->program->num_insns; i++) {
        const tn_expr_insn *insn = &op->program->insns[i];
        if (insn->op != TN_EXPR_TAKE)
            continue;
        const struct plan_value *v = &work->values[op->inputs[insn->a].value];
        if (work->values[v->base].producer == p)
            return false;
    }
    return true;
}

// `read`: a layout of values that were computed with layout `made`. Gives for each axis of
// `read` the axis of `made` that it runs along; NONE: it stays at one position. False: an
// axis of `read` runs along several axes of `made`.
static bool match_axes(const tn_layout *read, const tn_layout *made,
                       uint32_t axes[TN_MAX_RANK])
{
    for (int32_t i = 0; i < read->rank; i++) {
        int32_t k = 0;
        axes[i] = NONE;
        if (read->extent[i] == 1 || read->stride[i] == 0)
            continue;
        while (k < made->rank &&
               (made->extent[k] != read->extent[i] || made->stride[k] != read->stride[i]))
            k++;
        if (k == made->rank)
            return false;
        axes[i] = (uint32_t)k;
    }
    return read->offset == 0;
}

// The axes of the results of operation `p` by those of operation `reader`, which reads all
// of them alike.
static bool fuse_take_find_axes(const struct plan_work *work, uint32_t p, uint32_t reader,
                                uint32_t axes[TN_MAX_RANK])
{
    const struct plan_op *op = &work->ops[reader];
    const tn_layout *made = &work->values[work->ops[p].outputs[0]].layout, *first = NULL;
    for (uint32_t i = 0; i < op->num_inputs; i++) {
        const tn_layout *read = &op->inputs[i].layout;
        const struct plan_value *v = &work->values[op->inputs[i].value];
        if (work->values[v->base].producer != p)
            continue;
        if (read->dtype != work->values[v->base].layout.dtype ||
            (first ? !fuse_same_elements(read, first) : !match_axes(read, made, axes)))
            return false;
        first = read;
    }
    return first;
}

// Marks the instructions that indices depend on.
static void mark_indices(const tn_expr_program *program, bool is_index[TN_EXPR_MAX_INSNS])
{
    memset(is_index, 0, TN_EXPR_MAX_INSNS * sizeof(*is_index));
    for (uint32_t left = program->num_insns; left > 0; left--) {
        const tn_expr_insn *insn = &program->insns[left - 1];
        uint32_t operands = is_index[left - 1] ? tn_expr_operands(insn->op) : 0;
        const uint32_t from[] = {insn->a, insn->b, insn->c};
        for (uint32_t k = 0; k < operands; k++)
            is_index[from[k]] = true;
        if (insn->op == TN_EXPR_TAKE)
            is_index[insn->b] = true;
    }
}

// An operation whose results are indices of operation `reader`, or operands of these, and
// may be computed within `reader`.
static uint32_t find_indices(const struct plan_work *work, uint32_t reader,
                             const bool *gone, uint32_t axes[TN_MAX_RANK])
{
    bool is_index[TN_EXPR_MAX_INSNS];
    const struct plan_op *op = &work->ops[reader];
    mark_indices(op->program, is_index);
    for (uint32_t i = 0; i < op->program->num_insns; i++) {
        const tn_expr_insn *insn = &op->program->insns[i];
        if (!is_index[i] || insn->op != TN_EXPR_LOAD)
            continue;
        const struct plan_value *v = &work->values[op->inputs[insn->a].value];
        uint32_t p = work->values[v->base].producer;
        const struct plan_op *from = p == NONE ? NULL : &work->ops[p];
        if (from && !gone[p] && from->kind == OP_PROGRAM && from->device == op->device &&
            (from->program->num_insns + op->program->num_insns) *
                    (1 + fuse_count_reductions(op->program)) <=
                TN_EXPR_MAX_INSNS &&
            from->num_inputs + op->num_inputs <= TN_EXPR_MAX_INPUTS &&
            fuse_is_cheap(from->program) && only_reader(work, p, reader) &&
            fuse_take_find_axes(work, p, reader, axes))
            return p;
    }
    return NONE;
}

// The inputs of operation `p` as read over the extents of operation `reader`.
static void spread_inputs(const struct plan_work *work, uint32_t p, uint32_t reader,
                          const uint32_t axes[TN_MAX_RANK], struct operand *out)
{
    const struct plan_op *from = &work->ops[p];
    const tn_layout *shape = &work->ops[reader].inputs[0].layout;
    for (uint32_t i = 0; i < from->num_inputs; i++) {
        const tn_layout *in = &from->inputs[i].layout;
        out[i] = (struct operand){from->inputs[i].value, *shape};
        out[i].layout.dtype = in->dtype;
        out[i].layout.offset = in->offset;
        for (int32_t k = 0; k < shape->rank; k++)
            out[i].layout.stride[k] = axes[k] == NONE ? 0 : in->stride[axes[k]];
    }
}

// Whether the device runs the group, if that is a row program.
static tn_status ask_device(struct fuser *f, const struct group *group, bool *out_runs)
{
    const tn_expr_program *program;
    char name[LABEL_SIZE];
    if (group->row_axes == 0)
        return TN_OK;
    tn_status status = fuse_make_program(f, 0, name, &program);
    if (status == TN_OK)
        *out_runs = fuse_device_runs(f->work, group, program);
    return status;
}

// Puts the program of operation `p` before that of operation `reader`, unless the device
// declines the two as one: then *out_joined is false.
static tn_status join_indices(struct fuser *f, uint32_t p, uint32_t reader,
                              const uint32_t axes[TN_MAX_RANK], bool *out_joined)
{
    struct plan_work *work = f->work;
    const struct plan_op *from = &work->ops[p];
    struct plan_op *op = &work->ops[reader];
    uint32_t map[TN_EXPR_MAX_INSNS];
    struct operand inputs[TN_EXPR_MAX_INPUTS];
    struct group *group = &f->groups[0];
    *group = (struct group){.merged_into = NONE,
                            .device = op->device,
                            .first_op = p,
                            .last_op = reader,
                            .num_ops = 2,
                            .shape = op->inputs[0].layout};
    if (op->program->flags & TN_EXPR_ROWS)
        group->row_axes = op->row_axis + group->shape.rank + 1;
    *out_joined = true;
    f->next_member[p] = reader;
    f->next_member[reader] = NONE;
    spread_inputs(work, p, reader, axes, inputs);
    tn_status status = fuse_append(f, group, from->program, inputs, from->params, map);
    for (uint32_t k = 0; k < from->num_outputs && status == TN_OK; k++)
        status =
            fuse_add_result(group, from->outputs[k], map[from->program->outputs[k]], false);
    if (status == TN_OK)
        status = fuse_append(f, group, op->program, op->inputs, op->params, map);
    group->num_results = 0; // nobody else reads the indices
    for (uint32_t k = 0; k < op->num_outputs && status == TN_OK; k++)
        status =
            fuse_add_result(group, op->outputs[k], map[op->program->outputs[k]], false);
    if (status == TN_OK)
        status = ask_device(f, group, out_joined);
    if (status == TN_OK && *out_joined)
        status = fuse_write_op(f, 0, op);
    fuse_free_group(group);
    return status;
}

static bool has_takes(const struct plan_op *op)
{
    return op->kind == OP_PROGRAM && op->program->flags & TN_EXPR_TAKES;
}

// Lists readers without operations that are gone.
static tn_status list_uses(struct plan_work *work, const bool *gone)
{
    for (uint32_t i = 0; i < work->num_ops; i++)
        if (gone[i])
            work->ops[i].num_inputs = 0;
    return work_list_uses(work);
}

static tn_status join_all(struct plan_work *work, struct fuser *f, bool *gone)
{
    uint32_t axes[TN_MAX_RANK];
    tn_status status = work_list_uses(work);
    for (uint32_t i = 0; i < work->num_ops && status == TN_OK; i++) {
        uint32_t p = has_takes(&work->ops[i]) ? find_indices(work, i, gone, axes) : NONE;
        while (p != NONE && status == TN_OK) {
            bool joined;
            status = join_indices(f, p, i, axes, &joined);
            gone[p] = joined;
            if (status == TN_OK)
                status = list_uses(work, gone);
            p = status == TN_OK && joined ? find_indices(work, i, gone, axes) : NONE;
        }
    }
    if (status == TN_OK)
        work_remove_ops(work, gone);
    return status;
}

tn_status fuse_indices(struct plan_work *work)
{
    bool any = false;
    for (uint32_t i = 0; i < work->num_ops && !any; i++)
        any = has_takes(&work->ops[i]);
    if (!any)
        return TN_OK;
    struct fuser f = {.work = work};
    bool *gone = mem_zalloc(work->num_ops);
    f.groups = mem_zalloc(sizeof(*f.groups));
    f.next_member = mem_alloc(work->num_ops * sizeof(*f.next_member));
    tn_status status =
        gone && f.groups && f.next_member ? join_all(work, &f, gone) : TN_ERR_MEMORY;
    mem_free(gone);
    mem_free(f.groups);
    mem_free(f.next_member);
    return status;
}
