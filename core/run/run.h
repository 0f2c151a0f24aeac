// SPDX-License-Identifier: MIT
// plan_run: runs a plan on given data.
#ifndef CORE_RUN_RUN_H
#define CORE_RUN_RUN_H

#include <tenon/dlpack.h>
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

// Calls a primitive's `run`. Gives its outputs, contiguous, from their memory's first byte
// on, and also on failure whether work was queued. `inputs`: NULL where not given.
tn_status host_run(const struct plan *plan, const struct plan_host *host,
                   struct value *const *inputs, struct value **outputs, enum run_mode mode,
                   bool *out_has_begun);

// --- elements on the host (read.c) -----------------------------------------------------

// Begins the public `function`, and evaluates the array: gives it, or the leaf of this
// scope that stands for it. NULL with the scope's failure set.
tn_array *read_evaluated(tn_scope *scope, const char *function, tn_array *array);

// A contiguous copy of an evaluated array, on the array's device: made by way of the host
// where no device of the runtime copies. NULL with the scope's failure set.
tn_array *read_copied(tn_scope *scope, const tn_array *array);

// The evaluated array, or a copy when its layout is not contiguous. NULL with the scope's
// failure set.
tn_array *read_contiguous(tn_scope *scope, tn_array *array);

// Element (0, 0, ...) where the host sees the value's memory; NULL where it does not.
const void *read_in_place(const struct value *value);

// The elements of a contiguous value, copied to memory of the host that lives as long as
// the value. Threads may race to make the copy: the first one wins. NULL with the scope's
// failure set.
const void *read_copy(tn_scope *scope, struct value *value);

// DLPack's type of a dtype; false when it has none (import.c).
bool dlpack_type(tn_dtype dtype, DLDataType *out);

#endif // CORE_RUN_RUN_H
