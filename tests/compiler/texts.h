// SPDX-License-Identifier: MIT
// The compute shaders of the project, as text: every variant of kernels/vulkan,
// program_parts.comp, those of the examples, the conformance kit and the tests' fixtures,
// and what plugins/backends/vulkan/program generates for a set of programs.
#ifndef TESTS_COMPILER_TEXTS_H
#define TESTS_COMPILER_TEXTS_H

#include "compiler.h"

// A shader that is a file, or a literal of a C file; the table is generated (texts.py).
struct file_text {
    const char *name, *text, *defines; // defines: "A=1 B"
    uint32_t flags;                    // GLSL_*
};
extern const struct file_text file_texts[];

#define TEXT_DEFINES 16 // the most, as in a plugin's module

// A shader. glsl_source() of it is all that a compiler needs.
struct shader_text {
    char *name; // "conv2d_f32", "program ADD f32 F4"
    char *text;
    size_t size;
    char *defines; // cut into `define`
    struct glsl_define define[TEXT_DEFINES];
    size_t num_defines;
    uint32_t flags;
};
struct shader_texts {
    struct shader_text *items;
    size_t count;
};

// All whose name contains `filter` (NULL: all). Ends the program when out of memory.
struct shader_texts texts_collect(const char *filter);
void texts_free(struct shader_texts *texts);
struct glsl_source texts_source(const struct shader_text *text);

// Adds a shader, of which all but the flags are copied. NULL: the filter leaves it out.
struct shader_text *texts_add(struct shader_texts *texts, const char *filter,
                              const char *name, const char *text, size_t size,
                              const char *defines);
// Those that are generated.
void texts_add_programs(struct shader_texts *texts, const char *filter);

#endif // TESTS_COMPILER_TEXTS_H
