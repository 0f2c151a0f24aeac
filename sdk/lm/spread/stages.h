// SPDX-License-Identifier: MIT
// Dividing the layers of a model among processes that work at once: numbers in, numbers
// out.
#ifndef LM_STAGES_H
#define LM_STAGES_H

#include "../engine/sharding.h"

// The most processes of a model.
#define LM_MOST_STAGES 256

// The memory of a process for layers, and its speed.
struct lm_stage {
    struct lm_room room; // `memory` does not count
    double speed;        // bytes of weights in a second; only their ratio counts; above 0
};

// Divides the layers so that the slowest stage takes the least time, which is the time of a
// step of a pipeline when all stages are busy; each stage has one layer or more, and no
// more than its memory holds. The time of a stage is the bytes of its weights (`work`, by
// layer; those of the output are added) over its speed. out_ends[i] is the layer behind the
// last one of stage i. Returns false, and the shortage, when there is no room.
bool lm_stages_divide(const struct lm_needs *needs, const uint64_t *work,
                      const struct lm_stage *stages, int64_t num_stages, int64_t *out_ends,
                      struct lm_shortage *out_shortage);

#endif // LM_STAGES_H
