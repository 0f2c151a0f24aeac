// SPDX-License-Identifier: MIT
// Modules whose lists of words become push constants: where the words lie, what is gone,
// and what is refused. That they compute the same is tested on a device
// (graphs/plan/epilogues.c).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "assertion.h"
#include "compiler.h"
#include "spirv/spirv_push.h"
#include "spirv_valid.h"

enum { OP_VARIABLE = 59, OP_DECORATE = 71, OP_MEMBER_DECORATE = 72 };
enum { CLASS_PUSH = 9, CLASS_STORAGE = 12 };
enum { BINDING = 33, OFFSET = 35 };

static char reason[VK_REASON];

static struct glsl_result compile(const char *push, const char *body)
{
    char text[1024];
    struct glsl_result result;
    snprintf(text, sizeof(text),
             "#version 460\nlayout(local_size_x = 64) in;\n%s\n"
             "layout(binding = 0) buffer Out { uint d[]; } result;\n"
             "layout(binding = 1) readonly buffer In { uint d[]; } words;\n"
             "layout(binding = 2) readonly buffer More { uint d[]; } more;\n"
             "void main()\n{\n    uint i = gl_GlobalInvocationID.x;\n    %s\n}\n",
             push, body);
    const struct glsl_source source = {.text = text, .size = strlen(text)};
    if (!glsl_compile(&source, &result))
        cr_fatal("line %d: %s", result.line, result.message);
    return result;
}

// How many instructions have a word at a place, and with `next` that one behind it.
static uint32_t count(const struct vk_code *code, uint32_t op, uint32_t place,
                      uint32_t word, const uint32_t *next)
{
    uint32_t found = 0;
    for (uint64_t at = 5; at < code->size / 4; at += code->words[at] >> 16)
        found += (code->words[at] & 0xffff) == op &&
                 code->words[at] >> 16 > place + (next ? 1 : 0) &&
                 code->words[at + place] == word &&
                 (!next || code->words[at + place + 1] == *next);
    return found;
}

static const struct spirv_pushed lists[] = {{.binding = 1, .first = 3, .count = 4},
                                            {.binding = 2, .first = 7, .count = 9}};

static bool push(const char *block, const char *body, struct vk_code *out)
{
    struct glsl_result result = compile(block, body);
    const struct vk_code code = {.words = result.words,
                                 .size = result.num_words * sizeof(uint32_t)};
    bool done = spirv_push(&code, lists, 2, out, reason);
    glsl_result_finish(&result);
    return done;
}

#define BLOCK "layout(push_constant) uniform Args { uint n, m[2]; } args;"

Test(vulkan_push, lists_lie_behind_what_was_pushed)
{
    static const struct {
        const char *block, *body;
    } cases[] = {
        {BLOCK,
         "if (i < args.n) result.d[i] = args.m[i & 1u] + words.d[3] + more.d[i & 7u];"},
        {"", "result.d[i] = words.d[0] + words.d[1] * more.d[8];"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct vk_code out;
        cr_assert(push(cases[i].block, cases[i].body, &out), "%s", reason);
        cr_assert(eq(u32, count(&out, OP_VARIABLE, 3, CLASS_PUSH, NULL), 1));
        cr_assert(eq(u32, count(&out, OP_VARIABLE, 3, CLASS_STORAGE, NULL), 1));
        cr_assert(eq(u32, count(&out, OP_DECORATE, 2, BINDING, NULL), 1));
        for (uint32_t k = 0; k < 2; k++)
            cr_assert(count(&out, OP_MEMBER_DECORATE, 3, OFFSET,
                            &(uint32_t){lists[k].first * 4}) == 1);
        expect_valid(&out);
        out.release(&out);
    }
}

Test(vulkan_push, what_is_not_loaded_by_elements_is_refused)
{
    struct vk_code out;
    cr_assert(
        not(push(BLOCK, "result.d[i] = words.d[args.n] + uint(words.d.length());", &out)));
    cr_assert(eq(str, reason,
                 "reaches its arguments by an instruction 68, expected that it loads their "
                 "elements"));
}
