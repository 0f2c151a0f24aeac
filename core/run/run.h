// SPDX-License-Identifier: MIT
// plan_run: runs a plan on given data.
#ifndef CORE_RUN_RUN_H
#define CORE_RUN_RUN_H

#include "../plan/plan.h"

// When plan_run returns.
enum run_mode {
    RUN_WAIT,  // when the work is done
    RUN_START, // when the work is queued; a backend may also do it at once
    RUN_ASYNC, // when the work is queued (TN_SUBMIT_ASYNC)
};

// Runs the plan. leaves[i] is the value of leaf i, borrowed even if it is donated. Gives
// outputs, and also on failure whether work was queued, which may write donated leaves. Any
// number of threads may run one plan at the same time.
tn_status plan_run(struct plan *plan, struct value *const *leaves, struct value **outputs,
                   enum run_mode mode, bool *out_has_begun);

#endif // CORE_RUN_RUN_H
