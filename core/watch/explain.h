// SPDX-License-Identifier: MIT
// Explanations: how a graph was planned, as the JSON object that tn_explain documents.
#ifndef CORE_WATCH_EXPLAIN_H
#define CORE_WATCH_EXPLAIN_H

#include <jansson.h>
#include "../plan/plan.h"

// Gives a plan and its explanation, which the caller owns (json_decref). The explanation is
// also set when planning fails, but not when out of memory at the start.
tn_status explain_planning(tn_runtime *runtime, struct task *task, struct plan **out_plan,
                           json_t **out_explanation);

// Called with an explanation once planning has ended. `plan` is NULL when it failed; the
// thread's message says why and must stay. Borrows `explanation`.
typedef void explain_done(tn_runtime *runtime, json_t *explanation,
                          const struct plan *plan);

// Gives a watcher that calls `done` at the end of planning. NULL when out of memory.
struct plan_watcher *explain_for(tn_runtime *runtime, explain_done *done);

#endif // CORE_WATCH_EXPLAIN_H
