// SPDX-License-Identifier: MIT
// Tokenizers: plugins that turn text into the numbers of a vocabulary, and back.
//
//   static const tn_tokenizer_ops ops = {.struct_size = sizeof(ops), .open = open, ...};
//   static const tn_selector selectors[] = {{TN_IFACE_TOKENIZER, "model", "gpt2"}};
//
// A plugin is found by its selector of kind "model": the value that a file has under
// "tokenizer.ggml.model". It is opened from the metadata of a model's file, whose keys are
// those of GGUF ("tokenizer.ggml.tokens", "tokenizer.ggml.merges", ...), whatever the
// file's format.
//
//   tn_tokenizer *tokenizer;
//   int32_t *ids;
//   uint64_t count;
//   if (ops->open(host, metadata, &tokenizer) == TN_OK &&
//       ops->encode(host, tokenizer, text, size, TN_ENCODE_ADD_SPECIAL, &ids, &count) ==
//           TN_OK)
//       ...; // then host->free(host, ids), and ops->close(host, tokenizer)
//
// `host` is the table of the plugin, as the function that finds an interface gives it with
// the table of functions.
//
// Metadata are untrusted: a tokenizer checks sizes, kinds and numbers, and fails with
// TN_ERR_REFUSED and a message that begins with the list's name, names the key, and says
// what was got and expected. Any text can be encoded, any bytes at all included.
//
// Threads. A tokenizer is constant after `open`: every slot is [any-thread], on one
// tokenizer too, but `close`, which comes last.
#ifndef TENON_TOKENIZER_H
#define TENON_TOKENIZER_H

#include <tenon/host.h>
#include <tenon/metadata.h>
#include <tenon/status.h>

// The id by which query() is asked for a tn_tokenizer_ops. Its kind of selector is "model".
#define TN_IFACE_TOKENIZER "tn.tokenizer/1"

// A vocabulary that is open. Opaque: completed by the plugin.
typedef struct tn_tokenizer tn_tokenizer;

// Kinds of tokens: the numbers of "tokenizer.ggml.token_type".
enum {
    TN_TOKEN_NORMAL = 1,       // a part of text
    TN_TOKEN_UNKNOWN = 2,      // stands for what the vocabulary has no token for
    TN_TOKEN_CONTROL = 3,      // a mark for the model, such as the end of a turn; no text
    TN_TOKEN_USER_DEFINED = 4, // text that is found before all else is cut
    TN_TOKEN_UNUSED = 5,       // kept free by who trained the model
    TN_TOKEN_BYTE = 6,         // one byte, "<0x0A>"
};

// Flags of a tn_token.
enum {
    TN_TOKEN_ENDS = 1, // a model that gives this token has ended its turn or text
};

// One token of a vocabulary. Texts are the tokenizer's, valid until `close`.
typedef struct tn_token {
    tn_text text;   // as the vocabulary has it: "\u0120the", "\u2581the", "<|im_end|>"
    tn_text bytes;  // what it stands for in text: " the". A part of a character of UTF-8 is
                    // possible. Of an unknown or control token: its text
    double score;   // SentencePiece's: tokens of higher scores are preferred; else 0
    int32_t kind;   // TN_TOKEN_...; 0 is not used
    uint32_t flags; // TN_TOKEN_ENDS, or 0
} tn_token;

// Flags of a tn_tokenizer_facts.
enum {
    TN_TOKENIZER_ADDS_BOS = 1,   // TN_ENCODE_ADD_SPECIAL puts `bos` in front
    TN_TOKENIZER_ADDS_EOS = 2,   // TN_ENCODE_ADD_SPECIAL puts `eos` behind
    TN_TOKENIZER_ADDS_SPACE = 4, // encode puts a space in front, which decode takes away
};

// Facts about a vocabulary. Owned by the tokenizer, constant until `close`. A token that
// the vocabulary does not have is -1.
typedef struct tn_tokenizer_facts {
    uint32_t struct_size; // sizeof(tn_tokenizer_facts) as the plugin was compiled
    uint32_t flags;       // TN_TOKENIZER_...
    const char *name;     // for people: "bpe (smollm)"
    const int32_t *ends;  // the tokens with TN_TOKEN_ENDS, ascending
    uint64_t num_ends;    // may be 0
    int32_t count;        // of tokens: ids are from 0 to count - 1
    int32_t bos;          // begins a text
    int32_t eos;          // ends a text
    int32_t eot;          // ends a turn of a chat
    int32_t unknown;      // stands for what has no token
    int32_t padding;      // fills up a batch
} tn_tokenizer_facts;

