// SPDX-License-Identifier: MIT
// Topological order of nodes, inputs before users: depth first, with a stack instead of
// recursion.
#include "graph.h"

#include "../base/fail.h"

// State of one walk. While a node is on the stack, node->position counts the inputs that
// were visited; afterwards it is the node's index in `order`.
struct walk {
    uint32_t epoch;
    bool through_data;
    struct node **stack, **order;
    uint32_t num_stack, max_stack, num_order, max_order;
};

static tn_status push(struct walk *walk, struct node *node)
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

static bool is_leaf(const struct walk *walk, const tn_array *array)
{
    bool computes = array->node->kind == NODE_PRIM || array->node->kind == NODE_EXPR;
    return !computes || (array->value && !walk->through_data);
}

static tn_status finish(struct walk *walk, struct node *node)
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

static tn_status visit(struct walk *walk, tn_array *root)
{
    if (root->node->mark == walk->epoch || is_leaf(walk, root))
        return TN_OK;
    tn_status status = push(walk, root->node);
    while (status == TN_OK && walk->num_stack > 0) {
        struct node *node = walk->stack[walk->num_stack - 1];
        if (node->position == node->num_inputs) {
            status = finish(walk, node);
            continue;
        }
        tn_array *input = node->inputs[node->position++];
        if (input && input->node->mark != walk->epoch && !is_leaf(walk, input))
            status = push(walk, input->node);
    }
    return status;
}

tn_status graph_order(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                      bool through_data, struct node ***out_nodes, uint32_t *out_count)
{
    struct walk walk = {.epoch = ++scope->epoch, .through_data = through_data};
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < num_arrays && status == TN_OK; i++)
        if (arrays[i])
            status = visit(&walk, arrays[i]);
    mem_free(walk.stack);
    if (status != TN_OK) {
        mem_free(walk.order);
        return status;
    }
    *out_nodes = walk.order;
    *out_count = walk.num_order;
    return TN_OK;
}
