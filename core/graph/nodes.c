// SPDX-License-Identifier: MIT
// Graphs node by node, for files of graphs: shows nodes to a plugin, and builds nodes that
// the functions for applications cannot build.
#include "nodes.h"
#include "../base/dtype.h"
#include "../base/fail.h"
#include "graph.h"

void graph_node(const tn_graph *g, uint64_t index, tn_graph_node *out)
{
    const struct graph *graph = graph_of(g);
    bool outputs = index == g->num_nodes;
    *out = (tn_graph_node){.struct_size = sizeof(*out), .array_size = sizeof(tn_array)};
    if (index >= g->num_nodes) {
        out->inputs = outputs ? graph->outputs : graph->inputs;
        out->num_inputs = outputs ? g->num_outputs : g->num_inputs;
        return;
    }
    const struct node *node = graph->nodes[index];
    out->inputs = node->inputs;
    out->num_inputs = node->num_inputs;
    out->outputs = node->outputs;
    out->num_outputs = node->num_outputs;
    out->table = node->table;
    out->attrs = node->attrs;
    out->primitive = node->prim ? node->prim->record.id : NULL;
    if (node->prim)
        return;
    out->flags =
        (node->typed ? TN_NODE_TYPED : 0) | (node->expr->reduces ? TN_NODE_REDUCES : 0);
    out->expr = node->expr->text;
    out->input_names = node->expr->input_names;
    out->attr_names = node->expr->attr_names;
    out->num_attr_names = node->expr->num_attrs;
}

void graph_array(const tn_array *array, tn_graph_array *out)
{
    out->number = array->id;
    out->is_number = array->node->kind == NODE_NUMBER;
    out->bits = array->node->number;
    out->is_weak = array->weak_kind != 0;
}

tn_array *build_number(tn_scope *scope, tn_dtype dtype, uint64_t bits)
{
    return scope_begin(scope, "number", NO_LISTS) == TN_OK
               ? runtime_number(scope, dtype, bits, 0)
               : NULL;
}

tn_status build_expr(tn_scope *scope, const char *text, const tn_array *const *inputs,
                     uint64_t num_inputs, tn_attr_list attrs, const tn_dtype *dtypes,
                     tn_array **outputs, uint64_t num_outputs)
{
    struct text_expr own;
    tn_status status = scope_begin(scope, "expr", GIVEN({"inputs", inputs, num_inputs}));
    if (status != TN_OK)
        return status;
    status = text_expr_init(&own, scope, text, attrs, num_outputs);
    if (status == TN_OK)
        status = graph_apply_expr(scope, own.expr, inputs, (uint32_t)num_inputs, own.table,
                                  own.values, dtypes, outputs);
    return scope_take_failure(scope, status);
}

void array_set_weak(tn_array *array, int32_t weak)
{
    tn_dtype dtype = array->type.dtype;
    array->weak_kind = !weak                                   ? 0
                       : tn_dtype_in(dtype, TN_COMPLEX_DTYPES) ? KIND_COMPLEX
                       : dtype_is_inexact(dtype)               ? KIND_FLOAT
                       : dtype == TN_U64                       ? KIND_UNSIGNED
                                                               : KIND_SIGNED;
}
