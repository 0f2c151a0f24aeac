// SPDX-License-Identifier: MIT
// The group of checks of this folder.
#ifndef CONFORMANCE_QUEUE_GROUPS_H
#define CONFORMANCE_QUEUE_GROUPS_H

#include "../kit/kit.h"

void group_queue(struct kit *k); // submissions, points and waiting

#endif // CONFORMANCE_QUEUE_GROUPS_H
