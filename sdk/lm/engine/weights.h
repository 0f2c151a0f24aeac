// SPDX-License-Identifier: MIT
// Weights: listing them, their sizes, and loading them.
#ifndef LM_WEIGHTS_H
#define LM_WEIGHTS_H

#include "model.h"

// Gives the weights that a part of the model lists, for free().
tn_status lm_weights_list(const tn_lm *model, int64_t layer, tn_model_weight **out,
                          uint64_t *count);

// Checks all weights against the source; loads those of layers, and frees others.
tn_status lm_weights_check(tn_lm *model);
tn_status lm_weights_load(tn_lm *model, int64_t first, int64_t end);
void lm_weights_free(tn_lm *model);
struct lm_weight *lm_weight_find(struct lm_weights *weights, const char *name,
                                 int64_t device);

// The weight of this name in the form that products read; NULL: none is loaded.
struct lm_weight *lm_product_find(const tn_lm *model, const char *name);

// Adds the bytes that a part of the model needs for its weights. Bytes of the output that
// are the embedding's go to `again`, unless it is NULL: they count only if the output is on
// another device.
tn_status lm_weights_bytes(const tn_lm *model, int64_t layer, uint64_t *bytes,
                           uint64_t *again);

// Rows of a matrix of a paired weight (tn_model_weight) in the model's order, or, with
// `back`, in the file's; other weights are unchanged.
tn_array *lm_rows_in_halves(tn_scope *scope, tn_array *array,
                            const struct lm_weight *weight, bool back);

#endif // LM_WEIGHTS_H
