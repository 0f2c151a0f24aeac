// SPDX-License-Identifier: MIT
// Builds the graph: one loop over the nodes, each of which yields a value.
#include "evaluator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- names -----------------------------------------------------------------------------

tn_array *lang_names_find(const struct lang_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i].name, name) == 0)
            return names->items[i].array;
    return NULL;
}

int lang_names_set(struct lang_names *names, const char *name, tn_array *array)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i].name, name) == 0) {
            names->items[i].array = array;
            return 0;
        }
    }
    struct lang_name *items = realloc(names->items, (names->count + 1) * sizeof(*items));
    if (!items)
        return oops_memory();
    names->items = items;
    items[names->count].name = strdup(name);
    items[names->count].array = array;
    if (!items[names->count].name)
        return oops_memory();
    names->count++;
    return 0;
}

void lang_names_finish(struct lang_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i].name);
    free(names->items);
    *names = (struct lang_names){0};
}

static int lang_eval_unknown_name(struct evaluator *e, const struct lang_node *node)
{
    const char *name = node_text(e, node), *known[65];
    size_t n = 0;
    for (; n < e->names->count && n < COUNT(known) - 1; n++)
        known[n] = e->names->items[n].name;
    known[n] = NULL;
    const char *near = nearest(name, known);
    if (near)
        return node_oops(e, node, "unknown name '%s'; did you mean '%s'?", name, near);
    if (tn_primitive_find(e->runtime, name))
        return node_oops(e, node, "'%s' is an operator: expected '(' after it", name);
    return node_oops(e, node,
                     "unknown name '%s'; give it a value: %s=FILE.npy or %s=[1, 2]", name,
                     name, name);
}

// --- values to arrays ------------------------------------------------------------------

const struct lang_value *child_value(const struct evaluator *e,
                                     const struct lang_node *node, uint32_t i)
{
    return &e->values[e->tree->children[node->first + i]];
}

const struct lang_node *child_node(const struct evaluator *e, const struct lang_node *node,
                                   uint32_t i)
{
    return &e->tree->nodes[e->tree->children[node->first + i]];
}

// Gives the array of a value. Literals become arrays at their first use as an array.
int value_array(struct evaluator *e, uint32_t index, tn_array **out_array)
{
    struct lang_value *value = &e->values[index];
    const struct lang_node *node = &e->tree->nodes[index];
    if (!value->array) {
        switch (node->kind) {
        case LANG_LIST:
            if (literal_array(e, index, &value->array))
                return EXIT_OOPS;
            break;
        case LANG_NAME:
            return lang_eval_unknown_name(e, node);
        case LANG_TEXT:
            return node_oops(e, node, "a string is no array");
        case LANG_TUPLE:
            return node_oops(e, node, "expected one array here, got %u", node->count);
        default:
            if (!value->is_number)
                return node_oops(e, node,
                                 "expected one array here, got the operator's %u "
                                 "outputs; take one, (...)[0], or name them, a, b = ...",
                                 value->num_outputs);
            if (value->kind == LANG_FLOAT)
                value->array = tn_float(e->scope, value->f);
            else if (value->kind == LANG_BOOL)
                value->array = tn_bool(e->scope, (int32_t)value->i);
            else if (value->kind == LANG_UINT)
                value->array = tn_uint(e->scope, (uint64_t)value->i);
            else
                value->array = tn_int(e->scope, value->i);
        }
    }
    *out_array = value->array;
    return check_scope(e, node);
}

int check_scope(struct evaluator *e, const struct lang_node *node)
{
    if (tn_scope_status(e->scope) == TN_OK)
        return 0;
    return node_oops(e, node, "%s", tn_scope_error(e->scope));
}

// --- the nodes -------------------------------------------------------------------------

// Minus a number other than a bool, of which i64 holds one more than numbers above 0.
static int negate_number(struct evaluator *e, const struct lang_node *node,
                         const struct lang_value *operand, struct lang_value *value)
{
    *value = *operand;
    value->array = NULL;
    value->i = operand->i == INT64_MIN ? operand->i : -operand->i;
    value->f = -operand->f;
    if (operand->i == INT64_MIN)
        value->kind = operand->kind == LANG_INT ? LANG_UINT : LANG_INT;
    else if (operand->kind == LANG_UINT)
        return node_oops(e, node,
                         "-%" PRIu64 " does not fit 64 bits; write it as a float: -1e19",
                         (uint64_t)operand->i);
    return 0;
}

static int eval_negate(struct evaluator *e, uint32_t index)
{
    const struct lang_node *node = &e->tree->nodes[index];
    const struct lang_value *operand = child_value(e, node, 0);
    struct lang_value *value = &e->values[index];
    if (operand->is_number && operand->kind != LANG_BOOL)
        return negate_number(e, node, operand, value);
    tn_array *array;
    int failed = value_array(e, e->tree->children[node->first], &array);
    if (failed)
        return failed;
    value->array = tn_op(e->scope, "base.negative", TN_IN(array), TN_NO_ATTRS);
    return check_scope(e, node);
}

