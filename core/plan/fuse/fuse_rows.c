// SPDX-License-Identifier: MIT
// Row programs made of base operations: reductions along the last axes join the elementwise
// work before and after them.
//
// A group with rows has extents [..., n]. Several axes at the end may be one row; then all
// inputs can have them as one axis. Operations of the group compute elements of rows,
// reduce elements to one value a row, or compute with values of rows: over [..., 1] or
// [...], for which the program has one value a row as well.
#include <string.h>
#include "../../attr/attrs.h"
#include "../../base/dtype.h"
#include "../../base/shape.h"
#include "../../expr/expr.h"
#include "group.h"

// Programs of rows have at most so many instructions, counted once for each reduction and
// once more: a backend may have to compute each of them anew for each reduction.
#define MOST_ROW_INSNS TN_EXPR_MAX_INSNS

// --- members ---------------------------------------------------------------------------

uint32_t fuse_count_reductions(const tn_expr_program *program)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->num_insns; i++)
        count += tn_expr_class(program->insns[i].op) == TN_EXPR_CLASS_REDUCE;
    return count;
}

// The number of axes that a reduction by role reduces. 0: they are not the last axes, are
// several and all axes, or have one element.
static int32_t fuse_rows_reduced_axes(const struct plan_op *op)
{
    const tn_layout *in = &op->inputs[0].layout;
    const tn_attr_table *table = &op->prim->record.attrs;
    tn_ints axes;
    memcpy(&axes,
           (const char *)op->attrs +
               attrs_field(table, (uint32_t)attrs_field_index(table, "axis"))->offset,
           sizeof(axes));
    int32_t count = axes.given ? (int32_t)axes.count : in->rank;
    int64_t n = 1;
    for (int32_t i = 0; i < count; i++) {
        int64_t axis = axes.given ? axes.value[i] : i;
        if (axis + (axis < 0 ? in->rank : 0) < in->rank - count)
            return 0;
        n *= in->extent[in->rank - 1 - i];
    }
    return n > 1 && (count == 1 || count < in->rank) ? count : 0;
}

// The program of a reduction by role: folds in the dtype of the result, half floats in f32.
static tn_status reduction_program(struct fuser *f, const struct plan_op *op,
                                   const tn_expr_program **out_program)
{
    tn_dtype from = op->inputs[0].layout.dtype;
    tn_dtype to = f->work->values[op->outputs[0]].layout.dtype;
    uint16_t in = (uint16_t)tn_dtype_computed(from), out = (uint16_t)tn_dtype_computed(to);
    bool is_mean = op->prim->reduction == EXPR_MEAN;
    uint16_t reduce = is_mean ? TN_EXPR_REDUCE_SUM : (uint16_t)op->prim->reduction;
    tn_expr_insn insns[6] = {{.op = TN_EXPR_LOAD, .dtype = in}};
    uint32_t count = 1, total;
    if (in != out)
        insns[count++] = (tn_expr_insn){TN_EXPR_CAST, out, 0, 0, 0};
    insns[count] = (tn_expr_insn){reduce, out, count - 1, 0, 0};
    total = count++;
    if (is_mean) {
        insns[count++] = (tn_expr_insn){TN_EXPR_EXTENT, TN_I64, 0, 0, 0};
        insns[count] = (tn_expr_insn){TN_EXPR_CAST, out, count - 1, 0, 0};
        count++;
        insns[count] = (tn_expr_insn){TN_EXPR_DIV, out, total, count - 1, 0};
        total = count++;
    }
    const tn_expr_program program = {.struct_size = sizeof(program),
                                     .insns = insns,
                                     .input_dtypes = &from,
                                     .output_dtypes = &to,
                                     .outputs = &total,
                                     .num_insns = count,
                                     .num_inputs = 1,
                                     .num_outputs = 1,
                                     .name = op->label};
    return program_intern(f->work->exprs, &program, out_program);
}

tn_status fuse_classify(struct fuser *f, uint32_t op)
{
    const struct plan_op *c = &f->work->ops[op];
    const struct device *device = f->work->devices[c->device];
    struct member *member = &f->members[op];
    *member =
        (struct member){.role = ROLE_ELEMENTS, .inputs = c->inputs, .params = c->params};
    if (fuse_is_take(f->work, c))
        return fuse_take(f, c, member);
    if (c->kind == OP_PROGRAM) {
        member->program = c->program;
        if (c->program->flags & TN_EXPR_ROWS) {
            const tn_layout *shape = &f->work->values[c->outputs[0]].layout;
            member->num_reductions = fuse_count_reductions(c->program);
            member->row_axes = !c->reduction_refused && c->row_axis == shape->rank - 1 &&
                               shape->extent[shape->rank - 1] > 1;
        }
        return TN_OK;
    }
    if (c->kind != OP_KERNEL || !c->prim || !c->prim->reduction || c->reduction_refused ||
        !device->fusion_limit || !(device->info.flags & TN_DEVICE_ROWS) ||
        tn_is_complex(c->inputs[0].layout.dtype))
        return TN_OK;
    member->row_axes = fuse_rows_reduced_axes(c);
    tn_layout in = c->inputs[0].layout;
    if (member->row_axes == 0 || !layout_fold(&in, in.rank - member->row_axes + 1))
        return TN_OK;
    member->role = ROLE_REDUCES;
    member->num_reductions = 1;
    return reduction_program(f, c, &member->program);
}

