// SPDX-License-Identifier: MIT
// tokenizer.json and tokenizer_config.json: the vocabulary as GGUF has it. Byte pairs
// become GGUF's "gpt2" (bytes as letters, with merges) or "llama" (pieces with scores).
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "huggingface.h"
#include "pipeline.h"

#define MAX_GAPS 65536         // ids without a token
#define UNUSED_SCORE -1000.0   // as other programs write it
#define MAX_TEMPLATE (1 << 24) // bytes of a chat template

// GGUF's types of tokens.
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5, BYTE = 6 };

struct hf_vocabulary {
    struct hf *hf;
    const json_t *model, *vocab, *added; // members of tokenizer.json
    tn_text *tokens;
    int64_t *types;
    double *scores;
    uint64_t count; // ids, also those without a token
    struct hf_pipeline pipeline;
};

static tn_status tokenizer_refuse(const struct hf *hf, const char *what)
{
    return hf->host->fail(hf->host, TN_ERR_REFUSED, "%s: tokenizer.json: %s",
                          hf->folder->name, what);
}

// --- tokens -----------------------------------------------------------------------------

static json_int_t token_id(const json_t *value)
{
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

// The rows of the embedding, since readers expect a token for each row; `count` where there
// are fewer rows, or too many more for padding.
static uint64_t rows_of_embedding(const struct hf *hf, uint64_t count)
{
    const tn_format_array *rows = hf_find_array(hf, "token_embd.weight");
    uint64_t most = rows && rows->type.rank == 2 ? (uint64_t)rows->type.extent[0] : 0;
    return most > count && most - count <= MAX_GAPS ? most : count;
}

// Counts the ids of tokens, and allocates the lists.
static tn_status vocabulary_make_lists(struct hf_vocabulary *v)
{
    const char *token;
    size_t i;
    json_t *value;
    json_int_t most = -1, least = 0;
    uint64_t limit =
        json_object_size(v->vocab) + json_array_size(v->added) + (uint64_t)MAX_GAPS;
    json_object_foreach((json_t *)(uintptr_t)v->vocab, token, value)
    {
        most = token_id(value) > most ? token_id(value) : most;
        least = token_id(value) < least ? token_id(value) : least;
    }
    json_array_foreach(v->added, i, value)
    {
        json_int_t id = token_id(json_object_get(value, "id"));
        most = id > most ? id : most;
        least = !json_string_value(json_object_get(value, "content")) || id < least ? -1
                                                                                    : least;
    }
    if (least < 0 || most < 0 || (uint64_t)most >= limit)
        return tokenizer_refuse(v->hf,
                                "a token has no number, or one far behind the others");
    v->count = rows_of_embedding(v->hf, (uint64_t)most + 1);
    v->tokens = hf_alloc(v->hf, v->count * sizeof(*v->tokens));
    v->types = hf_alloc(v->hf, v->count * sizeof(*v->types));
    v->scores = hf_alloc(v->hf, v->count * sizeof(*v->scores));
    return v->tokens && v->types && v->scores ? TN_OK : TN_ERR_MEMORY;
}

// Whether a token is "<0x0A>" or the like, where bytes are pieces.
static bool is_byte(const char *token)
{
    return strlen(token) == 6 && strncmp(token, "<0x", 3) == 0 && token[5] == '>';
}

static tn_status fill_tokens(struct hf_vocabulary *v)
{
    const char *token, *unknown = json_string_value(json_object_get(v->model, "unk_token"));
    bool has_bytes = json_is_true(json_object_get(v->model, "byte_fallback"));
    size_t i;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)v->vocab, token, value)
    {
        json_int_t id = token_id(value);
        if (v->types[id])
            return tokenizer_refuse(v->hf, "two tokens have the same number");
        v->tokens[id] = (tn_text){token, strlen(token)};
        v->types[id] = has_bytes && is_byte(token)              ? BYTE
                       : unknown && strcmp(token, unknown) == 0 ? UNKNOWN
                                                                : NORMAL;
    }
    json_array_foreach(v->added, i, value)
    {
        json_int_t id = token_id(json_object_get(value, "id"));
        const char *text = json_string_value(json_object_get(value, "content"));
        bool is_special = json_is_true(json_object_get(value, "special"));
        v->tokens[id] = (tn_text){text, strlen(text)};
        if (v->types[id] != UNKNOWN)
            v->types[id] = is_special ? CONTROL : USER;
    }
    for (uint64_t id = 0; id < v->count; id++)
        if (!v->types[id]) {
            const char *text = hf_text(v->hf, "[PAD%" PRIu64 "]", id);
            if (!text)
                return TN_ERR_MEMORY;
            v->tokens[id] = (tn_text){text, strlen(text)};
            v->types[id] = UNUSED;
            v->scores[id] = UNUSED_SCORE;
        }
    return TN_OK;
}

