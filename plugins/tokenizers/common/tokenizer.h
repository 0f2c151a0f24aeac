// SPDX-License-Identifier: MIT
// The slots of tn_tokenizer_ops that all tokenizers share, over the vocabulary at the
// beginning of a tn_tokenizer. A plugin adds open, close, and its encode_part.
#ifndef TOKENIZERS_TOKENIZER_H
#define TOKENIZERS_TOKENIZER_H

#include <tenon/plugin.h>
#include "merge.h"

// One call of encode. Its memory is reused from word to word, and freed behind the call.
struct encoding {
    const tn_host *host;
    struct merge_space space;
    void *memory;      // of the plugin
    uint64_t capacity; // of `memory`, in units of the plugin
};

const tn_tokenizer_facts *tokenizer_facts(const tn_tokenizer *t);
tn_status tokenizer_token(const tn_host *host, const tn_tokenizer *t, int32_t id,
                          tn_token *out, uint64_t size);
int32_t tokenizer_find(const tn_tokenizer *t, const char *text, uint64_t size);
tn_status tokenizer_encode(const tn_host *host, const tn_tokenizer *t, const char *text,
                           uint64_t size, uint32_t flags, int32_t **out_ids,
                           uint64_t *out_count);
tn_status tokenizer_decode(const tn_host *host, const tn_tokenizer *t, const int32_t *ids,
                           uint64_t count, uint32_t flags, char **out_text,
                           uint64_t *out_size);
tn_status tokenizer_encode_mixed(const tn_host *host, const tn_tokenizer *t,
                                 const char *text, uint64_t size,
                                 const tn_text_range *plain, uint64_t num_plain,
                                 uint32_t flags, int32_t **out_ids, uint64_t *out_count);

// Slots of a tokenizer's table.
#define TOKENIZER_SLOTS                                                                    \
    .facts = tokenizer_facts, .token = tokenizer_token, .find = tokenizer_find,            \
    .encode = tokenizer_encode, .decode = tokenizer_decode,                                \
    .encode_mixed = tokenizer_encode_mixed

#endif // TOKENIZERS_TOKENIZER_H
