// SPDX-License-Identifier: MIT
// Architectures of language models: plugins that build the graph of a model's layers, for
// the library of <tenon/lm.h>.
//
//   static const tn_model model = {.struct_size = sizeof(model), .open = open,
//                                  .close = close, .weights = weights, .caches = caches,
//                                  .build = build};
//   static const tn_selector selectors[] = {{TN_IFACE_MODEL, "architecture", "acme"}};
//
// plugins/models/decoder has what architectures share (norms, rotary embedding, attention
// over a cache, gated feed-forward); docs/model-guide.md writes one with it.
//
// The plugin knows how layers are made of operators, and the names and shapes of their
// weights. Files, quantised formats, memory, plans, tokens and sampling are the library's:
// the plugin asks for `step->product(step, x, "blk.0.attn_q.weight")`, and gets x times the
// transposed weight however that is stored. A plugin links nothing.
//
// Layers. A model is an embedding of tokens, `layers` layers, and an output of logits. A
// shard is a range of layers: the embedding goes with the first, the output with the last
// one. Between layers goes the hidden state, f32 of shape [positions, width].
//
// Metadata are untrusted: a model checks each number that it reads before it computes with
// it, and fails with TN_ERR_REFUSED and a message that begins with the list's name.
//
// Threads. Every slot is [any]: several threads may call it at once, for one model too.
// What the slots of tn_model_step give and take belongs to the thread that called `build`.
#ifndef TENON_MODEL_H
#define TENON_MODEL_H

#include <tenon/host.h>
#include <tenon/metadata.h>
#include <tenon/primitive.h>
#include <tenon/types.h>

// The id by which query() is asked for a tn_model. Its kind of selector is "architecture":
// values of the key "general.architecture".
#define TN_IFACE_MODEL "tn.model/1"

// Bytes of a weight's name with the NUL, and the most caches that a layer may have.
#define TN_MODEL_NAME 96
#define TN_MODEL_CACHES 4

// Source of a model: the metadata of its file, with the keys of GGUF, and the types of its
// weights. Filled by the library, borrowed for the call.
typedef struct tn_model_source tn_model_source;
struct tn_model_source {
    uint32_t struct_size; // sizeof(tn_model_source) as the library was compiled
    uint32_t flags;       // 0
    const tn_metadata_list *metadata;

    // Gives the type of the weight `name`, with the extents of its elements, also where
    // they are stored as blocks; its dtype is then TN_F32. Returns 1, or 0 when the model
    // has no such weight. [any]
    int32_t (*weight)(const tn_model_source *source, const char *name, tn_type *out_type);
};

// Facts about a model that the library and its users need, in numbers. Owned by the plugin,
// constant until `close`. All are positive.
typedef struct tn_model_facts {
    uint32_t struct_size; // sizeof(tn_model_facts)
    uint32_t num_caches;  // arrays that a layer keeps from step to step, at most
                          // TN_MODEL_CACHES
    int64_t layers;
    int64_t width;      // of the hidden state
    int64_t vocabulary; // logits
    int64_t context;    // positions that the model was trained for
    int64_t heads;      // query heads
    // Key-value heads, each shared by heads / kv_heads query heads.
    int64_t kv_heads;
    int64_t head_size;
} tn_model_facts;

// Flags of a weight.
enum {
    TN_MODEL_OPTIONAL = 1, // the model does without where the file does not have it
    TN_MODEL_PRODUCT = 2,  // read by `product`: may be packed for that
    TN_MODEL_ROWS = 4,     // read by `rows`: of an embedding
};

// A weight that a model reads. Of no flag but OPTIONAL: read by `weight`, as f32.
//
// Files of some families have the pairs of the rotary embedding side by side: of each head
// rows 0 and 1, 2 and 3, ... Turning halves, i and i + paired / 2, is less work, and scores
// of queries and keys are the same in any order that both have. So a model that gives
// `paired` gets these rows in the order of halves, whatever reads them, and biases and
// norms of heads alike.
typedef struct tn_model_weight {
    char name[TN_MODEL_NAME]; // of GGUF, "blk.3.attn_q.weight"
    int64_t extent[4];        // that it must have, outermost first: [out, in]
    int32_t rank;             // 1 .. 4
    uint32_t flags;           // TN_MODEL_...

    // Where `paired` is not 0, each `head` rows are of one head, and of their first
    // `paired` rows the file's row 2i is given as row i, and 2i + 1 as i + paired / 2. The
    // head divides extent[0], and `paired` is even and at most the head; others are
    // TN_ERR_INTERNAL.
    int64_t head, paired;

    // Above 0: `product` multiplies one x by this weight and the others of the part that
    // have this number: queries, keys and values, say. Where they are stored alike the
    // library may put their rows into one matrix, one product for all; `product` gives the
    // columns of the weight that is asked for.
    int64_t joined;
} tn_model_weight;

// The parts beside the layers, for `weights`.
enum {
    TN_MODEL_EMBEDDING = -1, // what comes before the first layer
    TN_MODEL_OUTPUT = -2,    // what comes behind the last one
};

