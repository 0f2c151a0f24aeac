// SPDX-License-Identifier: MIT
// Slots of tn_tokenizer_ops, over a vocabulary.
#include "tokenizer.h"

// A tn_tokenizer begins with its vocabulary.
static const struct vocabulary *vocabulary_of(const tn_tokenizer *t)
{
    return (const struct vocabulary *)(const void *)t;
}

const tn_tokenizer_facts *tokenizer_facts(const tn_tokenizer *t)
{
    return &vocabulary_of(t)->facts;
}

tn_status tokenizer_token(const tn_host *host, const tn_tokenizer *t, int32_t id,
                          tn_token *out, uint64_t size)
{
    return vocabulary_token(host, vocabulary_of(t), id, out, size);
}

int32_t tokenizer_find(const tn_tokenizer *t, const char *text, uint64_t size)
{
    const struct vocabulary *v = vocabulary_of(t);
    int32_t id = vocabulary_find(v, text, size);
    return id < v->facts.count ? id : NO_TOKEN;
}

static tn_status encode_input(const tn_host *host, const tn_tokenizer *t,
                              const struct encode_input *input, int32_t **out_ids,
                              uint64_t *out_count)
{
    struct encoding e = {.host = host};
    const struct encode_call call = {
        .host = host, .tokenizer = t, .v = vocabulary_of(t), .state = &e, .input = input};
    tn_status status = vocabulary_encode(&call, out_ids, out_count);
    host->free(host, e.memory);
    host->free(host, e.space.memory);
    return status;
}

tn_status tokenizer_encode(const tn_host *host, const tn_tokenizer *t, const char *text,
                           uint64_t size, uint32_t flags, int32_t **out_ids,
                           uint64_t *out_count)
{
    const struct encode_input input = {.text = text, .size = size, .flags = flags};
    return encode_input(host, t, &input, out_ids, out_count);
}

tn_status tokenizer_encode_mixed(const tn_host *host, const tn_tokenizer *t,
                                 const char *text, uint64_t size,
                                 const tn_text_range *plain, uint64_t num_plain,
                                 uint32_t flags, int32_t **out_ids, uint64_t *out_count)
{
    const struct encode_input input = {.text = text,
                                       .size = size,
                                       .plain = plain,
                                       .num_plain = num_plain,
                                       .flags = flags | TN_ENCODE_PARSE_SPECIAL};
    return encode_input(host, t, &input, out_ids, out_count);
}

tn_status tokenizer_decode(const tn_host *host, const tn_tokenizer *t, const int32_t *ids,
                           uint64_t count, uint32_t flags, char **out_text,
                           uint64_t *out_size)
{
    return vocabulary_decode(host, vocabulary_of(t), ids, count, flags, out_text, out_size);
}
