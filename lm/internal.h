// SPDX-License-Identifier: MIT
// What the parts of libtenon-lm share: messages, the model, its weights, its plans.
#ifndef LM_INTERNAL_H
#define LM_INTERNAL_H

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/lm.h>
#include <tenon/model.h>
#include <tenon/retain.h>
#include <tenon/tokenizer.h>
#include "divide.h"
#include <tenon/vision.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// --- messages ---------------------------------------------------------------------------

// Replaces the thread's message; returns `status`.
tn_status lm_fail(tn_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// The failure of the core's function that has just returned `status`, and of a scope.
tn_status lm_fail_core(tn_status status);
tn_status lm_fail_scope(const tn_scope *scope);

// NaN without its sign, which is no one's business: "nan" in messages on every machine.
static inline double lm_unsigned_nan(double x)
{
    return isnan(x) ? fabs(x) : x;
}

// Fails where one of `count` values is NaN or infinite; the message begins with what the
// values are.
tn_status lm_check_numbers(const float *values, uint64_t count, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// The first failure of several, which later ones do not replace. Zeros: none.
struct lm_failure {
    tn_status status;
    char text[1024];
};
void lm_failure_note(struct lm_failure *failure, tn_status status);
tn_status lm_failure_tell(const struct lm_failure *failure);

// Memory that is zero; records a failure when there is none.
void *lm_alloc(uint64_t count, uint64_t size);

// Copies a struct of an application, whose fields from `size` on are zero.
// TN_ERR_ARGUMENT: it is longer, and sets what this library does not know.
tn_status lm_read_struct(void *mine, uint64_t size, const void *given, uint32_t given_size,
                         const char *what);
void lm_write_struct(void *out, uint32_t out_size, const void *mine, uint64_t size);

// --- weights ----------------------------------------------------------------------------

// A weight of the layers that are loaded. Arrays are kept ones.
struct lm_weight {
    char name[TN_MODEL_NAME];
    uint32_t flags;       // TN_MODEL_..., of all parts that list it
    int64_t head, paired; // as in tn_model_weight
    int64_t part, joined; // the layer that lists it, and its number there
    int64_t device;       // that it is on: a number in the order of TENON_BACKEND
    int64_t first, count; // its rows in `product`; count 0: all
    bool is_wanted;       // by the shard that is being loaded
    bool is_absent;       // optional, and the file does not have it
    const char *format;   // of the blocks of `rows`; NULL: elements
    const char *packed;   // of those of `product`
    tn_array *plain;      // f32, for `weight`
    tn_array *product;
    tn_array *rows;
    uint64_t bytes;
};

struct lm_weights {
    struct lm_weight *items;
    uint64_t count, room;
    uint64_t hint; // where the last one was found
};

// --- devices ----------------------------------------------------------------------------

// Layers first .. end - 1, on one device.
struct lm_part {
    int64_t device; // a number in the order of TENON_BACKEND
    int64_t first, end;
    uint64_t weight_bytes, cache_bytes; // as in tn_lm_part
    char name[96], label[128];          // "vulkan:0", "NVIDIA H100"
    char backend[64];                   // "vulkan"
};

// The parts that cover the layers that are loaded, in order. Of no parts: nothing is.
struct lm_division {
    struct lm_part parts[LM_MOST_DEVICES];
    int64_t count;
};

// --- adapters ---------------------------------------------------------------------------

// The addition to one product. Arrays are kept ones, of f32.
struct lm_low_rank {
    char name[TN_MODEL_NAME]; // of the weight
    tn_array *down;           // [rank, in], "lora_a"
    tn_array *up;             // [out, rank], "lora_b", with the rows in the model's order
};

struct lm_adapter {
    struct lm_low_rank *items;
    uint64_t count;
    double alpha; // of the file, or the training
    double scale; // asked for beside it
};

// --- models -----------------------------------------------------------------------------

// What a plan gives beside caches.
enum lm_kind { LM_NOTHING, LM_LAST_ROW, LM_EACH_ROW, LM_HIDDEN, LM_KINDS };

struct lm_plan {
    tn_lm *model;
    enum lm_kind kind;
    tn_function *function; // NULL: not made yet
};

// Arrays of keys and values with slots, each for a sequence.
struct lm_caches {
    struct lm_caches *next; // of the model's
    pthread_mutex_t lock;   // of a step: it replaces the arrays
    tn_array **arrays;      // num_caches of each layer that is loaded; kept ones
    uint64_t count;
    bool *is_taken; // of each slot
    int64_t num_taken;
    // Set by a step that took the arrays and gave none back, under the lock; and why.
    atomic_bool has_failed;
    struct lm_failure failure;
};

// The tower that reads images; see vision.h.
struct lm_vision {
    pthread_mutex_t lock; // of opening it, and of its runs
    tn_lm *tower;         // its weights and its plugin, as a model's; NULL: not opened
    const tn_vision *ops;
    const tn_vision_facts *facts;
    tn_function *function; // of a tile
    int32_t mark;          // the token in whose place an image comes
    bool is_ready;
};

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
    pthread_mutex_t lock;     // of the list of caches
    struct lm_caches *caches; // list
    int64_t first, end;       // layers that are loaded
    struct lm_division division;
    char *split; // of the options; NULL: by memory
    void (*progress)(void *context, uint64_t loaded, uint64_t total);
    void *progress_context;
    struct lm_weights weights;
    struct lm_adapter adapter; // of no items: none
    struct lm_plan plans[LM_KINDS];
    struct lm_vision vision;
    char name[128], architecture[64];
    char backend[32]; // that is used first: "cpu-blas"
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
    int32_t *ids; // of each position; -1: a hidden state
    atomic_int cancelled;
};

// Gives back the pages of an array that a file gave and that nothing reads any more. The
// system's cache of the file stays.
void lm_source_forget(const tn_lm *model, tn_scope *scope, tn_array *read);

// Opens a file as a source.
tn_status lm_source_open(tn_runtime *runtime, const char *path, tn_lm_source *out_source);

// vision.c
void lm_vision_init(struct lm_vision *vision);
void lm_vision_finish(struct lm_vision *vision);

// Checks all weights against the source; loads those of layers, and frees others.
tn_status lm_weights_check(tn_lm *model);
tn_status lm_weights_load(tn_lm *model, int64_t first, int64_t end);
void lm_weights_free(tn_lm *model);
struct lm_weight *lm_weight_find(struct lm_weights *weights, const char *name,
                                 int64_t device);

// The weight of this name that products read; NULL: none is loaded.
struct lm_weight *lm_product_find(const tn_lm *model, const char *name);

// Adds what a part of the model needs for its weights, in bytes. `again`, where it is not
// NULL, gets what of the output is the embedding, and counts only where it is elsewhere.
tn_status lm_weights_bytes(const tn_lm *model, int64_t layer, uint64_t *bytes,
                           uint64_t *again);

// --- parts ------------------------------------------------------------------------------

// Divides layers first .. end - 1 among the devices as they are now.
tn_status lm_division_make(const tn_lm *model, int64_t first, int64_t end,
                           struct lm_division *out);

// The part that has a layer, the embedding or the output.
int64_t lm_part_of(const struct lm_division *division, int64_t layer);

// From now on data of the scope and what is computed there are on the part's device.
tn_status lm_scope_on(const struct lm_division *division, int64_t part, tn_scope *scope);

// Whether a device that has layers was lost.
bool lm_is_lost(const tn_lm *model);

// Passes a failure on; when a device with layers was lost, in words for users of models.
tn_status lm_tell_lost(const tn_lm *model, tn_status status);

// The rows of a matrix of a paired weight (tn_model_weight) in the model's order, or back
// in that of the file; others as they are.
tn_array *lm_rows_in_halves(tn_scope *scope, tn_array *array,
                            const struct lm_weight *weight, bool back);

// `product`, of x with the weight `name`, and what the adapter adds to it. `trained`, where
// it is not NULL, has arrays for those of the items, down and up in turns.
tn_array *lm_adapted(const struct lm_adapter *adapter, tn_scope *scope,
                     tn_array *const *trained, const char *name, tn_array *x,
                     tn_array *product);
void lm_adapter_free(struct lm_adapter *adapter);

// adapter.c: no sequence is open, and layers are loaded.
tn_status lm_adapter_check(tn_lm *model);
// Puts `adapter`, of which nothing is left, in the place of the model's.
tn_status lm_adapter_use(tn_lm *model, struct lm_adapter *adapter);

// Fails where a value of the adapter is NaN or infinite: of `parameters`, down and up of
// each item in turns; NULL: of those that it has.
tn_status lm_adapter_check_numbers(const tn_lm *model, tn_array *const *parameters);

// What products read, gathered while a step is built; importance.c.
struct lm_sum {
    char name[TN_MODEL_NAME]; // of the weight
    tn_array *squares;        // f32 [columns]: sums over the rows
    int64_t columns, rows;
};
struct lm_gathered {
    struct lm_sum *sums;
    uint64_t count, room;
};

// Where a step stands, as arrays that are on the device of one part; see tn_model_step.
struct lm_place {
    tn_array *position, *length, *start, *slots;
};

// Builds the layers that are loaded in `scope`, part by part. The step says what it is of:
// count, capacity, input, last, caches; gets `output`. `places` has one of each part.
// `trained`: see lm_adapted. `given`, where it is not NULL: rows that stand in the place of
// the embedding's, f32 [positions, width], and which ones do, f32 [positions, 1] of 0
// and 1. `gathered`: what is to be gathered; NULL: nothing.
tn_status lm_build(tn_lm *model, tn_scope *scope, tn_model_step *step,
                   const struct lm_place *places, tn_array *const *trained,
                   tn_array *const *given, struct lm_gathered *gathered);

// train.c: the logits of all positions of a window of tokens, i32 [count], which begins a
// sequence of its own. `trained`: see lm_adapted; `gathered` may be NULL.
tn_array *lm_build_window(tn_lm *model, tn_scope *scope, tn_array *tokens, int32_t count,
                          tn_array *const *trained, struct lm_gathered *gathered);

// Makes the functions for the layers that are loaded, or destroys them.
tn_status lm_plans_make(tn_lm *model);
void lm_plans_destroy(tn_lm *model);

// The caches of a layer: as the options say, for all slots.
tn_status lm_caches_types(const tn_lm *model, int64_t layer, tn_type *out);
uint64_t lm_type_bytes(const tn_type *type);

// Sets what elements caches have: "f16", or NULL for the usual ones.
tn_status lm_caches_choose(tn_lm *model, const char *name);

// Gives the sequence a slot, in new caches where no slot is left, or takes it back.
tn_status lm_caches_enter(tn_lm_sequence *sequence);
void lm_caches_leave(tn_lm_sequence *sequence);

// A call that failed with `status` may have taken the caches, whose lock is held: then the
// sequences that have them have ended, and lm_caches_check says why.
void lm_caches_note(struct lm_caches *caches, tn_status status);
tn_status lm_caches_check(const struct lm_caches *caches);

// The part of a model whose device has cache `index`.
int64_t lm_part_of_cache(const tn_lm *model, uint64_t index);

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

// The next random number of a generator, from 0 to below 1.
double lm_next_share(uint64_t *state);

// The tokenizer, opened when that has not been done yet.
tn_status lm_tokenizer(tn_lm *model);

// Alone with what is made once: the tokenizer, and the vocabulary below.
void lm_tokenizer_lock(tn_lm *model);
void lm_tokenizer_unlock(tn_lm *model);

// Whether the token that begins a text is in front of a prompt.
enum lm_begin { LM_BEGIN_AS_FILE, LM_BEGIN, LM_BEGIN_NOT };

// The tokens of a prompt in whose ranges `plain` no control tokens are found.
tn_status lm_tokenise_mixed(tn_lm *model, const char *text, uint64_t size,
                            const tn_text_range *plain, uint64_t num_plain,
                            enum lm_begin begin, int32_t **out_ids, uint64_t *out_count);

// The text of one token behind others, for tn_lm_free.
tn_status lm_token_text(tn_lm *model, int32_t id, char **out_text, uint64_t *out_size);

// The vocabulary as grammars need it, made when that has not been done yet.
tn_status lm_vocabulary(tn_lm *model, const struct grammar_vocabulary **out_vocabulary);

// --- drawing ----------------------------------------------------------------------------

// As tn_lm_sample, of the tokens whose bit in `allowed` is set; NULL: of all.
int32_t lm_sample(tn_lm_sampler *s, float *logits, const int32_t *last, int64_t num_last,
                  const uint64_t *allowed, double *out_log_probability);

// The `count` most probable tokens, in descending order.
void lm_top(const float *logits, int64_t vocabulary, tn_lm_candidate *out, int64_t count);

// A text that is held to a grammar while it is generated.
struct lm_held;

tn_status lm_held_open(const tn_lm_grammar *grammar, tn_lm *model, struct lm_held **out);
void lm_held_close(struct lm_held *held);

// The tokens that may come next, a bit each, the ends of texts included.
tn_status lm_held_mask(struct lm_held *held, const uint64_t **out_mask);

// Appends a token's text. *out_is_over: nothing may follow.
tn_status lm_held_append(struct lm_held *held, const char *text, uint64_t size,
                         bool *out_is_over);

#endif // LM_INTERNAL_H
