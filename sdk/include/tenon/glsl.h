// SPDX-License-Identifier: MIT
// The project's compiler of kernels, as an interface of an installed plugin: compute
// shaders in GLSL 4.60 (docs/glsl.md says which part of it) to SPIR-V. For applications
// that take kernels as text, such as the package for Python, and register them as family
// vulkan.spirv/1 (<tenon/kernel.h>), which every Vulkan backend runs.
//
//   const void *table;
//   const tn_host *host;
//   if (tn_interface_find(runtime, TN_IFACE_GLSL, &table, &host))
//       return tn_last_error();
//   const tn_glsl *glsl = table;
//   tn_glsl_code code = {.struct_size = sizeof(code)};
//   if (glsl->compile(host, text, strlen(text), "scale.comp", &code))
//       printf("%s:%u:%u: %s\n", code.file, code.line, code.column, code.message);
//   else
//       ... code.words ...
//   glsl->release(host, &code);
//
// Threads. Any, and several compilations at once.
#ifndef TENON_GLSL_H
#define TENON_GLSL_H

#include <tenon/host.h>

// Result of a compilation. Written by `compile`; `release` frees the words.
typedef struct tn_glsl_code {
    uint32_t struct_size;  // sizeof(tn_glsl_code), set by the caller
    uint32_t flags;        // 0
    const uint32_t *words; // SPIR-V 1.3; NULL after a failure
    uint64_t num_words;
    uint32_t line;     // of the first error, from 1, #line counted; 0: not known
    uint32_t column;   // likewise
    char file[64];     // that the error is in: `name`, or what a #line says
    char message[256]; // of the first error, one line; ""
} tn_glsl_code;

// Optional interface, which TN_IFACE_LIST of the compiler's plugin names.
#define TN_IFACE_GLSL "tn.glsl/1"
typedef struct tn_glsl {
    uint32_t struct_size; // sizeof(tn_glsl)
    uint32_t flags;       // 0

    // Compiles a shader of `size` bytes, UTF-8, #version in its first line; `name` is that
    // of its file, for errors. TN_ERR_ARGUMENT: the shader has an error, which *out tells;
    // no failure is recorded. Borrows the texts. [any-thread]
    tn_status (*compile)(const tn_host *host, const char *text, uint64_t size,
                         const char *name, tn_glsl_code *out);

    // Frees the words, and clears all but struct_size. Zeros are fine. [any-thread]
    void (*release)(const tn_host *host, tn_glsl_code *code);
} tn_glsl;

#endif // TENON_GLSL_H
