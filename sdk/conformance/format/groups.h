// SPDX-License-Identifier: MIT
// The group of checks of this folder.
#ifndef CONFORMANCE_FORMAT_GROUPS_H
#define CONFORMANCE_FORMAT_GROUPS_H

#include "../kit/kit.h"

void group_format(struct kit *k); // files of arrays, in memory

#endif // CONFORMANCE_FORMAT_GROUPS_H
