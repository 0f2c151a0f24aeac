// SPDX-License-Identifier: MIT
// The group of checks of this folder.
#ifndef CONFORMANCE_SEGMENT_GROUPS_H
#define CONFORMANCE_SEGMENT_GROUPS_H

#include "../kit/kit.h"

void group_segment(struct kit *k); // compiling and running segments

#endif // CONFORMANCE_SEGMENT_GROUPS_H
