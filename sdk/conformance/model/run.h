// SPDX-License-Identifier: MIT
// A model of the plugin under test, opened by a runtime, with drawn weights: steps are
// built by the plugin, evaluated, and read back. Takes the part of the library of language
// models.
//
//     struct model_run run;
//     if (model_run_open(&run, k, subject, "acme", DRAFT_PLAIN)) {
//         model_run_step(&run, &(struct model_step){...});
//     }
//     model_run_close(&run);
//
// A build that asks for a weight which the parts of the step do not list, or in another way
// than listed, fails the running check.
//
// Threads. As in kit.h.
#ifndef CONFORMANCE_MODEL_RUN_H
#define CONFORMANCE_MODEL_RUN_H

#include "draft.h"
#include "../kit/subject.h"

enum { RUN_CAPACITY = 24, RUN_CACHES = DRAFT_LAYERS * TN_MODEL_CACHES };

struct model_run {
    struct kit *kit;
    tn_runtime *runtime;
    const tn_model *ops;
    const tn_host *host;
    tn_model_self *self; // NULL: not open
    const tn_model_facts *facts;
    struct model_draft draft;
    struct draft_weight *weights; // all parts'
    uint64_t num_weights;
    tn_type types[RUN_CACHES]; // of the caches, a layer's behind one another
    uint64_t bytes[RUN_CACHES];
};

// One step. Caches are in the memory of the host; a step reads and replaces them.
struct model_step {
    int64_t count, sequences; // sequences 0: 1
    int64_t first, end;       // end 0: all layers
    const int32_t *ids;       // of a step from layer 0 on
    const float *hidden;      // of another
    const int32_t *positions; // of each sequence
    const int32_t *last;      // rows whose logits are wanted, or NULL
    const int32_t *slots;     // of each sequence, or NULL
    int64_t num_slots;        // of the caches' first axis; 0: 1
    void *caches[RUN_CACHES]; // of the layers of the step, as model_run.types
    int64_t fails_at;         // the slot of the step that fails, from 1; 0: none
    float *output;            // rows, or sequences where `last` is given
    int64_t calls;            // set: calls of the step's slots
    tn_status status;         // set: what build returned
    bool is_built;            // set: build returned, and the scope has no failure
};

// Opens a model of the architecture; with DRAFT_FULL first one that lists the weights that
// are optional. False: the check has been failed, or skipped where the plugin refuses the
// description. model_run_close must be called either way.
bool model_run_open(struct model_run *run, struct kit *k, struct subject *subject,
                    const char *architecture, enum draft_kind kind);
void model_run_close(struct model_run *run);

// Caches of a sequence that has nothing yet, `slots` on the first axis; freed by
// model_caches_free.
void model_caches_init(const struct model_run *run, int64_t slots, void *out[RUN_CACHES]);
void model_caches_free(void *caches[RUN_CACHES]);

// Builds and evaluates a step. False: the check has been failed; where fails_at is given,
// a step that fails is not a failure of the check.
bool model_run_step(struct model_run *run, struct model_step *step);

// Lists the weights of a part into `out`, which has room for DRAFT_WEIGHTS; -1: the check
// has been failed.
int64_t model_list(struct kit *k, const tn_model *ops, const tn_host *host,
                   const tn_model_self *self, int64_t part, tn_model_weight *out);

#endif // CONFORMANCE_MODEL_RUN_H
