// SPDX-License-Identifier: MIT
// Checks of the module that the reader reads.
#ifndef KERNELS_COMPILER_SPIRV_READ_CHECK_H
#define KERNELS_COMPILER_SPIRV_READ_CHECK_H

#include "../ir/ir.h"

// Checks a type, constant or variable that was just read: its operands were read before.
void check_global(struct ir *ir, const struct ir_inst *inst);
// Checks all the rest, when all is read.
void check_module(struct ir *ir);

#endif // KERNELS_COMPILER_SPIRV_READ_CHECK_H
