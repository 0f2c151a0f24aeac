// SPDX-License-Identifier: MIT
// Folders of models as Hugging Face has them: config.json, the weights in safetensors
// files, tokenizer.json. Arrays are listed under GGUF's names, metadata under GGUF's keys,
// so that readers of models know one set of names. Two things differ from a GGUF file:
//
//   tenon.rope  "halves": rows of attn_q and attn_k are in the order of the file, where
//               element i is turned with element i + half; GGUF's files of architecture
//               "llama" have them in the order where neighbours are ("interleaved")
// names that the table of names.c does not have stay as they are
//
// Nothing in a file is trusted.
#ifndef FORMATS_HUGGINGFACE_H
#define FORMATS_HUGGINGFACE_H

#include <jansson.h>
#include <stdbool.h>

#include "../common/safetensors.h"

// Owners of keys of config.json: families, and parts of the file (keys.c).
enum {
    HF_LLAMA = 1,
    HF_MISTRAL = 2,
    HF_MIXTRAL = 4,
    HF_PHI3 = 8,
    HF_QWEN2 = 16,
    HF_QWEN2_MOE = 32,
    HF_QWEN3 = 64,
    HF_QWEN3_MOE = 128,
    HF_GEMMA = 256,
    HF_GEMMA2 = 512,
    HF_GEMMA3 = 1024,
    HF_QWENS = HF_QWEN2 | HF_QWEN2_MOE | HF_QWEN3 | HF_QWEN3_MOE,
    HF_EXPERTS = HF_MIXTRAL | HF_QWEN2_MOE | HF_QWEN3_MOE,
    HF_LANGUAGE = 2047,
    HF_OUTER = 2048,  // the object around the language model's
    HF_VISION = 4096, // the vision encoder's
    HF_ROPE = 8192,   // the rotary embedding's
};

// Layers of a family that have the window, where the file has no "layer_types".
enum hf_window {
    HF_WINDOW_NONE,    // none: "sliding_window" is no key of the family
    HF_WINDOW_ALL,     // all layers
    HF_WINDOW_BEHIND,  // layers from "max_window_layers" on
    HF_WINDOW_BEFORE,  // every second layer before "max_window_layers"
    HF_WINDOW_PATTERN, // by the architecture, or by "sliding_window_pattern"
};

// A family of models, known by "model_type" in config.json.
struct hf_family {
    const char *model_type;
    const char *architecture; // GGUF's name
    const char *defaults;     // JSON: values of keys that config.json may leave out
    const char *projector;    // what a vision encoder's rows go through; NULL: no vision
                              // encoder is known
    uint32_t keys;            // HF_...
    enum hf_window window;
    bool norms_add_one; // a norm's factor is 1 + the weight, as Gemma's
    bool has_two_norms; // each part of a layer has a norm before and behind it
};
const struct hf_family *hf_find_family(const char *model_type);
// Lists the known families: "gemma2, llama, ...". Returns `text`.
const char *hf_known_families(char *text, size_t size);

// Writes the array's name in GGUF to `out`; when it has none, writes `name` and returns
// false. *expert is the number of the expert whose matrix it is, else -1.
bool hf_translate(const struct hf_family *family, const char *name, char *out, size_t size,
                  int64_t *expert);

// The matrix of one expert.
struct hf_part {
    const tn_format_array *stored; // NULL: missing
    const tn_format_source *source;
};

// A quantised weight with its scales and biases (packed.c).
struct hf_packed {
    const tn_format_array *scales, *biases; // biases NULL: mxfp4
    const tn_format_source *scales_source, *biases_source;
    int64_t group, bits, columns;         // of a group; of an element; of a row
    const struct tn_quant_format *format; // of the listed array; NULL: f32
};

// A listed array, and the source of its elements: a position in a file, numbers of
// config.json, or the matrices of all experts, which GGUF joins in one array.
struct hf_array {
    tn_format_array array; // first: as it is listed
    const tn_format_array *stored;
    const tn_format_source *source;
    const json_t *numbers;          // the elements; NULL: they are in the file
    struct hf_part *parts;          // matrices of the experts; NULL: one matrix
    const struct hf_packed *packed; // NULL: elements are stored as they are
};

#define HF_NO_CAP 1e9 // stands for no bound of scores or logits

