// SPDX-License-Identifier: MIT
// Graphs node by node, for files of graphs: shown to a plugin, and built again from what a
// plugin read. What is built is checked as any application is, and against what was shown.
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../plugin/primitives.h"
#include "graph.h"
#include "nodes.h"

// --- showing ----------------------------------------------------------------------------

// A walk over a graph's nodes. Arrays are numbered as they come: a leaf that has the next
// number was not shown before.
struct tour {
    tn_status (*see)(void *user, const tn_graph_node *node);
    void *user;
    uint32_t next;    // number
    uint32_t *inputs; // of one node: numbers
    tn_type types[MAX_OUTPUTS];
};

static tn_status show(struct tour *tour, tn_graph_node *node, const tn_array *outputs)
{
    for (uint64_t i = 0; i < node->num_outputs; i++) {
        tour->types[i] = outputs[i].type;
        node->weak |= (uint64_t)(outputs[i].weak_kind != 0) << i;
    }
    node->struct_size = sizeof(*node);
    node->types = tour->types;
    tour->next += (uint32_t)node->num_outputs;
    return tour->see(tour->user, node);
}

static tn_status show_leaf(struct tour *tour, const tn_array *leaf)
{
    tn_graph_node node = {.kind = leaf->node->kind == NODE_INPUT ? TN_NODE_INPUT
                                                                 : TN_NODE_NUMBER,
                          .num_outputs = 1,
                          .number = leaf->node->number};
    return show(tour, &node, leaf);
}

// Gives the numbers of arrays, and shows the numbers among them that are used first here.
static tn_status show_uses(struct tour *tour, tn_array *const *arrays, uint32_t count)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < count && status == TN_OK; i++) {
        tour->inputs[i] = arrays[i] ? arrays[i]->id : TN_NO_ARRAY;
        if (arrays[i] && arrays[i]->id == tour->next)
            status = show_leaf(tour, arrays[i]);
    }
    return status;
}

static tn_status show_node(struct tour *tour, const struct node *n)
{
    tn_status status = show_uses(tour, n->inputs, n->num_inputs);
    tn_graph_node node = {.kind =
                              n->kind == NODE_PRIM ? TN_NODE_PRIMITIVE : TN_NODE_EXPRESSION,
                          .flags = n->typed,
                          .text = n->kind == NODE_PRIM ? n->prim->record.id : n->expr->text,
                          .inputs = tour->inputs,
                          .num_inputs = n->num_inputs,
                          .num_outputs = n->num_outputs,
                          .table = n->table,
                          .attrs = n->attrs};
    if (status != TN_OK)
        return status;
    if (n->kind == NODE_EXPR) {
        node.input_names = n->expr->input_names;
        node.attr_names = n->expr->attr_names;
        node.num_attr_names = n->expr->num_attrs;
        node.flags |= n->expr->reduces ? TN_NODE_REDUCES : 0;
    }
    return show(tour, &node, n->outputs);
}

static tn_status tour_graph(struct tour *tour, const struct graph *graph)
{
    const tn_graph *g = &graph->head.graph;
    tn_graph_node last = {
        .kind = TN_NODE_OUTPUTS, .inputs = tour->inputs, .num_inputs = g->num_outputs};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < g->num_inputs && status == TN_OK; i++)
        status = show_leaf(tour, graph->inputs[i]);
    for (uint32_t i = 0; i < g->num_nodes && status == TN_OK; i++)
        status = show_node(tour, graph->nodes[i]);
    if (status == TN_OK)
        status = show_uses(tour, graph->outputs, g->num_outputs);
    return status == TN_OK ? show(tour, &last, NULL) : status;
}

tn_status graph_visit(const tn_graph *g,
                      tn_status (*see)(void *user, const tn_graph_node *node), void *user)
{
    const struct graph *graph = graph_of(g);
    uint32_t most = g->num_outputs;
    for (uint32_t i = 0; i < g->num_nodes; i++)
        if (graph->nodes[i]->num_inputs > most)
            most = graph->nodes[i]->num_inputs;
    struct tour tour = {see, user, .inputs = mem_alloc((most + 1) * sizeof(uint32_t))};
    tn_status status = tour.inputs ? tour_graph(&tour, graph) : TN_ERR_MEMORY;
    mem_free(tour.inputs);
    return status;
}

// --- building ---------------------------------------------------------------------------

// The scalars of runtime attributes, which no other check looks at.
static tn_status check_runtime(const struct prim *prim, const tn_array *const *inputs,
                               uint32_t count)
{
    const tn_attr_table *table = &prim->record.attrs;
    const tn_primitive *record = &prim->record;
    bool variadic = record->num_inputs > 0 &&
                    (record->inputs[record->num_inputs - 1].flags & TN_INPUT_VARIADIC);
    uint64_t least = prim->num_runtime + (uint64_t)(variadic ? 0 : record->num_inputs);
    if (prim->num_runtime && count < least)
        return fail(TN_ERR_ARGUMENT, "got %u inputs with runtime attributes, expected %llu",
                    count, (unsigned long long)least);
    uint32_t first = count - prim->num_runtime, dtypes = node_dtypes(inputs, first);
    for (uint32_t i = 0; i < prim->num_runtime; i++) {
        const tn_attr_field *field = attrs_field(table, prim->runtime[i]);
        const tn_array *scalar = inputs[first + i];
        tn_dtype expected = tn_runtime_dtype(field->kind, dtypes);
        if (!scalar || scalar->type.rank || scalar->type.dtype != expected)
            return fail(TN_ERR_ARGUMENT, "attribute '%s': expected a scalar of %s",
                        field->name, dtype_name(expected));
    }
    return TN_OK;
}

