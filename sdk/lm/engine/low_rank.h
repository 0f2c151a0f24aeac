// SPDX-License-Identifier: MIT
// Adapters in a graph: low-rank additions to products.
#ifndef LM_LOW_RANK_H
#define LM_LOW_RANK_H

#include "model.h"

// Adds the adapter's part to `product`, which is x times the weight `name`. `trained`,
// where it is not NULL, replaces the arrays of the items: down and up in turns.
tn_array *lm_adapted(const struct lm_adapter *adapter, tn_scope *scope,
                     tn_array *const *trained, const char *name, tn_array *x,
                     tn_array *product);
void lm_adapter_free(struct lm_adapter *adapter);

#endif // LM_LOW_RANK_H
