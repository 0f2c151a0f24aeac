// SPDX-License-Identifier: MIT
// Finds what an evaluation of counted arrays may compute and overwrite beside the named
// arrays: other arrays that the application holds, and data that nothing else refers to.
//
// Threads. All but held_end() is called under tn_runtime.counted_lock.
#ifndef CORE_GRAPH_HELD_H
#define CORE_GRAPH_HELD_H

#include "graph.h"

// A graph that is about to be computed: counted nodes themselves, and their arrays, which
// are numbered (tn_array.id). After held_begin() other threads may change all but what
// held_begin() refers to.
struct held_graph {
    tn_runtime *runtime;
    struct node *const *nodes; // in topological order
    tn_array *const *leaves;   // data
    tn_array *const *outputs;  // arrays to compute
    uint32_t num_nodes, num_leaves, num_outputs, num_ids;
    // donated, by leaf: 1 when nothing but this graph refers to it. donates: any leaf is
    // donated.
    uint8_t *donated;
    bool donates;
    struct value **values; // of the leaves
};

// Counts the nodes' outputs without a value that the application holds, but for outputs
// whose mark is `named`. Writes the first `most` of them to `out`.
uint32_t held_outputs(struct node *const *nodes, uint32_t num_nodes, uint32_t named,
                      uint32_t most, tn_array **out);

// Whether another evaluation has taken a node.
bool held_is_taken(struct node *const *nodes, uint32_t num_nodes);

// Fills in `donated` and `donates`. `edges`: num_ids zeros.
void held_find(struct held_graph *graph, uint32_t *edges);

// Adds references to the outputs and to the leaves' values, and fills in `values`. Where
// leaves are donated, the nodes that read them are taken until held_end(): other threads
// that need these nodes wait.
void held_begin(struct held_graph *graph);

// Takes `results`, the outputs' values; NULL: there are none. `is_over`: work may have
// written over donated leaves, which are emptied. Without the lock.
void held_end(const struct held_graph *graph, struct value *const *results, bool is_over);

// Removes marks from the nodes, from their inputs and outputs, and from arrays.
void held_unmark(struct node *const *nodes, uint32_t num_nodes, tn_array *const *arrays,
                 uint64_t num_arrays);

#endif // CORE_GRAPH_HELD_H
