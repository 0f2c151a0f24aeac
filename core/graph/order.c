// SPDX-License-Identifier: MIT
// Topological order of nodes, inputs before users: depth first, with a stack instead of
// recursion.
#include "graph.h"

#include "../base/fail.h"

// State of one walk. While a node is on the stack, node->position counts the inputs that
// were visited; afterwards it is the node's index in `order`.
struct graph_order_walk {
    tn_scope *scope;
    uint32_t epoch;
    enum graph_part part;
    struct node **stack, **order;
    uint32_t num_stack, max_stack, num_order, max_order;
};

static tn_status graph_order_push(struct graph_order_walk *walk, struct node *node)
{
    tn_status status = mem_grow((void **)&walk->stack, &walk->max_stack,
                                walk->num_stack + 1, sizeof(*walk->stack));
    if (status != TN_OK)
        return status;
    node->mark = walk->epoch;
    node->position = 0;
    walk->stack[walk->num_stack++] = node;
    return TN_OK;
}

bool node_is_data(const struct node *node)
{
    for (uint32_t i = 0; i < node->num_outputs; i++)
        if (!node->outputs[i].value)
            return false;
    return true;
}

static bool graph_order_is_leaf(const struct graph_order_walk *walk, const tn_array *array)
{
    const struct node *node = array->node;
    if (node->kind != NODE_PRIM && node->kind != NODE_EXPR)
        return true;
    return walk->part == TO_DATA ? array->value != NULL
                                 : node->counted || node_is_data(node);
}

static tn_status graph_order_finish(struct graph_order_walk *walk, struct node *node)
{
    tn_status status = mem_grow((void **)&walk->order, &walk->max_order,
                                walk->num_order + 1, sizeof(*walk->order));
    if (status != TN_OK)
        return status;
    walk->num_stack--;
    node->position = walk->num_order;
    walk->order[walk->num_order++] = node;
    return TN_OK;
}

// A lazy node gets its inputs when the walk comes to it.
static tn_status graph_order_enter(struct graph_order_walk *walk, const tn_array *array)
{
    if (array->node->mark == walk->epoch)
        return TN_OK;
    if (array->donated && walk->part == TO_DATA) {
        scope_refuse_donated(walk->scope);
        return walk->scope->status;
    }
    tn_status status = walk->part == TO_DATA && !array->value
                           ? node_expand(walk->scope, array->node)
                           : TN_OK;
    return status != TN_OK || graph_order_is_leaf(walk, array)
               ? status
               : graph_order_push(walk, array->node);
}

static tn_status graph_order_visit(struct graph_order_walk *walk, const tn_array *root)
{
    tn_status status = graph_order_enter(walk, root);
    while (status == TN_OK && walk->num_stack > 0) {
        struct node *node = walk->stack[walk->num_stack - 1];
        if (node->position == node->num_inputs) {
            status = graph_order_finish(walk, node);
            continue;
        }
        const tn_array *input = node->inputs[node->position++];
        if (input)
            status = graph_order_enter(walk, input);
    }
    return status;
}

tn_status graph_order(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                      enum graph_part part, struct node ***out_nodes, uint32_t *out_count)
{
    struct graph_order_walk walk = {.scope = scope, .epoch = ++scope->epoch, .part = part};
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < num_arrays && status == TN_OK; i++)
        if (arrays[i])
            status = graph_order_visit(&walk, arrays[i]);
    // Counted nodes are without marks between walks.
    for (uint32_t i = 0; status != TN_OK && i < walk.num_stack; i++)
        walk.stack[i]->mark = 0;
    for (uint32_t i = 0; status != TN_OK && i < walk.num_order; i++)
        walk.order[i]->mark = 0;
    mem_free(walk.stack);
    if (status != TN_OK) {
        mem_free(walk.order);
        return status;
    }
    *out_nodes = walk.order;
    *out_count = walk.num_order;
    return TN_OK;
}
