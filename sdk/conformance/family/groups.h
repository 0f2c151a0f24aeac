// SPDX-License-Identifier: MIT
// The group of checks of this folder.
#ifndef CONFORMANCE_FAMILY_GROUPS_H
#define CONFORMANCE_FAMILY_GROUPS_H

#include "../kit/kit.h"

void group_family(struct kit *k); // kernels of other plugins, by family

#endif // CONFORMANCE_FAMILY_GROUPS_H
