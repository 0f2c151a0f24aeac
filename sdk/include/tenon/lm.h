// SPDX-License-Identifier: MIT
// Language models, for applications: opening a model, tokens, inference, generating text.
//
//   #include <tenon/lm.h> // link with -ltenon-lm -ltenon; pkg-config: "tenon-lm"
//
//   tn_lm *lm;
//   tn_lm_sequence *sequence;
//   if (tn_lm_open(rt, "SmolLM2.gguf", NULL, &lm) || tn_lm_sequence_open(lm, &sequence))
//       return fprintf(stderr, "%s\n", tn_lm_error());
//   tn_lm_generation how = {.prompt = "Once upon a time", .max_tokens = 100,
//                           .piece = print};
//   tn_lm_generate(sequence, &how, NULL);
//
// A model is a file, or a folder, that a plugin for its format knows; its architecture is
// built by a plugin (<tenon/model.h>), its text cut into tokens by another
// (<tenon/tokenizer.h>). A sequence is a text that the model reads and continues: it keeps
// what attention needs of its positions in caches of fixed size.
//
// Errors. Functions return a status; tn_lm_error() has the sentence that belongs to it.
// Results come last and are written on success only.
//
// Ownership. Texts, lists and structs that are given are borrowed for the call, where
// nothing else is said.
//
// Threads. A model may be used from any thread, but for tn_lm_ensure_shard and closing,
// which are alone. A sequence is used by one thread at a time, but for tn_lm_cancel.
// tn_lm_error() is the calling thread's.
#ifndef TENON_LM_H
#define TENON_LM_H

#include <tenon/metadata.h>
#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

// The message of the last function of this header that failed on this thread; "" when none
// did. Valid until this thread's next call.
TN_API const char *tn_lm_error(void);

// --- models ----------------------------------------------------------------------------

typedef struct tn_lm tn_lm;

// Options of tn_lm_open. All zero is the default.
typedef struct tn_lm_options {
    uint32_t struct_size; // sizeof(tn_lm_options); 0: that of ABI 1.0
    uint32_t flags;       // 0
    int64_t context;      // positions that a sequence holds; 0: those of the model, at most
                          // TN_LM_USUAL_CONTEXT
    // Elements of the caches: "f16", "f32", or "q8_0", whose heads have a multiple of 32
    // elements. NULL: "f16".
    const char *cache;
    // Sequences that share arrays of caches, and so steps of tn_lm_infer_batch; 0: 1, at
    // most TN_LM_MOST_SEQUENCES. Memory of the host is taken when it is first written, that
    // of a GPU at once. More sequences than these get arrays of their own.
    int64_t sequences;
    // Layers of each device of TENON_BACKEND, in order: "16,14", all of the model's. NULL:
    // as many on the first one as its memory holds, then on the next one, ... Copied.
    const char *split;
    // Called while weights are loaded, behind each, on the thread that loads: bytes that
    // are loaded, of those that are to be. Calls nothing of the model. May be NULL.
    void (*progress)(void *context, uint64_t loaded, uint64_t total);
    void *progress_context;
} tn_lm_options;

// The most sequences that share arrays of caches.
#define TN_LM_MOST_SEQUENCES 1024

// The context of a model that was trained on more, unless options ask for another one:
// positions.
#define TN_LM_USUAL_CONTEXT 4096

// Where a model's metadata and weights come from, when not from a file: weights that a
// program makes, or has in memory. Copied by tn_lm_open_source; what it points to stays as
// it is until `close` is called.
typedef struct tn_lm_source tn_lm_source;
struct tn_lm_source {
    uint32_t struct_size;             // sizeof(tn_lm_source)
    uint32_t flags;                   // 0
    const tn_metadata_list *metadata; // with the keys of GGUF
    void *context;                    // the caller's

