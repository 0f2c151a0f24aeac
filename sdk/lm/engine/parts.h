// SPDX-License-Identifier: MIT
// Dividing layers among devices.
#ifndef LM_PARTS_H
#define LM_PARTS_H

#include "model.h"

// Divides layers first .. end - 1 among the devices as they are now.
tn_status lm_division_make(const tn_lm *model, int64_t first, int64_t end,
                           struct lm_division *out);

#endif // LM_PARTS_H
