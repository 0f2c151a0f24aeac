// SPDX-License-Identifier: MIT
// Decompositions: a primitive that the device has no kernel for is built from other
// primitives, in a scope of its own, and their nodes are placed instead. The scope stays
// open until work_finish, since operations refer to its nodes and programs.
#include <string.h>
#include "../base/fail.h"
#include "../transform/split.h"
#include "place.h"

tn_status place_keep_scope(struct plan_work *work, tn_scope *scope)
{
    tn_status status = mem_grow((void **)&work->scopes, &work->max_scopes,
                                work->num_scopes + 1, sizeof(*work->scopes));
    if (status != TN_OK) {
        tn_scope_close(scope);
        return status;
    }
    work->scopes[work->num_scopes++] = scope;
    return TN_OK;
}

// The node that stands for this one and those that equal it.
static const struct node *plan_decompose_first_of(const struct nodes *nodes,
                                                  const struct node *node)
{
    bool is_listed = nodes->same_as && task_has(nodes->task, node);
    return is_listed ? nodes->task->nodes[nodes->same_as[node->position]] : node;
}

// As tn_rule.unread.
static uint64_t find_unread(const struct nodes *nodes, const struct node *node)
{
    const tn_primitive *record = node->prim ? &node->prim->record : NULL;
    const struct task *task = nodes->task;
    uint64_t unread = 0;
    for (uint32_t i = 0; record && record->outputs && i < node->num_outputs; i++) {
        const tn_output_info *info = &record->outputs[record->count_outputs ? 0 : i];
        unread |= (uint64_t)(info->flags & TN_OUTPUT_OPTIONAL) << i;
    }
    for (uint32_t n = 0; n < task->num_nodes && unread; n++)
        for (uint32_t i = 0; i < task->nodes[n]->num_inputs; i++) {
            const tn_array *input = task->nodes[n]->inputs[i];
            if (input && plan_decompose_first_of(nodes, input->node) == node)
                unread &= ~(UINT64_C(1) << input->output);
        }
    for (uint32_t i = 0; i < task->num_outputs && unread; i++)
        if (plan_decompose_first_of(nodes, task->outputs[i]->node) == node)
            unread &= ~(UINT64_C(1) << task->outputs[i]->output);
    return unread;
}

tn_status place_begin_inner(const struct task *task, struct nodes *out)
{
    *out = (struct nodes){.task = task,
                          .value_of = mem_alloc((task->num_ids + 1) * sizeof(uint32_t))};
    for (uint32_t i = 0; i < task->num_ids && out->value_of; i++)
        out->value_of[i] = NONE;
    return out->value_of ? TN_OK : TN_ERR_MEMORY;
}

// Places the decomposition's nodes. The stand-ins of its inputs get the values of the
// node's inputs, and the node's outputs get the values of its outputs.
static tn_status place_parts(struct plan_work *work, const struct nodes *nodes,
                             const struct node *node, const struct decomposition *x)
{
    struct task task;
    tn_array *outputs[MAX_OUTPUTS]; // without the NULLs
    uint32_t num_outputs = 0;
    for (uint32_t i = 0; i < node->num_outputs; i++)
        if (x->outputs[i])
            outputs[num_outputs++] = x->outputs[i];
    tn_status status =
        task_create(x->scope, outputs, num_outputs, x->leaves, x->num_leaves, &task);
    if (status != TN_OK)
        return status;
    struct nodes inner;
    status = place_begin_inner(&task, &inner);
    for (uint32_t i = 0; i < node->num_inputs && status == TN_OK; i++)
        if (x->inputs[i])
            status = place_value_for(work, nodes, node->inputs[i],
                                     &inner.value_of[x->inputs[i]->id]);
    if (status == TN_OK)
        status = place_nodes(work, &inner);
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++)
        if (x->outputs[i])
            status = place_value_for(work, &inner, x->outputs[i],
                                     &nodes->value_of[node->outputs[i].id]);
    mem_free(inner.value_of);
    task_finish(&task);
    return status;
}

static tn_status plan_decompose_build(struct plan_work *work, const struct nodes *nodes,
                                      const struct node *node, bool split,
                                      struct decomposition *d)
{
    tn_type types[MAX_OUTPUTS];
    tn_status status =
        decomposition_open(work->runtime, node->num_inputs, node->num_outputs, d);
    if (d->scope) {
        d->scope->device = node->device;
        tn_status kept = place_keep_scope(work, d->scope);
        status = status == TN_OK ? kept : status;
    }
    for (uint32_t i = 0; i < node->num_inputs && status == TN_OK; i++)
        if (node->inputs[i])
            status = decomposition_add_input(d, i, &node->inputs[i]->type,
                                             node->inputs[i]->weak_kind);
    for (uint32_t i = 0; i < node->num_outputs; i++)
        types[i] = node->outputs[i].type;
    if (status != TN_OK)
        return status;
    d->unread = find_unread(nodes, node);
    return split ? split_build(d, node)
                 : decomposition_build(d, node->prim, node->attrs, types);
}

tn_status place_decomposed(struct plan_work *work, const struct nodes *nodes,
                           const struct node *node, bool split)
{
    char label[LABEL_SIZE];
    if (work->depth == MAX_DECOMPOSITION)
        return fail(TN_ERR_INTERNAL, "%s: decompositions nest deeper than %d",
                    node_label(work, node, label), MAX_DECOMPOSITION);
    struct decomposition d;
    const struct prim *outer = work->decomposing;
    work->decomposing = node->prim ? node->prim : outer;
    work->depth++;
    tn_status status = plan_decompose_build(work, nodes, node, split, &d);
    if (status == TN_OK)
        status = place_parts(work, nodes, node, &d);
    work->depth--;
    work->decomposing = outer;
    return status;
}
