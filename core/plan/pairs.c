// SPDX-License-Identifier: MIT
// Pairs: a node and the producer of one of its inputs become one primitive, where a device
// has a kernel that computes both (tn_pair_rule). Such a producer is placed together with
// its reader: with it as one primitive, or alone where no kernel computes both.
#include <string.h>
#include "../base/fail.h"
#include "../transform/build.h"
#include "../transform/decompose.h"
#include "place.h"

// --- finding ---------------------------------------------------------------------------

// Counts the readers of each node's outputs; reading an output of the task counts as two.
static void count_readers(const struct nodes *nodes, uint32_t *readers)
{
    const struct task *task = nodes->task;
    for (uint32_t i = 0; i < task->num_nodes; i++)
        for (uint32_t k = 0; k < task->nodes[i]->num_inputs; k++) {
            const tn_array *input = task->nodes[i]->inputs[k];
            if (nodes->same_as[i] == i && input && task_has(task, input->node))
                readers[nodes->same_as[input->node->position]]++;
        }
    for (uint32_t i = 0; i < task->num_outputs; i++)
        if (task_has(task, task->outputs[i]->node))
            readers[nodes->same_as[task->outputs[i]->node->position]] += 2;
}

// The node that makes this input, if it is that primitive and nothing else reads it.
static const struct node *maker_of(const struct nodes *nodes, const struct node *node,
                                   const tn_pair_rule *pair_rule, const uint32_t *readers)
{
    const tn_array *input =
        pair_rule->input < node->num_inputs ? node->inputs[pair_rule->input] : NULL;
    const struct node *made = input ? input->node : NULL;
    bool is = made && task_has(nodes->task, made) && made->kind == NODE_PRIM &&
              nodes->same_as[made->position] == made->position &&
              readers[made->position] == 1 && made->num_outputs == 1 &&
              made->device == node->device &&
              strcmp(made->prim->record.id, pair_rule->primitive) == 0;
    return is ? made : NULL;
}

static bool has_pair_rules(const struct node *node)
{
    return node->kind == NODE_PRIM && node->prim->record.num_pair_rules > 0;
}

tn_status place_find_pairs(const struct nodes *nodes, struct pairing **out)
{
    const struct task *task = nodes->task;
    uint32_t first = 0;
    *out = NULL;
    while (first < task->num_nodes && !has_pair_rules(task->nodes[first]))
        first++;
    if (first == task->num_nodes)
        return TN_OK;
    struct pairing *pairing = mem_zalloc(task->num_nodes * sizeof(*pairing));
    uint32_t *readers = mem_zalloc(task->num_nodes * sizeof(*readers));
    if (!pairing || !readers) {
        mem_free(pairing);
        mem_free(readers);
        return TN_ERR_MEMORY;
    }
    count_readers(nodes, readers);
    for (uint32_t i = first; i < task->num_nodes; i++) {
        const struct node *node = task->nodes[i];
        const tn_primitive *record = has_pair_rules(node) ? &node->prim->record : NULL;
        for (uint32_t n = 0; record && n < record->num_pair_rules; n++) {
            const struct node *made =
                nodes->same_as[i] == i
                    ? maker_of(nodes, node, &record->pair_rules[n], readers)
                    : NULL;
            if (!made || pairing[i].rule || pairing[made->position].rule)
                continue;
            pairing[i].rule = &record->pair_rules[n];
            pairing[i].made = made->position;
            pairing[made->position].is_made = true;
        }
    }
    mem_free(readers);
    *out = pairing;
    return TN_OK;
}

// --- pairing ---------------------------------------------------------------------------

// Makes stand-ins for the node's inputs, in d->inputs from `first` on, but not for `left`.
static tn_status pair_rule_stand_in(struct decomposition *d, const struct node *node,
                                    uint32_t first, uint32_t left)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < node->num_inputs && status == TN_OK; i++)
        if (node->inputs[i] && i != left)
            status = decomposition_add_input(d, first + i, &node->inputs[i]->type,
                                             node->inputs[i]->weak_kind);
    return status;
}

