// SPDX-License-Identifier: MIT
// Logits of a window of tokens, as a part of a larger function.
#ifndef LM_TRAIN_H
#define LM_TRAIN_H

#include "../engine/step.h"

// The logits of all positions of a window of tokens, i32 [count], which begins a
// sequence of its own. `trained`: see lm_adapted; `gathered` may be NULL.
tn_array *lm_build_window(tn_lm *model, tn_scope *scope, tn_array *tokens, int32_t count,
                          tn_array *const *trained, struct lm_gathered *gathered);

#endif // LM_TRAIN_H
