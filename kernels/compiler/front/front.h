// SPDX-License-Identifier: MIT
// The front end: tokens to the intermediate form.
#ifndef KERNELS_COMPILER_FRONT_H
#define KERNELS_COMPILER_FRONT_H

#include "../ir/ir.h"
#include "../preprocess/token.h"

// Parses a shader and emits it. Functions that main() does not reach are checked, and left
// out unless the source's flags keep functions.
void translate(struct compiler *c, const struct preprocessed *source, struct ir *ir);

#endif // KERNELS_COMPILER_FRONT_H
