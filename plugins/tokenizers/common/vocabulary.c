// SPDX-License-Identifier: MIT
// Reads tokens and facts of a vocabulary from metadata.
#include "pipeline.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Ids and symbols have 31 bits; half of the numbers is left for symbols of merges.
#define MAX_TOKENS (1 << 28)

// --- symbols and their hash table ------------------------------------------------------

static uint64_t vocabulary_hash_text(const char *text, uint64_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ size;
    for (uint64_t i = 0; i < size; i++) {
        hash ^= (unsigned char)text[i];
        hash = (hash & UINT32_MAX) * UINT64_C(0x9e3779b1) + (hash >> 32);
    }
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

// Finds the slot of a text: its symbol's, or the empty one where it belongs.
static struct text_slot *vocabulary_slot_of(const struct vocabulary *v, const char *text,
                                            uint64_t size, uint64_t hash)
{
    uint32_t mask = v->num_slots - 1, tag = (uint32_t)(hash >> 32);
    uint32_t at = (uint32_t)(hash & mask);
    for (; v->slots[at].symbol; at = (at + 1) & mask) {
        if (v->slots[at].tag != tag)
            continue;
        tn_text other = vocabulary_text(v, (int32_t)(v->slots[at].symbol - 1));
        if (other.size == size && memcmp(other.data, text, size) == 0)
            break;
    }
    return &v->slots[at];
}

// Fills a symbol's slot. Of symbols with equal texts the first keeps the slot.
static void slot_fill(struct vocabulary *v, uint32_t symbol)
{
    tn_text text = vocabulary_text(v, (int32_t)symbol);
    uint64_t hash = vocabulary_hash_text(text.data, text.size);
    struct text_slot *slot =
        text.size ? vocabulary_slot_of(v, text.data, text.size, hash) : NULL;
    if (slot && !slot->symbol)
        *slot = (struct text_slot){(uint32_t)(hash >> 32), symbol + 1};
}

int32_t vocabulary_find(const struct vocabulary *v, const char *text, uint64_t size)
{
    if (!size)
        return NO_TOKEN;
    return (int32_t)vocabulary_slot_of(v, text, size, vocabulary_hash_text(text, size))
               ->symbol -
           1;
}

// Makes room in *memory for `needed` records of `size` bytes; keeps the first `used`.
static tn_status vocabulary_reserve(const tn_host *host, void **memory, uint64_t *capacity,
                                    uint64_t used, uint64_t needed, uint64_t size)
{
    if (needed <= *capacity)
        return TN_OK;
    uint64_t count = needed + needed / 2;
    void *grown = clear_alloc(host, count, size);
    if (!grown)
        return TN_ERR_MEMORY;
    if (used)
        memcpy(grown, *memory, used * size);
    host->free(host, *memory);
    *memory = grown;
    *capacity = count;
    return TN_OK;
}

static tn_status grow_slots(const tn_host *host, struct vocabulary *v)
{
    struct text_slot *old = v->slots;
    struct text_slot *slots = clear_alloc(host, 2 * (uint64_t)v->num_slots, sizeof(*slots));
    if (!slots)
        return TN_ERR_MEMORY;
    v->slots = slots;
    v->num_slots *= 2;
    for (uint32_t i = 0; i < v->num_symbols; i++)
        slot_fill(v, i);
    host->free(host, old);
    return TN_OK;
}

// Appends a symbol.
static tn_status add_symbol(const tn_host *host, struct vocabulary *v, const char *text,
                            uint64_t size)
{
    uint64_t end = v->start[v->num_symbols], capacity = v->symbol_capacity;
    void *memory = v->text;
    tn_status status =
        vocabulary_reserve(host, &memory, &v->text_capacity, end, end + size + 1, 1);
    v->text = memory;
    memory = v->start;
    if (status == TN_OK)
        status = vocabulary_reserve(host, &memory, &capacity, (uint64_t)v->num_symbols + 1,
                                    (uint64_t)v->num_symbols + 2, sizeof(*v->start));
    v->start = memory;
    v->symbol_capacity = (uint32_t)capacity;
    if (status == TN_OK && 2 * ((uint64_t)v->num_symbols + 1) > v->num_slots)
        status = grow_slots(host, v);
    if (status)
        return status;
    if (size)
        memcpy(v->text + end, text, size);
    v->text[end + size] = '\0';
    v->start[++v->num_symbols] = end + size + 1;
    slot_fill(v, v->num_symbols - 1);
    return TN_OK;
}

tn_status vocabulary_intern(const tn_host *host, struct vocabulary *v, const char *text,
                            uint64_t size, int32_t *out_symbol)
{
    *out_symbol = vocabulary_find(v, text, size);
    if (*out_symbol != NO_TOKEN)
        return TN_OK;
    *out_symbol = (int32_t)v->num_symbols;
    return add_symbol(host, v, text, size);
}

// --- reading tokens --------------------------------------------------------------------

static tn_status read_tokens(const tn_host *host, const tn_metadata_list *metadata,
                             struct vocabulary *v)
{
    static const char key[] = "tokenizer.ggml.tokens";
    const tn_text *texts;
    uint64_t count, bytes = 0;
    tn_status status = read_texts(host, metadata, key, &texts, &count);
    if (status)
        return status;
    if (count == 0 || count > MAX_TOKENS)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s' has %" PRIu64 " tokens, expected 1 to %d",
                          metadata->name, key, count, MAX_TOKENS);
    for (uint64_t i = 0; i < count; i++)
        bytes += texts[i].size + 1;
    v->facts.count = (int32_t)count;
    v->symbol_capacity = (uint32_t)count + 2;
    v->text_capacity = bytes;
    for (v->num_slots = 16; v->num_slots < 2 * count;)
        v->num_slots *= 2;
    v->start = clear_alloc(host, v->symbol_capacity, sizeof(*v->start));
    v->text = clear_alloc(host, bytes, 1);
    v->slots = clear_alloc(host, v->num_slots, sizeof(*v->slots));
    if (!v->start || !v->text || !v->slots)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count && status == TN_OK; i++)
        status = add_symbol(host, v, texts[i].data, texts[i].size);
    return status;
}

