// SPDX-License-Identifier: MIT
// Reads SPIR-V into the intermediate form.
#ifndef KERNELS_COMPILER_SPIRV_READ_H
#define KERNELS_COMPILER_SPIRV_READ_H

#include "../ir/ir.h"

// Reads a module. Fails where the words are not what the passes may rely on: whole
// instructions that the compiler knows, ids that are defined once and before they are used,
// types where types belong, blocks with one terminator, phis that fit the predecessors,
// calls that fit the functions. It is no validator: a module that passes may be invalid.
//
// Source lines and texts for debuggers are left out, and so is an entry point's list of
// variables, which spirv_write() makes.
struct ir *spirv_read(struct compiler *c, const uint32_t *words, size_t num_words);

#endif // KERNELS_COMPILER_SPIRV_READ_H
