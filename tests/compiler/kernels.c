// SPDX-License-Identifier: MIT
// The kernels that the plugins embed, made to SPIR-V by glslang without its optimiser: read
// and written again they are the same; the passes leave them valid, without calls, and
// not much larger.
//
//   TENON_TEST_EVERY=N: of N kernels one.
#include "spirv_modules.h"

#include "embedded.h"
#include "modules.h" // NUM_MODULES

// glslang.c, under another name.
bool glslang_compile(const struct glsl_source *source, struct glsl_result *out);

enum { MOST_DEFINES = 32, MOST_TEXT = 1024 };

static uint32_t split_defines(char *text, struct glsl_define *defines)
{
    uint32_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        if (equals)
            *equals = '\0';
        cr_assert(lt(uint, count, MOST_DEFINES));
        defines[count++] = (struct glsl_define){word, equals ? equals + 1 : ""};
    }
    return count;
}

// False where glslang lacks an extension that the kernel needs: cooperative matrices.
static bool compile(const tn_vulkan_module *module, struct glsl_result *out)
{
    char text[MOST_TEXT];
    struct glsl_define defines[MOST_DEFINES];
    snprintf(text, sizeof(text), "%s", module->defines ? module->defines : "");
    char *code = malloc((size_t)module->code_size);
    cr_assert(code && own_unpack(NULL, (uint32_t)(module - own_modules), code) == TN_OK);
    struct glsl_source source = {
        .text = code, .size = module->code_size, .defines = defines};
    source.num_defines = split_defines(text, defines);
    bool compiled = glslang_compile(&source, out);
    free(code);
    if (compiled)
        return true;
    cr_assert(strstr(out->message, "extension not supported") != NULL, "%s: %s",
              module->name, out->message);
    return false;
}

// What of a module is compared.
struct facts {
    uint32_t num_insts, num_calls;
    uint64_t code; // a sum of all instructions, in their order
};

static bool is_left_out(uint32_t op)
{
    return (op >= OpSourceContinued && op <= OpSourceExtension) || op == OpString ||
           op == OpLine || op == OpNoLine || op == OpModuleProcessed || op == OpEntryPoint;
}

static uint64_t hash_of(uint64_t hash, const uint32_t *words, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        hash = (hash ^ words[i]) % UINT64_C(0xfffffffb) * UINT64_C(0xfffffff9);
    return hash;
}

static struct facts look_at(const struct glsl_result *result)
{
    struct facts facts = {0};
    const uint32_t *words = result->words;
    for (size_t at = 5; at < result->num_words; at += words[at] >> 16) {
        uint32_t op = words[at] & 0xffff, size = words[at] >> 16;
        facts.num_insts++;
        facts.num_calls += op == OpFunctionCall;
        if (!is_left_out(op))
            facts.code = hash_of(facts.code, words + at, size);
    }
    return facts;
}

static void check_kernel(const tn_vulkan_module *module)
{
    struct glsl_result made = {0}, same, better;
    if (!compile(module, &made))
        return;
    cr_assert(rewrite(made.words, made.num_words, 0, 0, &same), "%s: %s", module->name,
              same.message);
    struct facts before = look_at(&made), between = look_at(&same);
    cr_assert(eq(u64, between.code, before.code), "%s", module->name);
    cr_assert(rewrite(made.words, made.num_words, PASS_ALL, 0, &better), "%s: %s",
              module->name, better.message);
    struct facts after = look_at(&better);
    validate(module->name, better.words, better.num_words);
    // Calls of one function several times become several bodies.
    cr_assert(lt(uint, after.num_insts, 2 * before.num_insts), "%s", module->name);
    cr_assert(eq(uint, after.num_calls, 0), "%s", module->name);
    free(made.words);
    free(same.words);
    free(better.words);
}

Test(kernels, passes)
{
    const char *every = getenv("TENON_TEST_EVERY");
    uint32_t step = every ? (uint32_t)strtoul(every, NULL, 10) : 1;
    for (uint32_t i = 0; i < NUM_MODULES; i += step ? step : 1)
        check_kernel(&own_modules[i]);
}
