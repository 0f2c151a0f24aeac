// SPDX-License-Identifier: MIT
// Comparison of a step's outputs with the expected ones, within a tolerance.
//
// Threads. Any.
#ifndef CORE_CHECK_COMPARE_H
#define CORE_CHECK_COMPARE_H

#include <tenon/backend.h>
#include "../device/device.h"

// Compares the outputs of a step that ran on `device`, and logs a warning about the first
// one that differs. Counts the step as checked, and as differing. `tensors` are in host
// memory: the step's inputs, the outputs that the device gave, and the expected outputs;
// the outputs are contiguous.
void compare_step(const struct device *device, const tn_step *step,
                  const tn_tensor *tensors);

#endif // CORE_CHECK_COMPARE_H
