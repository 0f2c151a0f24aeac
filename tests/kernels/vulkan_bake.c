// SPDX-License-Identifier: MIT
// Modules with a launch's constants written into them: what is gone, what stays, and what
// is refused. That they compute the same is tested on a device (graphs/device/measured.c).
#include <stdio.h>
#include <string.h>

#include "assertion.h"
#include "compiler.h"
#include "spirv/spirv_bake.h"
#include "spirv_valid.h"

enum {
    OP_FUNCTION = 54,
    OP_VARIABLE = 59,
    OP_LOAD = 61,
    OP_SELECTION_MERGE = 247,
    OP_CONSTANT = 43,
    CLASS_PUSH = 9,
    CLASS_PRIVATE = 6,
    CLASS_BUFFER = 12
};

static char reason[VK_REASON];

static struct glsl_result compile(const char *body, uint32_t flags)
{
    char text[1024];
    struct glsl_result result;
    snprintf(
        text, sizeof(text),
        "#version 460\nlayout(local_size_x = 64) in;\nstruct pair { uint a, b; };\n"
        "layout(push_constant) uniform Args { uint n; uint list[4]; pair p[2]; } args;\n"
        "layout(binding = 0) buffer Out { uint d[]; } result;\n"
        "layout(binding = 1) readonly buffer In { uint d[]; } words;\n"
        "void main()\n{\n    uint i = gl_GlobalInvocationID.x;\n    %s\n}\n",
        body);
    const struct glsl_source source = {.text = text, .size = strlen(text), .flags = flags};
    if (!glsl_compile(&source, &result))
        cr_fatal("line %d: %s", result.line, result.message);
    return result;
}

// Of the body's module: baked with nine words that are pushed, of which some are open, and
// three at binding 1.
static bool bake_open(const char *body, uint32_t flags, uint64_t open, struct vk_code *out)
{
    static const uint32_t pushed[] = {901, 902, 903, 904, 905, 906, 907, 908, 909};
    static const uint32_t bound[] = {801, 802, 803};
    const struct spirv_words lists[] = {{bound, 3, 1}, {pushed, 9, SPIRV_PUSH, open, 2}};
    struct glsl_result result = compile(body, flags);
    const struct vk_code code = {.words = result.words,
                                 .size = result.num_words * sizeof(uint32_t)};
    bool done = spirv_bake(&code, lists, 2, out, reason);
    glsl_result_finish(&result);
    return done;
}

static bool bake(const char *body, uint32_t flags, struct vk_code *out)
{
    return bake_open(body, flags, 0, out);
}

// How many instructions have a word at a place.
static uint32_t count(const struct vk_code *code, uint32_t op, uint32_t place,
                      uint32_t word)
{
    uint32_t found = 0;
    for (uint64_t at = 5; at < code->size / 4; at += code->words[at] >> 16)
        found += (code->words[at] & 0xffff) == op && code->words[at] >> 16 > place &&
                 code->words[at + place] == word;
    return found;
}

Test(vulkan_bake, what_is_known_becomes_a_constant)
{
    struct vk_code out;
    cr_assert(bake("if (i < args.n) result.d[i] = args.list[2] + args.p[1].b"
                   " + words.d[args.n - 900u];",
                   0, &out),
              "%s", reason);
    cr_assert(eq(u32, count(&out, OP_VARIABLE, 3, CLASS_PUSH), 0));
    for (uint32_t word = 901; word <= 909; word++)
        cr_assert(eq(u32, count(&out, OP_CONSTANT, 3, word),
                     word == 901 || word == 904 || word == 909));
    // An index that is computed: the list is a variable of the invocation.
    cr_assert(eq(u32, count(&out, OP_VARIABLE, 3, CLASS_PRIVATE), 1));
    cr_assert(eq(u32, count(&out, OP_CONSTANT, 3, 803), 1));
    out.release(&out);
}

Test(vulkan_bake, a_binding_that_is_used_otherwise_stays)
{
    struct vk_code out;
    cr_assert(
        bake("if (i < args.n) result.d[i] = words.d[0] + uint(words.d.length());", 0, &out),
        "%s", reason);
    cr_assert(eq(u32, count(&out, OP_VARIABLE, 3, CLASS_PUSH), 0));
    cr_assert(eq(u32, count(&out, OP_CONSTANT, 3, 801), 0));
    cr_assert(eq(u32, count(&out, OP_CONSTANT, 3, 901), 1));
    out.release(&out);
}

