// SPDX-License-Identifier: MIT
// The vision encoder of a model that reads images.
#ifndef LM_VISION_H
#define LM_VISION_H

#include "../engine/model.h"

// Closes the vision encoder, opened in full or in part.
void lm_vision_close(tn_lm *model);

// Opens the vision encoder, reads its weights and finds the mark, unless that has been
// done.
tn_status lm_vision_ready(tn_lm *model);

// Runs the vision encoder, which is ready, on a tile, f32 [3, tile, tile]; writes `tokens`
// rows.
tn_status lm_vision_encode(tn_lm *model, const float *tile, float *out_rows);

#endif // LM_VISION_H
