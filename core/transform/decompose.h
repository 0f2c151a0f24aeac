// SPDX-License-Identifier: MIT
// The decomposition of one application of a primitive, built in a scope of its own over
// placeholders for the inputs.
#ifndef CORE_TRANSFORM_DECOMPOSE_H
#define CORE_TRANSFORM_DECOMPOSE_H

#include "../graph/graph.h"

// The arrays and lists belong to `scope`.
struct decomposition {
    tn_scope *scope;
    tn_array **inputs; // placeholders; NULL: an optional input not given
    tn_array **leaves; // `inputs` without the NULLs
    tn_array **outputs;
    uint32_t num_inputs, num_outputs, num_leaves;
    uint64_t unread; // as tn_rule.unread: such an output may be NULL
};

// Opens the scope. The caller closes out->scope (tn_scope_close), also after a failure of
// the functions below.
tn_status decomposition_open(tn_runtime *runtime, uint32_t num_inputs, uint32_t num_outputs,
                             struct decomposition *out);

// Makes the placeholder of input `i`, which is given.
tn_status decomposition_add_input(struct decomposition *d, uint32_t i, const tn_type *type,
                                  uint8_t weak_kind);

// Calls the primitive's rule `decompose`, whose outputs must have these `types`. Errors
// name the primitive.
tn_status decomposition_build(struct decomposition *d, const struct prim *prim,
                              const void *attrs, const tn_type *types);

// How many nodes the graph has once its operators are decomposed and the graphs among its
// attributes are put in place; more than `most` are not counted (steps.c).
tn_status graph_steps(tn_scope *scope, const tn_graph *graph, uint64_t most,
                      uint64_t *out_steps);

#endif // CORE_TRANSFORM_DECOMPOSE_H
