// SPDX-License-Identifier: MIT
// What the files of the group `rules` share.
#ifndef CONFORMANCE_RULES_H
#define CONFORMANCE_RULES_H

#include "checks.h"
#include "pack.h"

// Derivatives against differences (rules_derive.c).
void rules_vjp(struct kit *k, struct pack *pack, const tn_primitive *p);
void rules_jvp(struct kit *k, struct pack *pack, const tn_primitive *p);

// A batch against a loop (rules_vmap.c).
void rules_vmap(struct kit *k, struct pack *pack, const tn_primitive *p);

// Rules called with some NULL, and with a builder that fails (rules_calls.c).
void rules_partial(struct kit *k, struct pack *pack, const tn_primitive *p);
void rules_failure(struct kit *k, struct pack *pack, const tn_primitive *p);

// Makes and fills inputs whose outputs are finite and the same by every definition. False:
// none were found; nothing to free.
bool rules_fill(struct kit *k, struct pack *pack, struct sample *s,
                struct array out[MAX_OUT]);

#endif // CONFORMANCE_RULES_H
