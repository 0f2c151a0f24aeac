// SPDX-License-Identifier: MIT
// Rules of plugins that build graph: the table through which they do, and their calls,
// which check each answer as graph/rules.h does.
#ifndef CORE_TRANSFORM_BUILD_H
#define CORE_TRANSFORM_BUILD_H

#include "../graph/rules.h"

// The tn_build table through which a rule of a plugin builds graph in `scope`.
tn_build graph_build(tn_scope *scope, const tn_host *host);
// The table of TN_HOST_GRAPH.
extern const tn_host_graph graph_service;

// Rules that build graph in `scope`. The arrays that a rule gives belong to `scope`. When
// building failed, the functions return the scope's status, and the scope has the message.
//
// decompose: outputs[0 .. rule->num_outputs) have the given types. vjp and jvp: a gradient
// or tangent that is NULL is zero.
tn_status rule_decompose(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                         const tn_type *types, tn_array **outputs);
// Calls `rewrite` of a pair rule; *output is NULL or has the type.
tn_status rule_rewrite_pair(tn_scope *scope, const struct prim *prim,
                            const tn_pair_rule *pair_rule, const tn_rule *rule,
                            const tn_rule *made, const tn_type *type, tn_array **output);
tn_status rule_vjp(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                   tn_array *const *cotangents, const uint64_t *wanted,
                   tn_array **gradients);
tn_status rule_jvp(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                   tn_array *const *tangents, tn_array **out_tangents);
// vmap: no output is NULL.
tn_status rule_vmap(tn_scope *scope, const struct prim *prim, const tn_rule *rule,
                    const int32_t *axes, int64_t size, tn_array **outputs,
                    int32_t *out_axes);

#endif // CORE_TRANSFORM_BUILD_H
