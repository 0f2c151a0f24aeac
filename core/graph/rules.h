// SPDX-License-Identifier: MIT
// Rules of primitives and questions to kernels, called. Whoever wants an answer of a
// plugin's function asks here; each answer is checked once, before its first use: types are
// valid, views lie within the memory of their input, arrays belong to the scope, sizes fit.
//
// A rule that fails without a reason, or whose answer is wrong, is named with its plugin.
#ifndef CORE_GRAPH_RULES_H
#define CORE_GRAPH_RULES_H

#include "graph.h"

// Fills types[0 .. infer->num_outputs): valid ones, whose bytes fit 63 bits.
tn_status rule_infer(const struct prim *prim, const tn_infer *infer, tn_type *types);

// Fills *out: elements of `type` among those from the lowest to the highest one that
// `input` reaches. TN_ERR_UNSUPPORTED without a message: no strides can say it.
tn_status rule_view(const struct prim *prim, const tn_layout *input, const tn_type *type,
                    const void *attrs, tn_layout *out);

tn_status rule_reference(const struct prim *prim, const tn_cpu_call *call);

// Bytes of working memory, at most INT64_MAX; 0 for a kernel that asks for none.
tn_status rule_scratch(const tn_kernel *kernel, const tn_kernel_query *query,
                       uint64_t *out_size);

// The rules that build graph, in `scope`. Arrays that they give belong to it. What they
// built may have failed: then they give the scope's status, which has the message.
//
// decompose: outputs[0 .. rule->num_outputs) have the given types.
tn_status rule_decompose(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                         const tn_type *types, tn_array **outputs);
tn_status rule_vjp(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                   tn_array *const *cotangents, const uint64_t *wanted,
                   tn_array **gradients);
tn_status rule_jvp(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                   tn_array *const *tangents, tn_array **out_tangents);
// No output is NULL.
tn_status rule_vmap(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                    const int32_t *axes, int64_t size, tn_array **outputs,
                    int32_t *out_axes);

#endif // CORE_GRAPH_RULES_H
