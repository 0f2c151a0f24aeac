// SPDX-License-Identifier: MIT
// The groups of checks of this folder.
#ifndef CONFORMANCE_PACKING_GROUPS_H
#define CONFORMANCE_PACKING_GROUPS_H

#include "../kit/kit.h"

void group_packing(struct kit *k); // orders of weights that a backend brings

#endif // CONFORMANCE_PACKING_GROUPS_H
