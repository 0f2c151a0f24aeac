// SPDX-License-Identifier: MIT
// Byte-level BPE: text is cut into words by regular expressions; a word is its bytes, which
// are merged, two neighbours at a time, the pair that was learnt first before the others.
//
// GPT-2 writes bytes as characters that can be printed ("\u0120" is a space); vocabularies
// and merges have texts in this alphabet.
#ifndef TOKENIZERS_BPE_H
#define TOKENIZERS_BPE_H

#include "../common/merge.h"

// --- expressions (families.c) ----------------------------------------------------------

enum { MAX_EXPRESSIONS = 6 };

// How the text of a family of models is cut into words: by the first expression; what each
// match, and what lies between two, by the next one; and so on.
struct bpe_family {
    // Values of "tokenizer.ggml.pre" and "tenon.tokenizer.rule", ended by NULL.
    const char *const *names;
    const char *expressions[MAX_EXPRESSIONS];
    bool whole_words; // a word that is a token is not cut, whatever the merges say
    bool adds_bos;    // where the metadata do not say
    bool characters;  // merges are of characters, with U+2581 for spaces, not of bytes
    bool
        cuts_numbers; // words are cut at numbers, by threes, once they are letters of GPT-2
};

// The family of a name, or NULL.
const struct bpe_family *family_find(const char *name, uint64_t size);
// All names, separated by ", ", cut at `size` bytes.
void family_names(char *out, uint64_t size);

// --- cutting into words (words.c) ------------------------------------------------------

// The expressions of a family, compiled. Constant once it is open.
struct splitter {
    void *context; // of PCRE2, for its memory
    void *codes[MAX_EXPRESSIONS];
    uint32_t num_codes;
};

tn_status splitter_init(const tn_host *host, const struct bpe_family *family,
                        struct splitter *out);
void splitter_finish(struct splitter *s);

// Takes one word.
typedef tn_status take_word(void *state, const char *word, uint64_t size);

// Cuts `size` bytes of UTF-8 and calls `take` for each word, in order. `pattern` has
// characters in the same positions that the expressions are matched with.
tn_status splitter_run(const tn_host *host, const struct splitter *s, const char *pattern,
                       const char *text, uint64_t size, take_word *take, void *state);

// --- text that is no UTF-8 (utf8.c) ----------------------------------------------------

// A text as characters. `text` has any; in `pattern` surrogates, which PCRE2 does not take,
// are private characters of the same size.
struct clean_text {
    const char *text, *pattern;
    uint64_t size;
    char *memory; // of the two, or NULL: they are the given text
};

// Replaces each byte that encodes no character by U+FFFD; characters that take more bytes
// than they need take the fewest. *out is freed by host->free(memory).
tn_status clean_text(const tn_host *host, const char *text, uint64_t size,
                     struct clean_text *out);

// --- GPT-2's alphabet (alphabet.c) -----------------------------------------------------

// Writes the character of a byte, UTF-8; returns its bytes, at most 2.
uint64_t alphabet_write(uint8_t byte, char *out);
// The byte of the character at the beginning of a text, and its bytes in *out_size; -1 for
// one that is not in the alphabet.
int alphabet_read(const char *text, uint64_t size, uint64_t *out_size);
// As `decode` of a vocabulary_kind.
uint64_t alphabet_decode(const char *text, uint64_t size, char *out);

#endif // TOKENIZERS_BPE_H
