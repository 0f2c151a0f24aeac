// SPDX-License-Identifier: MIT
// SPIR-V that the kernel compiler's reader takes, through all passes: what comes out is
// whole, and the reader takes it as well.
#include "fuzz.h"
#include "compiler.h"
#include "ir/ir.h"
#include "write/spirv_read.h"

struct words {
    const uint32_t *words;
    size_t count;
    bool optimises;
};

static void work(struct compiler *c, void *context)
{
    const struct words *in = context;
    struct ir *ir = spirv_read(c, in->words, in->count);
    if (in->optimises)
        ir_optimise(ir);
    spirv_write(ir, c->result);
}

static bool rewrite(const uint32_t *words, size_t count, bool optimises,
                    struct glsl_result *out)
{
    struct glsl_source source = {.name = "fuzz"};
    struct words in = {words, count, optimises};
    *out = (struct glsl_result){0};
    struct compiler c = {.source = &source, .result = out};
    return compiler_run(&c, work, &in);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    uint32_t *words = malloc(size + 4);
    FUZZ_CHECK(words, "out of memory");
    memcpy(words, data, size);
    struct glsl_result once, twice;
    if (rewrite(words, size / 4, true, &once)) {
        bool again = rewrite(once.words, once.num_words, false, &twice);
        FUZZ_CHECK(again, "what was written is refused: %s", twice.message);
        FUZZ_CHECK(once.num_words == twice.num_words &&
                       !memcmp(once.words, twice.words, once.num_words * 4),
                   "what was written is read as something else");
        free(twice.words);
        free(once.words);
    } else {
        FUZZ_CHECK(once.message[0], "a refusal has a reason");
    }
    free(words);
}
