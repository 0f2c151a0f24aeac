// SPDX-License-Identifier: MIT
// Graphs node by node: the slots `visit` and `apply` of tn_host_graph_format.
#ifndef CORE_GRAPH_NODES_H
#define CORE_GRAPH_NODES_H

#include <tenon/graph_format.h>

tn_status graph_visit(const tn_graph *graph,
                      tn_status (*see)(void *user, const tn_graph_node *node), void *user);
tn_status node_apply(tn_scope *scope, const tn_graph_node *node,
                     const tn_array *const *inputs, tn_attr_list attrs, tn_array **outputs);

#endif // CORE_GRAPH_NODES_H
