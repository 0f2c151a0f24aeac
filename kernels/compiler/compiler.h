// SPDX-License-Identifier: MIT
// Run-time compilation of compute kernels, from GLSL to SPIR-V. Hides which compiler does
// it: its headers are included by glslang.c alone.
//
// Threads. Any thread; compilations run at the same time. glsl_compiler_unload() is the
// exception.
#ifndef KERNELS_COMPILER_COMPILER_H
#define KERNELS_COMPILER_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// `#define name value`.
struct glsl_define {
    const char *name;
    const char *value; // "": defined without a value
};

// A compute shader in UTF-8: GLSL 4.60, with #version in its first line, and without
// #include and NUL bytes. The definitions act as if written behind the first line; the line
// numbers of errors do not count them. Borrowed for the call.
struct glsl_source {
    const char *text;
    size_t size; // bytes, without a NUL
    const struct glsl_define *defines;
    size_t num_defines;
};

// The result of a compilation. glsl_result_finish() frees the words.
struct glsl_result {
    uint32_t *words; // SPIR-V 1.3 for Vulkan 1.1; NULL after a failure
    size_t num_words;
    int line;          // of the first error, from 1; 0: not known
    char message[256]; // of the first error, one line
};

// Compiles a shader. True, and *out has the words; or false, and *out has the first error.
bool glsl_compile(const struct glsl_source *source, struct glsl_result *out);

// Frees the words, and clears the result. A result of zeros is fine.
void glsl_result_finish(struct glsl_result *result);

// Name and version of the compiler: part of the keys of caches of compiled shaders. Static
// text.
const char *glsl_compiler_version(void);

// Frees the memory that the compiler keeps between calls. Not while a compilation runs. A
// later compilation works, and takes the time to build that memory again.
void glsl_compiler_unload(void);

#endif // KERNELS_COMPILER_COMPILER_H