// Flags of encode.
enum {
    // The tokens that a whole prompt of this model begins and ends with, bos and eos, are
    // added as the model's file says. Not for a text that is appended to another.
    TN_ENCODE_ADD_SPECIAL = 1,

    // The texts of control tokens ("<|im_end|>") become these tokens. Without it they are
    // text as any other, as is right for text of a user. User-defined tokens are found
    // either way.
    TN_ENCODE_PARSE_SPECIAL = 2,
};

// Bytes begin .. end - 1 of a text.
typedef struct tn_text_range {
    uint64_t begin, end;
} tn_text_range;

// Flags of decode.
enum {
    // The texts of control, unknown and unused tokens are written. Without it they are left
    // out.
    TN_DECODE_SPECIAL = 1,

    // The tokens follow others: a space that encode may have put in front of a text
    // (TN_TOKENIZER_ADDS_SPACE) is not looked for at their beginning, and stays.
    TN_DECODE_CONTINUES = 2,
};

// The interface of a tokenizer.
//
// For any text of valid UTF-8, decode(encode(text)) with equal flags is the text again, if
// the vocabulary has a token for each byte and its metadata ask for no change of texts, as
// to a normal form of Unicode. Bytes that are no UTF-8 count as U+FFFD, one each, where the
// vocabulary is one of characters.
typedef struct tn_tokenizer_ops {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Opens the vocabulary that `metadata` describe. Borrows them for the call and copies
    // what it keeps. TN_ERR_REFUSED for metadata that are damaged or incomplete,
    // TN_ERR_UNSUPPORTED for a vocabulary of another kind, or with a rule for cutting text
    // ("tokenizer.ggml.pre") that is not known: the message names those that are.
    tn_status (*open)(const tn_host *host, const tn_metadata_list *metadata,
                      tn_tokenizer **out_tokenizer);

    // Gives back all that open took. NULL is fine. Nobody else may use the tokenizer.
    void (*close)(const tn_host *host, tn_tokenizer *tokenizer);

    // The facts of the vocabulary. Cannot fail.
    const tn_tokenizer_facts *(*facts)(const tn_tokenizer *tokenizer);

    // Gives token `id` in *out, whose texts are borrowed until `close`. `size` is
    // sizeof(tn_token) as the caller was compiled: not more is written. TN_ERR_ARGUMENT
    // for an id that is not from 0 to count - 1.
    tn_status (*token)(const tn_host *host, const tn_tokenizer *tokenizer, int32_t id,
                       tn_token *out, uint64_t size);

    // The token of exactly this text ("<|im_end|>"), as tn_token.text has it, or -1.
    // Borrows the text, of `size` bytes.
    int32_t (*find)(const tn_tokenizer *tokenizer, const char *text, uint64_t size);

    // Encodes `size` bytes of text, at most 2^30. Gives *out_ids: *out_count ids, to be
    // freed with host->free; also for an empty text, which may give none. `flags` is of
    // TN_ENCODE_.... Borrows the text.
    tn_status (*encode)(const tn_host *host, const tn_tokenizer *tokenizer,
                        const char *text, uint64_t size, uint32_t flags, int32_t **out_ids,
                        uint64_t *out_count);

    // Decodes `count` ids: their tokens' bytes, one after the other. Gives *out_text, to be
    // freed with host->free: *out_size bytes, and a zero byte behind them. `flags` is of
    // TN_DECODE_.... TN_ERR_ARGUMENT for an id that is not from 0 to count - 1. Borrows the
    // ids.
    tn_status (*decode)(const tn_host *host, const tn_tokenizer *tokenizer,
                        const int32_t *ids, uint64_t count, uint32_t flags, char **out_text,
                        uint64_t *out_size);

    // Optional. As encode with TN_ENCODE_PARSE_SPECIAL, but in `plain`, num_plain ranges
    // that ascend and do not overlap, texts of control tokens are text: a user's words
    // within the form of a conversation. Without control tokens in these ranges the ids are
    // those of encode. User-defined tokens are found there, too, but for those within which
    // two ranges touch, the end of one being the beginning of the next: so a text that is
    // the form's own mark, in a file that calls it user-defined, is kept from being it.
    // TN_ERR_ARGUMENT: ranges that do not ascend, or pass the text.
    tn_status (*encode_mixed)(const tn_host *host, const tn_tokenizer *tokenizer,
                              const char *text, uint64_t size, const tn_text_range *plain,
                              uint64_t num_plain, uint32_t flags, int32_t **out_ids,
                              uint64_t *out_count);
} tn_tokenizer_ops;

#endif // TENON_TOKENIZER_H
