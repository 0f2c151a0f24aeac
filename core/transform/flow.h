// SPDX-License-Identifier: MIT
// Shared by the transforms (vjp, jvp, vmap): nodes in topological order, one slot (a
// cotangent, a tangent or a batched array) for each array that takes part, and arrays
// fitted to a type.
//
// Slots are found through tn_array.mark and .id. A transform only builds graph, so no
// evaluation overwrites these fields. The vjp inside a jvp marks only arrays that were
// built for it.
#ifndef CORE_TRANSFORM_FLOW_H
#define CORE_TRANSFORM_FLOW_H

#include "build.h"

// Joins arrays along i64 `axis`: cotangents of slices, where a pack has it.
#define ROLE_CONCATENATE "tn.concatenate/1"
// Replaces a slice of x, from ints `start` to `stop`: for cotangents of slices, too.
#define ROLE_SLICE_UPDATE "tn.slice_update/1"

// The most levels of nested decompositions.
#define MAX_LEVELS 32

// State of one transform.
struct flow {
    tn_scope *scope;
    uint32_t epoch;   // tn_array.mark of the arrays that have a slot
    uint32_t level;   // of nested decompositions, at most MAX_LEVELS
    tn_array **slots; // by tn_array.id; NULL: a zero derivative
    uint32_t num_slots, max_slots;
    const struct expr *sum, *same; // "a + b", "x"
    struct flow_slice *slices;     // of vjp, see slices.c
    uint32_t num_slices, max_slices;
    uint32_t *heads; // by tn_array.id: 1 + the number of its first slice, or 0
    uint32_t max_heads;
};

tn_status flow_init(struct flow *flow, tn_scope *scope);
void flow_finish(struct flow *flow);

// Gives the array a slot, unless it has one. `array` belongs to the scope.
tn_status flow_include(struct flow *flow, tn_array *array);
bool flow_has(const struct flow *flow, const tn_array *array);
tn_array **flow_slot(struct flow *flow, const tn_array *array); // only if flow_has()

// Whether derivatives flow through input i of the node: the input is given, has a float
// dtype or a complex one, and the primitive does not declare it TN_INPUT_CONSTANT.
bool flow_through(const struct node *node, uint32_t i);

// Bit i: input i of the node is complex.
uint64_t flow_complex_inputs(const struct node *node);

// Adds `amount`, fitted to the array's type, to the array's slot. NULL adds nothing.
tn_status flow_add(struct flow *flow, tn_array *array, tn_array *amount);

// Keeps the cotangent of a node that is a slice of its input, which has a slot. *out_kept:
// false, it is no slice.
tn_status flow_keep_slice(struct flow *flow, struct node *node, tn_array *cotangent,
                          bool *out_kept);
// Adds the cotangents that flow_keep_slice() kept to the array's slot. Called before the
// slot is read.
tn_status flow_join_slices(struct flow *flow, tn_array *array);

// Gives `array` summed or broadcast to the type's extents and cast to its dtype. NULL for
// NULL.
tn_status flow_fit(struct flow *flow, tn_array *array, const tn_type *type,
                   tn_array **out_array);

// Applies a primitive whose attributes are `given`.
tn_status flow_apply_prim(struct flow *flow, const struct prim *prim,
                          const tn_array *const *inputs, uint32_t num_inputs,
                          tn_attr_list given, tn_array **out_array);

// Applies the primitive with this role (TN_ROLE_...) and sets its one attribute, a list of
// integers. flow_reshape is for roles whose attribute "shape" is the extents of the result.
tn_status flow_apply_role(struct flow *flow, const char *role, const char *attribute,
                          const tn_ints *ints, tn_array *array, tn_array **out_array);
tn_status flow_reshape(struct flow *flow, const char *role, tn_array *array,
                       const tn_type *type, tn_array **out_array);

// Gives an array of this type whose elements all equal `value`.
tn_status flow_fill(struct flow *flow, const tn_type *type, double value,
                    tn_array **out_array);

// Applies `derived`, which was made of the node's expression. Its inputs are the node's
// inputs, then `others` (tangents or cotangents).
tn_status flow_apply(struct flow *flow, const struct node *node, const struct expr *derived,
                     tn_array *const *others, tn_dtype dtype, tn_array **out_array);

// Gives the nodes that the arrays depend on, in topological order, in a new array
// (mem_free). Leaves out leaves and nodes with a serial below `since`. Evaluated arrays do
// not end the walk.
tn_status flow_order(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                     uint32_t since, struct node ***out_nodes, uint32_t *out_count);

// Arguments of a rule for one node. `outputs` is the memory of rule.outputs.
struct rule_call {
    tn_rule rule;
    tn_array **outputs;
};
tn_status rule_call_init(struct rule_call *call, const struct node *node);
void rule_call_finish(struct rule_call *call);

// Builds the node's decomposition, or the operations of its expression: `outputs` have the
// types of the node's outputs. Gives their nodes in order, as flow_order does.
tn_status flow_parts(struct flow *flow, struct node *node, tn_array **outputs,
                     struct node ***out_nodes, uint32_t *out_count);

// Whether one of the node's derivatives is too large for a program: `derive` is expr_vjp or
// expr_jvp, `count` the inputs or outputs (unfold.c).
bool flow_outgrows(const struct node *node,
                   tn_status (*derive)(const struct expr *expr, uint32_t number,
                                       uint64_t given, uint64_t complex_inputs,
                                       const struct expr **out_expr),
                   uint32_t count, uint64_t given, uint64_t complex_inputs);

// Builds the operations of the node's expression one by one. `outputs` have the types of
// the node's outputs.
tn_status flow_unfold(struct flow *flow, const struct node *node, tn_array **outputs);

// Begins the transformation of a node: what is built for it runs on its device, until
// flow_leave(), which takes the result.
static inline uint32_t flow_enter(struct flow *flow, const struct node *node)
{
    uint32_t before = flow->scope->device;
    flow->scope->device = node->device;
    return before;
}
static inline void flow_leave(struct flow *flow, uint32_t before)
{
    flow->scope->device = before;
}

// Fails for a node with effects of a domain: `what` ("a derivative through it", "a batch of
// it") makes no sense.
tn_status flow_refuse_effects(const struct node *node, const char *what);

// Fails: the node's primitive has no `rule` ("vjp"), no expression and no decomposition.
tn_status flow_no_rule(const struct node *node, const char *rule);

// --- reverse mode (vjp.c); forward mode transposes it for primitives that have only a vjp
// -

// Gives the cotangents of `wrt` (`gradients`), given the cotangents of `outputs`. Visits
// only nodes with a serial of at least `since`. A NULL cotangent or gradient is zero.
tn_status vjp_since(tn_scope *scope, uint32_t since, tn_array *const *outputs,
                    tn_array *const *cotangents, uint64_t num_outputs, tn_array *const *wrt,
                    uint64_t num_wrt, tn_array **gradients);

// Calls the vjp rule of the node's primitive. `wanted`: one bit an input.
tn_status vjp_call(struct flow *flow, struct node *node, tn_array *const *cotangents,
                   const uint64_t *wanted, tn_array **gradients);

#endif // CORE_TRANSFORM_FLOW_H
