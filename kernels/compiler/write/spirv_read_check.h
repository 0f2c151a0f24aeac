// SPDX-License-Identifier: MIT
// What the reader makes sure of.
#ifndef KERNELS_COMPILER_SPIRV_READ_CHECK_H
#define KERNELS_COMPILER_SPIRV_READ_CHECK_H

#include "../ir/ir.h"

// A type, a constant or a variable that was just read: what it is made of was read before.
void check_global(struct ir *ir, const struct ir_inst *inst);
// All the rest, when all is read.
void check_module(struct ir *ir);

#endif // KERNELS_COMPILER_SPIRV_READ_CHECK_H
