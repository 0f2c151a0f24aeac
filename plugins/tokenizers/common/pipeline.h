// SPDX-License-Identifier: MIT
// Pipelines: what a folder's tokenizer.json says of a text's way to its tokens, as far as
// GGUF has no key for it. Three pairs of metadata hold it:
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
    WAY_GIVEN = 1 << 0,          // there is a pipeline
    WAY_NFC = 1 << 1,            // normal forms of Unicode
    WAY_NFD = 1 << 2,            //
    WAY_NFKC = 1 << 3,           //
    WAY_NFKD = 1 << 4,           //
    WAY_PREPEND = 1 << 5,        // a space in front of each part
    WAY_REPLACE = 1 << 6,        // spaces become U+2581 before normalized tokens are found
    WAY_SPACE_FIRST = 1 << 7,    // a space at the beginning, where there is none
    WAY_SPACE_ALWAYS = 1 << 8,   // of each part
    WAY_SPLIT = 1 << 9,          // a word begins at each U+2581
    WAY_IGNORE_MERGES = 1 << 10, // a word that is a token is not cut
    WAY_BYTES = 1 << 11,         // characters without a token become tokens of bytes
    WAY_FUSE = 1 << 12,          // several unknown characters are one token
    WAY_STRIP = 1 << 13,         // decoding takes a space at the beginning away
    WAY_DROP = 1 << 14,          // and here all of the first token
};

enum {
    ADDED_STRIPS_LEFT = 1 << 0,  // white space before it belongs to it
    ADDED_STRIPS_RIGHT = 1 << 1, // and behind it
    ADDED_ALONE = 1 << 2,        // not within a word
    ADDED_NORMALIZED = 1 << 3,   // looked for in normalized text
};

// A token that is found before all else.
struct added_token {
    char *text; // as it is looked for; its own
    uint64_t size;
    int32_t id;
    uint32_t flags;
};

// Tokens by their texts, so that the longest at a position is found by halving.
struct added_set {
    struct added_token *items;
    uint32_t count;
    bool first[256]; // bytes that one of them begins with
};

struct pipeline {
    struct added_set raw, normalized;
};

// Reads a pipeline; *out is zeroed. On failure it is to be finished, too.
tn_status pipeline_init(const tn_host *host, const tn_metadata_list *metadata,
                        struct vocabulary *v);
void pipeline_finish(const tn_host *host, struct vocabulary *v);

// Gives the texts of tokens that are normalized: by id, the others without data; the
// caller's. *out_bytes: of all.
tn_status pipeline_texts(const tn_host *host, const struct vocabulary *v,
                         tn_text **out_texts, uint64_t *out_bytes);

// Encodes a text as the pipeline says, but for bos and eos.
tn_status pipeline_encode(const struct encode_call *call);

// --- normalize.c -----------------------------------------------------------------------

// A text normalized, of the caller; *out_text is NULL where it stays as it is.
tn_status normalize(const tn_host *host, uint32_t ways, const char *text, uint64_t size,
                    char **out_text, uint64_t *out_size);
// Bytes of white space at the end of a text, and at its beginning.
uint64_t spaces_before(const char *text, uint64_t size);
uint64_t spaces_behind(const char *text, uint64_t size);
// Whether bytes from .. to - 1 of a text are not within a word.
bool is_alone(const char *text, uint64_t size, uint64_t from, uint64_t to);

#endif // TOKENIZERS_PIPELINE_H
