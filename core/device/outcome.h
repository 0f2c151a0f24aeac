// SPDX-License-Identifier: MIT
// Outcomes of asynchronous submissions. A failure spreads to what the work wrote and to
// later work that reads that; to nothing else.
//
// Threads. Any.
#ifndef CORE_DEVICE_OUTCOME_H
#define CORE_DEVICE_OUTCOME_H

#include "device.h"

// The outcome of one submission: unsettled, or settled as success or failure. Settling asks
// the backend, once the point is reached. Reference-counted; each queue lists its outcomes
// in point order, from outcome_begin() until outcomes_settle() has passed them.
struct outcome;

// Makes the outcome of work that is about to be submitted to `queue`. The outcome fails
// when one of `causes` fails: the outcomes of the work, on the same device, that wrote its
// inputs. Causes that have succeeded are left out.
tn_status outcome_create(struct device *device, uint32_t queue,
                         struct outcome *const *causes, uint32_t num_causes,
                         struct outcome **out);
// Lists the outcome after the submission; `value` is that of the work's point. Called
// before another thread can know the outcome. Gives outcomes_backlog().
tn_point outcome_begin(struct outcome *outcome, uint64_t value);
void outcome_retain(struct outcome *outcome);
void outcome_release(struct outcome *outcome); // NULL is fine

// The point of submitted work, and its device.
tn_point outcome_point(const struct outcome *outcome);
struct device *outcome_device(const struct outcome *outcome);

// Settles the outcome of a copy by the mover, whose point is about to be reached: with the
// thread's failure unless `status` is TN_OK.
void outcome_finish(struct outcome *outcome, tn_status status);

// Whether the outcome is settled as success. NULL stands for no work, and counts as
// success.
bool outcome_succeeded(const struct outcome *outcome);

// Fails with the message of an outcome that is settled as failure. TN_OK for an unsettled
// outcome; does not block.
tn_status outcome_known(const struct outcome *outcome);
// Settles the outcome and returns the status of the work. The point must have been reached.
tn_status outcome_end(struct outcome *outcome);

// Back-pressure: the point to wait for before the next submission to `queue`, which bounds
// the number of listed outcomes. Value 0: no need to wait.
tn_point outcomes_backlog(struct device *device, uint32_t number);

// Settles all outcomes of a queue up to the point, which must have been reached. Keeps this
// thread's pending error.
void outcomes_settle(struct device *device, tn_point point);

#endif // CORE_DEVICE_OUTCOME_H
