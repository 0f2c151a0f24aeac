// SPDX-License-Identifier: MIT
// glslang with its optimiser as the compiler of a plugin: the functions of compiler.h under
// names of their own, for run times beside ours.
#ifndef TESTS_COMPILER_PEER_H
#define TESTS_COMPILER_PEER_H

#include "compiler.h"

// As glsl_compile(): glslang, then all of `spirv-opt -O`. Functions that keep their names
// are not optimised. What glslang refuses has our compiler's code, and a line that begins
// with "# peer:" on stderr.
bool peer_compile(const struct glsl_source *source, struct glsl_result *out);
const char *peer_compiler_version(void);
void peer_compiler_unload(void);

// The same without our compiler: false, and the error, where glslang refuses.
bool peer_compile_alone(const struct glsl_source *source, struct glsl_result *out);

// All of `spirv-opt -O` on a module, whose words it replaces. False: the optimiser ended
// in a crash, or refuses the module, which stays as it is.
bool spirv_optimise_all(struct glsl_result *module);

#endif // TESTS_COMPILER_PEER_H
