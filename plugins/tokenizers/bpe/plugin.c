// SPDX-License-Identifier: MIT
// org.tenon.bpe: vocabularies of "gpt2", byte-level BPE, and of "gemma4", BPE of
// characters.
#include <string.h>
#include <tenon/provider.h>
#include "../common/pipeline.h"
#include "../common/tokenizer.h"
#include "bpe.h"

struct tn_tokenizer {
    struct vocabulary vocabulary; // first: vocabulary_of() relies on it
    const struct bpe_family *family;
    struct splitter splitter;
    struct merges merges;
    int32_t bytes[256]; // symbol of each byte
    bool whole_words;   // a word that is a token is not cut, whatever the merges say
};

// --- words to ids ----------------------------------------------------------------------

// State of taking a text's words.
struct bpe_words {
    struct encoding *encoding;
    const tn_tokenizer *tokenizer;
    struct ids *out;
};

// The token of a whole word, or NO_TOKEN.
static int32_t whole_word(const tn_tokenizer *t, const char *word, uint64_t size)
{
    char text[512];
    uint64_t written = 0;
    if (size > sizeof(text) / 2)
        return NO_TOKEN;
    for (uint64_t i = 0; i < size; i++)
        written += alphabet_write((uint8_t)word[i], text + written);
    int32_t id = vocabulary_find(&t->vocabulary, text, written);
    return id < t->vocabulary.facts.count ? id : NO_TOKEN;
}

static bool is_newlines(const char *word, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        if (word[i] != '\n')
            return false;
    return true;
}

// The symbol of the character at the beginning of a text, else of its first byte; *out_size
// is the number of bytes that the symbol stands for.
static int32_t character_symbol(const tn_tokenizer *t, const char *text, uint64_t size,
                                uint64_t *out_size)
{
    uint64_t bytes = character_bytes(text[0]);
    int32_t symbol =
        bytes <= size ? vocabulary_find(&t->vocabulary, text, bytes) : NO_TOKEN;
    *out_size = symbol == NO_TOKEN ? 1 : bytes;
    return symbol == NO_TOKEN ? t->bytes[(uint8_t)text[0]] : symbol;
}

// Appends the bytes of a symbol that is no token, as far as they are tokens.
static tn_status bpe_add_bytes(const struct bpe_words *words, int32_t symbol)
{
    const tn_tokenizer *t = words->tokenizer;
    tn_text text = vocabulary_text(&t->vocabulary, symbol);
    tn_status status = TN_OK;
    if (t->family->characters && text.size > 2 && memcmp(text.data, "<0x", 3) == 0)
        return TN_OK; // the vocabulary lacks this byte
    for (uint64_t i = 0, size = 1; status == TN_OK && i < text.size; i += size) {
        int byte = t->family->characters
                       ? (uint8_t)text.data[i]
                       : alphabet_read(text.data + i, text.size - i, &size);
        if (byte < 0)
            size = 1;
        if (byte >= 0 && t->bytes[byte] < t->vocabulary.facts.count)
            status = ids_add(words->out, t->bytes[byte]);
    }
    return status;
}

static tn_status bpe_take(void *state, const char *word, uint64_t size)
{
    const struct bpe_words *words = state;
    struct encoding *e = words->encoding;
    const tn_tokenizer *t = words->tokenizer;
    bool characters = t->family->characters;
    int32_t whole = NO_TOKEN;
    if (characters && is_newlines(word, size))
        whole = vocabulary_find(&t->vocabulary, word, size);
    else if (t->whole_words)
        whole = whole_word(t, word, size);
    if (whole != NO_TOKEN && whole < t->vocabulary.facts.count)
        return ids_add(words->out, whole);
    uint32_t *symbols = merge_symbols(e->host, &e->space, size);
    uint64_t count = 0;
    if (!symbols)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0, bytes = 1; i < size; i += bytes)
        symbols[count++] =
            (uint32_t)(characters ? character_symbol(t, word + i, size - i, &bytes)
                                  : t->bytes[(uint8_t)word[i]]);
    count = merges_apply(&t->merges, &e->space, count);
    tn_status status = TN_OK;
    for (uint64_t i = 0; status == TN_OK && i < count; i++)
        status = (int32_t)symbols[i] < t->vocabulary.facts.count
                     ? ids_add(words->out, (int32_t)symbols[i])
                     : bpe_add_bytes(words, (int32_t)symbols[i]);
    return status;
}

static tn_status add_space(const tn_host *host, const char *text, uint64_t *size,
                           char **out)
{
    *out = host->alloc(host, *size + 1, 0);
    if (!*out)
        return TN_ERR_MEMORY;
    (*out)[0] = ' ';
    memcpy(*out + 1, text, *size);
    ++*size;
    return TN_OK;
}

// Whether the letter of a byte is a number in Unicode.
static bool bpe_is_number(char byte)
{
    unsigned char c = (unsigned char)byte;
    return (c >= '0' && c <= '9') || c == 0xb2 || c == 0xb3 || c == 0xb9 ||
           (c >= 0xbc && c <= 0xbe);
}

// The size of the next piece: three digits, the text before them, or the rest.
static uint64_t digits_end(const char *text, uint64_t size)
{
    uint64_t digits = 0;
    for (uint64_t i = 0; i < size; i++) {
        digits = text[i] >= '0' && text[i] <= '9' ? digits + 1 : 0;
        if (digits == 3)
            return i == 2 ? 3 : i - 2;
    }
    return size;
}

static tn_status take_numbers(void *state, const char *word, uint64_t size)
{
    tn_status status = TN_OK;
    for (uint64_t at = 0, end; status == TN_OK && at < size; at = end) {
        bool number = bpe_is_number(word[at]);
        for (end = at + 1; end < size && bpe_is_number(word[end]) == number;)
            end++;
        while (status == TN_OK && at < end) {
            uint64_t part = number ? digits_end(word + at, end - at) : end - at;
            status = bpe_take(state, word + at, part);
            at += part;
        }
    }
    return status;
}

