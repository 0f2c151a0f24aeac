// SPDX-License-Identifier: MIT
// glslang.c under names of its own, so that it and our compiler fit one
// program.
#ifndef TESTS_COMPILER_ORACLE_H
#define TESTS_COMPILER_ORACLE_H

#include "compiler.h"

bool glslang_compile(const struct glsl_source *source, struct glsl_result *out);
void glslang_result_finish(struct glsl_result *result);
const char *glslang_compiler_version(void);
void glslang_compiler_unload(void);

#endif // TESTS_COMPILER_ORACLE_H
