// SPDX-License-Identifier: MIT
// The compilers under comparison. All have the functions of compiler.h.
#ifndef TESTS_COMPILER_COMPILERS_H
#define TESTS_COMPILER_COMPILERS_H

#include "compiler.h"

struct compiler_choice {
    const char *name;
    bool (*compile)(const struct glsl_source *source, struct glsl_result *out);
    void (*finish)(struct glsl_result *result);
    const char *(*version)(void);
    void (*unload)(void);
};

// The oracle: glslang.c.
extern const struct compiler_choice compiler_glslang;

// The compiler with this name: "tenon", our own, and "plain", the same without its passes,
// where it is built; "glslang"; "optimised",
// glslang and then the passes of `spirv-opt -O`; "planted", glslang and then one difference
// from a list (compiler_plant()). NULL: none.
const struct compiler_choice *compiler_find(const char *name);
// The names, with spaces between.
const char *compiler_names(void);
// The compiler to compare with glslang when none is named: ours where it is built.
const struct compiler_choice *compiler_other(void);

// What "planted" does to a module, by number from 0; NULL: there is no such number. A
// module that has nothing of the kind stays as it is.
const char *compiler_plant(unsigned number);

// Whether the words are valid SPIR-V for Vulkan 1.1, or 1.3 from SPIR-V 1.4 on. The reason
// is one line.
bool spirv_validate(const uint32_t *words, size_t count, char reason[256]);
// The module without what no instruction that counts needs, variables and constants among
// it. False where that fails.
bool spirv_drop_dead(const uint32_t *words, size_t count, struct glsl_result *out);
// The text of a module, as spirv-dis prints it. free() it.
char *spirv_text(const uint32_t *words, size_t count);

#endif // TESTS_COMPILER_COMPILERS_H
