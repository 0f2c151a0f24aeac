// SPDX-License-Identifier: MIT
// Caches of keys and values.
#ifndef LM_CACHES_H
#define LM_CACHES_H

#include "model.h"

// The caches of a layer: as the options say, for all slots.
tn_status lm_caches_types(const tn_lm *model, int64_t layer, tn_type *out);
uint64_t lm_type_bytes(const tn_type *type);

// Sets what elements caches have: "f16", or NULL for the usual ones.
tn_status lm_caches_choose(tn_lm *model, const char *name);

// Gives the sequence a slot, in new caches where no slot is left, or takes it back.
tn_status lm_caches_enter(tn_lm_sequence *sequence);
void lm_caches_leave(tn_lm_sequence *sequence);

// The caches that another process knows by this number, made where there are none yet; and
// their end, or that of all caches of the model. For processes without sequences of their
// own.
tn_status lm_caches_numbered(tn_lm *model, uint64_t number, struct lm_caches **out_caches);
void lm_caches_drop(tn_lm *model, uint64_t number);
void lm_caches_drop_all(tn_lm *model);

// A call that failed with `status` may have taken the caches, whose lock is held: then the
// sequences that have them have ended, and lm_caches_check says why.
void lm_caches_note(struct lm_caches *caches, tn_status status);
tn_status lm_caches_check(const struct lm_caches *caches);

// The part of a model whose device has cache `index`.
int64_t lm_part_of_cache(const tn_lm *model, uint64_t index);

#endif // LM_CACHES_H