static tn_status read_kinds(const tn_host *host, const tn_metadata_list *metadata,
                            struct vocabulary *v)
{
    static const char key[] = "tokenizer.ggml.token_type";
    const tn_metadata *kinds;
    uint64_t count = (uint64_t)v->facts.count;
    tn_status status = read_numbers(host, metadata, key, count, &kinds);
    if (status)
        return status;
    v->kind = clear_alloc(host, count, sizeof(*v->kind));
    v->strips = clear_alloc(host, count, sizeof(*v->strips));
    if (!v->kind || !v->strips)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        double kind = kinds ? number_at(kinds, i) : TN_TOKEN_NORMAL;
        if (!(kind >= 0 && kind <= TN_TOKEN_BYTE))
            return host->fail(host, TN_ERR_REFUSED,
                              "%s: '%s' of token %" PRIu64 " is %g, expected 1 to %d",
                              metadata->name, key, i, kind, TN_TOKEN_BYTE);
        v->kind[i] = kind < 1 ? TN_TOKEN_NORMAL : (uint8_t)kind; // 0: the file does not say
    }
    return TN_OK;
}

static tn_status read_scores(const tn_host *host, const tn_metadata_list *metadata,
                             bool needed, struct vocabulary *v)
{
    static const char key[] = "tokenizer.ggml.scores";
    const tn_metadata *scores;
    uint64_t count = (uint64_t)v->facts.count;
    tn_status status = read_numbers(host, metadata, key, count, &scores);
    if (status)
        return status;
    if (!scores && needed)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s' is absent, expected a score for each token",
                          metadata->name, key);
    if (!scores)
        return TN_OK;
    v->score = clear_alloc(host, count, sizeof(*v->score));
    if (!v->score)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        double score = number_at(scores, i);
        if (!(score >= -3.4e38 && score <= 3.4e38))
            return host->fail(host, TN_ERR_REFUSED,
                              "%s: '%s' of token %" PRIu64 " is %g, expected a finite f32",
                              metadata->name, key, i, score);
        v->score[i] = (float)score;
    }
    return TN_OK;
}

// --- marks that models use -------------------------------------------------------------

