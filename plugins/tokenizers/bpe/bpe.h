// SPDX-License-Identifier: MIT
// Byte-level BPE: text is cut into words by regular expressions; a word is its bytes, which
// are merged, two neighbours at a time, the pair that was learnt first before the others.
//
// GPT-2 writes bytes as characters that can be printed ("\u0120" is a space); vocabularies
// and merges have texts in this alphabet.
#ifndef TOKENIZERS_BPE_H
#define TOKENIZERS_BPE_H

#include "../common/vocabulary.h"

// --- expressions (families.c) ----------------------------------------------------------

enum { MAX_EXPRESSIONS = 6 };

// How the text of a family of models is cut into words: by the first expression; what each
// match, and what lies between two, by the next one; and so on.
struct bpe_family {
    const char *const *names; // values of "tokenizer.ggml.pre", ended by NULL
    const char *expressions[MAX_EXPRESSIONS];
    bool whole_words; // a word that is a token is not cut, whatever the merges say
    bool adds_bos;    // where the metadata do not say
    bool characters;  // merges are of characters, with U+2581 for spaces, not of bytes
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
// characters in the same places that the expressions are matched with.
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

// What encodes no character becomes U+FFFD, a byte each; characters that take more bytes
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

// --- merges (merge.c) ------------------------------------------------------------------

// Two symbols that become one. The number of a merge is its rank: 0 comes first.
struct merge {
    uint32_t left, right, result;
};

struct merges {
    struct merge *items;
    uint32_t count;
    uint32_t *slots;    // of the hash table: rank + 1, or 0
    uint32_t num_slots; // a power of two
};

// Reads the merges; their texts become symbols.
tn_status merges_init(const tn_host *host, const tn_metadata_list *metadata,
                      struct vocabulary *v, struct merges *out);
void merges_finish(const tn_host *host, struct merges *m);

// Memory for words, kept from one to the next. Zeroed to begin with.
struct merge_space {
    void *memory;
    uint64_t capacity; // symbols
};

// The symbols of a word, of which there is room for `count`, at least 1; NULL when out of
// memory. To be filled before merges_apply.
uint32_t *merge_symbols(const tn_host *host, struct merge_space *space, uint64_t count);
// Merges `count` symbols in place; returns how many are left.
uint64_t merges_apply(const struct merges *m, struct merge_space *space, uint64_t count);

#endif // TOKENIZERS_BPE_H