// --- merges -----------------------------------------------------------------------------

// Merge `i` as its two parts: "a b", or ["a", "b"]. False when it is neither.
static bool merge_parts(const json_t *merge, const char **first, size_t *first_size,
                        const char **second)
{
    const char *text = json_string_value(merge);
    const char *space = text ? strchr(text, ' ') : NULL;
    if (space) {
        *first = text;
        *first_size = (size_t)(space - text);
        *second = space + 1;
        return true;
    }
    *first = json_string_value(json_array_get(merge, 0));
    *second = json_string_value(json_array_get(merge, 1));
    *first_size = *first ? strlen(*first) : 0;
    return *first && *second && json_array_size(merge) == 2 && !strchr(*first, ' ') &&
           !strchr(*second, ' ');
}

// Adds the merges as GGUF's texts, "a b".
static tn_status add_merges(struct hf_vocabulary *v, const json_t *merges)
{
    struct hf *hf = v->hf;
    uint64_t count = json_array_size(merges);
    tn_text *texts = hf_alloc(hf, (count + 1) * sizeof(*texts));
    if (!texts)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        const json_t *merge = json_array_get(merges, i);
        const char *first, *second, *text = json_string_value(merge);
        size_t size;
        if (!merge_parts(merge, &first, &size, &second))
            return tokenizer_refuse(hf, "a merge is no pair of texts");
        if (!text)
            text = hf_text(hf, "%.*s %s", (int)size, first, second);
        if (!text)
            return TN_ERR_MEMORY;
        texts[i] = (tn_text){text, strlen(text)};
    }
    hf_add_list(hf, "tokenizer.ggml.merges", TN_METADATA_TEXT, texts, count);
    return TN_OK;
}

// Scores pieces: the earlier a piece is merged, the higher its score.
static tn_status score_pieces(struct hf_vocabulary *v, const json_t *merges)
{
    struct hf *hf = v->hf;
    uint64_t count = json_array_size(merges);
    for (uint64_t i = 0; i < count; i++) {
        const char *first, *second;
        size_t size;
        char piece[512];
        if (!merge_parts(json_array_get(merges, i), &first, &size, &second))
            return tokenizer_refuse(hf, "a merge is no pair of texts");
        if (size + strlen(second) >= sizeof(piece))
            return tokenizer_refuse(hf, "a merge makes a piece of over 511 bytes");
        snprintf(piece, sizeof(piece), "%.*s%s", (int)size, first, second);
        const json_t *id = json_object_get(v->vocab, piece);
        if (!id)
            return tokenizer_refuse(hf, "a merge makes what is no token");
        double *score = &v->scores[json_integer_value(id)];
        if (*score == 0)
            *score = -(double)(i + 1);
    }
    hf_add_list(hf, "tokenizer.ggml.scores", TN_METADATA_FLOAT, v->scores, v->count);
    return TN_OK;
}

// --- the pipeline -----------------------------------------------------------------------

// Flags of tokens that are found before the text is cut
// (plugins/tokenizers/common/pipeline.h).
static int64_t token_flags(const json_t *added)
{
    static const char *const names[] = {"lstrip", "rstrip", "single_word", "normalized"};
    int64_t flags = 0;
    for (int i = 0; i < 4; i++)
        flags |= (int64_t)json_is_true(json_object_get(added, names[i])) << i;
    return flags;
}

// Adds the metadata that GGUF has no keys for.
static tn_status add_pipeline(struct hf_vocabulary *v)
{
    struct hf *hf = v->hf;
    uint64_t count = json_array_size(v->added);
    int64_t *pairs = hf_alloc(hf, (2 * count + 1) * sizeof(*pairs));
    const char *words = hf_text(hf, "%s", v->pipeline.words);
    size_t i;
    json_t *value;
    if (!pairs || !words)
        return TN_ERR_MEMORY;
    json_array_foreach(v->added, i, value)
    {
        pairs[2 * i] = token_id(json_object_get(value, "id"));
        pairs[2 * i + 1] = token_flags(value);
    }
    hf_add_text(hf, "tenon.tokenizer.pipeline", words);
    hf_add_list(hf, "tenon.tokenizer.added", TN_METADATA_INTEGER, pairs, 2 * count);
    if (v->pipeline.rule)
        hf_add_text(hf, "tenon.tokenizer.rule", v->pipeline.rule);
    if (v->pipeline.name)
        hf_add_text(hf, "tokenizer.ggml.pre", v->pipeline.name);
    return TN_OK;
}

