// SPDX-License-Identifier: MIT
// Checks of the group `rules`, and what their files share.
#ifndef CONFORMANCE_RULES_RULES_H
#define CONFORMANCE_RULES_RULES_H

#include "../pack/pack.h"

// Compare derivatives with differences (derive.c).
void rules_vjp(struct kit *k, struct pack *pack, const tn_primitive *p);
void rules_jvp(struct kit *k, struct pack *pack, const tn_primitive *p);

// Compares a batch with a loop (vmap.c).
void rules_vmap(struct kit *k, struct pack *pack, const tn_primitive *p);

// Call rules with NULL arguments, and with a builder that fails (calls.c).
void rules_partial(struct kit *k, struct pack *pack, const tn_primitive *p);
void rules_failure(struct kit *k, struct pack *pack, const tn_primitive *p);

// Fills the inputs so that the outputs are finite and all definitions agree (fill.c). Gives
// `out`. False: no such inputs were found; there is nothing to free.
bool rules_fill(struct kit *k, struct pack *pack, struct sample *s,
                struct array out[MAX_OUT]);

#endif // CONFORMANCE_RULES_RULES_H