// Texts that end a turn or mark code, in vocabularies of many families. They are control
// tokens whatever the metadata say, as most files were made without those kinds.
static const struct {
    const char *text;
    bool ends;
} marks[] = {
    {"<|eot_id|>", true},
    {"<|im_end|>", true},
    {"<|end|>", true},
    {"<|return|>", true},
    {"<|call|>", true},
    {"<|flush|>", true},
    {"<|calls|>", true},
    {"<end_of_turn>", true},
    {"<|endoftext|>", true},
    {"</s>", true},
    {"<|eom_id|>", true},
    {"<EOT>", true},
    {"_<EOT>", true},
    {"[EOT]", true},
    {"[EOS]", true},
    {"<|end_of_text|>", true},
    {"<eos>", true},
    {"<turn|>", true},
    {"<|tool_response>", true},
    {"<end_of_utterance>", true},
    {"[e~[", true},
    {"<\uff5cend\u2581of\u2581sentence\uff5c>", true},
    {"<|fim_pad|>", true},
    {"<fim-pad>", true},
    {"<fim_pad>", true},
    {"<|fim_repo|>", true},
    {"<|repo_name|>", true},
    {"<fim-repo>", true},
    {"<reponame>", true},
    {"<|file_sep|>", true},
    {"<|fim_prefix|>", false},
    {"<fim-prefix>", false},
    {"<fim_prefix>", false},
    {"<|code_prefix|>", false},
    {"<|fim_suffix|>", false},
    {"<fim-suffix>", false},
    {"<fim_suffix>", false},
    {"<|code_suffix|>", false},
    {"<|fim_middle|>", false},
    {"<fim-middle>", false},
    {"<fim_middle>", false},
    {"<|code_middle|>", false},
};

// Tokens that structure a reply; they count as text of it.
static const char *const parts_of_replies[] = {"<|channel|>", "<|message|>", "<|start|>",
                                               "<|constrain|>"};

static int32_t token_of(const struct vocabulary *v, const char *text)
{
    return vocabulary_find(v, text, strlen(text));
}

// Sets the kinds of such tokens, and a flag in `ends` for each token that ends a turn.
static void vocabulary_find_marks(struct vocabulary *v, bool *ends)
{
    for (size_t i = 0; i < COUNT(marks); i++) {
        int32_t id = token_of(v, marks[i].text);
        if (id == NO_TOKEN)
            continue;
        v->kind[id] = TN_TOKEN_CONTROL;
        ends[id] = marks[i].ends;
    }
    for (size_t i = 0; i < COUNT(parts_of_replies); i++) {
        int32_t id = token_of(v, parts_of_replies[i]);
        if (id != NO_TOKEN)
            v->kind[id] = TN_TOKEN_USER_DEFINED;
    }
    // Families in which a token of the table above means something else.
    int32_t end = token_of(v, "<|end|>"), text_end = token_of(v, "</s>");
    bool calls =
        token_of(v, "<|call|>") != NO_TOKEN || token_of(v, "<|calls|>") != NO_TOKEN;
    if (end != NO_TOKEN && calls &&
        (token_of(v, "<|return|>") != NO_TOKEN || token_of(v, "<|flush|>") != NO_TOKEN)) {
        v->kind[end] = TN_TOKEN_USER_DEFINED;
        ends[end] = false;
    }
    if (text_end != NO_TOKEN && token_of(v, "<|tool_response>") != NO_TOKEN) {
        v->kind[text_end] = TN_TOKEN_NORMAL;
        ends[text_end] = false;
    }
}

static tn_status read_ends(const tn_host *host, const tn_metadata_list *metadata,
                           struct vocabulary *v)
{
    static const char *const keys[] = {
        "tokenizer.ggml.eom_token_id", "tokenizer.ggml.fim_pad_token_id",
        "tokenizer.ggml.fim_rep_token_id", "tokenizer.ggml.fim_sep_token_id"};
    int32_t count = v->facts.count;
    bool *ends = clear_alloc(host, (uint64_t)count, sizeof(*ends));
    if (!ends)
        return TN_ERR_MEMORY;
    vocabulary_find_marks(v, ends);
    for (size_t i = 0; i < COUNT(keys); i++) {
        int32_t id = read_id(host, metadata, keys[i], count, NO_TOKEN);
        if (id != NO_TOKEN)
            ends[id] = true;
    }
    const tn_metadata *more = tn_metadata_find(metadata, "tokenizer.ggml.eos_token_ids");
    bool has_more = more && more->kind == TN_METADATA_INTEGER;
    for (uint64_t i = 0; has_more && i < more->count; i++) {
        int64_t id = ((const int64_t *)more->data)[i];
        if (id >= 0 && id < count)
            ends[id] = true;
    }
    if (v->facts.eos != NO_TOKEN)
        ends[v->facts.eos] = true;
    if (v->facts.eot != NO_TOKEN)
        ends[v->facts.eot] = true;
    for (int32_t i = 0; i < count; i++)
        v->facts.num_ends += ends[i];
    v->ends = clear_alloc(host, v->facts.num_ends, sizeof(*v->ends));
    v->facts.ends = v->ends;
    uint64_t n = 0;
    for (int32_t i = 0; v->ends && i < count; i++)
        if (ends[i])
            v->ends[n++] = i;
    host->free(host, ends);
    return v->ends ? TN_OK : TN_ERR_MEMORY;
}

