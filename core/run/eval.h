// SPDX-License-Identifier: MIT
// Steps of an evaluation, of named arrays (eval.c) or of held ones, too (held.c).
#ifndef CORE_RUN_EVAL_H
#define CORE_RUN_EVAL_H

#include "run.h"

// Gives the arrays that need a plan to be evaluated, each once, and marks them with the
// scope's latest epoch. Numbers are written at once.
tn_status eval_collect(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                       tn_array **pending, uint32_t *out_count);

// vmap placeholders have no buffer, so nothing built on them can be evaluated.
tn_status eval_check_leaves(const struct task *task);

tn_status eval_find_plan(tn_runtime *runtime, struct task *task, struct plan **out_plan);

// Runs the plan, gives the outputs their values, and empties donated leaves, which stand
// for counted arrays: also after a failure, once work was queued that may write them.
tn_status eval_run(tn_scope *scope, const struct task *task, struct plan *plan, bool async);

#endif // CORE_RUN_EVAL_H
