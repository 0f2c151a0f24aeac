// SPDX-License-Identifier: MIT
// The stages of a compilation.
#include "compiler.h"
#include "front/front.h"
#include "glsl_version.h"
#include "ir/ir.h"
#include "preprocess/token.h"

#include <stdlib.h>

static void compiler_work(struct compiler *c, void *context)
{
    const struct glsl_source *source = context;
    uint32_t version = source->spirv_version ? source->spirv_version : 0x00010300;
    if (version < 0x00010300 || version > 0x00010600)
        compiler_fail(c, NULL, "SPIR-V version 0x%08X: expected 0x00010300 to 0x00010600",
                      version);
    struct preprocessed preprocessed;
    compiler_keywords(c);
    preprocess(c, &preprocessed);
    struct ir *ir = ir_create(c, version);
    translate(c, &preprocessed, ir);
    if (!(source->flags & GLSL_NOT_OPTIMISED))
        ir_optimise(ir);
    spirv_write(ir, c->result);
}

bool glsl_compile(const struct glsl_source *source, struct glsl_result *out)
{
    *out = (struct glsl_result){0};
    struct compiler c = {.source = source, .result = out};
    return compiler_run(&c, compiler_work, (void *)source);
}

void glsl_result_finish(struct glsl_result *result)
{
    free(result->words);
    *result = (struct glsl_result){0};
}

const char *glsl_compiler_version(void)
{
    return GLSL_COMPILER_VERSION;
}

void glsl_compiler_unload(void)
{
    compiler_free_kept();
}
