// SPDX-License-Identifier: MIT
// The log file of TENON_WHY: for each plan, the devices and kernels that were chosen, and
// why others were not.
//
// The file is JSON Lines: one object a line with "event" ("open", "plan", "failure"), "pid"
// and "time" (seconds since 1970). When it grows beyond WHY_LOG_LIMIT, its older half is
// dropped. Several processes may write to one file.
//
// Threads. Any may plan at the same time; the log's lock orders their events.
#ifndef CORE_WATCH_WHY_LOG_H
#define CORE_WATCH_WHY_LOG_H

#include <jansson.h>
#include "../base/runtime.h"

struct plan;

#define WHY_LOG_LIMIT (1 << 20) // bytes
#define WHY_LOG_NODES 256       // the most nodes, steps, leaves or outputs of one event

// Appends an event: a plan was made or (plan NULL) planning failed with the thread's
// message, which stays. `explanation`: see explain.h. A failed write is a warning, once.
void why_log_plan(tn_runtime *runtime, json_t *explanation, const struct plan *plan);

// Called by runtime creation and destruction. Once created, the log gets an event for each
// plan.
tn_status why_log_create(tn_runtime *runtime);
void why_log_destroy(tn_runtime *runtime);

#endif // CORE_WATCH_WHY_LOG_H
