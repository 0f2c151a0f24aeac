// SPDX-License-Identifier: MIT
// TENON_WHY: what a run decided, and why, is kept in a file that stays small.
//
// The file is JSON Lines: one object a line with "event" ("open", "plan", "failure"), "pid"
// and "time" (seconds since 1970). Once it is larger than RECORD_LIMIT the older half goes.
// Several processes may write to one file.
#ifndef CORE_SCHED_RECORD_H
#define CORE_SCHED_RECORD_H

#include <jansson.h>
#include "../runtime.h"

#define RECORD_LIMIT (1 << 20) // bytes
#define RECORD_NODES 256       // of one plan that are told

struct plan;

// A plan that was made, or (plan NULL) one that failed with the thread's message, which
// stays. `told` as plan_create fills it. Failing to write is a warning, once.
void record_plan(tn_runtime *runtime, json_t *told, const struct plan *plan);

#endif // CORE_SCHED_RECORD_H
