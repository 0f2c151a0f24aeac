// SPDX-License-Identifier: MIT
// A model on several processes: what they agree on, and the orders by which rank 0 makes
// the other ranks run their part of a step.
//
// Pipeline. Each rank has some layers. Rank 0 runs its layers, sends the hidden state to
// rank 1 and an order to all ranks. Each rank takes the orders in sequence, receives the
// hidden state from the rank before, and sends its result to the next rank; the last rank
// sends the wanted rows to rank 0. No rank waits for its messages to arrive, so steps of
// several sequences, or chunks of a prompt, are in different stages at once.
//
// Products. Each rank has all layers, and some rows or columns of the weight of each
// product. Rank 0 sends order and input to all ranks; all run the same step, whose sums
// meet in dist.all_reduce, and rank 0 keeps the rows.
#ifndef LM_SPREAD_H
#define LM_SPREAD_H

#include <tenon/lm_dist.h>
#include "../engine/step.h"
#include "mail.h"
#include "stages.h"

enum lm_action { LM_RUN = 1, LM_FORGET, LM_LEAVE };

// A message of rank 0, of a fixed size. An order of LM_RUN with TN_LM_TENSOR is followed by
// the input.
struct lm_order {
    int32_t action;
    int32_t kind; // enum lm_kind
    int32_t num_sequences;
    int32_t has_rows; // the input has rows of images
    int64_t valid, count;
    uint64_t caches;
    int32_t position[LM_MOST_TOGETHER], slot[LM_MOST_TOGETHER];
};

// Tags of messages.
enum { LM_TAG_ORDER = 1, LM_TAG_HIDDEN, LM_TAG_REPLY, LM_TAG_INPUT, LM_TAG_ROWS };

// The record by which a process introduces itself to the others. Texts end in a NUL.
struct lm_introduction {
    char version[64], name[144], plugin[128], options[128], devices[224];
    char kind[32]; // "pipeline"
    uint64_t model, sample;
    uint64_t room_bytes;
    uint32_t is_unbounded, is_closed;
    double speed; // 0: not measured yet
};

struct lm_spread {
    struct lm_remote base; // first: its functions cast it back
    tn_lm *model;
    int32_t kind; // TN_LM_PIPELINE, ...
    struct lm_mail mail;
    struct lm_introduction *ranks;
    int64_t *ends;        // by rank: the end of its layers
    pthread_mutex_t lock; // held while a step begins: orders and states keep one sequence
    atomic_bool is_over;  // rank 0 has left, or a rank failed
};

// --- compare.c --------------------------------------------------------------------------

// Fills `ranks` with the records of all ranks; fails where they differ: which rank, in
// what.
tn_status lm_spread_compare(struct lm_spread *spread, const char *split);

// Fills `ranks` with the records of all ranks; NULL after a failure.
tn_status lm_spread_gather(struct lm_spread *spread, const struct lm_introduction *mine);

// --- speed.c ----------------------------------------------------------------------------

// Bytes of weights that this process multiplies by in a second, measured on one layer.
tn_status lm_spread_speed(tn_lm *model, int64_t layer, double *out);

// --- slice.c ----------------------------------------------------------------------------

// Opens the model anew with this rank's part of each product.
tn_status lm_slice(tn_lm *model, int32_t rank, int32_t size);

// --- orders.c ---------------------------------------------------------------------------

tn_status lm_spread_begin(struct lm_remote *remote, const struct lm_chunk *chunk,
                          struct lm_pending *out);
tn_status lm_spread_end(struct lm_remote *remote, struct lm_pending *pending);
void lm_spread_forget(struct lm_remote *remote, uint64_t caches);

// Sends an order to all other ranks. The lock is held.
tn_status lm_spread_order(struct lm_spread *spread, const struct lm_order *order);

// Elements of a row of a step's input to layers from `first` on, and of its result of
// `kind` behind layer `end` - 1.
int64_t lm_row_of_kind(const tn_lm *model, enum lm_kind kind);

#endif // LM_SPREAD_H
