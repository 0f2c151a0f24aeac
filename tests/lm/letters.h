// SPDX-License-Identifier: MIT
// A small random model with a vocabulary of letters, which a test may change before the
// first text is read.
#ifndef TESTS_LM_LETTERS_H
#define TESTS_LM_LETTERS_H

#include "fixture.h"

static tn_text vocabulary[WORDS];
static int64_t kinds[WORDS], end_id = 31;
static tn_text gpt2 = {"gpt2", 4}, pre = {"gpt-2", 5};

static inline void pair_set(struct fixture *f, const char *key, const void *data,
                            uint64_t count, uint32_t kind, uint32_t flags)
{
    cr_assert(lt(u64, f->list.count, MOST_PAIRS));
    f->pairs[f->list.count++] = (tn_metadata){key, data, count, kind, flags};
}

// Letters, a space, a line, the two bytes of "é", and a token that ends a text.
static inline tn_lm *letters_open(struct fixture *f, int64_t context)
{
    static char letters[26][2];
    static const tn_text others[] = {{"\xc4\xa0", 2}, {"\xc4\x8a", 2}, {"\xc3\x83", 2},
                                     {"\xc2\xa9", 2}, {".", 1},        {"<end>", 5}};
    tn_lm *lm = NULL;
    const tn_lm_options options = {.struct_size = sizeof(options), .context = context};
    fixture_open(f, "llama");
    for (int i = 0; i < WORDS; i++) {
        if (i < 26)
            letters[i][0] = (char)('a' + i);
        vocabulary[i] = i < 26 ? (tn_text){letters[i], 1} : others[i - 26];
        kinds[i] = i == end_id ? 3 : 1;
    }
    pair_set(f, "tokenizer.ggml.model", &gpt2, 1, TN_METADATA_TEXT, 0);
    pair_set(f, "tokenizer.ggml.pre", &pre, 1, TN_METADATA_TEXT, 0);
    pair_set(f, "tokenizer.ggml.tokens", vocabulary, WORDS, TN_METADATA_TEXT,
             TN_METADATA_LIST);
    pair_set(f, "tokenizer.ggml.token_type", kinds, WORDS, TN_METADATA_INTEGER,
             TN_METADATA_LIST);
    pair_set(f, "tokenizer.ggml.merges", NULL, 0, TN_METADATA_TEXT, TN_METADATA_LIST);
    pair_set(f, "tokenizer.ggml.eos_token_id", &end_id, 1, TN_METADATA_INTEGER, 0);
    lm_must(tn_lm_open_source(runtime, &f->source, &options, &lm));
    return lm;
}

#endif // TESTS_LM_LETTERS_H
