// SPDX-License-Identifier: MIT
// Text to tokens and back.
#ifndef LM_TOKENS_H
#define LM_TOKENS_H

#include "model.h"

// The tokenizer, opened when that has not been done yet.
tn_status lm_tokenizer(tn_lm *model);

// Alone with what is made once: the tokenizer, and the vocabulary of grammars.
void lm_tokenizer_lock(tn_lm *model);
void lm_tokenizer_unlock(tn_lm *model);

// Whether the token that begins a text is in front of a prompt.
enum lm_begin { LM_BEGIN_AS_FILE, LM_BEGIN, LM_BEGIN_NOT };

// The tokens of a prompt in whose ranges `plain` no control tokens are found.
tn_status lm_tokenize_mixed(tn_lm *model, const char *text, uint64_t size,
                            const tn_text_range *plain, uint64_t num_plain,
                            enum lm_begin begin, int32_t **out_ids, uint64_t *out_count);

// The text of one token behind others, for tn_lm_free.
tn_status lm_token_text(tn_lm *model, int32_t id, char **out_text, uint64_t *out_size);

#endif // LM_TOKENS_H
