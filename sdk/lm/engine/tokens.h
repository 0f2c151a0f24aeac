// SPDX-License-Identifier: MIT
// Text to tokens and back.
#ifndef LM_TOKENS_H
#define LM_TOKENS_H

#include "model.h"

// The tokenizer, opened at its first use.
tn_status lm_tokenizer(tn_lm *model);

// Locks the state that is made once: the tokenizer, and the vocabulary of grammars.
void lm_tokenizer_lock(tn_lm *model);
void lm_tokenizer_unlock(tn_lm *model);

// Whether the beginning-of-text token comes before a prompt.
enum lm_begin { LM_BEGIN_AS_FILE, LM_BEGIN, LM_BEGIN_NOT };

// Tokenizes a prompt; in its ranges `plain` no control tokens are found.
tn_status lm_tokenize_mixed(tn_lm *model, const char *text, uint64_t size,
                            const tn_text_range *plain, uint64_t num_plain,
                            enum lm_begin begin, int32_t **out_ids, uint64_t *out_count);

// The text of one token behind others, for tn_lm_free.
tn_status lm_token_text(tn_lm *model, int32_t id, char **out_text, uint64_t *out_size);

#endif // LM_TOKENS_H