    // Gives the type of the weight `name`, with the extents of its elements, and the name
    // of the format of its blocks ("q4_0"), or NULL where it has none; then the dtype is
    // TN_F32. Returns 1, or 0 when there is no such weight. Any thread.
    int32_t (*find)(const tn_lm_source *source, const char *name, tn_type *out_type,
                    const char **out_format);

    // Gives the weight as an array of `scope`: of its dtype, or of TN_U8 with rows of
    // blocks. NULL, with the reason in the scope, on failure. Any thread.
    tn_array *(*load)(const tn_lm_source *source, tn_scope *scope, const char *name);

    // Optional: called once, when the model is closed, or when opening it has failed.
    void (*close)(const tn_lm_source *source);
};

// Facts about a model. Texts are the model's, valid until it is closed.
typedef struct tn_lm_info {
    uint32_t struct_size;     // sizeof(tn_lm_info) as the library was compiled
    uint32_t flags;           // 0
    const char *name;         // "general.name" of its file, or ""
    const char *architecture; // "llama"
    const char *plugin;       // the id of the plugin that builds it
    int64_t layers;
    int64_t width;         // of the hidden state
    int64_t vocabulary;    // logits
    int64_t context;       // positions that a sequence holds
    int64_t trained;       // positions that the model was trained for
    int64_t first, end;    // the layers that are loaded: first .. end - 1
    uint64_t weight_bytes; // of what is loaded
    uint64_t cache_bytes;  // of one sequence, for the layers that are loaded
    const char *cache;     // elements of the caches: "f16"
    int64_t sequences;     // that share arrays of caches
} tn_lm_info;

// Gives a model, which tn_lm_close takes back: reads what is in the file and checks the
// names and shapes of all weights, and loads none. `path` is a file or a folder. `options`
// may be NULL. Keeps the runtime until it is closed.
//
// TN_ERR_REFUSED: the file is damaged, or its weights do not fit its metadata.
// TN_ERR_NOT_FOUND: no such file, or no plugin knows its format or architecture.
TN_API tn_status tn_lm_open(tn_runtime *runtime, const char *path,
                            const tn_lm_options *options, tn_lm **out_model);

// As tn_lm_open, for a model that is in no file. On failure `source->close` has been
// called.
TN_API tn_status tn_lm_open_source(tn_runtime *runtime, const tn_lm_source *source,
                                   const tn_lm_options *options, tn_lm **out_model);

// Closes a model, whose sequences are closed before. NULL is fine.
TN_API void tn_lm_close(tn_lm *model);

// Fills at most out->struct_size bytes of *out.
TN_API void tn_lm_describe(const tn_lm *model, tn_lm_info *out);

// Layers that one device has, first .. end - 1. Texts end in a NUL.
typedef struct tn_lm_part {
    uint32_t struct_size; // sizeof(tn_lm_part)
    uint32_t flags;       // 0
    char device[96];      // as tn_scope_device takes it: "vulkan:0"
    char name[128];       // of the device, for people
    int64_t first, end;
    // Bytes, by the types of the file: of weights, the embedding counting with the first
    // layer and the output with the last one; of the caches of one sequence.
    uint64_t weight_bytes, cache_bytes;
} tn_lm_part;

// The parts of the loaded layers, by layer; where none is loaded, the parts into which all
// layers would be divided now, which opens the devices and may fail as tn_lm_ensure_shard
// does. Writes at most *count records, and sets *count to the number of parts; `out` may be
// NULL. out[0].struct_size is the size of the caller's records; 0: that of ABI 1.0. A
// matrix that is both embedding and output is on two devices where these are.
TN_API tn_status tn_lm_parts(const tn_lm *model, tn_lm_part *out, uint64_t *count);

// Metadata of the model's file. Borrowed until the model is closed.
TN_API const tn_metadata_list *tn_lm_metadata(const tn_lm *model);

