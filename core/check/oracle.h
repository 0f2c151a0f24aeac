// SPDX-License-Identifier: MIT
// Computes the expected outputs of a step on the host, from the primitive's definition
// alone: its reference, its expression, or its decomposition. Clarity comes before speed.
//
// Threads. Any.
#ifndef CORE_CHECK_ORACLE_H
#define CORE_CHECK_ORACLE_H

#include <tenon/backend.h>
#include "../base/runtime.h"

// Whether oracle_step can compute the step: a program, or a primitive with a reference, an
// expression or a decomposition.
bool oracle_knows(const tn_step *step);

// Computes the outputs of `step`. `inputs` and `outputs` are in host memory, as many as
// step_num_inputs() and step_num_outputs() count (operands.h), with the step's extents and
// dtypes and any strides; `data` of fused ones is not used. An input that was not given has
// dtype NONE. Outputs overlap no other tensor. A fused step is computed in its parts: the
// prologues, the primitive's definition, the epilogue.
tn_status oracle_step(tn_runtime *runtime, const tn_step *step, const tn_tensor *inputs,
                      const tn_tensor *outputs);

// The element at `offset`, counted in elements from the tensor's data.
void *tensor_element(const tn_tensor *tensor, int64_t offset);

// The offset of the element with indices `at`, in elements; and the step to the next
// indices in row-major order, from the last to the first.
int64_t tensor_offset(const tn_layout *layout, const int64_t *at);
void tensor_next(const tn_layout *layout, int64_t *at);

#endif // CORE_CHECK_ORACLE_H