// --- extents ---------------------------------------------------------------------------

static tn_layout contiguous_like(const tn_layout *layout)
{
    tn_type type = layout_type(layout);
    return layout_contiguous(&type);
}

const tn_layout *fuse_extents(struct fuser *f, uint32_t op)
{
    const struct plan_op *c = &f->work->ops[op];
    if (f->members[op].role != ROLE_REDUCES)
        return &f->work->values[c->outputs[0]].layout;
    f->extents = contiguous_like(&c->inputs[0].layout);
    return &f->extents;
}

static bool fuse_rows_same_extents(const tn_layout *a, const tn_layout *b, int32_t rank)
{
    for (int32_t i = 0; i < rank; i++)
        if (a->extent[i] != b->extent[i])
            return false;
    return true;
}

// Whether `layout` has one element for each row of the group: as [..., 1] or as [...].
static bool is_of_rows(const tn_layout *layout, const struct group *group)
{
    int32_t outer = group->shape.rank - group->row_axes;
    if (layout->rank != outer && layout->rank != group->shape.rank)
        return false;
    for (int32_t i = outer; i < layout->rank; i++)
        if (layout->extent[i] != 1)
            return false;
    return fuse_rows_same_extents(layout, &group->shape, outer);
}

// Whether the last `axes` of all inputs could be one axis.
static bool are_even(const struct group *group, int32_t axes)
{
    for (uint32_t i = 0; i < group->num_inputs && axes > 1; i++) {
        tn_layout layout = group->inputs[i].layout;
        if (!layout_fold(&layout, layout.rank - axes + 1))
            return false;
    }
    return true;
}

bool fuse_same_rows(const struct group *a, const struct group *b)
{
    int32_t axes = a->row_axes | b->row_axes;
    return (!a->row_axes || !b->row_axes || a->row_axes == b->row_axes) &&
           are_even(a, axes) && are_even(b, axes);
}

static bool fuse_rows_uses_index(const tn_expr_program *program)
{
    for (uint32_t i = 0; i < program->num_insns; i++)
        if (program->insns[i].op == TN_EXPR_INDEX)
            return true;
    return false;
}

bool fuse_are_row_values(const struct group *rows, const struct group *single)
{
    const tn_expr_program program = {.insns = single->insns,
                                     .num_insns = single->num_insns};
    return rows->num_reductions > 0 && single->num_reductions == 0 &&
           is_of_rows(&single->shape, rows) && !fuse_rows_uses_index(&program);
}

static bool few_enough(const struct group *group, const struct member *member)
{
    uint32_t reductions = group->num_reductions + member->num_reductions;
    return reductions == 0 ||
           (group->num_insns + member->program->num_insns) * (reductions + 1) <=
               MOST_ROW_INSNS;
}

bool fuse_fits(struct fuser *f, uint32_t op, const struct group *group)
{
    const struct plan_op *c = &f->work->ops[op];
    struct member *member = &f->members[op];
    f->own.inputs = member->inputs;
    f->own.num_inputs = c->num_inputs;
    f->own.row_axes = member->row_axes;
    if (member->role == ROLE_ROWS)
        member->role = ROLE_ELEMENTS;
    const tn_layout *own = fuse_extents(f, op);
    if (!few_enough(group, member) || (group->num_reductions > 0 && !group->row_axes) ||
        (member->num_reductions > 0 && !member->row_axes))
        return false;
    if (fuse_same_elements(&group->shape, own))
        return fuse_same_rows(group, &f->own);
    if (group->num_reductions == 0 || member->num_reductions > 0 ||
        !is_of_rows(own, group) || fuse_rows_uses_index(member->program))
        return false;
    member->role = ROLE_ROWS;
    return true;
}

// --- operands --------------------------------------------------------------------------

