// SPDX-License-Identifier: MIT
// A vocabulary: the data that tokenizers of tn.tokenizer/1 share. Texts with a hash table,
// facts, the special tokens that are found before a text is cut, and decoding.
//
// A plugin's tn_tokenizer begins with a vocabulary. Constant once opened.
#ifndef TOKENIZERS_VOCABULARY_H
#define TOKENIZERS_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <tenon/tokenizer.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// No token, or no symbol.
#define NO_TOKEN (-1)

// Special tokens of one length, which are found before a text is cut.
struct special_group {
    uint32_t length;       // bytes, above 0
    bool has_user_defined; // else all are control or unknown tokens
    int32_t only_first;    // the first byte of all of them, or -1
    bool first[256];       // first bytes of the texts
    bool last[256];        // last bytes of the texts
};

// A slot of the hash table of texts. `tag` is a part of the hash, so that different texts
// are rarely compared.
struct text_slot {
    uint32_t tag;
    uint32_t symbol; // symbol + 1; 0: empty
};

struct encoding; // one call of encode; see tokenizer.h
struct ids;

// Appends the ids of a text of at least one byte without special tokens. `space`: a space
// is put in front.
typedef tn_status encode_part(const tn_tokenizer *tokenizer, struct encoding *e,
                              const char *text, uint64_t size, bool space, struct ids *out);

struct vocabulary {
    tn_tokenizer_facts facts;
    int32_t *ends;  // facts.ends
    char label[64]; // facts.name

    // Symbols: all tokens, by id, and then texts that occur in merges only.
    uint32_t num_symbols, symbol_capacity;
    uint64_t *start; // start[i]: of symbol i in `text`; start[num_symbols]: the end
    char *text;      // all texts, each zero-terminated
    uint64_t text_capacity;
    struct text_slot *slots;
    uint32_t num_slots; // a power of two, at least twice num_symbols

    // Facts of each token.
    uint8_t *kind;         // TN_TOKEN_...
    bool *strips;          // white space behind the token is removed
    float *score;          // NULL: no token has a score
    uint64_t *bytes_start; // as `start`, in `bytes`
    char *bytes;

    struct special_group *groups; // longest texts first
    uint32_t num_groups;

    uint32_t ways;             // WAY_... of pipeline.h; 0: no pipeline
    bool marks_spaces;         // spaces are written as U+2581
    struct pipeline *pipeline; // or NULL
    encode_part *part;         // the tokenizer's
};

// A kind of tokenizer: its decoding, and defaults for its vocabularies.
struct vocabulary_kind {
    // Writes the bytes that a normal token's text stands for, at most `size`; returns their
    // number.
    uint64_t (*decode)(const char *text, uint64_t size, char *out);
    encode_part *part;
    const char *name;          // "bpe"
    const char *detail;        // "smollm", or NULL
    int32_t bos, eos, unknown; // where the metadata name none; NO_TOKEN
    bool adds_bos, adds_space; // where the metadata do not say
    bool always_bos;           // bos is added even if the metadata say no
    bool needs_scores;
};

// Opens *out, which is zeroed. On failure *out is as after vocabulary_finish.
tn_status vocabulary_init(const tn_host *host, const tn_metadata_list *metadata,
                          const struct vocabulary_kind *kind, struct vocabulary *out);
void vocabulary_finish(const tn_host *host, struct vocabulary *v);

// Size of "<0x0A>", the text of a byte's token, without the zero byte.
enum { BYTE_TEXT = 6 };
void byte_text(int byte, char out[BYTE_TEXT]);

// Finds the symbol of a text, or NO_TOKEN. Symbols from facts.count on are not tokens.
int32_t vocabulary_find(const struct vocabulary *v, const char *text, uint64_t size);

// vocabulary_find(), but adds a missing text. Only before `v` is shared.
tn_status vocabulary_intern(const tn_host *host, struct vocabulary *v, const char *text,
                            uint64_t size, int32_t *out_symbol);

// The text of a symbol.
static inline tn_text vocabulary_text(const struct vocabulary *v, int32_t symbol)
{
    uint64_t start = v->start[symbol];
    return (tn_text){v->text + start, v->start[symbol + 1] - start - 1};
}

