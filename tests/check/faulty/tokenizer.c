// SPDX-License-Identifier: MIT
// A tokenizer whose tokens are bytes, with one fault each; see ops.c.
#include <stdio.h>
#include <string.h>
#include <tenon/plugin.h>
#include <tenon/tokenizer.h>

struct tn_tokenizer {
    tn_tokenizer_facts facts;
    int32_t bytes[256];
    tn_text *tokens; // texts are those of the metadata, which tests keep
};

static tn_status refuse(const tn_host *host, const tn_metadata_list *list)
{
#ifdef FAULT_TOKENIZER_DAMAGE
    (void)list;
    return host->fail(host, TN_ERR_REFUSED, "no vocabulary");
#else
    return host->fail(host, TN_ERR_REFUSED, "%s: no vocabulary", list->name);
#endif
}

static int32_t text_find(const tn_tokenizer *t, const char *text, uint64_t size)
{
    for (int32_t i = 0; i < t->facts.count; i++)
        if (t->tokens[i].size == size && memcmp(t->tokens[i].data, text, size) == 0)
            return i;
    return -1;
}

static tn_status text_open(const tn_host *host, const tn_metadata_list *list,
                           tn_tokenizer **out)
{
    const tn_metadata *tokens = tn_metadata_find(list, "tokenizer.ggml.tokens");
    if (!tokens || tokens->kind != TN_METADATA_TEXT ||
        !(tokens->flags & TN_METADATA_LIST) || tokens->count < 300)
        return refuse(host, list);
    tn_tokenizer *t = host->alloc(host, sizeof(*t), 0);
    if (!t)
        return TN_ERR_MEMORY;
    memset(t, 0, sizeof(*t));
    t->tokens = host->alloc(host, tokens->count * sizeof(tn_text), 0);
    if (!t->tokens) {
#ifndef FAULT_TOKENIZER_MEMORY
        host->free(host, t);
#endif
        return TN_ERR_MEMORY;
    }
    memcpy(t->tokens, tokens->data, tokens->count * sizeof(tn_text));
    t->facts = (tn_tokenizer_facts){.struct_size = sizeof(t->facts),
                                    .name = "bytes",
                                    .count = (int32_t)tokens->count,
                                    .bos = 1,
                                    .eos = 2,
                                    .eot = -1,
                                    .unknown = -1,
                                    .padding = -1};
    for (int i = 0; i < 256; i++) {
        char text[8];
        snprintf(text, sizeof(text), "<0x%02X>", (unsigned)i);
        t->bytes[i] = text_find(t, text, 6);
    }
    *out = t;
    return TN_OK;
}

static void text_close(const tn_host *host, tn_tokenizer *t)
{
    if (t)
        host->free(host, t->tokens);
    host->free(host, t);
}

static const tn_tokenizer_facts *text_facts(const tn_tokenizer *t)
{
    return &t->facts;
}

static tn_status text_token(const tn_host *host, const tn_tokenizer *t, int32_t id,
                            tn_token *out, uint64_t size)
{
    if (id < 0 || id >= t->facts.count)
        return host->fail(host, TN_ERR_ARGUMENT, "token %d", id);
    tn_token token = {.text = t->tokens[id], .bytes = t->tokens[id]};
    memcpy(out, &token, size < sizeof(token) ? size : sizeof(token));
    return TN_OK;
}

static tn_status text_encode(const tn_host *host, const tn_tokenizer *t, const char *text,
                             uint64_t size, uint32_t flags, int32_t **out_ids,
                             uint64_t *out_count)
{
    int32_t *ids = host->alloc(host, size * sizeof(*ids), 0);
    (void)flags;
    if (!ids)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < size; i++)
        ids[i] = t->bytes[(uint8_t)text[i]];
#ifdef FAULT_TOKENIZER_VALUES
    if (size)
        ids[0] = t->facts.count;
#endif
    *out_ids = ids;
    *out_count = size;
    return TN_OK;
}

static tn_status text_decode(const tn_host *host, const tn_tokenizer *t, const int32_t *ids,
                             uint64_t count, uint32_t flags, char **out_text,
                             uint64_t *out_size)
{
    char *text = host->alloc(host, count + 1, 0);
    (void)flags;
    if (!text)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < count; i++)
        for (int byte = 0; byte < 256; byte++)
            if (t->bytes[byte] == ids[i])
                text[i] = (char)(unsigned char)byte;
#ifdef FAULT_TOKENIZER_VALUES_TEXT
    if (count)
        text[0] = '?';
#endif
    text[count] = '\0';
    *out_text = text;
    *out_size = count;
    return TN_OK;
}

static const tn_tokenizer_ops ops = {
    .struct_size = sizeof(ops),
    .open = text_open,
    .close = text_close,
    .facts = text_facts,
    .token = text_token,
    .find = text_find,
    .encode = text_encode,
    .decode = text_decode,
};

#ifdef FAULT_TOKENIZER_TABLE
#define KIND "format"
#else
#define KIND "model"
#endif
static const tn_selector items[] = {{TN_IFACE_TOKENIZER, KIND, "acme-bytes"}};
static const tn_selectors selectors = {.struct_size = sizeof(selectors),
                                       .items = items,
                                       .num_items = 1,
                                       .item_size = sizeof(items[0])};

static const void *query(const char *id)
{
    if (strcmp(id, TN_IFACE_SELECTORS) == 0)
        return &selectors;
    return strcmp(id, TN_IFACE_TOKENIZER) == 0 ? &ops : NULL;
}

TN_PLUGIN("com.acme.tokenizer", "1.0.0", "Acme", .query = query);
