// SPDX-License-Identifier: MIT
// Folders of models as Hugging Face has them: config.json, the weights in safetensors
// files, tokenizer.json. Arrays are listed under GGUF's names, metadata under GGUF's keys,
// so that who reads a model knows one set of names. Two things are not as in a GGUF file:
//
//   tenon.rope  "halves": rows of attn_q and attn_k are in the order of the file, where
//               element i is turned with element i + half; GGUF's files of architecture
//               "llama" have them in the order where neighbours are ("interleaved")
//   names that no row of the table knows stay as they are
//
// Nothing in a file is trusted.
#ifndef FORMATS_HUGGINGFACE_H
#define FORMATS_HUGGINGFACE_H

#include <jansson.h>
#include <stdbool.h>

#include "../common/safetensors.h"

// A family of models that write "model_type" in config.json.
struct hf_family {
    const char *model_type;
    const char *architecture; // of GGUF
    bool norms_add_one;       // weights of norms are what is added to 1, as Gemma's
    bool has_two_norms;       // of each part of a layer, before and behind it
    const char *defaults;     // JSON: what a config.json may leave out; NULL: nothing
    const char *projector;    // what a tower's rows go through; NULL: no tower is known
};
const struct hf_family *hf_find_family(const char *model_type);
// Lists the known ones: "gemma2, llama, ...". Returns `text`.
const char *hf_known_families(char *text, size_t size);

// The array's name in GGUF, in `out`: false, and the name itself, when it has none. Where
// it is the matrix of one expert, *expert is the number of it, else -1.
bool hf_translate(const struct hf_family *family, const char *name, char *out, size_t size,
                  int64_t *expert);

// The matrix of one expert.
struct hf_part {
    const tn_format_array *stored; // NULL: missing
    const tn_format_source *source;
};

// A weight of few bits and what belongs to it (packed.c).
struct hf_packed {
    const tn_format_array *scales, *biases; // biases NULL: mxfp4
    const tn_format_source *scales_source, *biases_source;
    int64_t group, bits, columns;         // elements of a group and of a row
    const struct tn_quant_format *format; // as it is listed; NULL: f32
};

// An array, and where its elements come from: the place in a file, numbers of config.json,
// or matrices of experts, each at a place of its own, which GGUF has as one array.
struct hf_array {
    tn_format_array array; // first: as it is listed
    const tn_format_array *stored;
    const tn_format_source *source;
    const json_t *numbers;          // NULL: in the file
    struct hf_part *parts;          // of the model's experts; NULL: one
    const struct hf_packed *packed; // NULL: elements as they are
};

struct hf_shard {
    struct hf_shard *next;
    struct safetensors header;
    const char *name; // of the file
};

struct hf {
    tn_format_content content; // first: it is cast back
    const tn_host *host;
    const tn_format_source *folder;
    const struct hf_family *family;
    json_t *config, *tokenizer, *tokenizer_config, *index; // own names and texts
    json_t *processor;                                     // of images; NULL: none
    char *chat;               // of chat_template.jinja, or NULL
    json_t *model;            // the part of `config` about the language model
    int64_t num_experts;      // of a layer; 0: one
    const json_t *factors[2]; // of its frequencies, short and long contexts; or NULL
    struct hf_shard *shards;
    struct hf_place *places; // of all files' arrays, by name
    uint64_t num_places;
    struct hf_array *arrays;
    struct hf_block *blocks; // memory of hf_alloc
    tn_metadata *metadata;
    uint64_t num_metadata, room;
    bool out_of_memory; // when metadata were added
};

// --- memory and metadata (memory.c) ------------------------------------------------------

// Zeroed memory that lives until `close`; NULL when there is none.
void *hf_alloc(struct hf *hf, uint64_t size);
// A text of it, or NULL.
const char *hf_text(struct hf *hf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void hf_free_all(struct hf *hf);

// Add a pair. Keys and texts are borrowed; a failure is hf->out_of_memory. With a key that
// begins with a point: behind the architecture's name.
void hf_add_text(struct hf *hf, const char *key, const char *text);
void hf_add_integer(struct hf *hf, const char *key, int64_t value);
void hf_add_float(struct hf *hf, const char *key, double value);
void hf_add_bool(struct hf *hf, const char *key, bool value);
void hf_add_list(struct hf *hf, const char *key, uint32_t kind, const void *data,
                 uint64_t count);

// Reads a file of the folder as JSON. TN_ERR_NOT_FOUND, with the reason recorded, when it
// is not there. `flags` are jansson's: JSON_DECODE_INT_AS_REAL for files whose integers may
// be of any size and do not matter.
tn_status hf_read_json(struct hf *hf, const char *name, size_t flags, json_t **out_json);
// Reads a file of the folder as a text, ended by a zero byte, of host->alloc.
tn_status hf_read_text(struct hf *hf, const char *name, uint64_t most, char **out_text,
                       uint64_t *out_size, const char **out_path);

// --- the parts ---------------------------------------------------------------------------

tn_status hf_read_config(struct hf *hf);    // config.c: the metadata but the tokenizer's
tn_status hf_read_vision(struct hf *hf);    // vision.c: the tower's, where there is one
tn_status hf_read_tokenizer(struct hf *hf); // tokenizer.c
tn_status hf_read_weights(struct hf *hf);   // weights.c

// Weights of few bits (packed.c). Fills hf->places.
tn_status hf_sort_places(struct hf *hf);
// Whether the array of this name is the scales or biases of another one.
bool hf_is_part(const struct hf *hf, const char *name);
// Lists an array anew when it is a weight of few bits.
tn_status hf_list_packed(struct hf *hf, struct hf_array *array);
tn_status hf_read_packed(const tn_host *host, const struct hf_array *array, void *data);

// The elements of an array that is not in place.
tn_status hf_read_elements(const tn_host *host, const struct hf_array *array, void *data);

#endif // FORMATS_HUGGINGFACE_H