// Loads the weights of layers first .. last, of 0 .. layers - 1, and frees those of others:
// only what changes is read. The embedding goes with the first layer, the output with the
// last one. Sequences that are open are of the shard that they were opened with, and end
// with it: TN_ERR_ARGUMENT while there are some. Inference loads all layers where nothing
// is loaded yet.
//
// Layers are divided among the devices of TENON_BACKEND, in order: each takes layers,
// weights and caches of tn_lm_options.sequences, while it has memory for them and for the
// work on them, or as many as tn_lm_options.split says; memory of the host, last in the
// list, takes any number. The hidden state goes from one to the next. TN_ERR_MEMORY: there
// is no room; the message says how much is missing, and what would fit.
//
// After the loss of a device the sequences of a model with layers there fail with
// TN_ERR_DEVICE. When they are closed, this function places the layers on the devices that
// are left.
TN_API tn_status tn_lm_ensure_shard(tn_lm *model, int64_t first, int64_t last);

// --- tokens ----------------------------------------------------------------------------

// Flags of tn_lm_tokenize, with the meaning of those of <tenon/tokenizer.h>.
enum {
    TN_LM_ADD_SPECIAL = 1,   // what a prompt of this model begins with
    TN_LM_PARSE_SPECIAL = 2, // "<|im_end|>" is one token
    // For tn_lm_generate alone: the prompt is all that the sequence is to have. Tokens that
    // it has of that already stay; those that differ are forgotten.
    TN_LM_WHOLE = 4,
};

// Gives the tokens of `size` bytes of text: *out_count ids, for tn_lm_free.
// TN_ERR_NOT_FOUND: the model has no vocabulary, or no plugin knows its kind.
TN_API tn_status tn_lm_tokenize(tn_lm *model, const char *text, uint64_t size,
                                uint32_t flags, int32_t **out_ids, uint64_t *out_count);

// Gives the text of tokens, without those that are no text: *out_size bytes, and a zero
// byte behind them, for tn_lm_free. The bytes may begin or end within a character.
TN_API tn_status tn_lm_detokenize(tn_lm *model, const int32_t *ids, uint64_t count,
                                  char **out_text, uint64_t *out_size);

// 1 when this token ends what the model says, else 0; also where it has no vocabulary.
TN_API int32_t tn_lm_is_end(tn_lm *model, int32_t id);

// One message of a conversation.
typedef struct tn_lm_message {
    const char *role; // "system", "user" or "assistant"
    const char *text;
} tn_lm_message;

// Gives the text of a conversation, as the model was trained to read one, up to the
// beginning of the assistant's next reply: *out_size bytes, and a zero byte behind them,
// for tn_lm_free. It is a whole prompt, for people to read: what messages say is not told
// from the form, so a user can write "<|im_end|>". tn_lm_chat_tokens is for models.
// `family` names the form ("chatml"); NULL: that of the model's own template, which is
// known where its whole text is that of one in a list.
//
// TN_ERR_NOT_FOUND: the model's template is not known, or there is no such family; the
// message lists those that are known. TN_ERR_ARGUMENT: a role that is none of these, or
// messages for which the template has no text, such as a system message where it has none.
TN_API tn_status tn_lm_chat_text(const tn_lm *model, const char *family,
                                 const tn_lm_message *messages, uint64_t num_messages,
                                 char **out_text, uint64_t *out_size);

// Gives the tokens of the same conversation, for tn_lm_free and tn_lm_generation.ids. Marks
// such as "<|im_end|>" are control tokens where the form has them, and text where a message
// has them. Failures are those of tn_lm_chat_text and tn_lm_tokenize; TN_ERR_UNSUPPORTED:
// the tokenizer's plugin cannot tell both apart.
TN_API tn_status tn_lm_chat_tokens(tn_lm *model, const char *family,
                                   const tn_lm_message *messages, uint64_t num_messages,
                                   int32_t **out_ids, uint64_t *out_count);

// Frees what a function of this header gave for it. NULL is fine.
TN_API void tn_lm_free(void *memory);

