// SPDX-License-Identifier: MIT
// Tokenizers: hostile metadata are refused with words, or give a vocabulary that encodes
// any text to ids that it has, and decodes these.
//
// Lines: "l" or "g" is the model (llama, gpt2, first byte), then "pRULE", "tKTEXT" a token
// of kind K, "sNUMBER" its score, "mTEXT" a merge, "iNUMBER" the ids of facts, "wWORDS" a
// pipeline, "aNUMBER" an id or flags of it; behind an empty line, the text that is encoded.
#include <tenon/tenon.h>
#include <tenon/tokenizer.h>
#include "fuzz.h"

enum { MOST = 512 };

static tn_runtime *runtime;

static struct {
    tn_text tokens[MOST], merges[MOST], model, pre, words;
    int64_t kinds[MOST], id, added[MOST];
    double scores[MOST];
    uint64_t num_tokens, num_scores, num_merges, num_added, ids;
} v;

static void read_line(char *line, uint64_t size)
{
    tn_text rest = {line + 1, size - 1};
    switch (line[0]) {
    case 'p':
        v.pre = rest;
        break;
    case 't':
        if (v.num_tokens < MOST && size > 1) {
            v.kinds[v.num_tokens] = line[1] - '0';
            v.tokens[v.num_tokens++] = (tn_text){line + 2, size - 2};
        }
        break;
    case 's':
        if (v.num_scores < MOST)
            v.scores[v.num_scores++] = strtod(line + 1, NULL);
        break;
    case 'm':
        if (v.num_merges < MOST)
            v.merges[v.num_merges++] = rest;
        break;
    case 'w':
        v.words = rest;
        break;
    case 'a':
        if (v.num_added < MOST)
            v.added[v.num_added++] = strtoll(line + 1, NULL, 10);
        break;
    case 'i':
        v.ids = 1;
        v.id = strtoll(line + 1, NULL, 10);
        break;
    }
}

// Reads the lines; gives the text behind them.
static tn_text read_input(char *text, uint64_t size)
{
    char *at = text, *end = text + size;
    memset(&v, 0, sizeof(v));
    v.model = size && text[0] == 'l' ? (tn_text){"llama", 5} : (tn_text){"gpt2", 4};
    while (at < end) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        if (stop == at)
            return (tn_text){at + 1, (uint64_t)(end - at) - 1};
        *stop = '\0';
        read_line(at, (uint64_t)(stop - at));
        at = stop + 1;
    }
    return (tn_text){"", 0};
}

// With all of a text plain no control token is found, however it is normalized.
static void check_plain(const tn_tokenizer_ops *ops, const tn_host *host,
                        const tn_tokenizer *t, tn_text text, uint32_t flags)
{
    const tn_text_range all = {0, text.size};
    int32_t *ids, *want;
    uint64_t count, expected;
    flags &= ~(uint32_t)TN_ENCODE_PARSE_SPECIAL;
    FUZZ_CHECK(
        ops->encode_mixed(host, t, text.data, text.size, &all, 1, flags, &ids, &count) ==
                TN_OK &&
            ops->encode(host, t, text.data, text.size, flags, &want, &expected) == TN_OK,
        "%s", tn_last_error());
    FUZZ_CHECK(count == expected && memcmp(ids, want, count * sizeof(*ids)) == 0,
               "%zu ids, expected %zu", (size_t)count, (size_t)expected);
    host->free(host, ids);
    host->free(host, want);
}

static void check_text(const tn_tokenizer_ops *ops, const tn_host *host,
                       const tn_tokenizer *t, tn_text text)
{
    for (uint32_t flags = 0; flags < 4; flags++) {
        int32_t *ids;
        char *back;
        uint64_t count, size;
        FUZZ_CHECK(ops->encode(host, t, text.data, text.size, flags, &ids, &count) == TN_OK,
                   "%s", tn_last_error());
        for (uint64_t i = 0; i < count; i++)
            FUZZ_CHECK(ids[i] >= 0 && ids[i] < ops->facts(t)->count, "id %d", ids[i]);
        FUZZ_CHECK(ops->decode(host, t, ids, count, flags, &back, &size) == TN_OK, "%s",
                   tn_last_error());
        FUZZ_CHECK(back[size] == '\0', "the end");
        host->free(host, back);
        check_plain(ops, host, t, text, flags);
        host->free(host, ids);
    }
}

