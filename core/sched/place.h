// SPDX-License-Identifier: MIT
// What the files of the stage `place` share.
#ifndef CORE_SCHED_PLACE_H
#define CORE_SCHED_PLACE_H

#include "plan.h"

// The nodes at hand: of the task, or of a decomposition in it.
struct nodes {
    const struct task *task;
    uint32_t *value_of;      // by id of an array
    const uint32_t *same_as; // NULL: none
};

// The value of an array that one of the nodes at hand reads.
tn_status place_value_for(struct plan_work *work, const struct nodes *nodes,
                          const tn_array *array, uint32_t *out_value);

// Places all of them, in order.
tn_status place_nodes(struct plan_work *work, const struct nodes *nodes);

// Expands the node's primitive into others, and places those.
tn_status place_decomposed(struct plan_work *work, const struct nodes *nodes,
                           const struct node *node);

// --- copies and transfers (copy.c) -----------------------------------------------------

// `value`, which lies on `device` or is a number, as contiguous memory there.
tn_status place_copy(struct plan_work *work, uint32_t device, uint32_t value,
                     uint32_t *out_value);

// `value` where an operation on `device` can read it: foreign values travel, numbers become
// memory unless the operation takes them as they are.
tn_status place_bring(struct plan_work *work, uint32_t device, bool numbers, uint32_t value,
                      uint32_t *out_value);

// --- what was decided ------------------------------------------------------------------

// Notes it, when somebody asks. `instead_of` is the device that turned the node down, or
// NONE. `choice` is NULL when no device takes the node. (explain.c)
void place_explain(struct plan_work *work, const struct node *node, uint32_t device,
                   uint32_t instead_of, const struct choice *choice);

// What TENON_FALLBACK says of a node that runs on `device`, not on `wanted`.
tn_status place_fell_back(struct plan_work *work, const struct node *node, uint32_t wanted,
                          uint32_t device);

// The failure of a node that no device takes.
tn_status place_nowhere(struct plan_work *work, const struct node *node);

#endif // CORE_SCHED_PLACE_H
