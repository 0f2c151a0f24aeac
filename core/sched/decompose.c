// SPDX-License-Identifier: MIT
// Decompositions: a primitive that nothing on the device computes is built from others, in
// a scope of its own, and those are placed in its stead.
#include <string.h>
#include "../base/fail.h"
#include "../graph/rules.h"
#include "place.h"

static tn_status keep_scratch(struct plan_work *work, tn_scope *scope)
{
    tn_status status = mem_grow((void **)&work->scratch, &work->max_scratch,
                                work->num_scratch + 1, sizeof(*work->scratch));
    if (status != TN_OK) {
        tn_scope_close(scope);
        return status;
    }
    work->scratch[work->num_scratch++] = scope;
    return TN_OK;
}

struct expansion {
    tn_scope *scope;
    tn_array **inputs; // stand-ins, NULL for those not given
    tn_array **leaves; // the same without NULLs
    tn_array **outputs;
    uint32_t num_leaves;
};

static tn_status expansion_open(struct plan_work *work, const struct node *node,
                                struct expansion *x)
{
    *x = (struct expansion){.scope = tn_scope_open(work->runtime)};
    if (!x->scope)
        return TN_ERR_MEMORY;
    tn_status status = keep_scratch(work, x->scope);
    if (status != TN_OK)
        return status;
    x->scope->tracing = true;
    uint32_t n = node->num_inputs, m = node->num_outputs;
    x->inputs = arena_alloc(&x->scope->arena, (2 * n + m + 1) * sizeof(*x->inputs));
    if (!x->inputs)
        return TN_ERR_MEMORY;
    x->leaves = x->inputs + n;
    x->outputs = x->leaves + n;
    for (uint32_t i = 0; i < n; i++) {
        if (!node->inputs[i])
            continue;
        x->inputs[i] = leaf_create(x->scope, NODE_INPUT, &node->inputs[i]->type);
        if (!x->inputs[i])
            return x->scope->status;
        x->inputs[i]->weak_kind = node->inputs[i]->weak_kind;
        x->leaves[x->num_leaves++] = x->inputs[i];
    }
    return TN_OK;
}

static tn_status expansion_build(const struct node *node, struct expansion *x)
{
    tn_rule rule = {.struct_size = sizeof(rule),
                    .attrs = node->attrs,
                    .inputs = x->inputs,
                    .num_inputs = node->num_inputs,
                    .num_outputs = node->num_outputs};
    tn_type types[MAX_OUTPUTS];
    for (uint32_t i = 0; i < node->num_outputs; i++)
        types[i] = node->outputs[i].type;
    tn_status status = rule_decompose(x->scope, node->prim, &rule, types, x->outputs);
    if (status != TN_OK && x->scope->status != TN_OK)
        return fail(status, "%s: decompose: %s", node->prim->record.id,
                    tn_scope_error(x->scope));
    return status;
}

static tn_status expansion_place(struct plan_work *work, const struct nodes *nodes,
                                 const struct node *node, struct expansion *x)
{
    struct task task;
    tn_status status = task_create(x->scope, x->outputs, node->num_outputs, x->leaves,
                                   x->num_leaves, &task);
    if (status != TN_OK)
        return status;
    struct nodes inner = {.task = &task,
                          .value_of = mem_alloc((task.num_ids + 1) * sizeof(uint32_t))};
    if (!inner.value_of)
        status = TN_ERR_MEMORY;
    for (uint32_t i = 0; i < task.num_ids && status == TN_OK; i++)
        inner.value_of[i] = NONE;
    for (uint32_t i = 0; i < node->num_inputs && status == TN_OK; i++)
        if (x->inputs[i])
            status = place_value_for(work, nodes, node->inputs[i],
                                     &inner.value_of[x->inputs[i]->id]);
    if (status == TN_OK)
        status = place_nodes(work, &inner);
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++)
        status = place_value_for(work, &inner, x->outputs[i],
                                 &nodes->value_of[node->outputs[i].id]);
    mem_free(inner.value_of);
    task_finish(&task);
    return status;
}

tn_status place_decomposed(struct plan_work *work, const struct nodes *nodes,
                           const struct node *node)
{
    if (work->depth == MAX_DECOMPOSITION)
        return fail(TN_ERR_INTERNAL, "%s: decompositions nest deeper than %d",
                    node->prim->record.id, MAX_DECOMPOSITION);
    struct expansion x;
    const struct prim *outer = work->within;
    work->within = node->prim;
    work->depth++;
    tn_status status = expansion_open(work, node, &x);
    if (status == TN_OK)
        status = expansion_build(node, &x);
    if (status == TN_OK)
        status = expansion_place(work, nodes, node, &x);
    work->depth--;
    work->within = outer;
    return status;
}