static void check_facts(const tn_tokenizer_ops *ops, const tn_host *host,
                        const tn_tokenizer *t)
{
    const tn_tokenizer_facts *f = ops->facts(t);
    const int32_t ids[] = {f->bos, f->eos, f->eot, f->unknown, f->padding};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        FUZZ_CHECK(ids[i] >= -1 && ids[i] < f->count, "fact %zu is %d", i, ids[i]);
    for (int32_t i = 0; i < f->count; i++) {
        tn_token token;
        FUZZ_CHECK(ops->token(host, t, i, &token, sizeof(token)) == TN_OK, "token %d", i);
        int32_t found = ops->find(t, token.text.data, token.text.size);
        FUZZ_CHECK(token.text.size ? found >= 0 && found <= i : found == -1,
                   "token %d is found as %d", i, found);
    }
}

void fuzz_one(const uint8_t *data, size_t size)
{
    const char *plugin;
    const void *table;
    const tn_host *host;
    tn_tokenizer *t = NULL;
    if (!runtime)
        FUZZ_CHECK(tn_runtime_open(NULL, &runtime) == TN_OK, "%s", tn_last_error());
    char *copy = fuzz_text(data, size);
    tn_text text = read_input(copy, size);
    const tn_metadata pairs[] = {
        {"tokenizer.ggml.model", &v.model, 1, TN_METADATA_TEXT, 0},
        {"tokenizer.ggml.tokens", v.tokens, v.num_tokens, TN_METADATA_TEXT,
         TN_METADATA_LIST},
        {"tokenizer.ggml.token_type", v.kinds, v.num_tokens, TN_METADATA_INTEGER,
         TN_METADATA_LIST},
        {"tokenizer.ggml.merges", v.merges, v.num_merges, TN_METADATA_TEXT,
         TN_METADATA_LIST},
        {v.num_scores ? "tokenizer.ggml.scores" : "none", v.scores, v.num_scores,
         TN_METADATA_FLOAT, TN_METADATA_LIST},
        {v.pre.data ? "tokenizer.ggml.pre" : "none", &v.pre, 1, TN_METADATA_TEXT, 0},
        {v.words.data ? "tenon.tokenizer.pipeline" : "none", &v.words, 1, TN_METADATA_TEXT,
         0},
        {"tenon.tokenizer.added", v.added, v.num_added, TN_METADATA_INTEGER,
         TN_METADATA_LIST},
        {v.ids ? "tokenizer.ggml.bos_token_id" : "none", &v.id, 1, TN_METADATA_INTEGER, 0},
        {v.ids ? "tokenizer.ggml.unknown_token_id" : "none", &v.id, 1, TN_METADATA_INTEGER,
         0},
    };
    tn_metadata_list list = {sizeof(list), sizeof(pairs[0]), pairs,
                             sizeof(pairs) / sizeof(pairs[0]), "input"};
    FUZZ_CHECK(tn_provider_find(runtime, TN_IFACE_TOKENIZER, "model", v.model.data,
                                &plugin) == TN_OK,
               "%s", tn_last_error());
    FUZZ_CHECK(tn_provider_load(runtime, TN_IFACE_TOKENIZER, plugin, &table, &host) ==
                   TN_OK,
               "%s", tn_last_error());
    const tn_tokenizer_ops *ops = table;
    if (ops->open(host, &list, &t) == TN_OK) {
        check_facts(ops, host, t);
        check_text(ops, host, t, text);
        ops->close(host, t);
    } else {
        FUZZ_CHECK(strstr(tn_last_error(), "input: ") != NULL, "%s", tn_last_error());
    }
    free(copy);
}
