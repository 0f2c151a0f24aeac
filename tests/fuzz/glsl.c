// SPDX-License-Identifier: MIT
// The kernel compiler: whole SPIR-V or an error with a reason, optimised or not, and the
// same words for the same text.
#include "fuzz.h"
#include "compiler.h"

// Instructions, one after the other, end where the module does.
static void walk(const struct glsl_result *result)
{
    size_t at = 5;
    FUZZ_CHECK(result->num_words >= 5, "a module has a header");
    FUZZ_CHECK(result->words[0] == 0x07230203, "a module begins with the magic number");
    while (at < result->num_words) {
        FUZZ_CHECK(result->words[at] >> 16, "an instruction has a size");
        at += result->words[at] >> 16;
    }
    FUZZ_CHECK(at == result->num_words, "the last instruction is whole");
}

static bool compile(const uint8_t *data, size_t size, uint32_t flags)
{
    struct glsl_source source = {.text = (const char *)data, .size = size, .flags = flags};
    struct glsl_result result, again;
    if (!glsl_compile(&source, &result)) {
        FUZZ_CHECK(result.message[0], "a failure has a reason");
        FUZZ_CHECK(!result.words, "a failure has no words");
        glsl_result_finish(&result);
        return false;
    }
    walk(&result);
    FUZZ_CHECK(glsl_compile(&source, &again), "what compiles does so again");
    FUZZ_CHECK(again.num_words == result.num_words &&
                   memcmp(again.words, result.words, again.num_words * 4) == 0,
               "the words are the same again");
    glsl_result_finish(&again);
    glsl_result_finish(&result);
    return true;
}

void fuzz_one(const uint8_t *data, size_t size)
{
    bool plain = compile(data, size, GLSL_NOT_OPTIMISED);
    bool optimised = compile(data, size, 0);
    bool kept = compile(data, size, GLSL_KEEPS_FUNCTIONS);
    FUZZ_CHECK(plain == optimised && plain == kept,
               "what compiles does so with all flags: %d %d %d", plain, optimised, kept);
}
