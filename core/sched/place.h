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

#endif // CORE_SCHED_PLACE_H