// --- sequences -------------------------------------------------------------------------

typedef struct tn_lm_sequence tn_lm_sequence;

// Gives an empty sequence, which tn_lm_sequence_close takes back. Loads all layers where
// nothing is loaded yet.
TN_API tn_status tn_lm_sequence_open(tn_lm *model, tn_lm_sequence **out_sequence);
TN_API void tn_lm_sequence_close(tn_lm_sequence *sequence); // NULL is fine

// The positions that the sequence has.
TN_API int64_t tn_lm_sequence_length(const tn_lm_sequence *sequence);

// Forgets the positions from `length` on, which must not exceed the sequence's.
TN_API tn_status tn_lm_sequence_cut(tn_lm_sequence *sequence, int64_t length);

// Writes the sequence to a file, which appears complete or not at all, as of tn_save: its
// tokens and what its caches have of them, as safetensors. TN_ERR_ARGUMENT: it is empty.
TN_API tn_status tn_lm_sequence_save(const tn_lm_sequence *sequence, const char *path);

// Replaces the sequence by one that was saved; it goes on as that one would have, also
// where it may hold more positions. The file is untrusted: TN_ERR_REFUSED for what is
// damaged, or was saved with another model (other metadata, or weights of other names,
// shapes or formats), another adapter, other layers or caches of other elements;
// TN_ERR_ARGUMENT for more positions than the context has. The sequence is then unchanged;
// where writing the caches fails it is empty.
TN_API tn_status tn_lm_sequence_restore(tn_lm_sequence *sequence, const char *path);

// Flags of tn_lm_infer and tn_lm_infer_tensor.
enum {
    TN_LM_ALL_ROWS = 1, // logits of each position, not of the last one alone
};

// Appends `count` tokens, and writes the logits behind the last one, f32 [vocabulary], or
// with TN_LM_ALL_ROWS [count, vocabulary]. `out_logits` may be NULL. The model's loaded
// layers are all of its layers.
//
// TN_ERR_ARGUMENT: a token that the vocabulary does not have; more tokens than the sequence
// has room for, of which none is appended then.
TN_API tn_status tn_lm_infer(tn_lm_sequence *sequence, const int32_t *ids, int64_t count,
                             uint32_t flags, float *out_logits);

// Appends `count` positions to the shard that is loaded. `input` is i32 [count], tokens,
// where it has the first layer, else the hidden state f32 [count, width]. `output` is the
// hidden state f32 [count, width], where the last layer is another shard's, else logits as
// of tn_lm_infer. `output` may be NULL.
TN_API tn_status tn_lm_infer_tensor(tn_lm_sequence *sequence, const void *input,
                                    int64_t count, uint32_t flags, float *output);

// Appends a text, cut into tokens as a prompt is, and writes the logits behind it, f32
// [vocabulary].
TN_API tn_status tn_lm_infer_prompt(tn_lm_sequence *sequence, const char *text,
                                    float *out_logits);

// Tokens for one sequence of several. `status` is written by tn_lm_infer_batch.
typedef struct tn_lm_item {
    tn_lm_sequence *sequence;
    const int32_t *ids; // `count` tokens, which are appended
    int64_t count;
    float *out_logits; // behind the last one: f32 [vocabulary]; may be NULL
    tn_status status;  // TN_OK, or how this item failed
    uint32_t reserved; // 0
} tn_lm_item;

// Appends tokens to several sequences, each once, and writes the logits behind the last
// ones. The last tokens of sequences that share caches (tn_lm_options.sequences) go through
// the model together, up to 32 at a time, so that weights are read once for all; a sequence
// that gets more than one token reads those before its last one alone. Logits are those of
// tn_lm_infer up to the rounding of products of other sizes.
//
// All sequences are the calling thread's. An item that fails leaves the others as they are:
// its status says so, and of an item that was refused (TN_ERR_ARGUMENT, as of tn_lm_infer)
// no token is appended. Returns TN_OK, or the status of the first item that failed, whose
// message tn_lm_error() has.
TN_API tn_status tn_lm_infer_batch(tn_lm_item *items, uint64_t num_items);

