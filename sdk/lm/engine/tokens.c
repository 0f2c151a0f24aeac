// SPDX-License-Identifier: MIT
// Text to tokens and back, by the plugin that knows the model's kind of vocabulary.
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "../base/fail.h"
#include "tokens.h"

static tn_status open_tokenizer(tn_lm *model)
{
    const tn_metadata_list *list = model->source.metadata;
    const char *plugin;
    const void *interface;
    char kind[64];
    tn_text text;
    if (!tn_metadata_text(tn_metadata_find(list, "tokenizer.ggml.model"), &text) ||
        text.size >= sizeof(kind))
        return lm_fail(TN_ERR_NOT_FOUND,
                       "%s has no vocabulary: tokenizer.ggml.model is missing", list->name);
    memcpy(kind, text.data, text.size);
    kind[text.size] = 0;
    tn_status status =
        tn_provider_find(model->runtime, TN_IFACE_TOKENIZER, "model", kind, &plugin);
    if (status == TN_OK)
        status = tn_provider_load(model->runtime, TN_IFACE_TOKENIZER, plugin, &interface,
                                  &model->tokens_host);
    if (status != TN_OK)
        return lm_fail(status, "%s: vocabularies of kind '%s': %s", list->name, kind,
                       tn_last_error());
    model->tokens = interface;
    tn_tokenizer *tokenizer = NULL;
    status = model->tokens->open(model->tokens_host, list, &tokenizer);
    if (status == TN_OK)
        model->tokenizer = tokenizer;
    return lm_fail_core(status);
}

// A spin lock: it is held as long as opening takes, but only the first threads find it
// held.
void lm_tokenizer_lock(tn_lm *model)
{
    while (atomic_flag_test_and_set_explicit(&model->tokenizer_lock, memory_order_acquire))
        sched_yield();
}

void lm_tokenizer_unlock(tn_lm *model)
{
    atomic_flag_clear_explicit(&model->tokenizer_lock, memory_order_release);
}

tn_status lm_tokenizer(tn_lm *model)
{
    lm_tokenizer_lock(model);
    tn_status status = model->tokenizer ? TN_OK : open_tokenizer(model);
    lm_tokenizer_unlock(model);
    return status;
}

// Copies memory of the plugin's host to memory for tn_lm_free, with `room` bytes in front;
// frees the original.
static void *engine_tokens_take(const tn_lm *model, void *memory, uint64_t size,
                                uint64_t room)
{
    char *copy = lm_alloc(1, room + size);
    if (copy && size)
        memcpy(copy + room, memory, size);
    model->tokens_host->free(model->tokens_host, memory);
    return copy;
}

// Gives the plugin's ids as memory for tn_lm_free; `first` comes before them, unless it is
// -1.
static tn_status give_ids(const tn_lm *model, tn_status status, int32_t *ids,
                          uint64_t count, int32_t first, int32_t **out_ids,
                          uint64_t *out_count)
{
    if (status != TN_OK)
        return lm_fail_core(status);
    uint64_t more = first >= 0;
    ids = engine_tokens_take(model, ids, count * sizeof(*ids), more * sizeof(*ids));
    if (!ids)
        return TN_ERR_MEMORY;
    if (more)
        ids[0] = first;
    *out_ids = ids;
    *out_count = count + more;
    return TN_OK;
}

tn_status tn_lm_tokenize(tn_lm *model, const char *text, uint64_t size, uint32_t flags,
                         int32_t **out_ids, uint64_t *out_count)
{
    int32_t *ids = NULL;
    uint64_t count = 0;
    tn_status status = lm_tokenizer(model);
    if (status != TN_OK)
        return status;
    uint32_t theirs = (flags & TN_LM_ADD_SPECIAL ? TN_ENCODE_ADD_SPECIAL : 0) |
                      (flags & TN_LM_PARSE_SPECIAL ? TN_ENCODE_PARSE_SPECIAL : 0);
    status = model->tokens->encode(model->tokens_host, model->tokenizer, text, size, theirs,
                                   &ids, &count);
    return give_ids(model, status, ids, count, -1, out_ids, out_count);
}

tn_status lm_tokenize_mixed(tn_lm *model, const char *text, uint64_t size,
                            const tn_text_range *plain, uint64_t num_plain,
                            enum lm_begin begin, int32_t **out_ids, uint64_t *out_count)
{
    int32_t *ids = NULL;
    uint64_t count = 0;
    tn_status status = lm_tokenizer(model);
    if (status != TN_OK)
        return status;
    if (!TN_HAS(model->tokens, encode_mixed))
        return lm_fail(TN_ERR_UNSUPPORTED,
                       "%s: its tokenizer cannot tell a user's words "
                       "from the form of a conversation",
                       model->source.metadata->name);
    uint32_t flags = begin == LM_BEGIN_AS_FILE ? TN_ENCODE_ADD_SPECIAL : 0;
    int32_t first = begin == LM_BEGIN ? model->tokens->facts(model->tokenizer)->bos : -1;
    status = model->tokens->encode_mixed(model->tokens_host, model->tokenizer, text, size,
                                         plain, num_plain, flags, &ids, &count);
    return give_ids(model, status, ids, count, first, out_ids, out_count);
}

static tn_status engine_tokens_decode(tn_lm *model, const int32_t *ids, uint64_t count,
                                      uint32_t flags, char **out_text, uint64_t *out_size)
{
    char *text = NULL;
    uint64_t size = 0;
    tn_status status = lm_tokenizer(model);
    if (status != TN_OK)
        return status;
    status = model->tokens->decode(model->tokens_host, model->tokenizer, ids, count, flags,
                                   &text, &size);
    if (status != TN_OK)
        return lm_fail_core(status);
    text = engine_tokens_take(model, text, size + 1, 0);
    if (!text)
        return TN_ERR_MEMORY;
    *out_text = text;
    *out_size = size;
    return TN_OK;
}

tn_status tn_lm_detokenize(tn_lm *model, const int32_t *ids, uint64_t count,
                           char **out_text, uint64_t *out_size)
{
    return engine_tokens_decode(model, ids, count, 0, out_text, out_size);
}

tn_status lm_token_text(tn_lm *model, int32_t id, char **out_text, uint64_t *out_size)
{
    return engine_tokens_decode(model, &id, 1, TN_DECODE_CONTINUES, out_text, out_size);
}

int32_t tn_lm_is_end(tn_lm *model, int32_t id)
{
    if (lm_tokenizer(model) != TN_OK)
        return 0;
    const tn_tokenizer_facts *facts = model->tokens->facts(model->tokenizer);
    for (uint64_t i = 0; i < facts->num_ends; i++)
        if (facts->ends[i] == id)
            return 1;
    return 0;
}
