// SPDX-License-Identifier: MIT
// The text of a conversation, by the model's template.
#include <stdlib.h>
#include <string.h>
#include "internal.h"
#include "template.h"

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
    return lm_fail(TN_ERR_NOT_FOUND,
                   "%s: its template of chats is none that is known: name one of %s",
                   list->name, known);
}

tn_status tn_lm_chat_text(const tn_lm *model, const char *family,
                          const tn_lm_message *messages, uint64_t num_messages,
                          char **out_text, uint64_t *out_size)
{
    struct chat_template form;
    tn_status status = choose_template(model, family, &form);
    struct chat_message *list =
        status == TN_OK ? lm_alloc(num_messages, sizeof(*list)) : NULL;
    if (!list)
        return status == TN_OK ? TN_ERR_MEMORY : status;
    for (uint64_t i = 0; i < num_messages; i++)
        list[i] = (struct chat_message){messages[i].role, messages[i].text};
    uint64_t size = 0;
    char *text = NULL;
    const char *wrong =
        chat_template_write(&form, list, num_messages, true, NULL, 0, &size);
    if (wrong) {
        status = lm_fail(TN_ERR_ARGUMENT, "%s", wrong);
    } else if (!(text = lm_alloc(1, size + 1))) {
        status = TN_ERR_MEMORY;
    } else {
        chat_template_write(&form, list, num_messages, true, text, size + 1, &size);
        *out_text = text;
        *out_size = size;
    }
    free(list);
    return status;
}
