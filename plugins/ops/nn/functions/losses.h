// SPDX-License-Identifier: MIT
// Shared by losses: the reduction of elements to one number, and rows of attributes.
#ifndef NN_LOSSES_H
#define NN_LOSSES_H

#include "../pack.h"
#include <tenon/ops/rules.h>

enum { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM, REDUCE_BATCHMEAN };

extern const char *const loss_reductions[]; // none, mean, sum
#define REDUCTION_FIELD(type)                                                              \
    TN_CHOICE_FIELD(type, reduction, REDUCE_MEAN, loss_reductions,                         \
                    "elements as they are; their mean; their sum")

// `loss` unchanged, or its mean or sum over all elements.
tn_array *reduced_loss(const tn_build *build, tn_array *loss, int64_t reduction);
// reduced_loss(), but a mean divides the sum by that of `weights`.
tn_array *reduced_by_weights(const tn_build *build, tn_array *loss, tn_array *weights,
                             int64_t reduction);
tn_array *summed_over(const tn_build *build, tn_array *x, int64_t axis, int64_t keepdims);

// Fails unless inputs 1 .. count - 1, where given, have the dtype and extents of input 0.
tn_status check_alike(const tn_build *build, const tn_rule *rule, const char *const names[],
                      uint32_t count);

#endif // NN_LOSSES_H
