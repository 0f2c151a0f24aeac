// SPDX-License-Identifier: MIT
// How many nodes a graph has once its operators are decomposed and the graphs among
// attributes are put in place: what planning it for a device takes at most.
#include "decompose.h"

#include <string.h>

#define MAX_DEPTH 16 // planning refuses deeper decompositions

struct transform_steps_count {
    tn_runtime *runtime;
    uint64_t most, nodes;
};

static tn_status transform_steps_count_node(struct transform_steps_count *c,
                                            const struct node *node, uint32_t depth);

static tn_status count_nodes(struct transform_steps_count *c, struct node *const *nodes,
                             uint64_t count, uint32_t depth)
{
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < count && status == TN_OK && c->nodes <= c->most; i++)
        status = transform_steps_count_node(c, nodes[i], depth);
    return status;
}

static tn_status transform_steps_build(const struct node *node, struct decomposition *d)
{
    tn_type *types = arena_alloc(&d->scope->arena, node->num_outputs * sizeof(*types));
    tn_status status = types ? TN_OK : TN_ERR_MEMORY;
    for (uint32_t i = 0; i < node->num_inputs && status == TN_OK; i++)
        if (node->inputs[i])
            status = decomposition_add_input(d, i, &node->inputs[i]->type,
                                             node->inputs[i]->weak_kind);
    for (uint32_t i = 0; i < node->num_outputs && status == TN_OK; i++)
        types[i] = node->outputs[i].type;
    return status == TN_OK ? decomposition_build(d, node->prim, node->attrs, types)
                           : status;
}

static tn_status count_decomposed(struct transform_steps_count *c, const struct node *node,
                                  uint32_t depth)
{
    struct decomposition d;
    struct node **nodes = NULL;
    uint32_t count = 0;
    tn_status status =
        decomposition_open(c->runtime, node->num_inputs, node->num_outputs, &d);
    if (status == TN_OK)
        status = transform_steps_build(node, &d);
    // One that cannot be decomposed has a kernel, or ends the planning.
    if (status == TN_OK)
        status = graph_order(d.scope, d.outputs, d.num_outputs, TO_DATA, &nodes, &count);
    else if (status != TN_ERR_MEMORY)
        status = TN_OK;
    if (status == TN_OK)
        status = count_nodes(c, nodes, count, depth + 1);
    mem_free(nodes);
    tn_scope_close(d.scope);
    return status;
}

// Counts the graphs of a loop or a branch, which are planned as they are.
static tn_status count_graphs(struct transform_steps_count *c, const struct node *node)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; node->table && i < node->table->num_fields; i++) {
        const tn_attr_field *field =
            (const void *)((const char *)node->table->fields + i * node->table->field_size);
        const tn_graph *graph = NULL;
        if (field->kind == TN_ATTR_GRAPH)
            memcpy(&graph, (const char *)node->attrs + field->offset, sizeof(graph));
        if (graph && status == TN_OK)
            status = count_nodes(c, graph_of(graph)->nodes, graph->num_nodes, 0);
    }
    return status;
}

// A long expression, and one that reduces over rows, takes as much as several nodes.
#define TEXT_PER_NODE 256
#define NODES_OF_ROWS 2

static uint64_t nodes_of_expr(const struct expr *expr)
{
    return strlen(expr->text) / TEXT_PER_NODE + (expr->reduces ? NODES_OF_ROWS : 0);
}

static tn_status transform_steps_count_node(struct transform_steps_count *c,
                                            const struct node *node, uint32_t depth)
{
    c->nodes += 1 + (node->expr ? nodes_of_expr(node->expr) : 0);
    if (!node->prim)
        return TN_OK;
    if (!node->prim->record.decompose)
        return count_graphs(c, node);
    return depth < MAX_DEPTH ? count_decomposed(c, node, depth) : TN_OK;
}

tn_status graph_steps(tn_scope *scope, const tn_graph *graph, uint64_t most,
                      uint64_t *out_steps)
{
    struct transform_steps_count c = {.runtime = scope->runtime, .most = most};
    tn_status status = count_nodes(&c, graph_of(graph)->nodes, graph->num_nodes, 0);
    *out_steps = c.nodes;
    return status;
}
