// SPDX-License-Identifier: MIT
// The group of checks of this folder.
#ifndef CONFORMANCE_MODEL_GROUPS_H
#define CONFORMANCE_MODEL_GROUPS_H

#include "../kit/kit.h"

void group_model(struct kit *k); // architectures of language models

#endif // CONFORMANCE_MODEL_GROUPS_H
