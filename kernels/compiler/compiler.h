// SPDX-License-Identifier: MIT
// The kernel compiler: compute shaders in a subset of GLSL 4.60 to SPIR-V 1.3 to 1.6.
// docs/glsl.md says what the subset is.
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

// The macros of a text like "IN=f16 WIDE" (tn_vulkan_module.defines of <tenon/kernel.h>).
enum { GLSL_MOST_MACROS = 16, GLSL_MOST_MACROS_TEXT = 256 }; // bytes, with a NUL
struct glsl_macros {
    struct glsl_define all[GLSL_MOST_MACROS]; // their texts are in `text`
    size_t count;
    char text[GLSL_MOST_MACROS_TEXT];
    const char *wrong; // after a failure: "over 255 bytes". Static
};

// Fills *out. False: there are too many macros, or the text is too long; out->wrong says
// so. `text` may be NULL: no macros.
bool glsl_macros_read(const char *text, struct glsl_macros *out);

// Finds the text of a file that #include names; `from` is the name of the file that
// includes it, or "" for the source. The text lives until the compilation ends. NULL: there
// is none.
typedef const char *glsl_include_fn(void *context, const char *name, const char *from,
                                    size_t *size);

enum {
    GLSL_KEEPS_FUNCTIONS = 1, // functions are neither inlined nor dropped, and have names
    GLSL_NOT_OPTIMISED = 2,   // the front end's code as it is
};

// A compute shader in UTF-8: GLSL 4.60, with #version in its first line, and without NUL
// bytes. The definitions act as if written behind the first line; the line numbers of
// errors do not count them. Borrowed for the call. Members that are 0 have the defaults
// named.
struct glsl_source {
    const char *text;
    size_t size; // bytes, without a NUL
    const struct glsl_define *defines;
    size_t num_defines;
    const char *name;         // of the file, for errors; NULL: none
    glsl_include_fn *include; // NULL: an #include is an error
    void *include_context;
    uint32_t spirv_version; // 0x00010300 to 0x00010600; 0: 0x00010300, that of Vulkan 1.1
    uint32_t flags;         // GLSL_*
    // The SPIR-V capabilities that the target has: one that the shader needs and that is
    // not among them is an error that names it. NULL: all.
    const uint32_t *capabilities;
    size_t num_capabilities;
};

// The result of a compilation. glsl_result_finish() frees the words.
struct glsl_result {
    uint32_t *words; // SPIR-V; NULL after a failure
    size_t num_words;
    int line, column; // of the first error, from 1; 0: not known
    char file[64]; // with the error: `name` or an included one; its end where it is longer
    char message[256]; // of the first error, one line
};

// Compiles a shader. True, and *out has the words; or false, and *out has the first error.
bool glsl_compile(const struct glsl_source *source, struct glsl_result *out);

// Preprocesses a shader: what is left of it as text, one line for each line that has
// something left. By malloc; NULL after a failure, and *out has the first error.
char *glsl_preprocess(const struct glsl_source *source, struct glsl_result *out);

// Frees the words, and clears the result. A result of zeros is fine.
void glsl_result_finish(struct glsl_result *result);

// The extensions of GLSL that the compiler knows; NULL behind the last. Static.
const char *const *glsl_extensions(void);

// Name and version of the compiler: part of the keys of caches of compiled shaders. Static
// text.
const char *glsl_compiler_version(void);

// Frees the memory that the compiler keeps between calls. Not while a compilation runs. A
// later compilation works, and takes the time to build that memory again.
void glsl_compiler_unload(void);

#endif // KERNELS_COMPILER_COMPILER_H
