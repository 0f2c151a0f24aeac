// SPDX-License-Identifier: MIT
// Descriptions of small language models with GGUF's keys for decoders: checks of
// architectures pass them to tn_model.open.
//
// Threads. A draft is used by one thread at a time.
#ifndef CONFORMANCE_MODEL_DRAFT_H
#define CONFORMANCE_MODEL_DRAFT_H

#include <tenon/model.h>
#include "../kit/kit.h"

enum {
    DRAFT_LAYERS = 2,
    DRAFT_WIDTH = 32,
    DRAFT_VOCABULARY = 40,
    DRAFT_CONTEXT = 64,
    DRAFT_HEADS = 4,
    DRAFT_GROUPS = 2,
    DRAFT_WINDOW = 4,
    DRAFT_EXPERTS = 4,
    DRAFT_PAIRS = 32,
    DRAFT_WEIGHTS = 256, // the most weights that one model lists
};

// Kinds of models: the parts that a model has beside the required ones.
enum draft_kind {
    DRAFT_PLAIN, // nothing
    DRAFT_MIXED, // several feed-forwards in each layer
    DRAFT_FULL,  // a window, and every weight that is optional
    DRAFT_KINDS
};

// A weight with the part that lists it: a layer, TN_MODEL_EMBEDDING or TN_MODEL_OUTPUT.
struct draft_weight {
    tn_model_weight weight;
    int64_t part;
};

struct model_draft {
    tn_model_source source; // first: `open` gets its address
    tn_metadata_list list;
    tn_metadata pairs[DRAFT_PAIRS];
    char keys[DRAFT_PAIRS][128], name[64];
    int64_t integers[DRAFT_PAIRS];
    double floats[DRAFT_PAIRS];
    tn_text architecture, tokens[DRAFT_VOCABULARY];
    enum draft_kind kind;
    tn_type embedding;          // rank -1: the model has none
    struct draft_weight *known; // further weights of the source, or NULL
    uint64_t num_known;
};

// The name of the description in messages.
extern const char draft_name[];

// Describes a model of this architecture. Nothing is owned.
void model_draft_init(struct model_draft *draft, const char *architecture,
                      enum draft_kind kind);

#endif // CONFORMANCE_MODEL_DRAFT_H
