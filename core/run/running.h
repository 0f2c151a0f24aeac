// SPDX-License-Identifier: MIT
// The state of one run of a plan, shared by submit.c and transfer.c.
#ifndef CORE_RUN_RUNNING_H
#define CORE_RUN_RUNNING_H

#include "../device/outcome.h"
#include "run.h"

// The submission of one segment in one run, or a copy by the mover.
struct submitted {
    struct outcome *outcome; // with a reference; NULL: see make_outcome
    uint64_t value;          // of its timeline point; 0: not submitted
    struct submitted *next;  // in the open_list of its device
};

// Submissions and copies of this run whose failure would leave invalid data in a device's
// arena: the last submission that read the arena, whose outcome includes all before it, and
// those after that one.
struct open_list {
    struct submitted *first, *last; // in the order of their points; NULL: none
};

// State of one run, in one block of memory. Pooled in the plan; used by one run at a time.
struct run_record {
    struct submitted *segments;
    struct submitted *transfers; // as plan.transfers; set for copies of the mover
    struct open_list *open;      // by device
    struct storage **arenas;     // by device; NULL: no arena
    struct storage **storages;   // as plan.storages
    struct value **made;         // outputs of host operations
    // By slot of the segment that is being submitted: the backend's binding; the memory,
    // NULL for an arena, which runs do not share; and the outcome's possible causes.
    tn_binding *bindings;
    struct storage **bound;
    struct outcome **causes;
    // By device: the point of its host's timeline at which the mover has read all that this
    // run wrote; later submissions of this run wait for it; 0: none.
    uint64_t *reads;
    uint32_t *queues; // by device: the queue of this run
};

struct run {
    struct plan *plan;
    struct run_record *record;
    struct value *const *leaves; // borrowed
    enum run_mode mode;
    unsigned thread; // number of the calling thread
    bool has_begun;  // a segment was submitted
    bool has_moved;  // a copy was queued
};

// The memory of a slot in this run, and where the slot begins in it (bytes).
struct storage *run_storage(const struct run *run, const struct plan_slot *slot,
                            uint64_t *out_offset);

// Adds what was submitted to the end of the open list.
static inline void open_list_add(struct open_list *open, struct submitted *state)
{
    state->next = NULL;
    *(open->first ? &open->last->next : &open->first) = state;
    open->last = state;
}

// Lets later submissions of this run to `device` wait for a point of another device, or
// waits for it. transfer.c.
tn_status run_follow(struct run *run, uint32_t device, struct device *other,
                     tn_point point);

// Makes a transfer, or lets the mover make it. transfer.c.
tn_status run_transfer(struct run *run, const struct plan_transfer *t);

#endif // CORE_RUN_RUNNING_H
