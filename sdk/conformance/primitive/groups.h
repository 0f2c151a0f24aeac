// SPDX-License-Identifier: MIT
// The groups of checks of this folder.
#ifndef CONFORMANCE_PRIMITIVE_GROUPS_H
#define CONFORMANCE_PRIMITIVE_GROUPS_H

#include "../kit/kit.h"

void group_infer(struct kit *k);     // shape rules
void group_attrs(struct kit *k);     // attributes
void group_reference(struct kit *k); // definitions in C

#endif // CONFORMANCE_PRIMITIVE_GROUPS_H
