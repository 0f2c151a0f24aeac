// SPDX-License-Identifier: MIT
// Calls of rules: the functions of a plugin that describe its primitives and kernels. The
// core calls rules only through this file and transform/build.h, which check each answer
// once, before its first use: types are valid, views lie within the memory of their input,
// arrays belong to the scope, sizes fit.
//
// A rule that fails without a message, or whose answer is wrong, is reported with its
// plugin's id.
#ifndef CORE_GRAPH_RULES_H
#define CORE_GRAPH_RULES_H

#include "graph.h"

// Fills types[0 .. infer->num_outputs) with valid types, whose sizes in bytes fit 63 bits.
// Gives the number of outputs of an application, which `infer` describes but for its own
// num_outputs; that of the record where this does not depend on the application.
tn_status rule_count_outputs(const struct prim *prim, const tn_infer *infer,
                             uint32_t *out_count);
tn_status rule_infer(const struct prim *prim, const tn_infer *infer, tn_type *types);

// Gives the output as a strided view of `input`, within the memory between the lowest and
// the highest element of `input`. TN_ERR_UNSUPPORTED without a message: strides cannot
// express the output.
tn_status rule_view(const struct prim *prim, const tn_layout *input, const tn_type *type,
                    const void *attrs, tn_layout *out);

// Builds the decomposition of a composite primitive for `inputs` in the scope. Gives the
// outputs, arrays of the scope.
tn_status rule_expand(tn_scope *scope, const struct prim *prim,
                      const tn_array *const *inputs, uint32_t num_inputs, const void *attrs,
                      tn_array **outputs, uint32_t num_outputs);

// Computes the primitive by its reference in C.
tn_status rule_reference(const struct prim *prim, const tn_cpu_call *call);

// Gives the bytes of scratch memory that a launch needs, at most INT64_MAX; 0 for none.
tn_status rule_scratch(const tn_kernel *kernel, const tn_kernel_query *query,
                       uint64_t *out_size);

// Gives the bytes of scratch memory that the primitive's reference needs.
tn_status rule_reference_scratch(const struct prim *prim, const tn_kernel_query *query,
                                 uint64_t *out_size);

// For rules that are called elsewhere (transform/build.h). rule_owner: the plugin that a
// message names. rule_called: checks the status of a rule's call, as fail_from() does.
const char *rule_owner(const struct prim *prim);
tn_status rule_called(const struct prim *prim, const char *rule, tn_status status);

#endif // CORE_GRAPH_RULES_H
