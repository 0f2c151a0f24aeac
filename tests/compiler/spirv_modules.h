// SPDX-License-Identifier: MIT
// Modules in the assembly of SPIRV-Tools, through the reader, passes and the writer.
#ifndef TESTS_COMPILER_SPIRV_MODULES_H
#define TESTS_COMPILER_SPIRV_MODULES_H

#include "check.h"
#include "compiler.h"
#include "passes/optimise.h"

// Words of a text, for Vulkan 1.1. free() them.
uint32_t *assemble(const char *text, size_t *num_words);
// The text of words, with names such as %uint_1 for constants. free() it. NULL: there is
// none.
char *disassemble(const uint32_t *words, size_t num_words);
// Asserts that spirv-val takes the words.
void validate(const char *what, const uint32_t *words, size_t num_words);

// Reads a module, lets passes (PASS_*; 0: none) rewrite it, and writes it: free() the
// result's words. False: the reader refuses it, and *out has the reason.
bool rewrite(const uint32_t *words, size_t num_words, uint32_t passes, uint32_t flags,
             struct glsl_result *out);

#endif // TESTS_COMPILER_SPIRV_MODULES_H