// --- embeddings ------------------------------------------------------------------------

// Choices of the hidden state that is a text's embedding.
enum {
    TN_LM_POOL_MEAN = 0,  // the mean of all positions
    TN_LM_POOL_LAST = 1,  // that of the last one, which alone has seen all of the text
    TN_LM_POOL_FIRST = 2, // that of the first one: of models trained with a mark there
};

// Flags of tn_lm_embed.
enum {
    TN_LM_UNIT = 1, // of length 1, so that products of two embeddings are cosines
};

// Writes the embedding of a text of `count` tokens, f32 [width]: hidden states behind the
// last layer and its norm, pooled. What the sequence has is forgotten; then it has these
// tokens. The model's loaded layers are all of its layers.
//
// TN_ERR_ARGUMENT: no tokens, more than the context has, or one that the vocabulary does
// not have. TN_ERR_UNSUPPORTED: the architecture's plugin does not give hidden states.
// TN_ERR_REFUSED: a value is NaN or infinite, as of a model with such weights.
TN_API tn_status tn_lm_embed(tn_lm_sequence *sequence, const int32_t *ids, int64_t count,
                             uint32_t pooling, uint32_t flags, float *out_embedding);

// --- grammars --------------------------------------------------------------------------

// A grammar that constrains generated text: a language, of which the text is a member when
// the model ends it. Constant: any number of sequences may use one at once.
typedef struct tn_lm_grammar tn_lm_grammar;

// Notations that a grammar is read from.
enum {
    TN_LM_GBNF = 1, // rules in the notation of llama.cpp, of which "root" is the text
    TN_LM_JSON_SCHEMA = 2, // the JSON that is valid by a schema; "{}": any JSON
};

// Gives a grammar, for tn_lm_grammar_close. docs/grammars.md says what of both notations is
// known. `kind` is TN_LM_GBNF or TN_LM_JSON_SCHEMA; the text is UTF-8, of `size` bytes.
//
// TN_ERR_REFUSED: the text is none of its kind; the message has line and column, or the
// place in the schema, with what was got and expected. TN_ERR_UNSUPPORTED: a keyword that
// is not known, or a grammar of more than 262144 states. TN_ERR_ARGUMENT: another kind.
TN_API tn_status tn_lm_grammar_open(const char *text, uint64_t size, uint32_t kind,
                                    tn_lm_grammar **out_grammar);
TN_API void tn_lm_grammar_close(tn_lm_grammar *grammar); // NULL is fine

// How a text fits a grammar.
enum {
    TN_LM_FITS_NOT = 0,   // no text of the grammar begins so
    TN_LM_FITS_BEGIN = 1, // some text of the grammar begins so, and goes on
    TN_LM_FITS = 2,       // the text is one of the grammar
};

// Gives how `size` bytes fit: TN_LM_FITS_NOT ... in *out_fits. Bytes may end within a
// character. TN_ERR_UNSUPPORTED: the grammar is so ambiguous for this text that the bounds
// of memory and time are passed.
TN_API tn_status tn_lm_grammar_test(const tn_lm_grammar *grammar, const char *text,
                                    uint64_t size, int32_t *out_fits);

// --- sampling and generating -----------------------------------------------------------

// A number that is added to a token's logit.
typedef struct tn_lm_bias {
    int32_t id;
    float value; // -INFINITY: never
} tn_lm_bias;

