// SPDX-License-Identifier: MIT
// What a step must give, computed on the host from definitions alone: the reference, the
// expression, or the decomposition's parts, each in the plainest way.
//
// Threads. Any.
#ifndef CORE_SCHED_ORACLE_H
#define CORE_SCHED_ORACLE_H

#include <tenon/backend.h>
#include "../runtime.h"

// Whether oracle_step can say it: a program, or a primitive with a reference, an expression
// or a decomposition.
bool oracle_knows(const tn_step *step);

// Computes the outputs of `step` from inputs that lie in the host's memory. Inputs and
// outputs are as many as the step's, with the step's extents and dtypes, any strides; those
// of inputs that were not given have dtype NONE. Outputs overlap nothing.
tn_status oracle_step(tn_runtime *runtime, const tn_step *step, const tn_tensor *inputs,
                      const tn_tensor *outputs);

// Element at `offset` of the tensor's buffer.
void *tensor_element(const tn_tensor *tensor, int64_t offset);

// Where element `at` lies; the next one, row-major (after the last comes the first).
int64_t tensor_offset(const tn_layout *layout, const int64_t *at);
void tensor_next(const tn_layout *layout, int64_t *at);

#endif // CORE_SCHED_ORACLE_H
