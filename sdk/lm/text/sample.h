// SPDX-License-Identifier: MIT
// Drawing the next token from logits.
#ifndef LM_SAMPLE_H
#define LM_SAMPLE_H

#include <tenon/lm.h>

// As tn_lm_sample, but only of tokens whose bit in `allowed` is set; NULL: of all.
int32_t lm_sample(tn_lm_sampler *s, float *logits, const int32_t *last, int64_t num_last,
                  const uint64_t *allowed, double *out_log_probability);

// The `count` most probable tokens, in descending order.
void lm_top(const float *logits, int64_t vocabulary, tn_lm_candidate *out, int64_t count);

#endif // LM_SAMPLE_H
