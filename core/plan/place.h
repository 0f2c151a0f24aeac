// SPDX-License-Identifier: MIT
// Shared by the files of stage `place`: place.c, copy.c, decompose.c.
#ifndef CORE_PLAN_PLACE_H
#define CORE_PLAN_PLACE_H

#include "watcher.h"

// Nodes that are being placed: the whole task, or one decomposition within it.
struct nodes {
    const struct task *task;
    uint32_t *value_of;      // by tn_array.id; NONE: not placed yet
    const uint32_t *same_as; // see plan_work; NULL in a decomposition
};

// Gives the value of an array that one of `nodes` reads.
tn_status place_value_for(struct plan_work *work, const struct nodes *nodes,
                          const tn_array *array, uint32_t *out_value);

// Places all nodes, in topological order.
tn_status place_nodes(struct plan_work *work, const struct nodes *nodes);

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
