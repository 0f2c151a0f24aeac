// SPDX-License-Identifier: MIT
// The kernel compiler as the interface tn.glsl/1, for applications with kernels as text.
#include "jit.h"

#include "compiler.h"

#include <stdio.h>
#include <string.h>
#include <tenon/glsl.h>

static tn_status jit_glsl_compile(const tn_host *host, const char *text, uint64_t size,
                                  const char *name, tn_glsl_code *out)
{
    if (!text || !name || !out || out->struct_size < sizeof(*out))
        return host->fail(host, TN_ERR_ARGUMENT, "glsl.compile: %s",
                          !text || !name ? "a text is NULL"
                                         : "no room for the result: its struct_size");
    const struct glsl_source source = {.text = text, .size = size, .name = name};
    struct glsl_result result;
    *out = (tn_glsl_code){.struct_size = sizeof(*out)};
    if (glsl_compile(&source, &result)) {
        out->words = result.words;
        out->num_words = result.num_words;
        return TN_OK;
    }
    out->line = result.line > 0 ? (uint32_t)result.line : 0;
    out->column = result.column > 0 ? (uint32_t)result.column : 0;
    snprintf(out->file, sizeof(out->file), "%s", result.file);
    snprintf(out->message, sizeof(out->message), "%s", result.message);
    return TN_ERR_ARGUMENT;
}

static void jit_glsl_release(const tn_host *host, tn_glsl_code *code)
{
    (void)host;
    struct glsl_result result = {.words = (uint32_t *)(uintptr_t)code->words};
    glsl_result_finish(&result);
    *code = (tn_glsl_code){.struct_size = code->struct_size};
}

const tn_glsl jit_glsl = {
    .struct_size = sizeof(jit_glsl),
    .compile = jit_glsl_compile,
    .release = jit_glsl_release,
};
