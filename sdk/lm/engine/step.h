// SPDX-License-Identifier: MIT
// A step: positions of sequences through the layers that are loaded.
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

// How far the sequences of a step are, as arrays on the device of one part; see
// tn_model_step.
struct lm_cursor {
    tn_array *position, *length, *start, *slots;
};

// Builds the layers that are loaded in `scope`, part by part. The step says what it is of:
// count, capacity, input, last, caches; gets `output`. `cursors` has one of each part.
// `trained`: see lm_adapted. `given`, where it is not NULL: rows that replace the
// embedding's, f32 [positions, width], and which ones do, f32 [positions, 1] of 0 and 1.
// `gathered`: what is to be gathered; NULL: nothing.
tn_status lm_build(tn_lm *model, tn_scope *scope, tn_model_step *step,
                   const struct lm_cursor *cursors, tn_array *const *trained,
                   tn_array *const *given, struct lm_gathered *gathered);

// Makes the functions for the layers that are loaded, or destroys them.
tn_status lm_plans_make(tn_lm *model);
void lm_plans_destroy(tn_lm *model);

// The most sequences of a step.
#define LM_MOST_TOGETHER 32

// A step: `count` positions of each sequence, of which the first `valid` are meant. All
// sequences have the same caches. Several sequences have one position each.
struct lm_chunk {
    tn_lm_sequence *const *sequences;
    int64_t num_sequences;
    const void *input;        // of the valid positions, sequence by sequence
    const float *const *rows; // of each valid position, that of an image, or NULL; NULL:
                              // there are none
    int64_t valid, count;
    enum lm_kind kind;
    float *const *outputs; // one a sequence; any may be NULL
};
tn_status lm_step(const struct lm_chunk *chunk);

// A step that was begun, and whose outputs are not there yet.
struct lm_pending {
    struct lm_remote *remote; // NULL: the step has ended
    void *work;               // of the remote's
    float *rows;              // that come; NULL: none
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