// Whether tokens of this kind are found before a text is cut.
static inline bool kind_is_special(uint8_t kind)
{
    return kind == TN_TOKEN_CONTROL || kind == TN_TOKEN_USER_DEFINED ||
           kind == TN_TOKEN_UNKNOWN;
}

// --- slots of tn_tokenizer_ops --------------------------------------------------------

tn_status vocabulary_token(const tn_host *host, const struct vocabulary *v, int32_t id,
                           tn_token *out, uint64_t size);
tn_status vocabulary_decode(const tn_host *host, const struct vocabulary *v,
                            const int32_t *ids, uint64_t count, uint32_t flags,
                            char **out_text, uint64_t *out_size);

// --- encoding (encode.c) --------------------------------------------------------------

// A growing list of ids. Begins as {.host = host}; the owner frees it by host->free(data).
struct ids {
    const tn_host *host;
    int32_t *data;
    uint64_t count, capacity;
};
tn_status ids_grow(struct ids *ids);

static inline tn_status ids_add(struct ids *ids, int32_t id)
{
    if (ids->count == ids->capacity) {
        tn_status status = ids_grow(ids);
        if (status)
            return status;
    }
    ids->data[ids->count++] = id;
    return TN_OK;
}

// A text to encode, and its ranges in which no control token is found.
struct encode_input {
    const char *text;
    uint64_t size;
    const tn_text_range *plain; // in ascending order
    uint64_t num_plain;
    uint32_t flags; // TN_ENCODE_...
};

// The index of the first plain range that ends behind `begin`; num_plain: none does.
uint64_t plain_behind(const struct encode_input *input, uint64_t begin);
// Whether a token in bytes begin .. end - 1 may be found: a control token where special
// tokens are parsed and no byte is plain, a user-defined one unless two plain ranges touch
// within it.
bool input_allows(const struct encode_input *input, uint8_t kind, uint64_t begin,
                  uint64_t end);

// One call of encode.
struct encode_call {
    const tn_host *host;
    const tn_tokenizer *tokenizer;
    const struct vocabulary *v;
    struct encoding *state;
    const struct encode_input *input;
    struct ids *out;
};

// Encodes a text: cuts it at special tokens, and calls v->part for the text between.
// `call->out` is not used.
tn_status vocabulary_encode(const struct encode_call *call, int32_t **out_ids,
                            uint64_t *out_count);

// Fills v->groups.
tn_status vocabulary_group(const tn_host *host, struct vocabulary *v);

// --- metadata (read.c) ----------------------------------------------------------------

// Reads the list of texts under `key`: *out of *count. An absent key is refused.
tn_status read_texts(const tn_host *host, const tn_metadata_list *metadata, const char *key,
                     const tn_text **out, uint64_t *count);
// Reads a list of at least `count` numbers; *out is NULL where it is absent.
tn_status read_numbers(const tn_host *host, const tn_metadata_list *metadata,
                       const char *key, uint64_t count, const tn_metadata **out);
double number_at(const tn_metadata *list, uint64_t index);
// Reads an id below `count`; `absent` where the key is absent or the id out of range.
int32_t read_id(const tn_host *host, const tn_metadata_list *metadata, const char *key,
                int32_t count, int32_t absent);
// Reads a truth value; `absent` where the key is absent.
bool read_flag(const tn_metadata_list *metadata, const char *key, bool absent);

// --- spaces (space.c) ------------------------------------------------------------------

// Writes a text with its spaces as U+2581, `first` for one more in front; the caller frees
// it by host->free.
tn_status encode_spaces(const tn_host *host, const char *text, uint64_t size, bool first,
                        char **out_text, uint64_t *out_size);
// Whether a text begins with U+2581.
bool begins_marked(const char *text, uint64_t size);
// The inverse, as `decode` of struct vocabulary_kind.
uint64_t decode_spaces(const char *text, uint64_t size, char *out);

// Size of a UTF-8 character by its first byte; 1 for an invalid byte.
static inline uint64_t character_bytes(char first)
{
    unsigned char c = (unsigned char)first;
    return c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

// --- memory ---------------------------------------------------------------------------

// Allocates `count` zeroed records of `size` bytes; NULL, with the failure recorded.
void *clear_alloc(const tn_host *host, uint64_t count, uint64_t size);

#endif // TOKENIZERS_VOCABULARY_H
