// SPDX-License-Identifier: MIT
// Conversations: what a message never becomes.
#include <tenon/tokenizer.h>
#include "letters.h"

TestSuite(chats, .init = setup, .fini = teardown);

static uint64_t count_of(const int32_t *ids, uint64_t count, int32_t id)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; i++)
        found += ids[i] == id;
    return found;
}

// The vocabulary's end of text is "<end>"; the form "llama-2" does not write it.
Test(chats, users_do_not_write_control_tokens)
{
    struct fixture f;
    tn_lm *lm = letters_open(&f, 100);
    int32_t *ids = NULL, *whole = NULL;
    uint64_t count = 0, num_whole = 0, size = 0;
    char *text = NULL;
    const tn_lm_message talk[] = {
        {"user", "say<end>it"}, {"assistant", "it"}, {"user", "a"}};
    lm_must(tn_lm_chat_tokens(lm, "llama-2", talk, 3, &ids, &count));
    cr_assert(eq(u64, count_of(ids, count, (int32_t)end_id), 0));
    lm_must(tn_lm_chat_text(lm, "llama-2", talk, 3, &text, &size));
    lm_must(tn_lm_tokenize(lm, text, size, TN_LM_ADD_SPECIAL | TN_LM_PARSE_SPECIAL, &whole,
                           &num_whole));
    cr_assert(eq(u64, count_of(whole, num_whole, (int32_t)end_id), 1)); // so it is a test
    tn_lm_free(ids);
    tn_lm_free(whole);
    tn_lm_free(text);
    // Without such words both ways give the same.
    lm_must(tn_lm_chat_tokens(lm, "llama-2", talk + 1, 2, &ids, &count));
    lm_must(tn_lm_chat_text(lm, "llama-2", talk + 1, 2, &text, &size));
    lm_must(tn_lm_tokenize(lm, text, size, TN_LM_ADD_SPECIAL | TN_LM_PARSE_SPECIAL, &whole,
                           &num_whole));
    cr_assert(eq(u64, count, num_whole));
    cr_assert(eq(int, memcmp(ids, whole, count * sizeof(*ids)), 0));
    tn_lm_free(ids);
    tn_lm_free(whole);
    tn_lm_free(text);
    tn_lm_close(lm);
}

// The ids of a conversation of one message, in which `id` comes so many times.
static uint64_t times_in(tn_lm *lm, const char *family, const char *role, const char *text,
                         int32_t id)
{
    int32_t *ids = NULL;
    uint64_t count = 0;
    const tn_lm_message talk[] = {{role, text}, {"user", "b"}};
    lm_must(tn_lm_chat_tokens(lm, family, talk, 2, &ids, &count));
    uint64_t times = count_of(ids, count, id);
    tn_lm_free(ids);
    return times;
}

// Files that call marks user-defined: what the form is made of, in any role, and ends of
// texts stay text in messages; other user-defined tokens are found, also beside marks.
Test(chats, users_do_not_write_marks_that_are_user_defined)
{
    static const struct {
        const char *family, *mark;
        uint64_t of_form; // times that the form itself has it, of two messages
    } rows[] = {
        {"llama-2", "[INST]", 2},        {"llama-2", "<end>", 0},
        {"chatml", "<|im_start|>", 3},   {"chatml", "<|im_end|>", 2},
        {"gemma", "<start_of_turn>", 3}, {"mistral-v7-tekken", "[/SYSTEM_PROMPT]", 0},
        {"phi-3", "<|system|>", 0}, // no message is the system's
    };
    static const char *const around[] = {"",      "a", "<", "say\n", "<|im_start|",
                                         "[INST", "xy"};
    static const char *const roles[] = {"user", "assistant"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture f;
        char text[200];
        bool is_end = strcmp(rows[i].mark, "<end>") == 0;
        tn_lm *lm = letters_open(&f, 100);
        const int32_t id = is_end ? 31 : 30;
        vocabulary[id] = (tn_text){rows[i].mark, strlen(rows[i].mark)};
        kinds[id] = TN_TOKEN_USER_DEFINED;
        vocabulary[25] = (tn_text){"xyz", 3}; // in no form
        kinds[25] = TN_TOKEN_USER_DEFINED;
        for (size_t k = 0; k < sizeof(around) / sizeof(around[0]); k++)
            for (size_t r = 0; r < sizeof(roles) / sizeof(roles[0]); r++) {
                snprintf(text, sizeof(text), "%s%s%sxyz%s%s", around[k], rows[i].mark,
                         rows[i].mark, rows[i].mark, around[k]);
                uint64_t without = times_in(lm, rows[i].family, roles[r], "a", id);
                cr_assert(
                    eq(u64, times_in(lm, rows[i].family, roles[r], text, id), without),
                    "%s in %s", text, rows[i].family);
                if (r == 0)
                    cr_assert(eq(u64, without, rows[i].of_form), "%s", rows[i].family);
                cr_assert(eq(u64, times_in(lm, rows[i].family, roles[r], text, 25), 1));
            }
        tn_lm_close(lm);
    }
}
