// SPDX-License-Identifier: MIT
// Appending positions to sequences.
#ifndef LM_SEQUENCE_H
#define LM_SEQUENCE_H

#include "model.h"

// Ids of images' rows: from INT32_MIN on, so many.
#define LM_IMAGE_IDS (1 << 30)

// Fails where a token is none of the vocabulary.
tn_status lm_check_ids(const tn_lm *model, const int32_t *ids, int64_t count);

// Appends positions as tn_lm_infer_tensor does, checked by the caller, and writes rows of
// `kind`, of `columns` elements each. `rows`: see struct lm_chunk.
tn_status lm_append(tn_lm_sequence *sequence, const void *input, const float *const *rows,
                    int64_t count, enum lm_kind kind, int64_t columns, float *output);

// As tn_lm_infer, of positions that may be images' rows; ids of others are checked by the
// caller. `rows` NULL: none is, and the ids are checked here.
tn_status lm_infer_rows(tn_lm_sequence *sequence, const int32_t *ids,
                        const float *const *rows, int64_t count, uint32_t flags,
                        float *out_logits);

#endif // LM_SEQUENCE_H
