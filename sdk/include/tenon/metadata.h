// SPDX-License-Identifier: MIT
// Metadata of a file: pairs of a key and a typed value beside its arrays, as a model's file
// carries its dimensions and its vocabulary.
//
//   int64_t layers;
//   if (!tn_metadata_integer(tn_metadata_find(&list, "llama.block_count"), &layers))
//       ...; // absent, or no integer
//
// A format gives them (<tenon/format.h>), an application reads them (<tenon/file.h>), and
// plugins for models and tokenizers are given them.
//
// Keys are the file's own. Those of a language model are the keys of GGUF, whatever the
// format, so that a model's plugin knows one set of names: "general.architecture",
// "ARCHITECTURE.block_count", "tokenizer.ggml.tokens"; see the document of GGUF in
// github.com/ggml-org/ggml, gguf.md among its documents.
//
// Untrusted: a value has the kind that it says and the size that it says, and nothing more
// is known of it. Who reads one checks its range, and that a text is UTF-8 where that
// matters.
//
// Threads. Any: metadata are constant until their owner ends. Nothing here allocates or
// records a failure.
#ifndef TENON_METADATA_H
#define TENON_METADATA_H

#include <stdint.h>

// The kind of a value, or of each value of a list, and so the type of its record in
// tn_metadata.data. More kinds may come: who meets an unknown one passes it by.
enum {
    TN_METADATA_TEXT = 1,     // tn_text
    TN_METADATA_INTEGER = 2,  // int64_t
    TN_METADATA_UNSIGNED = 3, // uint64_t: where one value is too large for int64_t
    TN_METADATA_FLOAT = 4,    // double
    TN_METADATA_BOOL = 5,     // uint8_t, 0 or 1
};

// Flags of a tn_metadata.
enum {
    TN_METADATA_LIST = 1, // a list, which may be empty; else one value, and `count` is 1
};

// A text, or any other bytes that a file has under a key: a text of `size` bytes, UTF-8
// where the file keeps to that. A zero byte, which `size` leaves out, is behind it; there
// may be others within it.
typedef struct tn_text {
    const char *data;
    uint64_t size; // bytes
} tn_text;

// One pair. Owned by who made the list, as all that it points to.
typedef struct tn_metadata {
    const char *key;  // UTF-8, ended by a zero byte
    const void *data; // `count` values of the type that `kind` says, aligned for it; may be
                      // NULL for a list that is empty
    uint64_t count;   // of the list; 1 for a single value
    uint32_t kind;    // TN_METADATA_...
    uint32_t flags;   // TN_METADATA_LIST, or 0
} tn_metadata;

// The pairs of one file or model, in the file's order; no key comes twice. Pair i is at
// byte i * entry_size of `entries`.
typedef struct tn_metadata_list {
    uint32_t struct_size; // sizeof(tn_metadata_list)
    uint32_t entry_size;  // sizeof(tn_metadata)
    const tn_metadata *entries;
    uint64_t count;
    const char *name; // of the file, for messages
} tn_metadata_list;

// Pair `index`, which must be below `list->count`. Borrowed from the list, as is what the
// pair points to.
static inline const tn_metadata *tn_metadata_at(const tn_metadata_list *list,
                                                uint64_t index)
{
    return (const tn_metadata *)(const void *)((const char *)(const void *)list->entries +
                                               index * list->entry_size);
}

// 1 when the pair has this key, byte for byte, else 0.
static inline int32_t tn_metadata_is(const tn_metadata *pair, const char *key)
{
    const char *mine = pair->key;
    for (; *mine && *mine == *key; mine++)
        key++;
    return *mine == *key;
}

// The first pair of this key, or NULL. Borrowed from the list. Looks at one pair after the
// other.
static inline const tn_metadata *tn_metadata_find(const tn_metadata_list *list,
                                                  const char *key)
{
    for (uint64_t i = 0; i < list->count; i++)
        if (tn_metadata_is(tn_metadata_at(list, i), key))
            return tn_metadata_at(list, i);
    return (const tn_metadata *)0;
}

// The four functions below read a single value. `pair` may be what tn_metadata_find gave.
// Each returns 1 and gives the value in *out; or 0, and leaves *out alone, for NULL, a
// list, or a value of another kind: who asks says in the message what was expected.

// An integer that fits 64 bits with sign.
static inline int32_t tn_metadata_integer(const tn_metadata *pair, int64_t *out)
{
    if (pair == 0 || pair->kind != TN_METADATA_INTEGER || pair->flags & TN_METADATA_LIST)
        return 0;
    *out = *(const int64_t *)pair->data;
    return 1;
}

// A floating-point number; an integer counts as one too, and is rounded to f64.
static inline int32_t tn_metadata_number(const tn_metadata *pair, double *out)
{
    int64_t integer;
    if (tn_metadata_integer(pair, &integer)) {
        *out = (double)integer;
        return 1;
    }
    if (pair == 0 || pair->kind != TN_METADATA_FLOAT || pair->flags & TN_METADATA_LIST)
        return 0;
    *out = *(const double *)pair->data;
    return 1;
}

// A truth value: *out is 0 or 1.
static inline int32_t tn_metadata_bool(const tn_metadata *pair, int32_t *out)
{
    if (pair == 0 || pair->kind != TN_METADATA_BOOL || pair->flags & TN_METADATA_LIST)
        return 0;
    *out = *(const uint8_t *)pair->data;
    return 1;
}

// A text: *out points into the pair, and is valid as long as the pair.
static inline int32_t tn_metadata_text(const tn_metadata *pair, tn_text *out)
{
    if (pair == 0 || pair->kind != TN_METADATA_TEXT || pair->flags & TN_METADATA_LIST)
        return 0;
    *out = *(const tn_text *)pair->data;
    return 1;
}

#endif // TENON_METADATA_H