// --- special tokens ---------------------------------------------------------------------

static const char *content_of(const json_t *token)
{
    const json_t *content = json_object_get(token, "content");
    return json_string_value(content ? content : token);
}

// The id of a token by its text; -1 when there is none, or no text.
static json_int_t find_token(const struct hf_vocabulary *v, const char *text)
{
    size_t i;
    json_t *value;
    json_array_foreach(v->added, i, value)
    {
        if (text && strcmp(content_of(value), text) == 0)
            return token_id(json_object_get(value, "id"));
    }
    return text ? token_id(json_object_get(v->vocab, text)) : -1;
}

static void add_specials(struct hf_vocabulary *v)
{
    const char *unknown = json_string_value(json_object_get(v->model, "unk_token"));
    const struct {
        const char *theirs, *number, *ours;
        const char *text; // the tokenizer's own, in place of its configuration's
        const char *otherwise;
    } specials[] = {
        {"bos_token", "bos_token_id", "tokenizer.ggml.bos_token_id", NULL,
         v->pipeline.begin},
        {"eos_token", "eos_token_id", "tokenizer.ggml.eos_token_id", NULL, v->pipeline.end},
        {"unk_token", NULL, "tokenizer.ggml.unknown_token_id", unknown, NULL},
        {"pad_token", "pad_token_id", "tokenizer.ggml.padding_token_id", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
        const json_t *config = v->hf->tokenizer_config;
        const char *said = content_of(json_object_get(config, specials[i].theirs));
        json_int_t id = find_token(v, specials[i].text ? specials[i].text : said);
        id = id < 0 ? find_token(v, specials[i].otherwise) : id;
        const json_t *number = id < 0 && specials[i].number
                                   ? json_object_get(v->hf->model, specials[i].number)
                                   : NULL;
        number = json_is_array(number) ? json_array_get(number, 0) : number;
        id = id < 0 && number ? token_id(number) : id;
        if (id >= 0 && (uint64_t)id < v->count)
            hf_add_integer(v->hf, specials[i].ours, id);
    }
}

// Marks the tokens of one file that end a text: an id, or a list of ids.
static void mark_ends(const struct hf_vocabulary *v, const json_t *file, bool *ends)
{
    const json_t *value = json_object_get(file, "eos_token_id");
    size_t count = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < count; i++) {
        json_int_t id = token_id(json_is_array(value) ? json_array_get(value, i) : value);
        if (id >= 0 && (uint64_t)id < v->count)
            ends[id] = true;
    }
}

// Adds all tokens that end a text, of config.json and of generation_config.json.
static tn_status add_ends(struct hf_vocabulary *v)
{
    struct hf *hf = v->hf;
    uint64_t count = 0;
    bool *is_end = hf_alloc(hf, v->count * sizeof(*is_end));
    tn_status status = hf_read_json(hf, "generation_config.json", 0, &hf->generation);
    if (!is_end || (status != TN_OK && status != TN_ERR_NOT_FOUND))
        return is_end ? status : TN_ERR_MEMORY;
    const json_t *const files[] = {hf->generation, hf->config, hf->model};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        mark_ends(v, files[i], is_end);
    for (uint64_t id = 0; id < v->count; id++)
        count += is_end[id];
    int64_t *ends = hf_alloc(hf, (count + 1) * sizeof(*ends));
    if (!ends)
        return TN_ERR_MEMORY;
    count = 0;
    for (uint64_t id = 0; id < v->count; id++)
        if (is_end[id])
            ends[count++] = (int64_t)id;
    if (count)
        hf_add_list(hf, "tokenizer.ggml.eos_token_ids", TN_METADATA_INTEGER, ends, count);
    return TN_OK;
}

// Adds whether a token is put in front or behind: the configuration says so, or the
// post-processor does it, which may put no other tokens there.
static tn_status vocabulary_add_end(struct hf_vocabulary *v, const char *said_by,
                                    const char *token, const char *ours, const char *put)
{
    const json_t *config = v->hf->tokenizer_config;
    const json_t *said = json_object_get(config, said_by);
    const char *text = content_of(json_object_get(config, token));
    bool is_said = json_is_boolean(said);
    if (!is_said && put && text && strcmp(text, put) != 0)
        return v->hf->host->fail(
            v->hf->host, TN_ERR_UNSUPPORTED,
            "%s: tokenizer.json: post_processor: '%.64s', expected the "
            "%s, '%.64s', or nothing",
            v->hf->folder->name, put, token, text);
    if (!is_said && put && find_token(v, put) < 0)
        return tokenizer_refuse(v->hf, "the post-processor adds what is no token");
    hf_add_bool(v->hf, ours, is_said ? json_is_true(said) : put != NULL);
    return TN_OK;
}

