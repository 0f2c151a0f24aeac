// SPDX-License-Identifier: MIT
#include "spirv_modules.h"
#include "write/spirv_read.h"

#include <spirv-tools/libspirv.h>

static const spv_target_env target = SPV_ENV_VULKAN_1_1;

uint32_t *assemble(const char *text, size_t *num_words)
{
    spv_context context = spvContextCreate(target);
    spv_binary binary = NULL;
    spv_diagnostic diagnostic = NULL;
    spvTextToBinary(context, text, strlen(text), &binary, &diagnostic);
    cr_assert(ne(ptr, binary, NULL), "line %zu: %s in\n%s",
              diagnostic ? diagnostic->position.line + 1 : 0,
              diagnostic ? diagnostic->error : "?", text);
    uint32_t *words = malloc(binary->wordCount * sizeof(*words));
    cr_assert(ne(ptr, words, NULL));
    memcpy(words, binary->code, binary->wordCount * sizeof(*words));
    *num_words = binary->wordCount;
    spvBinaryDestroy(binary);
    spvDiagnosticDestroy(diagnostic);
    spvContextDestroy(context);
    return words;
}

char *disassemble(const uint32_t *words, size_t num_words)
{
    spv_context context = spvContextCreate(target);
    spv_text text = NULL;
    spvBinaryToText(context, words, num_words,
                    SPV_BINARY_TO_TEXT_OPTION_NO_HEADER |
                        SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES,
                    &text, NULL);
    spvContextDestroy(context);
    char *copy = text ? strdup(text->str) : NULL;
    spvTextDestroy(text);
    return copy;
}

void validate(const char *what, const uint32_t *words, size_t num_words)
{
    spv_context context = spvContextCreate(target);
    spv_const_binary_t binary = {words, num_words};
    spv_diagnostic diagnostic = NULL;
    spv_result_t result = spvValidate(context, &binary, &diagnostic);
    spvContextDestroy(context);
    if (result != SPV_SUCCESS) {
        char *text = disassemble(words, num_words);
        cr_fatal("%s: %s\n%s", what, diagnostic ? diagnostic->error : "?",
                 text ? text : "");
    }
    spvDiagnosticDestroy(diagnostic);
}

struct rewriting {
    const uint32_t *words;
    size_t num_words;
    uint32_t passes;
};

static void work(struct compiler *c, void *context)
{
    const struct rewriting *r = context;
    struct ir *ir = spirv_read(c, r->words, r->num_words);
    if (r->passes)
        ir_optimise_with(ir, r->passes);
    spirv_write(ir, c->result);
}

bool rewrite(const uint32_t *words, size_t num_words, uint32_t passes, uint32_t flags,
             struct glsl_result *out)
{
    *out = (struct glsl_result){0};
    struct glsl_source source = {.flags = flags};
    struct compiler c = {.source = &source, .result = out};
    struct rewriting rewriting = {words, num_words, passes};
    return compiler_run(&c, work, &rewriting);
}
