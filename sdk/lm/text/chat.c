// SPDX-License-Identifier: MIT
// Writes the text of a conversation by the model's template.
#include <stdlib.h>
#include <string.h>
#include <tenon/lm_image.h>
#include "../base/fail.h"
#include "../engine/tokens.h"
#include "marks.h"

static tn_status choose_template(const tn_lm *model, const char *family,
                                 struct chat_template *out)
{
    char known[512];
    tn_text jinja = {NULL, 0};
    const tn_metadata_list *list = model->source.metadata;
    chat_template_names(known, sizeof(known));
    if (family)
        return chat_template_find(family, out)
                   ? TN_OK
                   : lm_fail(TN_ERR_NOT_FOUND, "no template '%s'; known are %s", family,
                             known);
    if (!tn_metadata_text(tn_metadata_find(list, "tokenizer.chat_template"), &jinja))
        return lm_fail(TN_ERR_NOT_FOUND, "%s has no template of chats: name one of %s",
                       list->name, known);
    if (chat_template_recognise(jinja.data, jinja.size, out))
        return TN_OK;
    return lm_fail(
        TN_ERR_NOT_FOUND,
        "%s: its template of chats is none that is known to be written as the model "
        "expects: name one of %s",
        list->name, known);
}

// A conversation's text, and the ranges of its messages.
struct text_chat_written {
    struct chat_template form;
    char *text; // for tn_lm_free
    uint64_t size;
    enum lm_begin begin;
    struct chat_range *ranges; // for free
    uint64_t num_ranges;
};

// Writes the marks of images, one text for each message or NULL, for free().
static tn_status write_marks(tn_lm *model, const uint32_t *num_images,
                             uint64_t num_messages, char ***out)
{
    const char *mark;
    tn_status status = tn_lm_image_mark(model, &mark);
    if (status != TN_OK)
        return status;
    size_t size = strlen(mark);
    uint64_t bytes = num_messages * sizeof(char *);
    for (uint64_t i = 0; i < num_messages; i++)
        bytes += num_images[i] * size + 1;
    char **marks = lm_alloc(bytes, 1);
    if (!marks)
        return TN_ERR_MEMORY;
    char *at = (char *)(marks + num_messages);
    for (uint64_t i = 0; i < num_messages; i++) {
        marks[i] = at;
        for (uint32_t k = 0; k < num_images[i]; k++, at += size)
            memcpy(at, mark, size);
        *at++ = 0;
    }
    *out = marks;
    return TN_OK;
}

static enum lm_begin text_chat_begin_of(const struct chat_template *form)
{
    if (!(form->flags & TEMPLATE_KNOWN))
        return LM_BEGIN_AS_FILE;
    return form->flags & TEMPLATE_BEGINS ? LM_BEGIN : LM_BEGIN_NOT;
}

// Writes a conversation. `marks`, unless NULL, has texts of image marks in front of each
// message.
static tn_status write_chat(const tn_lm *model, const char *family,
                            const tn_lm_message *messages, uint64_t num_messages,
                            char *const *marks, struct text_chat_written *out)
{
    struct text_chat_written w = {.text = NULL};
    tn_status status = choose_template(model, family, &w.form);
    if (status != TN_OK)
        return status;
    struct chat_message *list = lm_alloc(num_messages, sizeof(*list));
    w.ranges = lm_alloc(num_messages, sizeof(*w.ranges));
    for (uint64_t i = 0; list && i < num_messages; i++)
        list[i] = (struct chat_message){messages[i].role, messages[i].text,
                                        marks ? marks[i] : NULL};
    const char *wrong = list && w.ranges
                            ? chat_template_write(&w.form, list, num_messages, true, NULL,
                                                  0, &w.size, NULL, NULL)
                            : NULL;
    if (wrong)
        status = lm_fail(TN_ERR_ARGUMENT, "%s", wrong);
    else if (!list || !w.ranges || !(w.text = lm_alloc(1, w.size + 1)))
        status = TN_ERR_MEMORY;
    else
        chat_template_write(&w.form, list, num_messages, true, w.text, w.size + 1, &w.size,
                            w.ranges, &w.num_ranges);
    w.begin = text_chat_begin_of(&w.form);
    free(list);
    if (status == TN_OK)
        *out = w;
    else
        free(w.ranges);
    return status;
}

tn_status tn_lm_chat_text(const tn_lm *model, const char *family,
                          const tn_lm_message *messages, uint64_t num_messages,
                          char **out_text, uint64_t *out_size)
{
    struct text_chat_written w;
    tn_status status = write_chat(model, family, messages, num_messages, NULL, &w);
    if (status != TN_OK)
        return status;
    free(w.ranges);
    *out_text = w.text;
    *out_size = w.size;
    return TN_OK;
}

// Checks that the end token of the file, which a known template writes, is that of the
// form.
static tn_status text_chat_check_end(tn_lm *model, const struct chat_template *form)
{
    const char *end = chat_template_end(form);
    tn_token token = {.kind = 0};
    if (!end || !(form->flags & TEMPLATE_KNOWN))
        return TN_OK;
    tn_status status = lm_tokenizer(model);
    int32_t eos = status == TN_OK ? model->tokens->facts(model->tokenizer)->eos : -1;
    if (eos >= 0)
        status = model->tokens->token(model->tokens_host, model->tokenizer, eos, &token,
                                      sizeof(token));
    if (status != TN_OK)
        return lm_fail_core(status);
    if (token.text.size == strlen(end) && memcmp(token.text.data, end, strlen(end)) == 0)
        return TN_OK;
    return lm_fail(TN_ERR_NOT_FOUND,
                   "%s: its template of chats ends replies with the end token of the file, "
                   "'%.*s', where '%s' is expected: name a form",
                   model->source.metadata->name, (int)token.text.size,
                   token.text.data ? token.text.data : "", end);
}

static tn_status chat_tokens(tn_lm *model, const char *family,
                             const tn_lm_message *messages, uint64_t num_messages,
                             char *const *marks, int32_t **out_ids, uint64_t *out_count)
{
    struct text_chat_written w;
    tn_status status = write_chat(model, family, messages, num_messages, marks, &w);
    if (status != TN_OK)
        return status;
    tn_text_range *plain = NULL;
    uint64_t num_plain = 0;
    const char *image = NULL;
    status = text_chat_check_end(model, &w.form);
    if (marks && status == TN_OK)
        status = tn_lm_image_mark(model, &image);
    if (status == TN_OK)
        status = lm_plain_ranges(model, &w.form, image, w.text, w.ranges, w.num_ranges,
                                 &plain, &num_plain);
    if (status == TN_OK)
        status = lm_tokenize_mixed(model, w.text, w.size, plain, num_plain, w.begin,
                                   out_ids, out_count);
    free(plain);
    free(w.ranges);
    free(w.text);
    return status;
}

tn_status tn_lm_chat_tokens(tn_lm *model, const char *family, const tn_lm_message *messages,
                            uint64_t num_messages, int32_t **out_ids, uint64_t *out_count)
{
    return chat_tokens(model, family, messages, num_messages, NULL, out_ids, out_count);
}

tn_status tn_lm_chat_images(tn_lm *model, const char *family, const tn_lm_message *messages,
                            uint64_t num_messages, const uint32_t *num_images,
                            int32_t **out_ids, uint64_t *out_count)
{
    char **marks = NULL;
    tn_status status = write_marks(model, num_images, num_messages, &marks);
    if (status == TN_OK)
        status =
            chat_tokens(model, family, messages, num_messages, marks, out_ids, out_count);
    free(marks);
    return status;
}
