// SPDX-License-Identifier: MIT
// The check of a segment's values.
#ifndef CORE_CHECK_VALUES_H
#define CORE_CHECK_VALUES_H

#include <tenon/backend.h>

// TN_ERR_INTERNAL when the ids or TN_VALUE_LAST of a segment contradict its steps: a fault
// of the planner. The message names the step. [any-thread]
tn_status values_check(const tn_segment *segment);

#endif // CORE_CHECK_VALUES_H
