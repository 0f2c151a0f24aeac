// SPDX-License-Identifier: MIT
// The part that architectures of language models share, for plugins behind <tenon/model.h>:
// the dimensions as GGUF names them, and the blocks of a decoder.
//
//   struct tn_model_self { decoder d; }; // of the plugin
//
//   tn_status status = decoder_read(host, source, &self->d);
//   ...
//   tn_array *h = block_norm(step, d, x, layer, "attn_norm");
//   x = block_add(step, x, block_attention(step, d, h, layer, frequencies));
//
// Weights are named as GGUF names them, "blk.3.attn_q.weight": the layer, the weight, and
// "weight" or "bias". Of TN_MODEL_EMBEDDING and TN_MODEL_OUTPUT the name has no layer:
// "token_embd.weight".
//
// Arrays belong to one scope, on the thread that called the model's `build`; functions that
// give arrays return NULL after a failure and take NULL.
#ifndef MODELS_DECODER_H
#define MODELS_DECODER_H

#include <tenon/model.h>

// The most pairs of elements that the rotary embedding of a head turns, and the most
// layers.
#define DECODER_PAIRS 512
#define DECODER_LAYERS 4096

// The dimensions of a decoder. decoder_read fills them; an architecture may change them
// before the model is used.
typedef struct decoder {
    const tn_host *host;
    tn_model_facts facts;
    int64_t inner;        // width of the feed-forward's hidden vector
    int64_t rotary;       // elements of a head that are turned, from the first on
    int64_t interleaved;  // pairs in the file are neighbours (1), or of two halves (0)
    int64_t is_fused;     // attn_qkv, and ffn_up with the gate, in the place of their parts
    int64_t experts;      // feed-forwards of a layer; 0: one
    int64_t experts_used; // that a position uses
    int64_t expert_inner, shared_inner; // hidden widths of an expert, of the shared one
    int32_t shared_gate_rank;           // 1, or 2 where the file has it as a matrix
    int32_t is_normed;                  // whether weights of the used experts sum up to 1
    int32_t has_shared;                 // whether there is an expert that all positions use
    int64_t window;      // positions that a query sees in windowed layers; 0: all
    int64_t original;    // most positions for rope_factors_short; 0: no such factors
    double eps;          // of norms
    double score_scale;  // of attention's scores
    double score_cap;    // bound of attention's scores; 0: none
    double turned_scale; // of the elements of a query that are turned; mostly 1
    const char
        *activation;  // of the feed-forward's gate, where the file has none; NULL: silu
    const char *gate; // expression of the feed-forward's g and u; see block_gated
    char architecture[64];
    float frequencies[DECODER_PAIRS];    // radians a position, scaled
    uint8_t sees_all[DECODER_LAYERS];    // 1: a layer without the window
    uint8_t has_experts[DECODER_LAYERS]; // 1: the layer has several feed-forwards
} decoder;

// --- reading metadata -------------------------------------------------------------------

// A key of this architecture: "llama.block_count". The text is in `out`.
#define DECODER_KEY (TN_MODEL_NAME + 64)
const char *decoder_key(const decoder *d, const char *name, char out[DECODER_KEY]);

// Reads an integer of this architecture, of 1 .. most, or `otherwise` where the file does
// not have the key; -1: the key is required. TN_ERR_REFUSED: the message names the key.
tn_status decoder_integer(const decoder *d, const tn_metadata_list *list, const char *name,
                          int64_t most, int64_t otherwise, int64_t *out);

// Reads a number of this architecture that is positive and finite, or `otherwise` where
// the file does not have the key; negative: the key is required. TN_ERR_REFUSED as above.
tn_status decoder_number(const decoder *d, const tn_metadata_list *list, const char *name,
                         double otherwise, double *out);

// 1 when the text under `key` is `value`, else 0.
int32_t decoder_says(const tn_metadata_list *list, const char *key, const char *value);

// Reads the rotary embedding: which elements are turned, their frequencies, the scaling.
tn_status rope_read(decoder *d, const tn_model_source *source);

// Writes rotary / 2 frequencies with base `base`, without scaling.
void rope_frequencies(const decoder *d, double base, float *out);

// Reads the dimensions of a decoder from the metadata and the embedding's type. `d` begins
// as zeros, but for values of the architecture: `interleaved`, `activation`, and the
// `window` of files without one. TN_ERR_REFUSED and TN_ERR_UNSUPPORTED as tn_model.open
// says.
tn_status decoder_read(const tn_host *host, const tn_model_source *source, decoder *d);

// Reads which layers have the window. Where the file has no list, all do but the last of
// each `period` layers; period 0: all do. Call it after decoder_read. TN_ERR_REFUSED: the
// list has another number of layers.
tn_status decoder_pattern(decoder *d, const tn_metadata_list *list, int64_t period);

