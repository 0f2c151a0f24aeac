// SPDX-License-Identifier: MIT
// TENON_CHECK: a share of the launches is run once more by definition, and what differs is
// reported.
#ifndef CORE_SCHED_SHADOW_H
#define CORE_SCHED_SHADOW_H

#include "plan.h"

// Launches to check are drawn by chance, the same in every run of a program. NULL: none.
struct shadow;

// Draws which steps of a segment to check: chosen[i] says it of step i. False: none.
bool shadow_draw(struct shadow *shadow, const tn_segment *segment, uint8_t *chosen);

// Runs the segment in pieces and checks the chosen steps. All work is done when it returns.
// storages[i] is what slot i is bound to. Fails only when the work itself fails: what the
// check finds goes to the log.
tn_status shadow_segment(struct shadow *shadow, struct device *device,
                         const tn_segment *segment, const tn_binding *bindings,
                         struct storage *const *storages, const uint8_t *chosen);

// Launches checked so far, and those that differed.
void shadow_counts(const struct shadow *shadow, uint64_t *out_checked,
                   uint64_t *out_differing);

#endif // CORE_SCHED_SHADOW_H
