// SPDX-License-Identifier: MIT
// Steps of an application, for those that are given by name (named.c).
#ifndef CORE_GRAPH_APPLY_H
#define CORE_GRAPH_APPLY_H

#include "graph.h"

// `num_inputs` of both: without runtime attributes.
tn_status apply_check_inputs(const struct prim *prim, const tn_array *const *inputs,
                             uint32_t num_inputs);
tn_status apply_count_outputs(const struct prim *prim, const tn_array *const *inputs,
                              uint32_t num_inputs, const void *attrs, uint32_t *out_count);

// Prefixes the message with the primitive and the application's names of its inputs:
// "base.matmul/1 (a = x, b = y): ".
void apply_prefix(const struct prim *prim, const tn_array *const *inputs,
                  uint32_t num_inputs);

// Applies a primitive that has runtime attributes. Their scalars are behind the record's
// inputs, also where some of these are left out. arrays[i]: what is given for field i.
tn_status apply_runtime(tn_scope *scope, const struct prim *prim,
                        const tn_array *const *inputs, uint32_t num_inputs, void *attrs,
                        const tn_array *const *arrays, tn_array **outputs,
                        uint64_t num_outputs);

#endif // CORE_GRAPH_APPLY_H
