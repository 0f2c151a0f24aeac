// SPDX-License-Identifier: MIT
// What the transforms share: nodes in order, one slot (a cotangent, a tangent or a batch)
// for each array that takes part, and arrays fitted to a type.
//
// Slots are found through tn_array.mark and .id. Nothing is evaluated meanwhile, so nobody
// else uses these.
#ifndef CORE_TRANSFORM_FLOW_H
#define CORE_TRANSFORM_FLOW_H

#include "../graph/rules.h"

// Decompositions within decompositions.
#define MAX_LEVELS 32

struct flow {
    tn_scope *scope;
    uint32_t epoch;
    uint32_t level;
    tn_array **slots; // by id; NULL: zero
    uint32_t num_slots, max_slots;
    const struct expr *sum, *same; // "a + b", "x"
};

tn_status flow_init(struct flow *flow, tn_scope *scope);
void flow_finish(struct flow *flow);

// Gives the array a slot, unless it has one. `array` belongs to the scope.
tn_status flow_include(struct flow *flow, tn_array *array);
bool flow_has(const struct flow *flow, const tn_array *array);
tn_array **flow_slot(struct flow *flow, const tn_array *array); // it has one

// Derivatives flow through input i of the node: it is a float, it is not declared constant.
bool flow_through(const struct node *node, uint32_t i);

// Adds to the array's slot, fitted to the array's type.
tn_status flow_add(struct flow *flow, tn_array *array, tn_array *amount);

// `array` summed down or broadcast to these extents, and cast. NULL for NULL.
tn_status flow_fit(struct flow *flow, tn_array *array, const tn_type *type,
                   tn_array **out_array);

// Applies the primitive with this role, which has one attribute, of integers. And those of
// them whose attribute is the result's extents.
tn_status flow_apply_role(struct flow *flow, const char *role, const char *attribute,
                          const tn_ints *ints, tn_array *array, tn_array **out_array);
tn_status flow_reshape(struct flow *flow, const char *role, tn_array *array,
                       const tn_type *type, tn_array **out_array);

// An array of this type filled with a number.
tn_status flow_fill(struct flow *flow, const tn_type *type, double value,
                    tn_array **out_array);

// Applies a derived expression of `node`: over its inputs and then `others`.
tn_status flow_apply(struct flow *flow, const struct node *node, const struct expr *derived,
                     tn_array *const *others, tn_dtype dtype, tn_array **out_array);

// Nodes that the arrays depend on, with serials from `since` on, inputs before users, into
// a new array (mem_free). Goes through arrays that have data.
tn_status flow_order(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                     uint32_t since, struct node ***out_nodes, uint32_t *out_count);

// The application of a primitive as its rules see it; `finish` frees it.
struct application {
    tn_rule rule;
    tn_array **outputs;
};
tn_status application_init(struct application *a, const struct node *node);
void application_finish(struct application *a);

// Builds the node's decomposition, whose outputs have the types of the node's.
tn_status flow_decompose(struct flow *flow, struct node *node, tn_array **outputs);

// Neither `rule` nor an expression nor a decomposition.
tn_status flow_no_rule(const struct node *node, const char *rule);

// Calls a function's body, which must leave no output NULL: they belong to the scope then.
// Whatever fails becomes the scope's failure (function.c).
tn_status body_call(tn_function_body body, void *user, tn_scope *scope,
                    tn_array *const *inputs, uint64_t num_inputs, tn_array **outputs,
                    uint64_t num_outputs);

// --- reverse mode (vjp.c), which forward mode uses where a primitive has only that -----

// Cotangents of `wrt` from those of `outputs`, over nodes with serials from `since` on.
// NULL cotangents are zero; NULL gradients too.
tn_status vjp_since(tn_scope *scope, uint32_t since, tn_array *const *outputs,
                    tn_array *const *cotangents, uint64_t num_outputs, tn_array *const *wrt,
                    uint64_t num_wrt, tn_array **gradients);

// Calls the vjp of the node's primitive.
tn_status vjp_call(struct flow *flow, struct node *node, tn_array *const *cotangents,
                   const uint64_t *wanted, tn_array **gradients);

#endif // CORE_TRANSFORM_FLOW_H