static tn_status apply_primitive(tn_scope *scope, const tn_graph_node *node,
                                 const tn_array *const *inputs, tn_attr_list list,
                                 tn_array **outputs)
{
    const struct prim *prim = NULL;
    tn_status status = prim_find(scope->runtime, node->text, &prim);
    if (status != TN_OK)
        return status;
    const tn_attr_table *table = &prim->record.attrs;
    void *attrs = arena_alloc(&scope->scratch, table->size + 1);
    if (!attrs)
        return TN_ERR_MEMORY;
    if (table->size > 0 || list.count > 0)
        status = attrs_fill(&scope->interned, table, list, attrs, NULL);
    for (uint32_t i = 0; i < prim->num_runtime; i++)
        attrs_reset(table, prim->runtime[i], attrs);
    if (status == TN_OK)
        status = check_runtime(prim, inputs, node->num_inputs);
    if (status != TN_OK)
        return fail_prefix("%s: ", prim->record.id), status;
    return graph_apply(scope, prim, inputs, node->num_inputs, attrs, outputs,
                       node->num_outputs);
}

static tn_status apply_expression(tn_scope *scope, const tn_graph_node *node,
                                  const tn_array *const *inputs, tn_attr_list list,
                                  tn_array **outputs)
{
    struct text_expr own;
    tn_dtype dtypes[TN_EXPR_MAX_OUTPUTS];
    tn_status status = text_expr_init(&own, scope, node->text, list);
    if (status == TN_OK && own.expr->num_outputs != node->num_outputs)
        status =
            fail(TN_ERR_ARGUMENT, "expression \"%s\": has %u outputs, expected %llu",
                 node->text, own.expr->num_outputs, (unsigned long long)node->num_outputs);
    if (status != TN_OK)
        return status;
    for (uint64_t i = 0; i < node->num_outputs; i++)
        dtypes[i] = node->types[i].dtype;
    return graph_apply_expr(scope, own.expr, inputs, node->num_inputs, own.table,
                            own.values, node->flags & TN_NODE_TYPED ? dtypes : NULL,
                            outputs);
}

static uint8_t weak_kind_of(tn_dtype dtype)
{
    return tn_dtype_in(dtype, TN_COMPLEX_DTYPES) ? KIND_COMPLEX
           : dtype_is_inexact(dtype)             ? KIND_FLOAT
                                                 : KIND_SIGNED;
}

static tn_status check_outputs(const tn_graph_node *node, tn_array *const *outputs)
{
    char got[TYPE_TEXT], expected[TYPE_TEXT];
    for (uint64_t i = 0; i < node->num_outputs; i++) {
        if (!type_equal(&outputs[i]->type, &node->types[i]))
            return fail(TN_ERR_REFUSED, "output %llu is %s, expected %s",
                        (unsigned long long)i, type_print(&outputs[i]->type, got),
                        type_print(&node->types[i], expected));
        outputs[i]->weak_kind =
            node->weak >> i & 1 ? weak_kind_of(node->types[i].dtype) : 0;
    }
    return TN_OK;
}

static tn_status apply_number(tn_scope *scope, const tn_graph_node *node, tn_array **output)
{
    const tn_type *type = node->types;
    unsigned char element[DTYPE_MAX_SIZE] = {0};
    if (type->rank)
        return fail(TN_ERR_ARGUMENT, "a number has no axes");
    dtype_store_bits(type->dtype, element, node->number);
    *output = number_create(scope, type->dtype, dtype_load_bits(type->dtype, element), 0);
    return scope->status;
}

tn_status node_apply(tn_scope *scope, const tn_graph_node *node,
                     const tn_array *const *inputs, tn_attr_list attrs, tn_array **outputs)
{
    tn_status status =
        scope_begin(scope, "apply", GIVEN({"inputs", inputs, node->num_inputs}));
    if (status != TN_OK)
        return status;
    struct arena_mark mark = arena_mark(&scope->scratch);
    if (node->kind == TN_NODE_NUMBER)
        status = apply_number(scope, node, outputs);
    else if (node->kind == TN_NODE_PRIMITIVE)
        status = apply_primitive(scope, node, inputs, attrs, outputs);
    else if (node->kind == TN_NODE_EXPRESSION)
        status = apply_expression(scope, node, inputs, attrs, outputs);
    else
        outputs[0] = (tn_array *)(uintptr_t)inputs[0];
    if (status == TN_OK && (status = check_outputs(node, outputs)) != TN_OK && node->text)
        fail_prefix("%s: ", node->text);
    arena_rewind(&scope->scratch, mark);
    return scope_take_failure(scope, status);
}
