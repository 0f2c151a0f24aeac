// SPDX-License-Identifier: MIT
// Steps of an evaluation, of arrays of a scope (eval.c) or of held ones (held.c).
#ifndef CORE_RUN_EVAL_H
#define CORE_RUN_EVAL_H

#include "run.h"

// The value of a number, which needs no plan, on the device of the scope's data.
tn_status eval_number(tn_scope *scope, const tn_array *number, struct value **out);

// vmap placeholders have no buffer, so nothing built on them can be evaluated.
tn_status eval_check_leaves(const struct task *task);

#endif // CORE_RUN_EVAL_H