static tn_status value_inputs(struct plan_work *work, const struct nodes *nodes,
                              const struct node *node, tn_array *const *inputs,
                              uint32_t *value_of)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < node->num_inputs && status == TN_OK; i++)
        if (inputs[i])
            status =
                place_value_for(work, nodes, node->inputs[i], &value_of[inputs[i]->id]);
    return status;
}

// Whether the rule built one application of a primitive to placeholders.
static bool is_one(const tn_array *output, const struct task *task)
{
    const struct node *node = output->node;
    return task->num_nodes == 1 && task->nodes[0] == node && node->kind == NODE_PRIM &&
           node->num_outputs == 1 && !(node->prim->record.flags & TN_PRIM_VIEW);
}

// Places the node that the rule built, with the inputs of both nodes.
static tn_status place_built(struct plan_work *work, const struct nodes *nodes,
                             const struct node *node, const struct node *made,
                             const struct decomposition *d, bool *out_done)
{
    struct task task;
    tn_status status =
        task_create(d->scope, d->outputs, 1, d->leaves, d->num_leaves, &task);
    if (status != TN_OK)
        return status;
    struct nodes inner;
    status = place_begin_inner(&task, &inner);
    if (status == TN_OK && !is_one(d->outputs[0], &task))
        status =
            fail(TN_ERR_INTERNAL,
                 "%s: rewrite gives %u node%s, expected one application of a primitive",
                 node->prim->record.id, task.num_nodes, task.num_nodes == 1 ? "" : "s");
    if (status == TN_OK)
        status = value_inputs(work, nodes, node, d->inputs, inner.value_of);
    if (status == TN_OK)
        status =
            value_inputs(work, nodes, made, d->inputs + node->num_inputs, inner.value_of);
    const char *plugin = NULL; // whose kernel the node alone would get
    if (status == TN_OK)
        status = place_kernel_plugin(work, nodes, node, &plugin);
    if (status == TN_OK)
        status = place_with_kernel(work, &inner, task.nodes[0], plugin, out_done);
    if (status == TN_OK && *out_done)
        nodes->value_of[node->outputs[0].id] = inner.value_of[d->outputs[0]->id];
    mem_free(inner.value_of);
    task_finish(&task);
    return status;
}

static tn_status pair_rule_build(const struct node *node, const struct node *made,
                                 const tn_pair_rule *pair_rule, struct decomposition *d)
{
    d->scope->device = node->device;
    tn_status status = pair_rule_stand_in(d, node, 0, pair_rule->input);
    if (status == TN_OK)
        status = pair_rule_stand_in(d, made, node->num_inputs, NONE);
    if (status != TN_OK)
        return status;
    const tn_rule rule = {.struct_size = sizeof(rule),
                          .attrs = node->attrs,
                          .inputs = d->inputs,
                          .num_inputs = node->num_inputs,
                          .num_outputs = 1};
    tn_rule other = rule;
    other.attrs = made->attrs;
    other.inputs = d->inputs + node->num_inputs;
    other.num_inputs = made->num_inputs;
    return rule_rewrite_pair(d->scope, node->prim, pair_rule, &rule, &other,
                             &node->outputs[0].type, &d->outputs[0]);
}

tn_status place_pair(struct plan_work *work, const struct nodes *nodes, uint32_t i,
                     bool *out_done)
{
    const struct pairing *pairing = &nodes->pairing[i];
    const struct node *node = nodes->task->nodes[i];
    const struct node *made = nodes->task->nodes[pairing->made];
    struct decomposition d;
    tn_status status =
        decomposition_open(work->runtime, node->num_inputs + made->num_inputs, 1, &d);
    *out_done = false;
    if (d.scope) {
        tn_status kept = place_keep_scope(work, d.scope);
        status = status == TN_OK ? kept : status;
    }
    if (status == TN_OK)
        status = pair_rule_build(node, made, pairing->rule, &d);
    if (status == TN_OK && d.outputs[0])
        status = place_built(work, nodes, node, made, &d, out_done);
    return status == TN_OK && !*out_done ? place_node(work, nodes, made) : status;
}
