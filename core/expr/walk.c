// SPDX-License-Identifier: MIT
// The topological order of an expression's nodes, by a depth-first search with a stack of
// its own in place of recursion.
#include <string.h>
#include "tree.h"

static uint32_t *expr_walk_slot_of(const struct walk *walk, const struct expr_node *node)
{
    uint64_t i = node->hash.lo & (walk->table_size - 1);
    while (walk->table[i] && walk->nodes[walk->table[i] - 1] != node)
        i = (i + 1) & (walk->table_size - 1);
    return &walk->table[i];
}

uint32_t walk_position(const struct walk *walk, const struct expr_node *node)
{
    return *expr_walk_slot_of(walk, node) - 1;
}

static tn_status grow_table(struct walk *walk)
{
    uint32_t size = walk->table_size ? walk->table_size * 2 : 64;
    uint32_t *table = mem_zalloc(size * sizeof(*table));
    if (!table)
        return TN_ERR_MEMORY;
    mem_free(walk->table);
    walk->table = table;
    walk->table_size = size;
    for (uint32_t i = 0; i < walk->count; i++)
        *expr_walk_slot_of(walk, walk->nodes[i]) = i + 1;
    return TN_OK;
}

static tn_status expr_walk_add(struct walk *walk, const struct expr_node *node)
{
    if (walk->count == TREE_MAX_NODES)
        return fail(TN_ERR_ARGUMENT,
                    "the expression has more than %d operations: split it into several",
                    TREE_MAX_NODES);
    if ((walk->count + 1) * 2 > walk->table_size && grow_table(walk) != TN_OK)
        return TN_ERR_MEMORY;
    tn_status status = mem_grow((void **)&walk->nodes, &walk->capacity, walk->count + 1,
                                sizeof(*walk->nodes));
    if (status != TN_OK)
        return status;
    uint32_t *slot = expr_walk_slot_of(walk, node);
    walk->nodes[walk->count++] = node;
    *slot = walk->count;
    return TN_OK;
}

static bool expr_walk_has(const struct walk *walk, const struct expr_node *node)
{
    return walk->table_size && *expr_walk_slot_of(walk, node) != 0;
}

// An entry of the stack: a node whose arguments are being visited.
struct expr_walk_pending {
    const struct expr_node *node;
    uint32_t next_arg;
};

static tn_status expr_walk_visit(struct walk *walk, struct expr_walk_pending **stack,
                                 uint32_t *capacity, const struct expr_node *root)
{
    uint32_t depth = 0;
    const struct expr_node *next = root;
    while (next || depth) {
        if (next) {
            tn_status status =
                mem_grow((void **)stack, capacity, depth + 1, sizeof(**stack));
            if (status != TN_OK)
                return status;
            (*stack)[depth++] = (struct expr_walk_pending){next, 0};
        }
        struct expr_walk_pending *top = &(*stack)[depth - 1];
        next = NULL;
        while (!next && top->next_arg < top->node->num_args) {
            const struct expr_node *arg = top->node->args[top->next_arg++];
            next = expr_walk_has(walk, arg) ? NULL : arg;
        }
        if (next)
            continue;
        tn_status status =
            expr_walk_has(walk, top->node) ? TN_OK : expr_walk_add(walk, top->node);
        if (status != TN_OK)
            return status;
        depth--;
    }
    return TN_OK;
}

tn_status walk_init(struct walk *walk, const struct expr_node *const *outputs,
                    uint32_t num_outputs)
{
    *walk = (struct walk){0};
    struct expr_walk_pending *stack = NULL;
    uint32_t capacity = 0;
    tn_status status = TN_OK;
    for (uint32_t i = 0; status == TN_OK && i < num_outputs; i++)
        if (!expr_walk_has(walk, outputs[i]))
            status = expr_walk_visit(walk, &stack, &capacity, outputs[i]);
    mem_free(stack);
    return status;
}

void walk_finish(struct walk *walk)
{
    mem_free(walk->nodes);
    mem_free(walk->table);
    *walk = (struct walk){0};
}

static bool node_is_complex(const struct walk *walk, const struct expr_node *node,
                            uint64_t inputs, const bool *known)
{
    bool is_complex = false;
    switch (op_table[node->op].class) {
    case TN_EXPR_CLASS_LEAF:
        return node->op == TREE_INPUT    ? node->index < 64 && (inputs >> node->index & 1)
               : node->op == TREE_NUMBER ? node->kind == KIND_COMPLEX
                                         : false;
    case TN_EXPR_CLASS_CAST:
        return tn_is_complex(node->dtype);
    case TN_EXPR_CLASS_JOIN:
        return true;
    case TN_EXPR_CLASS_PART:
    case TN_EXPR_CLASS_TEST:
    case TN_EXPR_CLASS_COMPARE:
    case TN_EXPR_CLASS_LOGIC:
        return false;
    default:
        for (uint32_t k = 0; k < node->num_args && node->op != TN_EXPR_ABS; k++)
            is_complex |= known[walk_position(walk, node->args[k])];
        return is_complex;
    }
}

bool walk_complex(const struct walk *walk, uint64_t inputs, bool *is_complex)
{
    bool any = false;
    for (uint32_t i = 0; i < walk->count; i++) {
        is_complex[i] = node_is_complex(walk, walk->nodes[i], inputs, is_complex);
        any |= is_complex[i];
    }
    return any;
}