// How the next token is drawn from the logits. All zero: the most probable one. The steps
// are in this order: biases and penalties change logits; then top_k, top_p, min_p leave
// tokens out, of what the softmax of logits / temperature gives.
typedef struct tn_lm_sampling {
    uint32_t struct_size; // sizeof(tn_lm_sampling); 0: that of ABI 1.0
    uint32_t flags;       // 0
    double temperature;   // 0: the most probable token, whatever comes below
    int64_t top_k;        // tokens that are left; 0: all
    double top_p;         // the most probable ones until their sum is this; 0: all
    double min_p;         // those with at least this share of the greatest; 0: all
    double penalty;       // of tokens among the last ones: positive logits are divided by
                          // this, others multiplied; 0 or 1: none
    int64_t penalty_last; // tokens that it looks back; 0: 64
    uint64_t seed;        // the same seed gives the same tokens, on one backend
    const tn_lm_bias *biases; // num_biases of them
    uint64_t num_biases;
    // Taken from the logits of the same last tokens, behind `penalty`: once from each of
    // them, and for each time that it came. Negative ones are added.
    double presence, frequency;
} tn_lm_sampling;

// A sampler draws tokens; it is the state of the random numbers.
typedef struct tn_lm_sampler tn_lm_sampler;

// Gives a sampler, for tn_lm_sampler_close. Copies the options; NULL: all zero.
// TN_ERR_ARGUMENT: a number that is out of range.
TN_API tn_status tn_lm_sampler_open(const tn_lm_sampling *sampling, int64_t vocabulary,
                                    tn_lm_sampler **out_sampler);
TN_API void tn_lm_sampler_close(tn_lm_sampler *sampler); // NULL is fine

// Draws a token from logits, f32 [vocabulary], which are changed. `last` are the tokens
// before, `num_last` of them, for the penalty. Writes the natural logarithm of the
// probability that the token had before anything was changed, NaN where a logit is NaN or
// plus infinity; may be NULL.
TN_API int32_t tn_lm_sample(tn_lm_sampler *sampler, float *logits, const int32_t *last,
                            int64_t num_last, double *out_log_probability);

// A token that could have been drawn.
typedef struct tn_lm_candidate {
    int32_t id;
    uint32_t reserved;      // 0
    double log_probability; // natural
} tn_lm_candidate;

// One piece of the generated text. Borrowed for the call.
typedef struct tn_lm_piece {
    uint32_t struct_size; // sizeof(tn_lm_piece) as the library was compiled
    int32_t id;           // of the token that this piece ends with
    const char *text; // whole characters; "" while a character is not complete, or while
                      // the text may become a stop word
    uint64_t size;    // bytes
    double log_probability; // of the token

    // The most probable tokens in its place, as many as tn_lm_generation.top asks for, in
    // descending order, before anything was changed.
    const tn_lm_candidate *top;
    uint64_t num_top; // 0: not asked for
} tn_lm_piece;

// Why generating ended.
enum {
    TN_LM_ENDED = 1,     // the model ended its text
    TN_LM_STOPPED = 2,   // a stop word came, which is not part of the text
    TN_LM_LENGTH = 3,    // max_tokens were generated
    TN_LM_FULL = 4,      // the sequence has no room for more
    TN_LM_CANCELLED = 5, // by tn_lm_cancel, or by `piece`
};

// An image that a model has read; see <tenon/lm_image.h>.
typedef struct tn_lm_image tn_lm_image;

