// SPDX-License-Identifier: MIT
// The group of checks of this folder.
#ifndef CONFORMANCE_TOKENIZER_GROUPS_H
#define CONFORMANCE_TOKENIZER_GROUPS_H

#include "../kit/kit.h"

void group_tokenizer(struct kit *k); // text to ids and back

#endif // CONFORMANCE_TOKENIZER_GROUPS_H
