// SPDX-License-Identifier: MIT
// Weights: which there are, what they need, and loading them.
#ifndef LM_WEIGHTS_H
#define LM_WEIGHTS_H

#include "model.h"

// Gives what a part of the model lists, for free().
tn_status lm_weights_list(const tn_lm *model, int64_t layer, tn_model_weight **out,
                          uint64_t *count);

// Checks all weights against the source; loads those of layers, and frees others.
tn_status lm_weights_check(tn_lm *model);
tn_status lm_weights_load(tn_lm *model, int64_t first, int64_t end);
void lm_weights_free(tn_lm *model);
struct lm_weight *lm_weight_find(struct lm_weights *weights, const char *name,
                                 int64_t device);

// The weight of this name that products read; NULL: none is loaded.
struct lm_weight *lm_product_find(const tn_lm *model, const char *name);

// Adds what a part of the model needs for its weights, in bytes. `again`, where it is not
// NULL, gets what of the output is the embedding, and counts only where it is elsewhere.
tn_status lm_weights_bytes(const tn_lm *model, int64_t layer, uint64_t *bytes,
                           uint64_t *again);

// The rows of a matrix of a paired weight (tn_model_weight) in the model's order, or back
// in that of the file; others as they are.
tn_array *lm_rows_in_halves(tn_scope *scope, tn_array *array,
                            const struct lm_weight *weight, bool back);

#endif // LM_WEIGHTS_H