// A layout with one element for each row of the group, as read at each element of a row.
static tn_layout fuse_over_rows(const tn_layout *layout, const struct group *group)
{
    tn_layout out = *layout;
    out.rank = group->shape.rank;
    for (int32_t i = out.rank - group->row_axes; i < out.rank; i++) {
        out.extent[i] = group->shape.extent[i];
        out.stride[i] = 0;
    }
    return out;
}

void fuse_spread_row_values(struct group *rows, struct group *single)
{
    for (uint32_t i = 0; i < single->num_inputs; i++)
        single->inputs[i].layout = fuse_over_rows(&single->inputs[i].layout, rows);
    for (uint32_t i = 0; i < single->num_results; i++)
        single->results[i].is_row = true;
    rows->has_siblings = true; // where a device declines, siblings are separated first
}

const tn_layout *fuse_layout(const struct group *group, const struct member *member,
                             const struct operand *in, tn_layout *room)
{
    if (member->role != ROLE_ROWS)
        return &in->layout;
    *room = fuse_over_rows(&in->layout, group);
    return room;
}

// The layout of a value of the group, as read over the group's extents.
static const tn_layout *made_layout(const struct group *group,
                                    const struct group_result *result, tn_layout *room)
{
    if (!result->is_row)
        return &group->shape;
    tn_layout rows = group->shape;
    rows.rank -= group->row_axes;
    rows = contiguous_like(&rows);
    *room = fuse_over_rows(&rows, group);
    return room;
}

bool fuse_reads_in_order(const struct fuser *f, uint32_t op, uint32_t g)
{
    const struct plan_op *c = &f->work->ops[op];
    const struct group *group = &f->groups[g];
    for (uint32_t i = 0; i < c->num_inputs; i++) {
        tn_layout read, made;
        const struct operand *in = &f->members[op].inputs[i];
        if (fuse_group_of_value(f, in->value) != g)
            continue;
        // The gathered array has memory of its own.
        if (i == 0 && f->members[op].program->flags & TN_EXPR_TAKES)
            return false;
        // Storing rounds the value to 8 bits; the value in the program is not rounded.
        if (tn_dtype_in(in->layout.dtype, TN_FLOAT8_DTYPES))
            return false;
        uint32_t base = f->work->values[in->value].base;
        const struct group_result *result = fuse_find_result(group, base);
        // The bytes of another dtype are in memory alone.
        if (in->layout.dtype != f->work->values[base].layout.dtype)
            return false;
        if (!result || !fuse_same_elements(fuse_layout(group, &f->members[op], in, &read),
                                           made_layout(group, result, &made)))
            return false;
    }
    return true;
}

// --- the device's consent --------------------------------------------------------------

// Siblings are separated first: each of them may be what the device takes.
static void fuse_rows_refuse(struct fuser *f, const struct group *group)
{
    for (uint32_t i = group->first_op; i != NONE; i = f->next_member[i])
        if (group->has_siblings)
            f->work->ops[i].siblings_refused = true;
        else if (f->members[i].num_reductions > 0)
            f->work->ops[i].reduction_refused = true;
}

bool fuse_device_runs(const struct plan_work *work, const struct group *group,
                      const tn_expr_program *program)
{
    const struct device *device = work->devices[group->device];
    tn_value values[TN_EXPR_MAX_INPUTS + TN_EXPR_MAX_OUTPUTS] = {{0}};
    const char *reason = "";
    // A program of `index` alone has no input with the extents. Row programs have no
    // complex numbers.
    bool may_run = group->num_inputs > 0 && !program_complex(program);
    if (!may_run || !TN_HAS(device->ops, step_check))
        return may_run;
    for (uint32_t i = 0; i < group->num_inputs; i++)
        values[i].layout = group->inputs[i].layout;
    for (uint32_t i = 0; i < group->num_results; i++)
        values[group->num_inputs + i].layout = work->values[group->results[i].value].layout;
    for (uint32_t i = 0; i < group->num_inputs + group->num_results; i++)
        layout_fold(&values[i].layout, group->shape.rank - group->row_axes + 1);
    const tn_step step = {.struct_size = sizeof(step),
                          .program = program,
                          .params = group->params,
                          .inputs = values,
                          .outputs = values + group->num_inputs,
                          .num_inputs = group->num_inputs,
                          .num_outputs = group->num_results,
                          .value_size = sizeof(values[0])};
    return device->ops->step_check(device->handle, &step, &reason);
}

bool fuse_ask_device(struct fuser *f, const struct group *group,
                     const tn_expr_program *program)
{
    // A program whose reductions nothing uses has none left: its elements are of no row.
    bool runs = program->flags & TN_EXPR_ROWS && fuse_device_runs(f->work, group, program);
    if (!runs)
        fuse_rows_refuse(f, group);
    return runs;
}
