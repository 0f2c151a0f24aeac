// SPDX-License-Identifier: MIT
// Appending positions to sequences.
#ifndef LM_SEQUENCE_H
#define LM_SEQUENCE_H

#include "step.h"

// Number of ids of images' rows, which are INT32_MIN and following.
#define LM_IMAGE_IDS (1 << 30)

// Fails where a token is none of the vocabulary.
tn_status lm_check_ids(const tn_lm *model, const int32_t *ids, int64_t count);

// Appends positions as tn_lm_infer_tensor does, after the caller's checks, and writes rows
// of `kind`, of `columns` elements each. `rows`: see struct lm_chunk.
tn_status lm_append(tn_lm_sequence *sequence, const void *input, const float *const *rows,
                    int64_t count, enum lm_kind kind, int64_t columns, float *output);

// As tn_lm_infer, of positions that may be images' rows; the caller has checked the other
// ids. `rows` NULL: no position is an image's, and the ids are checked here.
tn_status lm_infer_rows(tn_lm_sequence *sequence, const int32_t *ids,
                        const float *const *rows, int64_t count, uint32_t flags,
                        float *out_logits);

// Items of one step of tn_lm_infer_batch.
struct lm_flight {
    tn_lm_item *items[LM_MOST_TOGETHER];
    int64_t count;
    struct lm_pending pending;
};
struct lm_flights {
    struct lm_flight *items;
    uint64_t count;
};

// tn_lm_infer_batch in two parts, between which steps of other sequences may begin.
// At most `most` items share a step. Items, their ids and outputs are borrowed until
// lm_batch_end, which follows also where some items failed; it writes their status.
tn_status lm_batch_begin(tn_lm_item *items, uint64_t num_items, int64_t most,
                         struct lm_flights *out);
tn_status lm_batch_end(struct lm_flights *flights);

#endif // LM_SEQUENCE_H
