// SPDX-License-Identifier: MIT
// Images in prompts: tokens, and rows between them.
#ifndef LM_IMAGE_H
#define LM_IMAGE_H

#include <tenon/lm_image.h>
#include "../engine/model.h"

// Positions of a sequence: ids, and for each position its row of an image, or NULL.
struct lm_positions {
    int32_t *ids;
    const float **rows;
    int64_t count;
};

// Replaces the marks among tokens by images; the tokens are in the vocabulary. `out` is for
// lm_positions_finish.
tn_status lm_positions_make(tn_lm *model, const int32_t *ids, int64_t count,
                            const tn_lm_image *const *images, uint64_t num_images,
                            struct lm_positions *out);
void lm_positions_finish(struct lm_positions *positions);

#endif // LM_IMAGE_H
