// SPDX-License-Identifier: MIT
// Texts that are constrained by a grammar while they are generated.
#ifndef LM_CONSTRAINT_H
#define LM_CONSTRAINT_H

#include <stdbool.h>
#include <tenon/lm.h>

// A text that is constrained by a grammar while it is generated.
struct lm_held;

tn_status lm_held_open(const tn_lm_grammar *grammar, tn_lm *model, struct lm_held **out);
void lm_held_close(struct lm_held *held);

// Gives the tokens that may come next, a bit each, ends of texts included.
tn_status lm_held_mask(struct lm_held *held, const uint64_t **out_mask);

// Appends a token's text. *out_is_over: no text may follow.
tn_status lm_held_append(struct lm_held *held, const char *text, uint64_t size,
                         bool *out_is_over);

#endif // LM_CONSTRAINT_H