// Options of generation. All zero generates from what the sequence has so far, which must
// then not be empty, until the model ends its text.
typedef struct tn_lm_generation {
    uint32_t struct_size;  // sizeof(tn_lm_generation); 0: that of ABI 1.0
    uint32_t prompt_flags; // TN_LM_ADD_SPECIAL ...: how the prompt is cut into tokens
    const char *prompt;    // a text that is appended first; NULL: none
    const int32_t *ids;    // or tokens, num_ids of them, where there is no text
    uint64_t num_ids;
    int64_t max_tokens;             // 0: no bound but the room that there is
    const tn_lm_sampling *sampling; // NULL: the most probable tokens
    const char *const *stops;       // num_stops texts that end what is generated
    uint64_t num_stops;
    // Called for each token, on this thread; returns 0 to go on. May be NULL.
    int32_t (*piece)(void *context, const tn_lm_piece *piece);
    void *context;

    // The grammar that constrains the generated text, from its beginning; NULL: none.
    // Tokens that cannot continue a text of the grammar are not drawn, and the text ends
    // where the grammar allows, at once where nothing may follow. Stays open for the call.
    const tn_lm_grammar *grammar;
    int64_t top; // tokens of tn_lm_piece.top, at most TN_LM_MOST_TOP; 0: none

    // Images of <tenon/lm_image.h>, num_images of them, one for each mark of the prompt,
    // in order. TN_ERR_ARGUMENT: there are more marks, or fewer. They stay open for the
    // call.
    const tn_lm_image *const *images;
    uint64_t num_images;
} tn_lm_generation;

// The most entries of tn_lm_piece.top.
#define TN_LM_MOST_TOP 1024

// The generated text.
typedef struct tn_lm_result {
    uint32_t struct_size; // sizeof(tn_lm_result); 0: that of ABI 1.0
    uint32_t reason;      // TN_LM_ENDED ...
    int64_t prompt_tokens;
    int64_t tokens;        // generated
    double prompt_seconds; // from the call to the logits behind the prompt
    double seconds;        // for the tokens from there on
} tn_lm_result;

// Appends a prompt and generates tokens, which are appended, too, but for the last one.
// `out_result` may be NULL. TN_ERR_ARGUMENT: nothing to generate from, or a prompt that is
// longer than the room that the sequence has. TN_ERR_NOT_FOUND: a grammar, and a model
// without a vocabulary. TN_ERR_UNSUPPORTED: no token of the vocabulary continues a text of
// the grammar; or what tn_lm_grammar_test says of ambiguity. TN_ERR_REFUSED: logits are NaN
// or infinite, as of a model with such weights: none of them is drawn from.
TN_API tn_status tn_lm_generate(tn_lm_sequence *sequence, const tn_lm_generation *how,
                                tn_lm_result *out_result);

// A text to generate beside others.
typedef struct tn_lm_request {
    const tn_lm_generation *how; // of a sequence that is empty
    tn_lm_result *out_result;    // the caller's, written where `status` is TN_OK; or NULL
    tn_status status;            // written
    uint32_t reserved;           // 0
} tn_lm_request;

// Generates several texts, each in a sequence of its own, at most `at_once` at a time (0:
// tn_lm_options.sequences): these share steps as tn_lm_infer_batch says, and when one ends
// the next request takes its room. Callbacks run on this thread, each with the context of
// its request; one that ends its text ends no other one. A request that fails takes no
// other one down. Returns TN_OK, or the status of the request that failed first.
TN_API tn_status tn_lm_generate_batch(tn_lm *model, tn_lm_request *requests,
                                      uint64_t num_requests, int64_t at_once);

// Writes how important the columns of the model's products are, for quantising it: the sums
// of the squares of what each product reads while the model reads `count` tokens, in
// windows of `window` tokens (0: 512, or the context where that is less), each from its
// beginning. TN_ERR_REFUSED: a sum is no number; nothing is written. A weight NAME has the
// arrays NAME.in_sum2, [1, in], and NAME.counts, the rows that were summed: as GGUF it is a
// file of llama.cpp's imatrix, and `tenon model quantize --imatrix` reads any format. Loads
// all layers. Products of experts have one sum for all of them. No other function of the
// model is called meanwhile.
TN_API tn_status tn_lm_importance_save(tn_lm *model, const int32_t *ids, uint64_t count,
                                       int64_t window, const char *path);

// Ends the generating that runs now, or the next one, after its current token. Any thread,
// and signal handlers.
TN_API void tn_lm_cancel(tn_lm_sequence *sequence);

#ifdef __cplusplus
}
#endif

#endif // TENON_LM_H
