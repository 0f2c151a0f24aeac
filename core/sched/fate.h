// SPDX-License-Identifier: MIT
// How work ends that was handed to a device and not waited for. Work that fails poisons
// what it wrote, and what later work makes of that; nothing else.
//
// Threads. Any.
#ifndef CORE_SCHED_FATE_H
#define CORE_SCHED_FATE_H

#include "device.h"

// The end of one submission, known when its point was reached. Counted; those that are not
// known yet hang on their device, in the order of their points.
struct fate;

// For work that is about to be submitted, and fails when one of `causes` does: fates of the
// same device. Those that are known to have gone well are left out.
tn_status fate_create(struct device *device, struct fate *const *causes,
                      uint32_t num_causes, struct fate **out);
// The work was submitted. Under the device's lock, so that points come in order.
void fate_begin(struct fate *fate, uint64_t point);
void fate_retain(struct fate *fate);
void fate_release(struct fate *fate); // NULL is fine

// Whether the end is known, and was good. NULL, which is no work, went well.
bool fate_went_well(const struct fate *fate);

// The failure, when the end is known. TN_OK when it is not.
tn_status fate_known(const struct fate *fate);
// How it ended; the point must have been reached.
tn_status fate_end(struct fate *fate);

// The point to wait for before more is submitted, when nobody has asked how the work went
// for so long that what is not known would grow without bounds; 0: none.
uint64_t fates_backlog(struct device *device);

// Takes note of the ends of all work up to the point, which must have been reached. Leaves
// the thread's message as it is.
void fates_settle(struct device *device, uint64_t point);

#endif // CORE_SCHED_FATE_H