struct hf_shard {
    struct hf_shard *next;
    struct safetensors header;
    const char *name; // of the file
};

struct hf {
    tn_format_content content; // first: hf is found from it by a cast
    const tn_host *host;
    const tn_format_source *folder;
    const struct hf_family *family;
    const struct hf_family *text;                          // the language model's family
    json_t *config, *tokenizer, *tokenizer_config, *index; // own names and texts
    json_t *processor;                                     // of images; NULL: no file
    json_t *generation;       // generation_config.json; NULL: none
    char *chat;               // of chat_template.jinja, or NULL
    json_t *model;            // the part of `config` about the language model
    int64_t head;             // elements of a head
    int64_t num_experts;      // of a layer; 0: one feed-forward
    const json_t *factors[2]; // of the frequencies, for short and long contexts; or NULL
    struct hf_shard *shards;
    struct hf_entry *entries; // arrays of all files, sorted by name
    uint64_t num_entries;
    struct hf_array *arrays;
    struct hf_block *blocks; // memory of hf_alloc, freed by `close`
    tn_metadata *metadata;
    uint64_t num_metadata, room;
    bool out_of_memory; // set where metadata could not be added
};

// --- memory and metadata (memory.c) ------------------------------------------------------

// Zeroed memory that lives until `close`; NULL when out of memory.
void *hf_alloc(struct hf *hf, uint64_t size);
// Formats a text in memory of hf_alloc; NULL when out of memory.
const char *hf_text(struct hf *hf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void hf_free_all(struct hf *hf);

// Add a pair of metadata. Keys and texts are borrowed; a failure sets hf->out_of_memory. A
// key that begins with a point gets the architecture's name in front.
void hf_add_text(struct hf *hf, const char *key, const char *text);
void hf_add_integer(struct hf *hf, const char *key, int64_t value);
void hf_add_float(struct hf *hf, const char *key, double value);
void hf_add_bool(struct hf *hf, const char *key, bool value);
void hf_add_list(struct hf *hf, const char *key, uint32_t kind, const void *data,
                 uint64_t count);

// Reads a file of the folder as JSON. TN_ERR_NOT_FOUND, with the reason recorded, when it
// does not exist. `flags` are jansson's: JSON_DECODE_INT_AS_REAL for files whose integers
// may be of any size and do not matter.
tn_status hf_read_json(struct hf *hf, const char *name, size_t flags, json_t **out_json);
// Reads a file of the folder as a zero-terminated text, allocated with host->alloc.
tn_status hf_read_text(struct hf *hf, const char *name, uint64_t most, char **out_text,
                       uint64_t *out_size, const char **out_path);

// A member of an object; NULL where it is absent or null.
const json_t *hf_member(const json_t *object, const char *name);
// Records that a member of a file of the folder is wrong, and what is expected.
tn_status hf_wrong(const struct hf *hf, const char *file, const char *member,
                   const char *expected);

// --- the parts ---------------------------------------------------------------------------

tn_status hf_read_config(struct hf *hf); // config.c: metadata, but the tokenizer's
tn_status hf_check_keys(struct hf *hf);  // keys.c: refuses keys that Tenon cannot follow
tn_status hf_read_rope(struct hf *hf);   // rope.c: metadata of the rotary embedding
tn_status hf_read_vision(struct hf *hf); // vision.c: metadata of the vision encoder, if any
tn_status hf_read_tokenizer(struct hf *hf); // tokenizer.c
tn_status hf_read_weights(struct hf *hf);   // weights.c
// Finds a listed array by its GGUF name; NULL: none. Call it after hf_read_weights.
const tn_format_array *hf_find_array(const struct hf *hf, const char *name);

// Quantised weights (packed.c). Sorts hf->entries by name.
tn_status hf_sort_entries(struct hf *hf);
// Whether the array of this name holds the scales or biases of another array.
bool hf_is_part(const struct hf *hf, const char *name);
// Lists an array as blocks or f32 when it is a quantised weight.
tn_status hf_list_packed(struct hf *hf, struct hf_array *array);
tn_status hf_read_packed(const tn_host *host, const struct hf_array *array, void *data);

// Gives the elements of an array that is not in place.
tn_status hf_read_elements(const tn_host *host, const struct hf_array *array, void *data);

#endif // FORMATS_HUGGINGFACE_H
