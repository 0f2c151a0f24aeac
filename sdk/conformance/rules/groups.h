// SPDX-License-Identifier: MIT
// The group of checks of this folder.
#ifndef CONFORMANCE_RULES_GROUPS_H
#define CONFORMANCE_RULES_GROUPS_H

#include "../kit/kit.h"

void group_rules(struct kit *k); // derivatives and batching

#endif // CONFORMANCE_RULES_GROUPS_H
