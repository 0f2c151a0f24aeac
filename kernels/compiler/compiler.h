// SPDX-License-Identifier: MIT
// Run-time compilation of compute kernels: GLSL in, SPIR-V out. One function; what stands
// behind it is nobody else's business.
//
// Threads. Any: compilations run side by side.
#ifndef KERNELS_COMPILER_COMPILER_H
#define KERNELS_COMPILER_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct glsl_define {
    const char *name;
    const char *value; // "" for a mere flag
};

// A compute shader: UTF-8, GLSL 4.60 from #version on, without #include and without NULs;
// it need not end with one. The definitions are seen as if written after the #version line;
// lines are counted without them.
struct glsl_source {
    const char *text;
    size_t size; // bytes
    const struct glsl_define *defines;
    size_t num_defines;
};

struct glsl_result {
    uint32_t *words; // SPIR-V 1.3 for Vulkan 1.1; NULL after a failure
    size_t num_words;
    int line;          // of the first error, from 1; 0: not known
    char message[256]; // of the first error, one line
};

// Compiles. Gives the words in *out (glsl_result_finish), or the first error and false.
bool glsl_compile(const struct glsl_source *source, struct glsl_result *out);
void glsl_result_finish(struct glsl_result *result);

// Name and version, a part of keys under which results are kept.
const char *glsl_compiler_version(void);

// Frees what the compiler keeps between calls. While no compilation runs; one after it
// works, and is slow again once.
void glsl_compiler_unload(void);

#endif // KERNELS_COMPILER_COMPILER_H