// Finds the token that ends a turn by its text, where the metadata name none.
static int32_t find_eot(const struct vocabulary *v)
{
    static const char *const texts[] = {"<|eot_id|>",    "<|im_end|>", "<|end|>",
                                        "<end_of_turn>", "<turn|>",    "<end_of_utterance>",
                                        "<EOT>",         "_<EOT>",     "[EOT]"};
    for (size_t i = 0; i < COUNT(texts); i++)
        if (token_of(v, texts[i]) != NO_TOKEN)
            return token_of(v, texts[i]);
    return NO_TOKEN;
}

static void vocabulary_read_facts(const tn_host *host, const tn_metadata_list *metadata,
                                  const struct vocabulary_kind *kind, struct vocabulary *v)
{
    tn_tokenizer_facts *f = &v->facts;
    int32_t bos = v->pipeline ? NO_TOKEN : kind->bos;
    int32_t eos = v->pipeline ? NO_TOKEN : kind->eos;
    int32_t unknown = v->pipeline ? NO_TOKEN : kind->unknown;
    f->struct_size = sizeof(*f);
    snprintf(v->label, sizeof(v->label), kind->detail ? "%s (%s)" : "%s", kind->name,
             kind->detail);
    f->name = v->label;
    f->bos = read_id(host, metadata, "tokenizer.ggml.bos_token_id", f->count, bos);
    f->eos = read_id(host, metadata, "tokenizer.ggml.eos_token_id", f->count, eos);
    f->unknown =
        read_id(host, metadata, "tokenizer.ggml.unknown_token_id", f->count, unknown);
    f->padding =
        read_id(host, metadata, "tokenizer.ggml.padding_token_id", f->count, NO_TOKEN);
    f->eot = read_id(host, metadata, "tokenizer.ggml.eot_token_id", f->count, find_eot(v));
    bool adds_bos = read_flag(metadata, "tokenizer.ggml.add_bos_token", kind->adds_bos);
    if (f->bos != NO_TOKEN && (adds_bos || kind->always_bos))
        f->flags |= TN_TOKENIZER_ADDS_BOS;
    if (f->eos != NO_TOKEN && read_flag(metadata, "tokenizer.ggml.add_eos_token", false))
        f->flags |= TN_TOKENIZER_ADDS_EOS;
    if (kind->adds_space && read_flag(metadata, "tokenizer.ggml.add_space_prefix", true))
        f->flags |= TN_TOKENIZER_ADDS_SPACE;
}

// Phi-3 removes white space behind special tokens; GGUF has no key for that, so the model's
// name decides.
static void read_strips(const tn_metadata_list *metadata, struct vocabulary *v)
{
    tn_text name;
    char lower[128] = "";
    if (v->pipeline || !tn_metadata_text(tn_metadata_find(metadata, "general.name"), &name))
        return;
    for (uint64_t i = 0; i < name.size && i < sizeof(lower) - 1; i++)
        lower[i] = (char)tolower((unsigned char)name.data[i]);
    if (!strstr(lower, "phi-3") && !strstr(lower, "phi3"))
        return;
    for (int32_t i = 0; i < v->facts.count; i++)
        v->strips[i] = kind_is_special(v->kind[i]);
    static const char *const kept[] = {"<unk>", "<s>", "<|endoftext|>"};
    for (size_t i = 0; i < COUNT(kept); i++)
        if (token_of(v, kept[i]) != NO_TOKEN)
            v->strips[token_of(v, kept[i])] = false;
}

// --- what tokens stand for -------------------------------------------------------------