Test(vulkan_bake, what_cannot_be_baked_is_refused)
{
    struct vk_code out;
    cr_assert(not(bake("pair p = args.p[i & 1u]; result.d[i] = p.a + p.b;",
                       GLSL_NOT_OPTIMISED, &out)));
    cr_assert(eq(str, reason, "loads a list of constants at a place that is computed"));
}

// The words are n, list[0] to list[3], p[0].a, p[0].b, p[1].a, p[1].b: 901 to 909.
Test(vulkan_bake, words_that_are_open_stay)
{
    static const struct {
        const char *body;
        uint64_t open;
        uint32_t constants; // by bit: which of the nine are in the code
        uint32_t kept;      // variables of the invocation
    } cases[] = {
        {"if (i < args.n) result.d[i] = args.list[1];", UINT64_C(1) << 2, 1, 0},
        {"if (i < args.n) result.d[i] = args.list[1];", 1, 4, 0},
        {"result.d[i] = args.p[1].b + args.p[1].a;", UINT64_C(1) << 7, 0x100, 0},
        // At a place that is computed, of a list that is known; of one that is not.
        {"result.d[i] = args.list[i & 3u] + args.n;", 1, 0x1e, 1},
        {"result.d[i] = args.list[i & 3u] + args.n;", UINT64_C(1) << 4, 1, 0},
        {"result.d[i] = args.p[i & 1u].a + args.n;", UINT64_C(1) << 4, 0x1e1, 1},
        {"result.d[i] = args.p[i & 1u].a + args.n;", UINT64_C(1) << 8, 1, 0},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct vk_code out;
        if (!bake_open(cases[c].body, 0, cases[c].open, &out))
            cr_fatal("case %zu %s", c, reason);
        cr_assert(eq(u32, count(&out, OP_VARIABLE, 3, CLASS_PUSH), 0));
        cr_assert(eq(u32, count(&out, OP_VARIABLE, 3, CLASS_BUFFER), 2), "case %zu", c);
        cr_assert(eq(u32, count(&out, OP_VARIABLE, 3, CLASS_PRIVATE), cases[c].kept),
                  "case %zu", c);
        for (uint32_t word = 0; cases[c].kept == 0 && word < 9; word++)
            cr_assert(eq(u32, count(&out, OP_CONSTANT, 3, 901 + word),
                         cases[c].constants >> word & 1),
                      "case %zu word %u", c, word);
        expect_valid(&out);
        out.release(&out);
    }
}

// Where the first instruction of an opcode stands, in words; 0: nowhere.
static uint64_t first_of(const struct vk_code *code, uint32_t op)
{
    for (uint64_t at = 5; at < code->size / 4; at += code->words[at] >> 16)
        if ((code->words[at] & 0xffff) == op)
            return at;
    return 0;
}

// Loads between the beginning of the function and its first branch.
static uint32_t loads_first(const struct vk_code *code)
{
    uint32_t found = 0;
    uint64_t end = first_of(code, OP_SELECTION_MERGE);
    for (uint64_t at = first_of(code, OP_FUNCTION); at < end; at += code->words[at] >> 16)
        found += (code->words[at] & 0xffff) == OP_LOAD;
    return found;
}

// list[0] and list[1] are open: both are loaded, with the invocation's number, before the
// branch behind which they are used. What is at a place that is computed stays behind it.
Test(vulkan_bake, values_are_loaded_before_all_branches)
{
    static const struct {
        const char *body;
        uint32_t loads;
    } cases[] = {
        {"if (i < 5u) result.d[i] = args.list[0]; result.d[i + 9u] = args.list[1];", 3},
        {"if (i < 5u) result.d[i] = args.list[0] + args.list[i & 3u];", 2},
        {"if (i < args.n) result.d[i] = args.p[1].b;", 1},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct vk_code out;
        if (!bake_open(cases[c].body, 0, UINT64_C(3) << 1, &out))
            cr_fatal("case %zu %s", c, reason);
        cr_assert(eq(u32, loads_first(&out), cases[c].loads), "case %zu", c);
        expect_valid(&out);
        out.release(&out);
    }
}