// One step of a model while its graph is built: `count` positions of each of some
// sequences, one behind the other, through some layers. Rows of arrays are those of the
// first sequence, then of the second one, ... Filled by the library, borrowed for the call
// of `build`.
//
// The slots fail as those of tn_build do: they return NULL, take NULL, and the failure is
// checked once, behind `build`.
typedef struct tn_model_step tn_model_step;
struct tn_model_step {
    uint32_t struct_size;  // sizeof(tn_model_step) as the library was compiled
    uint32_t flags;        // 0
    const tn_build *build; // for all other nodes
    int64_t count;         // positions of each sequence in this step, 1 or more
    int64_t capacity;      // positions that the caches hold
    int64_t first, end;    // layers first .. end - 1

    // Where first is 0, ids: i32 [rows]; else the hidden state: f32 [rows, width].
    tn_array *input;

    tn_array *position; // i32 [sequences]: of the first one in its sequence
    tn_array *length;   // i32 [sequences]: position + count, the filled part of the caches
    tn_array *start;    // i32 [4]: 0, 0, position, 0: where a cache of rank 4 is grown,
                        // where `slots` is NULL

    // i32 [sequences]: the rows whose logits are wanted, which are then of shape
    // [sequences, vocabulary]. NULL: those of all rows are, or the step does not reach the
    // output.
    tn_array *last;

    // num_caches for each of the layers. Before: what the sequences have so far. `build`
    // puts in their place what they have then, of the same types.
    tn_array **caches;

    // Set by `build`: the hidden state, or the logits, f32 [rows or sequences, vocabulary],
    // where `end` is the model's number of layers.
    tn_array *output;

    // A weight as it is, in f32. NULL, without a failure, for an optional one that the
    // model does not have.
    tn_array *(*weight)(const tn_model_step *step, const char *name);

    // x [n, in] times the transpose of the weight [out, in]: f32 [n, out].
    tn_array *(*product)(const tn_model_step *step, tn_array *x, const char *name);

    // The rows of the weight [rows, in] with these numbers, ids i32 [n]: f32 [n, in]. Where
    // the ids are step->input and some positions are an image's (<tenon/vision.h>), those
    // have the image's rows in the place of the weight's.
    tn_array *(*rows)(const tn_model_step *step, tn_array *ids, const char *name);

    // A constant of the model: copies `data`, row-major. Made once for each plan.
    tn_array *(*constant)(const tn_model_step *step, tn_dtype dtype, const tn_shape *shape,
                          const void *data);

    // Row (i, j) of x, f32 [n, m, in], or row i where x is [n, 1, in], times the transpose
    // of matrix ids[i, j] of the weight [experts, out, in], which is listed as one for
    // products; ids are integers [n, m]: f32 [n, m, out].
    tn_array *(*experts)(const tn_model_step *step, tn_array *x, tn_array *ids,
                         const char *name);

    int64_t context;   // positions that a sequence may have: at most `capacity`
    int64_t sequences; // 1 or more; rows are sequences * count

    // i32 [sequences]: the index of each sequence along the first axis of the caches. NULL:
    // there is one sequence, and this axis has extent 1.
    tn_array *slots;
    // Format of caches that are rows of blocks; NULL: the caches are of floats.
    const char *cache_format;

    // Set by `build` where it sets logits: the normalised hidden state that they are the
    // product of, f32 of as many rows and of the model's width. It is what embeddings of
    // texts are made of; a model that leaves it NULL has none.
    tn_array *hidden;
};

// A model that a plugin opened; the plugin's own.
typedef struct tn_model_self tn_model_self;

// The interface of an architecture, or of several that one plugin has.
typedef struct tn_model {
    uint32_t struct_size; // sizeof(tn_model)
    uint32_t flags;       // 0

    // Reads the dimensions, and gives a model, which `close` takes back, with its facts.
    // TN_ERR_REFUSED: a key that is missing, of another kind or out of range; the message
    // names it, with what was got and what was expected. TN_ERR_UNSUPPORTED: something that
    // the file asks for and this plugin does not know, such as a scaling. [any]
    tn_status (*open)(const tn_host *host, const tn_model_source *source,
                      tn_model_self **out_model, const tn_model_facts **out_facts);
    void (*close)(const tn_host *host, tn_model_self *model);

    // Lists the weights of layer `layer`, of 0 .. layers - 1, or of TN_MODEL_EMBEDDING or
    // TN_MODEL_OUTPUT. Writes at most *count of them, and sets *count to their number;
    // `out` may be NULL. A weight may be listed by several parts. [any]
    tn_status (*weights)(const tn_host *host, const tn_model_self *model, int64_t layer,
                         tn_model_weight *out, uint64_t *count);

    // The types of a layer's caches for `capacity` positions: num_caches of them. They
    // begin as zeros. Those of f32 [1, kv_heads, capacity, width] the library may keep as
    // f16 or, where the width allows, as blocks (tn_model_step.cache_format), with a first
    // axis of several sequences: quant.cache_update and quant.cached_attention take them.
    // [any]
    tn_status (*caches)(const tn_host *host, const tn_model_self *model, int64_t layer,
                        int64_t capacity, tn_type *out_types);

    // Builds the graph of a step. All its arguments are the same for all steps that share a
    // plan: positions are arrays, not numbers. [any]
    tn_status (*build)(const tn_host *host, const tn_model_self *model,
                       tn_model_step *step);
} tn_model;

#endif // TENON_MODEL_H
