// SPDX-License-Identifier: MIT
// Slots of tn_host_graph_format, as <tenon/graph_format.h> describes them.
#ifndef CORE_GRAPH_NODES_H
#define CORE_GRAPH_NODES_H

#include <tenon/graph_format.h>

void graph_node(const tn_graph *graph, uint64_t index, tn_graph_node *out);
void graph_array(const tn_array *array, tn_graph_array *out);
tn_array *build_number(tn_scope *scope, tn_dtype dtype, uint64_t bits);
tn_status build_expr(tn_scope *scope, const char *text, const tn_array *const *inputs,
                     uint64_t num_inputs, tn_attr_list attrs, const tn_dtype *dtypes,
                     tn_array **outputs, uint64_t num_outputs);
void array_set_weak(tn_array *array, int32_t weak);

#endif // CORE_GRAPH_NODES_H
