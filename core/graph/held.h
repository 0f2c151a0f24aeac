// SPDX-License-Identifier: MIT
// What an evaluation gives and takes besides the arrays that were named: those that the
// application holds, and data that nothing else refers to.
#ifndef CORE_GRAPH_HELD_H
#define CORE_GRAPH_HELD_H

#include "graph.h"

// A graph that is about to be computed, of a scope that has nothing but what stands for
// counted arrays. Its arrays are numbered (tn_array.id).
struct held_graph {
    tn_runtime *runtime;
    struct node *const *nodes; // in topological order
    tn_array *const *leaves;   // data
    tn_array *const *outputs;  // that it computes
    uint32_t num_nodes, num_leaves, num_outputs, num_ids;
};

// The number of arrays without a value that nodes have and the application holds, those
// whose mark is `named` not counted. Writes the first `most` of them to `out`.
uint32_t held_outputs(struct node *const *nodes, uint32_t num_nodes, uint32_t named,
                      uint32_t most, tn_array **out);

// Finds the leaves to which nothing but this graph refers once it is computed: given[i] is
// 1 for those. Where there are some, the nodes that read them are taken until held_give():
// other threads that come to them wait.
tn_status held_take(const struct held_graph *graph, uint8_t *given, bool *out_any);
void held_give(const struct held_graph *graph);

#endif // CORE_GRAPH_HELD_H
