// SPDX-License-Identifier: MIT
// Shared by the files of stage `place`: place.c, copy.c, decompose.c, pairs.c.
#ifndef CORE_PLAN_PLACE_H
#define CORE_PLAN_PLACE_H

#include "watcher.h"

// A node that may be placed together with the producer of one of its inputs.
struct pairing {
    const tn_pair_rule *rule; // NULL: there is none
    uint32_t made;            // the node that makes the input
    bool is_made;             // this node is such a producer: it is placed with its reader
};

// Nodes that are being placed: the whole task, or one decomposition within it.
struct nodes {
    const struct task *task;
    uint32_t *value_of;            // by tn_array.id; NONE: not placed yet
    const uint32_t *same_as;       // see plan_work; NULL in a decomposition
    const struct pairing *pairing; // by node; NULL: there are no pairs
};

// Whether the node is one of the task's; others are leaves.
static inline bool task_has(const struct task *task, const struct node *node)
{
    return node->position < task->num_nodes && task->nodes[node->position] == node;
}

// Nodes of a task within a plan, none of which is placed. The caller frees value_of.
tn_status place_begin_inner(const struct task *task, struct nodes *out);

// Gives the value of an array that one of `nodes` reads.
tn_status place_value_for(struct plan_work *work, const struct nodes *nodes,
                          const tn_array *array, uint32_t *out_value);

// Place all nodes in topological order, or one node.
tn_status place_nodes(struct plan_work *work, const struct nodes *nodes);
tn_status place_node(struct plan_work *work, const struct nodes *nodes,
                     const struct node *node);

// The plugin whose kernel the node would get on its wanted device; NULL: none.
tn_status place_kernel_plugin(struct plan_work *work, const struct nodes *nodes,
                              const struct node *node, const char **out_plugin);

// Places the node if it gets a kernel on its wanted device, from `plugin` unless that is
// NULL.
tn_status place_with_kernel(struct plan_work *work, const struct nodes *nodes,
                            const struct node *node, const char *plugin, bool *out_done);

// Keeps the scope, in which nodes to be placed are built, until work_finish. Takes the
// scope, also on failure.
tn_status place_keep_scope(struct plan_work *work, tn_scope *scope);

// --- pairs (pairs.c) --------------------------------------------------------------------

// Finds the nodes that may be placed together, and allocates nodes->pairing where there
// are some, which the caller frees.
tn_status place_find_pairs(const struct nodes *nodes, struct pairing **out);

// Places node `i` and the producer of its input as one, where a kernel computes both.
tn_status place_pair(struct plan_work *work, const struct nodes *nodes, uint32_t i,
                     bool *out_done);

// --- decompositions (decompose.c) ------------------------------------------------------

// Builds the decomposition of the node's primitive, or with `split` its expression by
// split_build, and places the nodes of that.
tn_status place_decomposed(struct plan_work *work, const struct nodes *nodes,
                           const struct node *node, bool split);

// --- copies and transfers (copy.c) -----------------------------------------------------

// Gives a contiguous copy on `device` of `value`, which lies there or is a number.
tn_status place_copy(struct plan_work *work, uint32_t device, uint32_t value,
                     uint32_t *out_value);

// Gives a value that an operation on `device` can read: `value` itself, or its transfer
// from another device. Numbers are written to memory there unless the operation takes
// `numbers`.
tn_status place_bring(struct plan_work *work, uint32_t device, bool numbers, uint32_t value,
                      uint32_t *out_value);

// --- fallback --------------------------------------------------------------------------

// Applies TENON_FALLBACK to a node that runs on `device` instead of `wanted`: warns, fails,
// or does nothing.
tn_status place_fallback(struct plan_work *work, const struct node *node, uint32_t wanted,
                         uint32_t device);

// Fails: no device runs the node.
tn_status place_fail(struct plan_work *work, const struct node *node);

#endif // CORE_PLAN_PLACE_H
