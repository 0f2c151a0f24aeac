// SPDX-License-Identifier: MIT
// A step: runs positions of sequences through the loaded layers.
#ifndef LM_STEP_H
#define LM_STEP_H

#include "model.h"

// Sums over the inputs of products, gathered while a step is built, for importance.
struct lm_sum {
    char name[TN_MODEL_NAME]; // of the weight
    tn_array *squares;        // f32 [columns]: sums over the rows
    int64_t columns, rows;
};
struct lm_gathered {
    struct lm_sum *sums;
    uint64_t count, room;
};

// Positions of the sequences of a step, as arrays on the device of one part; see
// tn_model_step.
struct lm_cursor {
    tn_array *position, *length, *start, *slots;
};

// Builds the loaded layers in `scope`, part by part. The caller sets count, capacity,
// input, last and caches of the step; lm_build sets `output`. `cursors` has one entry a
// part. `trained`: see lm_adapted. `given`, where it is not NULL: rows that replace the
// embedding's, f32 [positions, width], and a mask of the positions, f32 [positions, 1] of 0
// and 1. `gathered`: gets the sums for importance; NULL: none.
tn_status lm_build(tn_lm *model, tn_scope *scope, tn_model_step *step,
                   const struct lm_cursor *cursors, tn_array *const *trained,
                   tn_array *const *given, struct lm_gathered *gathered);

// Makes the functions for the loaded layers; destroys them.
tn_status lm_plans_make(tn_lm *model);
void lm_plans_destroy(tn_lm *model);

// The most sequences of a step.
#define LM_MOST_TOGETHER 32

// A step: `count` positions of each sequence, of which the first `valid` are real and the
// others padding. All sequences share the same caches. Several sequences have one position
// each.
struct lm_chunk {
    tn_lm_sequence *const *sequences;
    int64_t num_sequences;
    const void *input;        // for the valid positions, sequence by sequence
    const float *const *rows; // by valid position: an image's row, or NULL; NULL:
                              // no position has one
    int64_t valid, count;
    enum lm_kind kind;
    float *const *outputs; // one a sequence; any may be NULL
};
tn_status lm_step(const struct lm_chunk *chunk);

// A step that has begun, and whose outputs are not written yet.
struct lm_pending {
    struct lm_remote *remote; // NULL: the step has ended
    void *work;               // the remote's own
    float *rows;              // rows that will arrive; NULL: none
    uint64_t row;             // elements of each output
    int64_t num_outputs;
    float *outputs[LM_MOST_TOGETHER];
};

// lm_step in two parts, between which other steps may begin, of other sequences or of the
// same ones. The chunk is borrowed for lm_step_begin, its outputs until lm_step_end, which
// follows a success. Where all layers are in this process, beginning is all.
tn_status lm_step_begin(const struct lm_chunk *chunk, struct lm_pending *out);
tn_status lm_step_end(struct lm_pending *pending);

// A step through the layers that this process has.
tn_status lm_step_here(const struct lm_chunk *chunk);

#endif // LM_STEP_H
