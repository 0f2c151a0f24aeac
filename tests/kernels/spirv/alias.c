// SPDX-License-Identifier: MIT
// Buffers of modules with several results are Aliased and none is NonWritable; the others'
// are as they were. That a result in the memory of an input is right is tested on a device
// (graphs/run/in_place.c).
#include <string.h>

#include "assertion.h"
#include "compiler.h"
#include "pipeline/spirv_alias.h"
#include "../spirv_valid.h"

enum { OP_DECORATE = 71, OP_MEMBER_DECORATE = 72, NON_WRITABLE = 24, ALIASED = 20 };

#define IN "layout(binding = 0) readonly buffer In { uint d[]; } x;\n"
#define OUT "layout(binding = 1) buffer Out { uint d[]; } y;\n"
#define SECOND "layout(binding = 2) writeonly buffer Second { uint d[]; } z;\n"

static const struct {
    const char *name, *text;
    uint32_t aliased; // variables
} modules[] = {
    {"one result", IN OUT "void main() { y.d[0] = x.d[0]; }", 0},
    {"no result", IN "void main() { if (x.d[0] == 1u) return; }", 0},
    {"two results", IN OUT SECOND "void main() { y.d[0] = x.d[0]; z.d[0] = x.d[1]; }", 3},
    {"two types of one result",
     IN OUT "layout(binding = 1) buffer Wide { uvec4 d[]; } wide;\n"
            "void main() { y.d[0] = x.d[0]; wide.d[1] = uvec4(1u); }",
     0},
};

static uint32_t decorations(const struct vk_code *code, uint32_t decoration)
{
    uint32_t found = 0;
    for (uint64_t at = 5; at < code->size / 4; at += code->words[at] >> 16) {
        uint32_t op = code->words[at] & 0xffff;
        found += op == OP_DECORATE && code->words[at + 2] == decoration;
        found += op == OP_MEMBER_DECORATE && code->words[at + 3] == decoration;
    }
    return found;
}

Test(vulkan_alias, buffers_of_several_results_may_be_one_memory)
{
    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
        char text[1024];
        struct glsl_result result;
        snprintf(text, sizeof(text), "#version 460\nlayout(local_size_x = 64) in;\n%s\n",
                 modules[i].text);
        const struct glsl_source source = {.text = text, .size = strlen(text)};
        cr_assert(glsl_compile(&source, &result), "%s: line %d: %s", modules[i].name,
                  result.line, result.message);
        const struct vk_code code = {.words = result.words,
                                     .size = result.num_words * sizeof(uint32_t)};
        struct vk_code once, again;
        cr_assert(spirv_alias_buffers(&code, &once));
        cr_assert(decorations(&once, ALIASED) == modules[i].aliased, "%s: %u of %u",
                  modules[i].name, decorations(&once, ALIASED), modules[i].aliased);
        uint32_t before = decorations(&code, NON_WRITABLE);
        cr_assert(modules[i].aliased == 0 || before == 1);
        cr_assert(
            eq(u32, decorations(&once, NON_WRITABLE), modules[i].aliased > 0 ? 0 : before));
        expect_valid(&once);
        cr_assert(spirv_alias_buffers(&once, &again) && again.words == once.words,
                  "%s is decorated twice", modules[i].name);
        if (once.release)
            once.release(&once);
        glsl_result_finish(&result);
    }
}
