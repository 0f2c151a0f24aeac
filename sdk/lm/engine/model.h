// SPDX-License-Identifier: MIT
// A model that is open: its weights, devices, plans and sequences.
#ifndef LM_MODEL_H
#define LM_MODEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <tenon/lm.h>
#include <tenon/model.h>
#include <tenon/retain.h>
#include <tenon/tokenizer.h>
#include <tenon/vision.h>
#include "../base/fail.h"
#include "sharding.h"

// --- weights ----------------------------------------------------------------------------

// A weight of the loaded layers. Its arrays are kept.
struct lm_weight {
    char name[TN_MODEL_NAME];
    uint32_t flags;       // TN_MODEL_..., of all parts that list it
    int64_t head, paired; // as in tn_model_weight
    int64_t part, joined; // the layer that lists it; tn_model_weight.joined
    int64_t device;       // where it lies: a number in the order of TENON_BACKEND
    int64_t first, count; // its rows in `product`; count 0: all
    bool is_wanted;       // by the shard that is being loaded
    bool is_absent;       // optional, and the file does not have it
    const char *format;   // format of the blocks of `rows`; NULL: elements
    const char *packed;   // format of the blocks of `product`; NULL: elements
    tn_array *plain;      // f32, for `weight`
    tn_array *product;
    tn_array *rows;
    uint64_t bytes;
};

struct lm_weights {
    struct lm_weight *items;
    uint64_t count, room;
    uint64_t hint; // index of the weight that was found last
};

// --- devices ----------------------------------------------------------------------------

// Layers first .. end - 1, on one device.
struct lm_part {
    int64_t device; // a number in the order of TENON_BACKEND
    int64_t first, end;
    uint64_t weight_bytes, cache_bytes; // as in tn_lm_part
    char name[96], label[128];          // "vulkan:0", "NVIDIA H100"
    uint32_t flags;                     // of the device: TN_DEVICE_HOST_MEMORY, ...
};

// Parts that cover the loaded layers, in order; count 0: no layer is loaded.
struct lm_division {
    struct lm_part parts[LM_MOST_DEVICES];
    int64_t count;
};

// --- adapters ---------------------------------------------------------------------------

// The addition to one product. Its arrays are kept, and f32.
struct lm_low_rank {
    char name[TN_MODEL_NAME]; // of the weight
    tn_array *down;           // [rank, in], "lora_a"
    tn_array *up;             // [out, rank], "lora_b", with the rows in the model's order
};

struct lm_adapter {
    struct lm_low_rank *items;
    uint64_t count;
    double alpha; // of the file, or the training
    double scale; // factor that the application gave
};

// --- models -----------------------------------------------------------------------------

// Results of a plan beside the caches.
enum lm_kind { LM_NOTHING, LM_LAST_ROW, LM_EACH_ROW, LM_HIDDEN, LM_KINDS };

struct lm_plan {
    tn_lm *model;
    enum lm_kind kind;
    tn_function *function; // NULL: not made yet
};

// Arrays of keys and values with slots, each for a sequence.
struct lm_caches {
    struct lm_caches *next; // next caches of the model
    uint64_t number;        // by which other processes know these caches
    pthread_mutex_t lock;   // held by a step, which replaces the arrays
    tn_array **arrays;      // num_caches for each loaded layer; kept
    uint64_t count;
    bool *is_taken; // by slot
    int64_t num_taken;
    // Set under the lock by a step that took the arrays and gave none back; and its
    // failure.
    atomic_bool has_failed;
    struct lm_failure failure;
};

// The vision encoder that reads images; see image/vision.h.
struct lm_vision {
    pthread_mutex_t lock; // held while it is opened, and while it runs
    tn_lm *encoder;       // its weights and plugin, as of a model; NULL: not opened
    const tn_vision *ops;
    const tn_vision_facts *facts;
    tn_function *function; // encodes one tile
    int32_t mark;          // the token that an image replaces
    bool is_ready;
};

// --- other processes --------------------------------------------------------------------

struct lm_chunk;
struct lm_pending;

// Other processes that have a part of the model; see ../spread. Steps are begun by one
// process, and run where the layers are.
struct lm_remote {
    int32_t rank, size; // of this process, among them
    int64_t stages;     // steps in flight that keep all stages busy
    tn_status (*begin)(struct lm_remote *remote, const struct lm_chunk *chunk,
                       struct lm_pending *out);
    tn_status (*end)(struct lm_remote *remote, struct lm_pending *pending);
    void (*forget)(struct lm_remote *remote, uint64_t caches); // this process freed them
    void (*close)(struct lm_remote *remote);
};

// Products that processes share by columns of the weight: the product is the sum of theirs.
// They may share the output by rows.
struct lm_partial {
    bool (*has)(const char *weight); // whether it is shared; NULL: no weight is
    int32_t output; // processes that share the output's rows; 0: each has all rows
    char group[64]; // attribute `group` of dist.all_reduce
};

// Number of processes that share this weight's rows: 1 unless it is the output.
static inline int64_t lm_output_shares(const struct lm_partial *partial, const char *weight)
{
    return partial->output && strcmp(weight, "output.weight") == 0 ? partial->output : 1;
}

struct tn_lm {
    tn_runtime *runtime;
    tn_lm_source source;
    const tn_model *ops;
    const tn_host *host; // of the model's plugin
    const char *plugin;
    tn_model_self *self;
    const tn_model_facts *facts;
    int64_t context; // positions of a sequence
    int64_t capacity;
    int64_t slots;            // sequences that share caches
    const char *cache_name;   // of the elements: "f16"
    const char *cache_format; // of blocks; NULL: floats
    tn_dtype cache_dtype;
    pthread_mutex_t lock;     // guards the list of caches
    struct lm_caches *caches; // list
    int64_t first, end;       // layers that are loaded
    struct lm_division division;
    char *split; // of the options; NULL: by memory
    void (*progress)(void *context, uint64_t loaded, uint64_t total);
    void *progress_context;
    struct lm_weights weights;
    struct lm_adapter adapter; // no items: the model has no adapter
    struct lm_plan plans[LM_KINDS];
    struct lm_vision vision;
    struct lm_remote *remote; // NULL: all layers are in this process
    struct lm_partial partial;
    uint64_t num_caches_made;
    char name[128], architecture[64];
    atomic_int sequences;
    // The tokenizer, opened when it is first needed.
    atomic_flag tokenizer_lock;
    const tn_tokenizer_ops *tokens;
    const tn_host *tokens_host;
    tn_tokenizer *tokenizer;
    struct grammar_vocabulary *vocabulary; // NULL: not made yet
    uint64_t serial;                       // no other model has the same
};

struct tn_lm_sequence {
    tn_lm *model;
    struct lm_caches *caches; // NULL: none yet
    int64_t slot;
    int64_t length;
    int32_t *ids; // by position; -1: a hidden state
    atomic_int cancelled;
};

// Fails for a model that is on several processes.
tn_status lm_check_here(const tn_lm *model);

// Opens the model's architecture again, with metadata and weights of another source, which
// the model takes. No layer is loaded, and no sequence is open.
tn_status lm_model_reopen(tn_lm *model, const tn_lm_source *source);

// Begins and ends a model or a vision encoder. `init` expects zeros; `close` also ends
// what belongs to it: the grammars' vocabulary and the vision encoder. NULL is fine.
void lm_model_init(tn_lm *model);
void lm_model_close(tn_lm *model);

#endif // LM_MODEL_H
