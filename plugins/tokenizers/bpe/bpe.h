// SPDX-License-Identifier: MIT
// Byte-level BPE: text is cut into words by regular expressions; a word is its bytes, which
// are merged, two adjacent symbols at a time, the pair that was learnt first before the
// others.
//
// GPT-2 writes bytes as characters that can be printed ("\u0120" is a space); vocabularies
// and merges have texts in this alphabet.
#ifndef TOKENIZERS_BPE_H
#define TOKENIZERS_BPE_H

#include "../common/merge.h"

// --- expressions (families.c) ----------------------------------------------------------

enum { MAX_EXPRESSIONS = 6 };

// How the text of a family of models is cut into words: the first expression cuts the text;
// the next one cuts each match, and the text between matches; and so on.
struct bpe_family {
    // Values of "tokenizer.ggml.pre" and "tenon.tokenizer.rule", ended by NULL.
    const char *const *names;
    const char *expressions[MAX_EXPRESSIONS];
    bool whole_words;  // a word that is a token is not cut, whatever the merges say
    bool adds_bos;     // default where the metadata do not say
    bool characters;   // merges are of characters, with U+2581 for spaces, not of bytes
    bool cuts_numbers; // GPT-2's letters are cut at numbers, and these by threes
};

// Finds the family by one of its names, or NULL.
const struct bpe_family *family_find(const char *name, uint64_t size);
// Writes all names, separated by ", ", cut at `size` bytes.
void family_names(char *out, uint64_t size);

// --- cutting into words (words.c) ------------------------------------------------------

// The expressions of a family, compiled. Constant once opened.
struct splitter {
    void *context; // of PCRE2, which allocates with it
    void *codes[MAX_EXPRESSIONS];
    uint32_t num_codes;
};

tn_status splitter_init(const tn_host *host, const struct bpe_family *family,
                        struct splitter *out);
void splitter_finish(struct splitter *s);

// Called for each word.
typedef tn_status take_word(void *state, const char *word, uint64_t size);

// Cuts `size` bytes of UTF-8 and calls `take` for each word, in order. Expressions are
// matched against `pattern`, whose characters have the same positions.
tn_status splitter_run(const tn_host *host, const struct splitter *s, const char *pattern,
                       const char *text, uint64_t size, take_word *take, void *state);

// --- text that is no UTF-8 (utf8.c) ----------------------------------------------------

// A text as characters. `text` may have surrogates, which PCRE2 refuses; `pattern` has
// private characters of the same size in their place.
struct clean_text {
    const char *text, *pattern;
    uint64_t size;
    char *memory; // of both; NULL: both are the given text
};

// Replaces each byte that encodes no character by U+FFFD; overlong encodings become the
// shortest. host->free(memory) frees *out.
tn_status clean_text(const tn_host *host, const char *text, uint64_t size,
                     struct clean_text *out);

// --- GPT-2's alphabet (alphabet.c) -----------------------------------------------------

// Writes the letter of a byte in UTF-8; returns its size, at most 2 bytes.
uint64_t alphabet_write(uint8_t byte, char *out);
// Returns the byte whose letter a text begins with, and the letter's size in *out_size; -1
// for a character that is not in the alphabet.
int alphabet_read(const char *text, uint64_t size, uint64_t *out_size);
// See `decode` of struct vocabulary_kind.
uint64_t alphabet_decode(const char *text, uint64_t size, char *out);

#endif // TOKENIZERS_BPE_H