static tn_status add_post(struct hf_vocabulary *v)
{
    tn_status status = vocabulary_add_end(
        v, "add_bos_token", "bos_token", "tokenizer.ggml.add_bos_token", v->pipeline.begin);
    if (status == TN_OK)
        status = vocabulary_add_end(v, "add_eos_token", "eos_token",
                                    "tokenizer.ggml.add_eos_token", v->pipeline.end);
    return status;
}

// The chat template of chat_template.json, which models that read images use even beside
// the template of the text model that they began with; NULL: none.
static tn_status read_processor_template(struct hf *hf, const char **out_text)
{
    json_t *file = NULL;
    tn_status status = hf_read_json(hf, "chat_template.json", 0, &file);
    const char *text = json_string_value(json_object_get(file, "chat_template"));
    if (text)
        *out_text = hf_text(hf, "%s", text);
    bool failed = text && !*out_text;
    json_decref(file);
    return failed ? TN_ERR_MEMORY : status;
}

// Adds the chat template: a text, or "default" of a list of named texts; or a file.
static tn_status add_template(struct hf *hf)
{
    tn_status status = TN_OK;
    uint64_t size_of_file = 0;
    const char *path = NULL;
    const json_t *value = json_object_get(hf->tokenizer_config, "chat_template");
    const char *text = json_string_value(value);
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name && strcmp(name, "default") == 0)
            text = json_string_value(json_object_get(item, "template"));
    }
    if (!text) {
        status = hf_read_text(hf, "chat_template.jinja", MAX_TEMPLATE, &hf->chat,
                              &size_of_file, &path);
        text = hf->chat;
    }
    if (hf->family->projector && (status == TN_OK || status == TN_ERR_NOT_FOUND))
        status = read_processor_template(hf, &text);
    if (text)
        hf_add_text(hf, "tokenizer.chat_template", text);
    return status == TN_ERR_NOT_FOUND ? TN_OK : status;
}

// --- the files --------------------------------------------------------------------------

static tn_status add_vocabulary(struct hf_vocabulary *v)
{
    struct hf *hf = v->hf;
    const json_t *merges = json_object_get(v->model, "merges");
    const struct hf_pipeline *p = &v->pipeline;
    tn_status status = hf_read_pipeline(hf, &v->pipeline);
    if (status == TN_OK)
        status = vocabulary_make_lists(v);
    if (status == TN_OK)
        status = fill_tokens(v);
    if (status == TN_OK)
        status = add_pipeline(v);
    if (status != TN_OK)
        return status;
    hf_add_text(hf, "tokenizer.ggml.model", p->is_bytes ? "gpt2" : "llama");
    hf_add_list(hf, "tokenizer.ggml.tokens", TN_METADATA_TEXT, v->tokens, v->count);
    hf_add_list(hf, "tokenizer.ggml.token_type", TN_METADATA_INTEGER, v->types, v->count);
    hf_add_bool(hf, "tokenizer.ggml.add_space_prefix", p->prepends || p->spaces);
    status = add_merges(v, merges);
    if (status == TN_OK && !p->is_bytes)
        status = score_pieces(v, merges);
    if (status != TN_OK)
        return status;
    add_specials(v);
    status = add_post(v);
    return status == TN_OK ? add_ends(v) : status;
}

// Leaves out a tokenizer of another kind than byte pairs: the weights can still be read.
tn_status hf_read_tokenizer(struct hf *hf)
{
    // Its model_max_length is often 10^30.
    tn_status status = hf_read_json(hf, "tokenizer_config.json", JSON_DECODE_INT_AS_REAL,
                                    &hf->tokenizer_config);
    if (status == TN_OK || status == TN_ERR_NOT_FOUND)
        status = hf_read_json(hf, "tokenizer.json", 0, &hf->tokenizer);
    if (status != TN_OK)
        return status == TN_ERR_NOT_FOUND ? TN_OK : status;
    struct hf_vocabulary v = {.hf = hf};
    v.model = json_object_get(hf->tokenizer, "model");
    v.vocab = json_object_get(v.model, "vocab");
    v.added = json_object_get(hf->tokenizer, "added_tokens");
    const char *type = json_string_value(json_object_get(v.model, "type"));
    status = add_template(hf);
    if (status != TN_OK)
        return status;
    if (!json_is_object(v.vocab) || (type && strcmp(type, "BPE") != 0))
        return TN_OK;
    return add_vocabulary(&v);
}
