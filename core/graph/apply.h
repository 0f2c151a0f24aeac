// SPDX-License-Identifier: MIT
// Steps of an application, for those that are given by name (named.c).
#ifndef CORE_GRAPH_APPLY_H
#define CORE_GRAPH_APPLY_H

#include "graph.h"

// For both functions `num_inputs` does not count runtime attributes.
tn_status apply_check_inputs(const struct prim *prim, const tn_array *const *inputs,
                             uint32_t num_inputs);
tn_status apply_count_outputs(const struct prim *prim, const tn_array *const *inputs,
                              uint32_t num_inputs, const void *attrs, uint32_t *out_count);

// Prefixes the message with the primitive and the application's names of its inputs:
// "base.matmul/1 (a = x, b = y): ".
void apply_prefix(const struct prim *prim, const tn_array *const *inputs,
                  uint32_t num_inputs);

// Applies a primitive that has runtime attributes. The node has their scalars behind all
// inputs of the record, also where optional inputs are left out. arrays[i]: the array that
// is given for field i of the table; NULL: none.
tn_status apply_runtime(tn_scope *scope, const struct prim *prim,
                        const tn_array *const *inputs, uint32_t num_inputs, void *attrs,
                        const tn_array *const *arrays, tn_array **outputs,
                        uint64_t num_outputs);

#endif // CORE_GRAPH_APPLY_H