static tn_status encode_words(const tn_tokenizer *t, struct encoding *e, const char *text,
                              uint64_t size, bool space, struct ids *out)
{
    struct bpe_words words = {.encoding = e, .tokenizer = t, .out = out};
    struct clean_text clean;
    char *spaced = NULL;
    tn_status status = TN_OK;
    if (t->family->characters)
        status = encode_spaces(e->host, text, size, space, &spaced, &size);
    else if (space)
        status = add_space(e->host, text, &size, &spaced);
    text = spaced ? spaced : text;
    if (status == TN_OK)
        status = clean_text(e->host, text, size, &clean);
    if (status == TN_OK) {
        status = splitter_run(e->host, &t->splitter, clean.pattern, clean.text, clean.size,
                              t->family->cuts_numbers ? take_numbers : bpe_take, &words);
        e->host->free(e->host, clean.memory);
    }
    e->host->free(e->host, spaced);
    return status;
}

// --- opening ---------------------------------------------------------------------------

static tn_status find_family(const tn_host *host, const tn_metadata_list *metadata,
                             tn_text *out_name, const struct bpe_family **out)
{
    static const char fallback[] = "default";
    tn_text model = {"", 0};
    *out_name = (tn_text){fallback, sizeof(fallback) - 1};
    (void)tn_metadata_text(tn_metadata_find(metadata, "tokenizer.ggml.model"), &model);
    if (model.size == 6 && memcmp(model.data, "gemma4", 6) == 0)
        *out_name = model;
    else if (tn_metadata_text(tn_metadata_find(metadata, "tenon.tokenizer.rule"), out_name))
        host->log(host, TN_LOG_DEBUG, "tokenizer", "%s: text is cut by the rule '%s'",
                  metadata->name, out_name->data);
    else if (!tn_metadata_text(tn_metadata_find(metadata, "tokenizer.ggml.pre"), out_name))
        host->log(host, TN_LOG_WARN, "tokenizer",
                  "%s: 'tokenizer.ggml.pre' is absent: text is cut by the rule '%s'",
                  metadata->name, fallback);
    *out = family_find(out_name->data, out_name->size);
    if (*out)
        return TN_OK;
    char names[2048];
    family_names(names, sizeof(names));
    return host->fail(host, TN_ERR_UNSUPPORTED,
                      "%s: the rule for cutting text ('tokenizer.ggml.pre') is '%.64s', "
                      "expected one of: %s",
                      metadata->name, out_name->data, names);
}

// Finds the symbols of single bytes. Some may not be tokens.
static tn_status bpe_find_bytes(const tn_host *host, tn_tokenizer *t)
{
    tn_status status = TN_OK;
    for (int byte = 0; status == TN_OK && byte < 256; byte++) {
        char text[BYTE_TEXT];
        uint64_t size = sizeof(text);
        if (t->family->characters)
            byte_text(byte, text);
        else
            size = alphabet_write((uint8_t)byte, text);
        status = vocabulary_intern(host, &t->vocabulary, text, size, &t->bytes[byte]);
    }
    return status;
}

static tn_status bpe_open_parts(const tn_host *host, const tn_metadata_list *metadata,
                                tn_tokenizer *t)
{
    tn_text name;
    tn_status status = find_family(host, metadata, &name, &t->family);
    if (status)
        return status;
    const struct vocabulary_kind kind = {.decode = t->family->characters ? decode_spaces
                                                                         : alphabet_decode,
                                         .part = encode_words,
                                         .name = "bpe",
                                         .detail = name.data,
                                         .bos = NO_TOKEN,
                                         .eos = NO_TOKEN,
                                         .unknown = NO_TOKEN,
                                         .adds_bos = t->family->adds_bos,
                                         .always_bos = t->family->characters};
    status = vocabulary_init(host, metadata, &kind, &t->vocabulary);
    t->whole_words = t->vocabulary.pipeline ? t->vocabulary.ways & WAY_IGNORE_MERGES
                                            : t->family->whole_words;
    if (status == TN_OK)
        status = bpe_find_bytes(host, t);
    if (status == TN_OK)
        status = merges_init(host, metadata, &t->vocabulary, &t->merges);
    if (status == TN_OK)
        status = splitter_init(host, t->family, &t->splitter);
    return status;
}

static void bpe_close(const tn_host *host, tn_tokenizer *t)
{
    if (!t)
        return;
    splitter_finish(&t->splitter);
    merges_finish(host, &t->merges);
    vocabulary_finish(host, &t->vocabulary);
    host->free(host, t);
}

static tn_status bpe_open(const tn_host *host, const tn_metadata_list *metadata,
                          tn_tokenizer **out)
{
    tn_tokenizer *t = clear_alloc(host, 1, sizeof(*t));
    if (!t)
        return TN_ERR_MEMORY;
    tn_status status = bpe_open_parts(host, metadata, t);
    if (status) {
        bpe_close(host, t);
        return status;
    }
    *out = t;
    return TN_OK;
}

// --- the interface ---------------------------------------------------------------------

static const tn_tokenizer_ops ops = {
    .struct_size = sizeof(ops),
    .open = bpe_open,
    .close = bpe_close,
    TOKENIZER_SLOTS,
};

static const tn_selector selectors[] = {{TN_IFACE_TOKENIZER, "model", "gpt2"},
                                        {TN_IFACE_TOKENIZER, "model", "gemma4"}};

TN_PROVIDER("org.tenon.bpe", "0.1.0", "Tenon", TN_IFACE_TOKENIZER, ops, selectors);
