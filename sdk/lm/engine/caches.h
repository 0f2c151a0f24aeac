// SPDX-License-Identifier: MIT
// Caches of keys and values.
#ifndef LM_CACHES_H
#define LM_CACHES_H

#include "model.h"

// Types of a layer's caches, with the options' elements and all slots.
tn_status lm_caches_types(const tn_lm *model, int64_t layer, tn_type *out);
uint64_t lm_type_bytes(const tn_type *type);

// Chooses the elements of caches: "f16", ...; NULL: the default.
tn_status lm_caches_choose(tn_lm *model, const char *name);

// Gives the sequence a slot, in new caches where no slot is free; and takes the slot back.
tn_status lm_caches_enter(tn_lm_sequence *sequence);
void lm_caches_leave(tn_lm_sequence *sequence);

// For processes that run steps of another process's sequences: gives the caches that the
// other process knows by this number, made at their first use; and frees these, or all
// caches of the model.
tn_status lm_caches_numbered(tn_lm *model, uint64_t number, struct lm_caches **out_caches);
void lm_caches_drop(tn_lm *model, uint64_t number);
void lm_caches_drop_all(tn_lm *model);

// Called with the caches' lock held, after a call that failed with `status`. If the call
// took the caches' arrays, their sequences have ended: lm_caches_check says why.
void lm_caches_note(struct lm_caches *caches, tn_status status);
tn_status lm_caches_check(const struct lm_caches *caches);

// The part of a model on whose device cache `index` is.
int64_t lm_part_of_cache(const tn_lm *model, uint64_t index);

#endif // LM_CACHES_H
