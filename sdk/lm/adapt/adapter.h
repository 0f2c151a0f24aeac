// SPDX-License-Identifier: MIT
// Adapters of a model: replacing them, and checks of their values.
#ifndef LM_ADAPTER_H
#define LM_ADAPTER_H

#include "../engine/model.h"

// Fails unless layers are loaded and no sequence is open.
tn_status lm_adapter_check(tn_lm *model);
// Replaces the model's adapter by `adapter`, which is empty afterwards.
tn_status lm_adapter_use(tn_lm *model, struct lm_adapter *adapter);

// Fails where a value of the adapter is NaN or infinite. `parameters`: down and up of each
// item in turns; NULL: the adapter's own arrays.
tn_status lm_adapter_check_numbers(const tn_lm *model, tn_array *const *parameters);

#endif // LM_ADAPTER_H
