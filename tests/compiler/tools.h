// SPDX-License-Identifier: MIT
// glslang, with the passes of `spirv-opt -O` behind it.
#ifndef TESTS_COMPILER_TOOLS_H
#define TESTS_COMPILER_TOOLS_H

#include "compiler.h"

bool optimised_compile(const struct glsl_source *source, struct glsl_result *out);

#endif // TESTS_COMPILER_TOOLS_H
