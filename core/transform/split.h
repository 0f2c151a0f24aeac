// SPDX-License-Identifier: MIT
// An expression that reduces, built from elementwise expressions and reductions.
#ifndef CORE_TRANSFORM_SPLIT_H
#define CORE_TRANSFORM_SPLIT_H

#include "decompose.h"

// Builds the node, whose expression reduces, over the placeholders of `d`, and gives its
// outputs. Reductions are the primitives with the roles TN_ROLE_SUM, TN_ROLE_MEAN, ...
tn_status split_build(struct decomposition *d, const struct node *node);

#endif // CORE_TRANSFORM_SPLIT_H
