// SPDX-License-Identifier: MIT
// Pipelines: the steps from text to tokens of a folder's tokenizer.json, as far as GGUF has
// no key for them. Three pairs of metadata hold a pipeline:
//
//   tenon.tokenizer.pipeline  words, separated by spaces (see `way_names`). With this pair,
//                             if only with an empty text, tokens are looked for and ids
//                             decoded as Hugging Face's library `tokenizers` does; without
//                             it as llama.cpp does
//   tenon.tokenizer.added     tokens that are found before all else: id, flags (ADDED_...),
//                             id, flags, ...
//   tenon.tokenizer.rule      how text is cut, where "tokenizer.ggml.pre" has no name for
//   it
#ifndef TOKENIZERS_PIPELINE_H
#define TOKENIZERS_PIPELINE_H

#include "vocabulary.h"

enum {
    WAY_GIVEN = 1 << 0,          // the metadata have a pipeline
    WAY_NFC = 1 << 1,            // normal forms of Unicode
    WAY_NFD = 1 << 2,            //
    WAY_NFKC = 1 << 3,           //
    WAY_NFKD = 1 << 4,           //
    WAY_PREPEND = 1 << 5,        // prepends a space to each part
    WAY_REPLACE = 1 << 6,        // spaces become U+2581 before normalized tokens are found
    WAY_SPACE_FIRST = 1 << 7,    // a space at the beginning of the text, where it has none
    WAY_SPACE_ALWAYS = 1 << 8,   // a space at the beginning of each part
    WAY_SPLIT = 1 << 9,          // a word begins at each U+2581
    WAY_IGNORE_MERGES = 1 << 10, // a word that is a token is not merged
    WAY_BYTES = 1 << 11,         // characters without a token become tokens of bytes
    WAY_FUSE = 1 << 12,          // unknown characters in a row are one token
    WAY_STRIP = 1 << 13,         // decoding removes a space at the beginning
    WAY_DROP = 1 << 14,          // decoding removes all of the first token's text
};

enum {
    ADDED_STRIPS_LEFT = 1 << 0,  // takes the white space before it
    ADDED_STRIPS_RIGHT = 1 << 1, // takes the white space behind it
    ADDED_ALONE = 1 << 2,        // not found within a word
    ADDED_NORMALIZED = 1 << 3,   // found in normalized text
};

// A token that is found before the text is cut into words.
struct added_token {
    char *text; // the text to find; owned
    uint64_t size;
    int32_t id;
    uint32_t flags;
};

// Tokens sorted by text, so that binary search finds the longest at a position.
struct added_set {
    struct added_token *items;
    uint32_t count;
    bool first[256]; // first bytes of the texts
};

struct pipeline {
    struct added_set raw, normalized;
};

// Reads a pipeline; *out is zeroed. The caller finishes it after a failure, too.
tn_status pipeline_init(const tn_host *host, const tn_metadata_list *metadata,
                        struct vocabulary *v);
void pipeline_finish(const tn_host *host, struct vocabulary *v);

// Gives the texts of normalized tokens by id; other entries have no data. The caller frees
// the list. *out_bytes: their total size.
tn_status pipeline_texts(const tn_host *host, const struct vocabulary *v,
                         tn_text **out_texts, uint64_t *out_bytes);

// Encodes a text through the pipeline, without bos and eos.
tn_status pipeline_encode(const struct encode_call *call);

// --- normalize.c -----------------------------------------------------------------------

// Normalizes a text; *out_text, which the caller frees, is NULL where nothing changes.
tn_status normalize(const tn_host *host, uint32_t ways, const char *text, uint64_t size,
                    char **out_text, uint64_t *out_size);
// The bytes of white space at the end of a text, and at its beginning.
uint64_t spaces_before(const char *text, uint64_t size);
uint64_t spaces_behind(const char *text, uint64_t size);
// Whether bytes from .. to - 1 of a text have no word character on either side.
bool is_alone(const char *text, uint64_t size, uint64_t from, uint64_t to);

#endif // TOKENIZERS_PIPELINE_H
