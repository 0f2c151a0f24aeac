// SPDX-License-Identifier: MIT
// The operations of an expression, each as an expression of its own.
#include <string.h>
#include "../base/fail.h"
#include "tree.h"

struct unfolding {
    struct tree tree;
    struct walk walk;
    int32_t *from; // by node: as expr_step.from; WITHIN: no value of its own
    struct expr_step *steps;
    uint32_t count;
    char name[3][3]; // of operands
};

#define WITHIN INT32_MIN // numbers, attributes and `index` stay within the operation

// Names of operands: a letter that no attribute begins with, and a digit.
static void name_operands(struct unfolding *u, const struct expr *expr)
{
    char letter = 'a';
    uint32_t k = 0;
    while (k < expr->num_attrs)
        if (expr->attr_names[k++][0] == letter) {
            letter++;
            k = 0;
        }
    for (int i = 0; i < 3; i++)
        memcpy(u->name[i], (char[]){letter, (char)('0' + i), 0}, 3);
}

static const struct expr_node *expr_unfold_operation(struct unfolding *u,
                                                     const struct expr_node *node,
                                                     struct expr_step *step)
{
    const struct expr_node *args[3] = {NULL};
    for (uint32_t k = 0; k < node->num_args; k++) {
        int32_t from = u->from[walk_position(&u->walk, node->args[k])];
        args[k] = node->args[k];
        if (from == WITHIN)
            continue;
        args[k] = tree_input(&u->tree, step->num_inputs);
        step->from[step->num_inputs++] = from;
    }
    return node->op == TN_EXPR_CAST
               ? tree_cast(&u->tree, node->dtype, args[0])
               : tree_op(&u->tree, node->op, args[0], args[1], args[2]);
}

static void expr_unfold_add_step(struct unfolding *u, struct expr_step *step,
                                 const struct expr_node *result)
{
    const char *const names[] = {u->name[0], u->name[1], u->name[2]};
    step->expr = tree_expr(&u->tree, &result, 1, names, step->num_inputs);
    u->steps[u->count++] = *step;
}

static void unfold_node(struct unfolding *u, uint32_t i)
{
    const struct expr_node *node = u->walk.nodes[i];
    struct expr_step step = {.num_inputs = 0};
    u->from[i] = node->op == TREE_INPUT ? -1 - (int32_t)node->index : WITHIN;
    const struct expr_node *result =
        node->num_args ? expr_unfold_operation(u, node, &step) : NULL;
    if (step.num_inputs == 0)
        return;
    u->from[i] = (int32_t)u->count;
    expr_unfold_add_step(u, &step, result);
}

// An output of numbers alone has the extents of the first input.
static void expr_unfold_add_output(struct unfolding *u, const struct expr_node *node,
                                   int32_t *from)
{
    struct expr_step step = {.num_inputs = 1, .from = {-1}};
    *from = u->from[walk_position(&u->walk, node)];
    if (*from != WITHIN)
        return;
    *from = (int32_t)u->count;
    expr_unfold_add_step(u, &step, node);
}

tn_status expr_unfold(const struct expr *expr, struct expr_step **out_steps,
                      uint32_t *out_count, int32_t *outputs)
{
    struct unfolding u = {.tree = {.set = expr_set_of(expr)}};
    u.tree.status = walk_init(&u.walk, expr->outputs, expr->num_outputs);
    u.from = mem_alloc((u.walk.count + 1) * sizeof(*u.from));
    u.steps = mem_alloc((u.walk.count + TN_EXPR_MAX_OUTPUTS) * sizeof(*u.steps));
    if (!u.from || !u.steps)
        u.tree.status = TN_ERR_MEMORY;
    name_operands(&u, expr);
    for (uint32_t i = 0; i < u.walk.count && u.tree.status == TN_OK; i++)
        unfold_node(&u, i);
    for (uint32_t i = 0; i < expr->num_outputs && u.tree.status == TN_OK; i++)
        expr_unfold_add_output(&u, expr->outputs[i], &outputs[i]);
    mem_free(u.from);
    walk_finish(&u.walk);
    *out_steps = u.steps;
    *out_count = u.count;
    return u.tree.status;
}
