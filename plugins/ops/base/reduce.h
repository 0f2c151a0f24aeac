// SPDX-License-Identifier: MIT
// What reductions' types and references (reduce.c) offer their records (reduce_rules.c).
#ifndef BASE_REDUCE_H
#define BASE_REDUCE_H

#include "pack.h"

tn_status sum_infer(const tn_infer *infer, tn_type *types);
tn_status mean_infer(const tn_infer *infer, tn_type *types);
tn_status extremum_infer(const tn_infer *infer, tn_type *types);
tn_status argmax_infer(const tn_infer *infer, tn_type *types);
tn_status logsumexp_infer(const tn_infer *infer, tn_type *types);

tn_status sum_reference(const tn_cpu_call *call);
tn_status max_reference(const tn_cpu_call *call);
tn_status min_reference(const tn_cpu_call *call);
tn_status argmax_reference(const tn_cpu_call *call);
tn_status logsumexp_reference(const tn_cpu_call *call);

#endif // BASE_REDUCE_H