// Reads the experts, where the file has some. `is_normed` is for files without the key.
// Call it after decoder_read. TN_ERR_UNSUPPORTED: experts are not chosen by softmax.
tn_status decoder_experts(decoder *d, const tn_model_source *source, int32_t is_normed);

// --- weights ---------------------------------------------------------------------------

// The list that a model's `weights` fills.
typedef struct weight_list {
    tn_model_weight *out; // may be NULL
    uint64_t room, count;
} weight_list;

// Writes the name of a weight, as above, to `out`.
const char *block_name(int64_t layer, const char *what, const char *kind,
                       char out[TN_MODEL_NAME]);

// Adds a matrix of `rows` rows and `columns` columns, or a vector where `columns` is 0.
void list_add(weight_list *list, int64_t layer, const char *what, const char *kind,
              int64_t rows, int64_t columns, uint32_t flags);

// Adds the weights of block_attention. Rows of heads that are turned are asked for in the
// order of halves, which block_heads turns, even where the file pairs neighbours.
void list_attention(weight_list *list, const decoder *d, int64_t layer);

// Adds the weights of block_gated.
void list_gated(weight_list *list, const decoder *d, int64_t layer);

// Adds the weights of block_feed.
void list_feed(weight_list *list, const decoder *d, int64_t layer);

// Adds the weights of block_embed and block_logits. Where the file has no output matrix,
// the embedding serves as it, too.
void list_ends(weight_list *list, const decoder *d, int64_t part, int32_t is_tied);

// --- blocks ----------------------------------------------------------------------------

// The sum of two arrays.
tn_array *block_add(const tn_model_step *step, tn_array *a, tn_array *b);

// x over the root of the mean of its squares along the last axis, times a weight.
tn_array *block_norm(const tn_model_step *step, const decoder *d, tn_array *x,
                     int64_t layer, const char *what);

// x times the transposed weight, and the bias added where the model has one.
tn_array *block_linear(const tn_model_step *step, tn_array *x, int64_t layer,
                       const char *what);

// Reshapes x to [a, b] or, where `c` and `e` are not 0, to [a, b, c, e].
tn_array *block_reshape(const tn_model_step *step, tn_array *x, int64_t a, int64_t b,
                        int64_t c, int64_t e);

// Exchanges positions and heads: [1, a, b, size] becomes [1, b, a, size].
tn_array *block_exchange(const tn_model_step *step, tn_array *x, int64_t a, int64_t b,
                         int64_t size);

// The frequencies of the rotary embedding as an array, divided by the factors that some
// files have: in rope_freqs.weight, or separate ones for short and for long contexts.
tn_array *block_frequencies(const tn_model_step *step, const decoder *d);

// The heads of one kind, [1, heads, positions, size], from the product x, [positions, heads
// * size], in `dtype`: normalised where the model has a norm, and turned by their positions
// unless `frequencies` is NULL.
tn_array *block_heads(const tn_model_step *step, const decoder *d, tn_array *x,
                      int64_t layer, const char *what, int64_t heads, tn_array *frequencies,
                      tn_dtype dtype);

// The two caches of a layer for step->capacity positions: its keys and its values.
void block_caches(const decoder *d, int64_t capacity, tn_type out_types[2]);

// Attention of the step's positions to the earlier ones that the layer sees, through its
// caches, with the heads joined: [count, heads * size]. `h` is the result of the norm,
// `frequencies` that of block_frequencies.
tn_array *block_attention(tn_model_step *step, const decoder *d, tn_array *h, int64_t layer,
                          tn_array *frequencies);

// The rows of x that the step needs after the last layer's attention: all, or row
// step->last.
tn_array *block_last(const tn_model_step *step, const decoder *d, tn_array *x,
                     int64_t layer);

// A gated feed-forward: (silu(h gate) * (h up)) down, or with d->gate in the place of
// silu(g) * u.
tn_array *block_gated(const tn_model_step *step, const decoder *d, tn_array *h,
                      int64_t layer);

// silu(g) * u, or d->gate; and block_gated with other names of weights than {"ffn_gate",
// "ffn_up", "ffn_down"}.
tn_array *block_gate(const tn_model_step *step, const decoder *d, tn_array *g, tn_array *u);
tn_array *block_gated_by(const tn_model_step *step, const decoder *d, tn_array *h,
                         int64_t layer, const char *const names[3]);

// The feed-forward of a layer: block_gated, or the experts that a router chooses for each
// position.
tn_array *block_feed(const tn_model_step *step, const decoder *d, tn_array *h,
                     int64_t layer);

// The hidden state at the beginning of the step: its input, or the embedding of its ids.
tn_array *block_embed(const tn_model_step *step);

// The logits of the hidden state behind the last layer.
tn_array *block_logits(tn_model_step *step, const decoder *d, tn_array *x, int32_t is_tied);

#endif // MODELS_DECODER_H
