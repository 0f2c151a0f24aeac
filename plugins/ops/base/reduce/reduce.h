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
TN_REDUCTIONS(REFERENCE) // mean's is not defined: mean has a decomposition
REFERENCE(argmax)
#undef REFERENCE

#endif // BASE_REDUCE_H
