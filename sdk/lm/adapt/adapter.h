// SPDX-License-Identifier: MIT
// Adapters of a model: changing them, and their numbers.
#ifndef LM_ADAPTER_H
#define LM_ADAPTER_H

#include "../engine/model.h"

// No sequence is open, and layers are loaded.
tn_status lm_adapter_check(tn_lm *model);
// Puts `adapter`, of which nothing is left, in the place of the model's.
tn_status lm_adapter_use(tn_lm *model, struct lm_adapter *adapter);

// Fails where a value of the adapter is NaN or infinite: of `parameters`, down and up of
// each item in turns; NULL: of those that it has.
tn_status lm_adapter_check_numbers(const tn_lm *model, tn_array *const *parameters);

#endif // LM_ADAPTER_H
