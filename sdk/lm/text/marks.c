// SPDX-License-Identifier: MIT
// Marks: the tokens that the form of a conversation is made of. Files call some marks
// user-defined tokens, which tokenizers find in any text; within messages they stay text.
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "../engine/tokens.h"
#include "marks.h"

#define MOST_MARKS 64

// Texts of the marks; the tokenizer owns them.
struct text_marks {
    tn_text items[MOST_MARKS];
    uint64_t count;
};

// Whether a token is a mark. White space is none: messages have it as well.
static bool is_mark(const tn_token *token)
{
    static const char white[] = " \t\r\n\v\f";
    return token->kind == TN_TOKEN_USER_DEFINED && token->text.size > 1 &&
           strspn(token->text.data, white) < token->text.size;
}

static tn_status add_mark(tn_lm *model, int32_t id, struct text_marks *marks)
{
    tn_token token = {.kind = 0};
    if (id < 0)
        return TN_OK;
    tn_status status = model->tokens->token(model->tokens_host, model->tokenizer, id,
                                            &token, sizeof(token));
    if (status != TN_OK)
        return lm_fail_core(status);
    for (uint64_t i = 0; i < marks->count; i++)
        if (marks->items[i].data == token.text.data)
            return TN_OK;
    if (is_mark(&token) && marks->count < MOST_MARKS)
        marks->items[marks->count++] = token.text;
    return TN_OK;
}

// Adds the marks among the tokens of a text of the form.
static tn_status add_marks_of(tn_lm *model, const char *text, struct text_marks *marks)
{
    int32_t *ids = NULL;
    uint64_t count = 0;
    tn_status status =
        tn_lm_tokenize(model, text, strlen(text), TN_LM_PARSE_SPECIAL, &ids, &count);
    for (uint64_t i = 0; i < count && status == TN_OK; i++)
        status = add_mark(model, ids[i], marks);
    tn_lm_free(ids);
    return status;
}

static tn_status text_find_marks(tn_lm *model, const struct chat_template *form,
                                 const char *image, struct text_marks *marks)
{
    const char *text;
    tn_status status = lm_tokenizer(model);
    for (uint32_t i = 0; status == TN_OK && (text = chat_template_text(form, i)); i++)
        status = add_marks_of(model, text, marks);
    if (status == TN_OK && image)
        status = add_marks_of(model, image, marks);
    if (status != TN_OK)
        return status;
    const tn_tokenizer_facts *facts = model->tokens->facts(model->tokenizer);
    for (uint64_t i = 0; i < facts->num_ends && status == TN_OK; i++)
        status = add_mark(model, facts->ends[i], marks);
    return status == TN_OK ? add_mark(model, facts->bos, marks) : status;
}

static bool begins_mark(const struct text_marks *marks, const char *text, uint64_t size)
{
    for (uint64_t i = 0; i < marks->count; i++)
        if (marks->items[i].size <= size &&
            memcmp(marks->items[i].data, text, marks->items[i].size) == 0)
            return true;
    return false;
}

// Splits a range behind the first byte of each mark. With `out` NULL the ranges are only
// counted.
static uint64_t split_range(const struct text_marks *marks, const char *text,
                            struct chat_range range, tn_text_range *out)
{
    uint64_t count = 0, begin = range.begin;
    for (uint64_t at = range.begin; at < range.end; at++) {
        if (!begins_mark(marks, text + at, range.end - at))
            continue;
        if (out)
            out[count] = (tn_text_range){begin, at + 1};
        count++;
        begin = at + 1;
    }
    if (out)
        out[count] = (tn_text_range){begin, range.end};
    return count + 1;
}

tn_status lm_plain_ranges(tn_lm *model, const struct chat_template *form, const char *image,
                          const char *text, const struct chat_range *ranges, uint64_t count,
                          tn_text_range **out_plain, uint64_t *out_count)
{
    struct text_marks marks = {.count = 0};
    uint64_t total = 0;
    tn_status status = text_find_marks(model, form, image, &marks);
    if (status != TN_OK)
        return status;
    for (uint64_t i = 0; i < count; i++)
        total += split_range(&marks, text, ranges[i], NULL);
    tn_text_range *plain = lm_alloc(total, sizeof(*plain));
    if (!plain)
        return TN_ERR_MEMORY;
    *out_plain = plain;
    *out_count = total;
    for (uint64_t i = 0; i < count; i++)
        plain += split_range(&marks, text, ranges[i], plain);
    return TN_OK;
}