static int bind_one(struct evaluator *e, const struct lang_node *target, uint32_t source)
{
    tn_array *array;
    int failed = value_array(e, source, &array);
    return failed ? failed : lang_names_set(e->names, node_text(e, target), array);
}

// Binds several names to the outputs of one operator.
static int bind_outputs(struct evaluator *e, const struct lang_node *node,
                        const struct lang_value *value, uint32_t num_targets)
{
    if (value->num_outputs != num_targets)
        return node_oops(e, node, "%u names for %u values", num_targets,
                         value->num_outputs ? value->num_outputs : 1);
    for (uint32_t i = 0; i < num_targets; i++) {
        int failed = lang_names_set(e->names, node_text(e, child_node(e, node, i)),
                                    e->outputs[value->first_output + i]);
        if (failed)
            return failed;
    }
    return 0;
}

// The children are the names, then a TUPLE of the right side.
static int eval_assign(struct evaluator *e, const struct lang_node *node)
{
    uint32_t num_targets = node->count - 1;
    const struct lang_node *right = child_node(e, node, num_targets);
    if (num_targets == 0)
        return 0;
    if (num_targets > 1 && right->count == 1)
        return bind_outputs(e, node, child_value(e, right, 0), num_targets);
    if (num_targets != right->count)
        return node_oops(e, node, "%u names for %u values", num_targets, right->count);
    for (uint32_t i = 0; i < num_targets; i++) {
        int failed =
            bind_one(e, child_node(e, node, i), e->tree->children[right->first + i]);
        if (failed)
            return failed;
    }
    return 0;
}

static int eval_node(struct evaluator *e, uint32_t index)
{
    const struct lang_node *node = &e->tree->nodes[index];
    struct lang_value *value = &e->values[index];
    switch (node->kind) {
    case LANG_INT:
    case LANG_UINT:
    case LANG_BOOL:
        *value = (struct lang_value){.is_number = true,
                                     .kind = node->kind,
                                     .i = node->value.i,
                                     .f = node->kind == LANG_UINT
                                              ? (double)(uint64_t)node->value.i
                                              : (double)node->value.i};
        return 0;
    case LANG_FLOAT:
        *value =
            (struct lang_value){.is_number = true, .kind = node->kind, .f = node->value.f};
        return 0;
    case LANG_IMAGINARY:
        value->array = tn_complex(e->scope, 0, node->value.f);
        return check_scope(e, node);
    case LANG_NAME:
        value->array = lang_names_find(e->names, node_text(e, node));
        return 0;
    case LANG_NEGATE:
        return eval_negate(e, index);
    case LANG_APPLY:
        return eval_apply(e, index);
    case LANG_INDEX:
        return eval_index(e, index);
    case LANG_PROPERTY:
        return eval_property(e, index);
    case LANG_ASSIGN:
        return eval_assign(e, node);
    default:
        return 0; // used by the parent node only
    }
}

// --- results ---------------------------------------------------------------------------

static int lang_eval_add_result(struct lang_results *results, tn_array *array)
{
    tn_array **items = realloc(results->items, (results->count + 1) * sizeof(*items));
    if (!items)
        return oops_memory();
    results->items = items;
    items[results->count++] = array;
    return 0;
}

static int collect_results(struct evaluator *e, struct lang_results *results)
{
    const struct lang_node *last = &e->tree->nodes[e->tree->num_nodes - 1];
    const struct lang_node *right = child_node(e, last, last->count - 1);
    int failed = 0;
    for (uint32_t i = 0; !failed && i < right->count; i++) {
        uint32_t index = e->tree->children[right->first + i];
        const struct lang_value *value = &e->values[index];
        tn_array *array;
        if (value->num_outputs > 1) {
            for (uint32_t j = 0; !failed && j < value->num_outputs; j++)
                failed = lang_eval_add_result(results, e->outputs[value->first_output + j]);
        } else {
            failed = value_array(e, index, &array);
            if (!failed)
                failed = lang_eval_add_result(results, array);
        }
    }
    return failed;
}

int lang_eval(const struct lang_tree *tree, tn_scope *scope, struct lang_names *names,
              struct lang_results *out)
{
    struct evaluator e = {
        .tree = tree, .scope = scope, .names = names, .runtime = tn_scope_runtime(scope)};
    e.values = calloc(tree->num_nodes, sizeof(*e.values));
    int failed = e.values ? 0 : oops_memory();
    for (uint32_t i = 0; !failed && i < tree->num_nodes; i++)
        failed = eval_node(&e, i);
    struct lang_results results = {0};
    if (!failed)
        failed = collect_results(&e, &results);
    free(e.values);
    free(e.outputs);
    if (failed)
        free(results.items);
    else
        *out = results;
    return failed;
}
