// SPDX-License-Identifier: MIT
// A model of the plugin under test, opened by a runtime, with random weights: the plugin
// builds steps, which are evaluated and read back. Stands in for the library of language
// models.
//
//     struct model_run run;
//     if (model_run_open(&run, k, subject, "acme", DRAFT_PLAIN)) {
//         model_run_step(&run, &(struct model_step){...});
//     }
//     model_run_close(&run);
//
// A build that asks for a weight that no part of the step lists, or in another way than
// listed, fails the running check.
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
    struct draft_weight *weights; // weights of all parts
    uint64_t num_weights;
    tn_type types[RUN_CACHES]; // types of the caches, layer by layer
    uint64_t bytes[RUN_CACHES];
};

// One step. Caches are in the memory of the host; a step reads and replaces them.
struct model_step {
    int64_t count, sequences; // sequences 0: 1
    int64_t first, end;       // end 0: all layers
    const int32_t *ids;       // input of a step from layer 0 on
    const float *hidden;      // input of other steps
    const int32_t *positions; // by sequence
    const int32_t *last;      // rows whose logits are wanted, or NULL
    const int32_t *slots;     // by sequence, or NULL
    int64_t num_slots;        // extent of the caches' first axis; 0: 1
    void *caches[RUN_CACHES]; // for the layers of the step, as model_run.types
    int64_t fails_at;         // number of the slot call that fails, from 1; 0: none
    float *output;            // written: rows, or with `last` one a sequence
    int64_t calls;            // written: calls of the step's slots
    tn_status status;         // written: the status that build returned
    bool is_built;            // written: build returned, and the scope has no failure
};

// Opens a model of the architecture; DRAFT_FULL: twice, so that the second one has the
// optional weights that the first one lists. False: the check has been failed, or skipped
// where the plugin refuses the description. model_run_close must be called either way.
bool model_run_open(struct model_run *run, struct kit *k, struct subject *subject,
                    const char *architecture, enum draft_kind kind);
void model_run_close(struct model_run *run);

// Makes empty caches with `slots` on the first axis; model_caches_free frees them.
void model_caches_init(const struct model_run *run, int64_t slots, void *out[RUN_CACHES]);
void model_caches_free(void *caches[RUN_CACHES]);

// Builds and evaluates a step. False: the check has been failed, or a step with fails_at
// has failed, which fails no check.
bool model_run_step(struct model_run *run, struct model_step *step);

// Lists the weights of a part into `out`, which has room for DRAFT_WEIGHTS; -1: the check
// has been failed.
int64_t model_list(struct kit *k, const tn_model *ops, const tn_host *host,
                   const tn_model_self *self, int64_t part, tn_model_weight *out);

#endif // CONFORMANCE_MODEL_RUN_H
