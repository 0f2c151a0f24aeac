// SPDX-License-Identifier: MIT
// Dividing layers among devices.
#ifndef LM_PARTS_H
#define LM_PARTS_H

#include "model.h"

// Bytes that layers need, by the types in the file.
struct lm_sizes {
    uint64_t *weights, *caches, *both; // by layer
    struct lm_needs needs;             // `bytes` of it is `both`
};

// Sums up layers first .. end - 1. lm_sizes_finish follows, also after a failure.
tn_status lm_sizes_make(const tn_lm *model, int64_t first, int64_t end,
                        struct lm_sizes *out);
void lm_sizes_finish(struct lm_sizes *sizes);

// Memory for layers of all devices of this process together.
tn_status lm_room_of_all(const tn_lm *model, struct lm_room *out);

// Divides layers first .. end - 1 among the devices as they are now.
tn_status lm_division_make(const tn_lm *model, int64_t first, int64_t end,
                           struct lm_division *out);

#endif // LM_PARTS_H
