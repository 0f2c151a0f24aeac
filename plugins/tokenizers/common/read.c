// SPDX-License-Identifier: MIT
// Reads metadata, and checks them.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tenon/checked.h>
#include "vocabulary.h"

static const char *const kind_names[] = {
    [TN_METADATA_TEXT] = "text",         [TN_METADATA_INTEGER] = "integer",
    [TN_METADATA_UNSIGNED] = "unsigned", [TN_METADATA_FLOAT] = "float",
    [TN_METADATA_BOOL] = "bool",
};

// Describes a pair for messages: "a list of 3 of kind text".
static const char *tokenizer_read_describe(const tn_metadata *pair, char text[64])
{
    if (!pair)
        return "absent";
    const char *kind = pair->kind < COUNT(kind_names) ? kind_names[pair->kind] : NULL;
    if (pair->flags & TN_METADATA_LIST)
        snprintf(text, 64, "a list of %" PRIu64 " of kind %s", pair->count,
                 kind ? kind : "unknown");
    else
        snprintf(text, 64, "one value of kind %s", kind ? kind : "unknown");
    return text;
}

tn_status read_texts(const tn_host *host, const tn_metadata_list *metadata, const char *key,
                     const tn_text **out, uint64_t *count)
{
    const tn_metadata *pair = tn_metadata_find(metadata, key);
    char got[64];
    if (!pair || pair->kind != TN_METADATA_TEXT || !(pair->flags & TN_METADATA_LIST))
        return host->fail(host, TN_ERR_REFUSED, "%s: '%s' is %s, expected a list of texts",
                          metadata->name, key, tokenizer_read_describe(pair, got));
    *out = pair->data;
    *count = pair->count;
    return TN_OK;
}

tn_status read_numbers(const tn_host *host, const tn_metadata_list *metadata,
                       const char *key, uint64_t count, const tn_metadata **out)
{
    const tn_metadata *pair = tn_metadata_find(metadata, key);
    char got[64];
    if (pair && (!(pair->flags & TN_METADATA_LIST) || pair->count < count ||
                 (pair->kind != TN_METADATA_INTEGER && pair->kind != TN_METADATA_FLOAT)))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s' is %s, expected a list of %" PRIu64
                          " numbers, one for each token",
                          metadata->name, key, tokenizer_read_describe(pair, got), count);
    *out = pair;
    return TN_OK;
}

double number_at(const tn_metadata *list, uint64_t index)
{
    if (list->kind == TN_METADATA_FLOAT)
        return ((const double *)list->data)[index];
    return (double)((const int64_t *)list->data)[index];
}

int32_t read_id(const tn_host *host, const tn_metadata_list *metadata, const char *key,
                int32_t count, int32_t absent)
{
    const tn_metadata *pair = tn_metadata_find(metadata, key);
    int64_t id = absent;
    char got[64];
    bool is_read = tn_metadata_integer(pair, &id);
    if (!is_read && pair)
        host->log(host, TN_LOG_WARN, "tokenizer",
                  "%s: '%s' is %s, expected an id: left out", metadata->name, key,
                  tokenizer_read_describe(pair, got));
    if (id >= 0 && id < count)
        return (int32_t)id;
    if (is_read)
        host->log(host, TN_LOG_WARN, "tokenizer",
                  "%s: '%s' is %" PRId64 ", expected an id from 0 to %d: left out",
                  metadata->name, key, id, count - 1);
    return absent >= 0 && absent < count ? absent : NO_TOKEN;
}

bool read_flag(const tn_metadata_list *metadata, const char *key, bool absent)
{
    int32_t value = absent;
    (void)tn_metadata_bool(tn_metadata_find(metadata, key), &value);
    return value;
}

void *clear_alloc(const tn_host *host, uint64_t count, uint64_t size)
{
    uint64_t bytes;
    if (!tn_checked_multiply(count, size, &bytes)) {
        host->fail(host, TN_ERR_MEMORY,
                   "%" PRIu64 " records of %" PRIu64 " bytes: too large", count, size);
        return NULL;
    }
    void *memory = host->alloc(host, bytes, 0);
    return memory ? memset(memory, 0, bytes) : NULL;
}
