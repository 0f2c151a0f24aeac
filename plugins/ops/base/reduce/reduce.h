// SPDX-License-Identifier: MIT
// Type inference and references of the reductions (reduce.c), for their primitives
// (reduce_rules.c).
#ifndef BASE_REDUCE_H
#define BASE_REDUCE_H

#include "../pack.h"

tn_status sum_infer(const tn_infer *infer, tn_type *types);
tn_status mean_infer(const tn_infer *infer, tn_type *types);
tn_status extremum_infer(const tn_infer *infer, tn_type *types);
tn_status argmax_infer(const tn_infer *infer, tn_type *types);
tn_status logsumexp_infer(const tn_infer *infer, tn_type *types);

#define REFERENCE(name, ...) tn_status name##_reference(const tn_cpu_call *call);
TN_REDUCTIONS(REFERENCE) // mean's is declared only: mean has a decomposition
REFERENCE(argmax)
#undef REFERENCE

// The axes `axes` of a slice, as axes of x, whose first axis is the batch (batch.c).
tn_ints axes_in_batch(const tn_build *build, const tn_array *x, const tn_ints *axes);

#endif // BASE_REDUCE_H
