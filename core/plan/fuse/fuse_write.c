// SPDX-License-Identifier: MIT
// Writes the program of a group to the operation that computes it.
#include <string.h>
#include "../../expr/expr.h"
#include "group.h"

static void name_program(const struct fuser *f, uint32_t g, char label[LABEL_SIZE])
{
    uint32_t i = f->groups[g].first_op;
    label[0] = 0;
    while (i != NONE && label_add(label, &f->work->ops[i]))
        i = f->next_member[i];
}

static void fill_dtypes(const struct plan_work *work, const struct group *group,
                        tn_dtype *inputs, tn_dtype *outputs, uint32_t *insns)
{
    for (uint32_t i = 0; i < group->num_inputs; i++)
        inputs[i] = group->inputs[i].layout.dtype;
    for (uint32_t i = 0; i < group->num_results; i++) {
        outputs[i] = work->values[group->results[i].value].layout.dtype;
        insns[i] = group->results[i].insn;
    }
}

// Drops dead instructions, such as a number whose cast was folded, and their params and
// constants.
static void fuse_write_compact(struct group *group)
{
    uint32_t map[TN_EXPR_MAX_INSNS], kept = 0, num_params = 0, num_constants = 0;
    bool live[TN_EXPR_MAX_INSNS] = {false};
    for (uint32_t i = 0; i < group->num_results; i++)
        live[group->results[i].insn] = true;
    for (int64_t i = (int64_t)group->num_insns - 1; i >= 0; i--) {
        const tn_expr_insn *insn = &group->insns[i];
        uint32_t operands = live[i] ? tn_expr_operands(insn->op) : 0;
        const uint32_t from[] = {insn->a, insn->b, insn->c};
        for (uint32_t k = 0; k < operands; k++)
            live[from[k]] = true;
        if (live[i] && insn->op == TN_EXPR_TAKE)
            live[insn->b] = true;
    }
    for (uint32_t i = 0; i < group->num_insns; i++) {
        tn_expr_insn insn = group->insns[i];
        if (!live[i])
            continue;
        if (insn.op == TN_EXPR_PARAM) {
            group->params[num_params] = group->params[insn.a];
            insn.a = num_params++;
        } else if (insn.op == TN_EXPR_CONST) {
            group->constants[num_constants] = group->constants[insn.a];
            insn.a = num_constants++;
        } else if (insn.op == TN_EXPR_TAKE) {
            group->params[num_params] = group->params[insn.c];
            group->params[num_params + 1] = group->params[insn.c + 1];
            insn.b = map[insn.b];
            insn.c = num_params;
            num_params += 2;
        }
        uint32_t operands = tn_expr_operands(insn.op);
        insn.a = operands > 0 ? map[insn.a] : insn.a;
        insn.b = operands > 1 ? map[insn.b] : insn.b;
        insn.c = operands > 2 ? map[insn.c] : insn.c;
        map[i] = kept;
        group->insns[kept++] = insn;
    }
    for (uint32_t i = 0; i < group->num_results; i++)
        group->results[i].insn = map[group->results[i].insn];
    group->num_insns = kept;
    group->num_params = num_params;
    group->num_constants = num_constants;
}

tn_status fuse_make_program(struct fuser *f, uint32_t g, char name[LABEL_SIZE],
                            const tn_expr_program **out_program)
{
    struct plan_work *work = f->work;
    struct group *group = &f->groups[g];
    tn_dtype inputs[TN_EXPR_MAX_INPUTS], outputs[TN_EXPR_MAX_OUTPUTS];
    uint32_t insns[TN_EXPR_MAX_OUTPUTS];
    fuse_write_compact(group);
    fill_dtypes(work, group, inputs, outputs, insns);
    name_program(f, g, name);
    tn_expr_program program = {
        .struct_size = sizeof(program),
        .insns = group->insns,
        .constants = group->constants,
        .input_dtypes = inputs,
        .output_dtypes = outputs,
        .outputs = insns,
        .num_insns = group->num_insns,
        .num_constants = group->num_constants,
        .num_params = group->num_params,
        .num_inputs = group->num_inputs,
        .num_outputs = group->num_results,
        .name = name,
    };
    return program_intern(work->exprs, &program, out_program);
}

tn_status fuse_write_op(struct fuser *f, uint32_t g, struct plan_op *op)
{
    struct plan_work *work = f->work;
    struct group *group = &f->groups[g];
    char name[LABEL_SIZE];
    tn_status status = fuse_make_program(f, g, name, &op->program);
    uint64_t *params = arena_alloc(work->arena, group->num_params * sizeof(*params) + 1);
    op->inputs = arena_alloc(work->arena, group->num_inputs * sizeof(*op->inputs) + 1);
    op->outputs = arena_alloc(work->arena, group->num_results * sizeof(*op->outputs) + 1);
    op->text = work->watcher ? label_text(work, f->next_member, group->first_op) : NULL;
    op->label = arena_strdup(work->arena, name);
    op->named = false;
    if (status == TN_OK && (!params || !op->inputs || !op->outputs || !op->label))
        status = TN_ERR_MEMORY;
    if (status != TN_OK)
        return status;
    if (group->num_params)
        memcpy(params, group->params, group->num_params * sizeof(*params));
    if (group->num_inputs)
        memcpy(op->inputs, group->inputs, group->num_inputs * sizeof(*op->inputs));
    for (uint32_t i = 0; i < group->num_results; i++)
        op->outputs[i] = group->results[i].value;
    op->params = params;
    op->num_inputs = group->num_inputs;
    op->num_outputs = group->num_results;
    if (group->num_ops > 1) {
        op->prim = NULL;
        op->row_axis = group->row_axes - group->shape.rank - 1;
    }
    op->kind = OP_PROGRAM;
    op->kernel = NULL;
    op->attrs = NULL;
    return TN_OK;
}