static int vocabulary_hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

void byte_text(int byte, char out[BYTE_TEXT])
{
    static const char digits[] = "0123456789ABCDEF";
    memcpy(out, "<0x", 3);
    out[3] = digits[byte >> 4];
    out[4] = digits[byte & 15];
    out[5] = '>';
}

// The byte that "<0x0A>" stands for, or -1.
static int vocabulary_byte_of(tn_text text)
{
    if (text.size != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>')
        return -1;
    int high = vocabulary_hex_digit(text.data[3]), low = vocabulary_hex_digit(text.data[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

// Writes the bytes that token `id`, of this text, stands for, at *end, and advances *end.
static tn_status decode_token(const tn_host *host, const char *name,
                              const struct vocabulary_kind *kind,
                              const struct vocabulary *v, int32_t id, tn_text text,
                              uint64_t *end)
{
    char *out = v->bytes + *end;
    bool marks_spaces = v->marks_spaces && v->kind[id] == TN_TOKEN_USER_DEFINED;
    int byte = v->kind[id] == TN_TOKEN_BYTE ? vocabulary_byte_of(text) : 0;
    if (byte < 0)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: token %d is '%.32s', expected a byte such as <0x0A>", name,
                          id, text.data);
    if (v->kind[id] == TN_TOKEN_BYTE) {
        *out = (char)(unsigned char)byte;
        *end += 1;
    } else if (kind_is_special(v->kind[id]) && !marks_spaces) {
        memcpy(out, text.data, text.size);
        *end += text.size;
    } else {
        *end += kind->decode(text.data, text.size, out);
    }
    return TN_OK;
}

static tn_status decode_tokens(const tn_host *host, const tn_metadata_list *metadata,
                               const struct vocabulary_kind *kind, struct vocabulary *v)
{
    uint64_t count = (uint64_t)v->facts.count, end = 0, more;
    tn_text *normalized;
    tn_status status = pipeline_texts(host, v, &normalized, &more);
    if (status)
        return status;
    v->bytes_start = clear_alloc(host, count + 1, sizeof(*v->bytes_start));
    v->bytes = clear_alloc(host, v->start[count] + more, 1);
    if (!v->bytes_start || !v->bytes)
        status = TN_ERR_MEMORY;
    for (uint64_t i = 0; status == TN_OK && i < count; i++) {
        bool is_normalized =
            v->pipeline && normalized[i].data && v->kind[i] != TN_TOKEN_BYTE;
        tn_text text = is_normalized ? normalized[i] : vocabulary_text(v, (int32_t)i);
        status = decode_token(host, metadata->name, kind, v, (int32_t)i, text, &end);
        v->bytes[end++] = '\0';
        v->bytes_start[i + 1] = end;
    }
    host->free(host, normalized);
    return status;
}

// --- life ------------------------------------------------------------------------------

tn_status vocabulary_init(const tn_host *host, const tn_metadata_list *metadata,
                          const struct vocabulary_kind *kind, struct vocabulary *out)
{
    tn_status status = read_tokens(host, metadata, out);
    if (status == TN_OK)
        status = read_kinds(host, metadata, out);
    if (status == TN_OK)
        status = read_scores(host, metadata, kind->needs_scores, out);
    if (status == TN_OK)
        status = pipeline_init(host, metadata, out);
    if (status == TN_OK) {
        out->part = kind->part;
        out->marks_spaces = out->pipeline && kind->decode == decode_spaces;
        vocabulary_read_facts(host, metadata, kind, out);
        status = read_ends(host, metadata, out);
    }
    if (status == TN_OK) {
        read_strips(metadata, out);
        status = decode_tokens(host, metadata, kind, out);
    }
    if (status == TN_OK && !out->pipeline)
        status = vocabulary_group(host, out);
    if (status)
        vocabulary_finish(host, out);
    return status;
}

void vocabulary_finish(const tn_host *host, struct vocabulary *v)
{
    host->free(host, v->ends);
    host->free(host, v->start);
    host->free(host, v->text);
    host->free(host, v->slots);
    host->free(host, v->kind);
    host->free(host, v->strips);
    host->free(host, v->score);
    host->free(host, v->bytes_start);
    host->free(host, v->bytes);
    host->free(host, v->groups);
    pipeline_finish(host, v);
    *v = (struct vocabulary){0};
}
