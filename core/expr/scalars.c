// SPDX-License-Identifier: MIT
// Operations on attributes and numbers alone, as 1 - beta: computed in doubles and given to
// the program as params. In f32 the difference of 1 and 0.999 has lost 4 digits.
#include "tree.h"

int scalars_position(const struct expr *expr, const struct expr_node *node)
{
    for (uint32_t i = 0; i < expr->num_scalars; i++)
        if (expr->scalars[i] == node)
            return (int)i;
    return -1;
}

// One operation, one of whose operands is a float: so is the result.
static bool expr_is_scalar(const struct expr_node *node)
{
    bool has_attr = false, has_float = false;
    for (uint32_t i = 0; i < node->num_args; i++) {
        const struct expr_node *arg = node->args[i];
        if ((arg->op != TREE_ATTR && arg->op != TREE_NUMBER) || arg->kind == KIND_COMPLEX)
            return false;
        has_attr |= arg->op == TREE_ATTR;
        has_float |= arg->kind == KIND_FLOAT;
    }
    return has_attr && has_float && op_folds(node->op);
}

tn_status scalars_collect(struct expr *expr, struct arena *arena, const struct walk *walk)
{
    for (uint32_t i = 0; i < walk->count; i++) {
        if (!expr_is_scalar(walk->nodes[i]))
            continue;
        if (!expr->scalars)
            expr->scalars = arena_alloc(arena, walk->count * sizeof(*expr->scalars));
        if (!expr->scalars)
            return TN_ERR_MEMORY;
        expr->scalars[expr->num_scalars++] = walk->nodes[i];
    }
    return TN_OK;
}
