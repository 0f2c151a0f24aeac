// SPDX-License-Identifier: MIT
// What the architectures of language models share, for plugins behind <tenon/model.h>: the
// dimensions as GGUF names them, and the blocks of a decoder.
//
//   struct tn_model_self { decoder d; }; // of the plugin
//
//   tn_status status = decoder_read(host, source, &self->d);
//   ...
//   tn_array *h = block_norm(step, d, x, layer, "attn_norm");
//   x = block_add(step, x, block_attention(step, d, h, layer, frequencies));
//
// Weights are named as GGUF names them, "blk.3.attn_q.weight": the layer, what the weight
// is, and "weight" or "bias"; of the layer TN_MODEL_EMBEDDING or TN_MODEL_OUTPUT the second
// and the third only, "token_embd.weight".
//
// Arrays are those of one scope, on the thread that called the model's `build`; functions
// that give arrays return NULL after a failure and take NULL.
#ifndef MODELS_DECODER_H
#define MODELS_DECODER_H

#include <tenon/model.h>

// The most pairs of elements that the rotary embedding of a head turns, and the most
// layers.
#define DECODER_PAIRS 512
#define DECODER_LAYERS 4096

// The dimensions of a decoder. Filled by decoder_read; a model may change what its family
// does otherwise before the model is used.
typedef struct decoder {
    const tn_host *host;
    tn_model_facts facts;
    int64_t inner;        // width within the feed-forward
    int64_t rotary;       // elements of a head that are turned, from the first on
    int64_t interleaved;  // which ones are pairs in the file: neighbours (1), or halves (0)
    int64_t is_fused;     // attn_qkv and a doubled ffn_up in the place of their parts
    int64_t experts;      // feed-forwards of a layer; 0: one
    int64_t experts_used; // by a position
    int64_t expert_inner, shared_inner; // their widths within
    int32_t shared_gate_rank;           // 1, or 2 of files that have it as a matrix
    int32_t is_normed;                  // whether what the used ones count sums up to 1
    int32_t has_shared;                 // whether there is one that all positions use
    int64_t window;      // positions that a query sees in windowed layers; 0: all
    int64_t original;    // positions up to which rope_factors_short counts; 0: neither does
    double eps;          // of norms
    double score_scale;  // of attention's scores
    double score_cap;    // bound of attention's scores; 0: none
    double turned_scale; // of the elements of a query that are turned; mostly 1
    const char
        *activation;  // of the feed-forward's gate, of files that do not say; NULL: silu
    const char *gate; // the expression of the feed-forward's g and u; block_gated
    char architecture[64];
    float frequencies[DECODER_PAIRS];    // radians from a position to the next, scaled
    uint8_t sees_all[DECODER_LAYERS];    // 1: a layer without the window
    uint8_t has_experts[DECODER_LAYERS]; // 1: a layer of several feed-forwards
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

// Reads the rotary embedding: which elements, their frequencies and the scaling.
tn_status rope_read(decoder *d, const tn_model_source *source);

// Writes rotary / 2 frequencies of base `base`, without scaling.
void rope_frequencies(const decoder *d, double base, float *out);

// Reads the dimensions of a decoder from the metadata and the embedding's type. `d` begins
// as zeros, but for what differs in this architecture: `interleaved`, `activation`, and
// `window`, that of a file which does not say. TN_ERR_REFUSED and TN_ERR_UNSUPPORTED as
// tn_model.open says.
tn_status decoder_read(const tn_host *host, const tn_model_source *source, decoder *d);

// Reads which layers have the window: of each `period` the last one does not, where the
// file does not say; 0: all have it. Behind decoder_read. TN_ERR_REFUSED: the file's list
// has another number of layers.
tn_status decoder_pattern(decoder *d, const tn_metadata_list *list, int64_t period);

// Reads the experts, where the file has some. `is_normed`: of files that do not say. Behind
// decoder_read. TN_ERR_UNSUPPORTED: they are not chosen by softmax.
tn_status decoder_experts(decoder *d, const tn_model_source *source, int32_t is_normed);

// --- weights ---------------------------------------------------------------------------

// The list that a model's `weights` fills.
typedef struct weight_list {
    tn_model_weight *out; // may be NULL
    uint64_t room, count;
} weight_list;

// Writes the name of a weight; see above. The text is in `out`.
const char *block_name(int64_t layer, const char *what, const char *kind,
                       char out[TN_MODEL_NAME]);

// Adds a matrix of `rows` rows and `columns` columns, or a vector where `columns` is 0.
void list_add(weight_list *list, int64_t layer, const char *what, const char *kind,
              int64_t rows, int64_t columns, uint32_t flags);

// Adds the weights of block_attention. Rows whose elements are turned are wanted in the
// order of halves, which block_heads turns, also of files that have neighbours.
void list_attention(weight_list *list, const decoder *d, int64_t layer);

// Adds the weights of block_gated.
void list_gated(weight_list *list, const decoder *d, int64_t layer);

// Adds the weights of block_feed.
void list_feed(weight_list *list, const decoder *d, int64_t layer);

// Adds the weights of block_embed and block_logits. Where the file has no matrix of
// the output, the embedding is that matrix, too.
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

// An array under other extents, of rank 2 or, where `c` and `e` are not 0, 4.
tn_array *block_reshape(const tn_model_step *step, tn_array *x, int64_t a, int64_t b,
                        int64_t c, int64_t e);

// Exchanges positions and heads: [1, a, b, size] becomes [1, b, a, size].
tn_array *block_exchange(const tn_model_step *step, tn_array *x, int64_t a, int64_t b,
                         int64_t size);

// The frequencies of the rotary embedding as an array, divided by the factors that some
// files carry: in rope_freqs.weight, or for short and for long contexts each.
tn_array *block_frequencies(const tn_model_step *step, const decoder *d);

// The vectors of one kind of heads, [1, heads, positions, size], of the product x,
// [positions, heads * size]: a norm where the model has one, and with `frequencies` turned
// by their positions; in `dtype`.
tn_array *block_heads(const tn_model_step *step, const decoder *d, tn_array *x,
                      int64_t layer, const char *what, int64_t heads, tn_array *frequencies,
                      tn_dtype dtype);

// The two caches of a layer for step->capacity positions: its keys and its values.
void block_caches(const decoder *d, int64_t capacity, tn_type out_types[2]);

// Attention of the step's positions to those before them that the layer sees, through its
// caches, and the heads joined: [count, heads * size]. `h` is what the norm gave,
// `frequencies` what block_frequencies gave.
tn_array *block_attention(tn_model_step *step, const decoder *d, tn_array *h, int64_t layer,
                          tn_array *frequencies);

// The rows of x that the step goes on with behind the last layer's attention: all, or the
// one of step->last.
tn_array *block_last(const tn_model_step *step, const decoder *d, tn_array *x,
                     int64_t layer);

// A gated feed-forward: silu(h gate) * (h up), times down; or what d->gate says in the
// place of silu(g) * u.
tn_array *block_gated(const tn_model_step *step, const decoder *d, tn_array *h,
                      int64_t layer);

// Silu(g) * u, or what d->gate says; and block_gated with other names of its weights:
// {"ffn_gate", "ffn_up", "ffn_down"}.
tn_array *block_gate(const tn_model_step *step, const decoder *d, tn_array *g, tn_array *u);
tn_array *block_gated_by(const tn_model_step *step, const decoder *d, tn_array *h,
                         int64_t layer, const char *const names[3]);

// The feed-forward of a layer: block_gated, or that of the experts that a router chooses
// for each position.
tn_array *block_feed(const tn_model_step *step, const decoder *d, tn_array *h,
                     int64_t layer);

// The hidden state that the step begins with: its input, or the embedding of its ids.
tn_array *block_embed(const tn_model_step *step);

// The logits of the hidden state behind the last layer.
tn_array *block_logits(tn_model_step *step, const decoder *d, tn_array *x, int32_t is_tied);

#endif // MODELS_DECODER_H
