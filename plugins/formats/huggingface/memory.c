// SPDX-License-Identifier: MIT
// Memory of a folder's content, its metadata, and JSON files.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "huggingface.h"

#define MOST_JSON (UINT64_C(1) << 30) // bytes of a file

struct hf_block {
    struct hf_block *next;
    uint64_t size;
};

void *hf_alloc(struct hf *hf, uint64_t size)
{
    struct hf_block *block = hf->host->alloc(hf->host, sizeof(*block) + size, 0);
    if (!block)
        return NULL;
    *block = (struct hf_block){hf->blocks, size};
    hf->blocks = block;
    return memset(block + 1, 0, size);
}

const char *hf_text(struct hf *hf, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int size = vsnprintf(NULL, 0, format, list);
    char *text = size < 0 ? NULL : hf_alloc(hf, (uint64_t)size + 1);
    if (text)
        vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    va_end(list);
    return text;
}

void hf_free_all(struct hf *hf)
{
    while (hf->blocks) {
        struct hf_block *block = hf->blocks;
        hf->blocks = block->next;
        hf->host->free(hf->host, block);
    }
}

// --- metadata ---------------------------------------------------------------------------

// Makes room for one more pair.
static bool hf_reserve(struct hf *hf)
{
    if (hf->num_metadata < hf->room)
        return true;
    uint64_t room = hf->room ? 2 * hf->room : 64;
    tn_metadata *more = hf_alloc(hf, room * sizeof(*more));
    if (!more)
        return false;
    if (hf->room)
        memcpy(more, hf->metadata, hf->num_metadata * sizeof(*more));
    hf->metadata = more;
    hf->room = room;
    return true;
}

static void hf_add(struct hf *hf, const char *key, uint32_t kind, uint32_t flags,
                   const void *data, uint64_t count)
{
    if (*key == '.')
        key = hf_text(hf, "%s%s", hf->family->architecture, key);
    if (!key || (!data && count) || !hf_reserve(hf)) {
        hf->out_of_memory = true;
        return;
    }
    hf->metadata[hf->num_metadata++] = (tn_metadata){key, data, count, kind, flags};
}

void hf_add_text(struct hf *hf, const char *key, const char *text)
{
    tn_text *value = text ? hf_alloc(hf, sizeof(*value)) : NULL;
    if (value)
        *value = (tn_text){text, strlen(text)};
    hf_add(hf, key, TN_METADATA_TEXT, 0, value, 1);
}

void hf_add_integer(struct hf *hf, const char *key, int64_t number)
{
    int64_t *value = hf_alloc(hf, sizeof(*value));
    if (value)
        *value = number;
    hf_add(hf, key, TN_METADATA_INTEGER, 0, value, 1);
}

void hf_add_float(struct hf *hf, const char *key, double number)
{
    double *value = hf_alloc(hf, sizeof(*value));
    if (value)
        *value = number;
    hf_add(hf, key, TN_METADATA_FLOAT, 0, value, 1);
}

void hf_add_bool(struct hf *hf, const char *key, bool truth)
{
    uint8_t *value = hf_alloc(hf, 8);
    if (value)
        *value = truth;
    hf_add(hf, key, TN_METADATA_BOOL, 0, value, 1);
}

void hf_add_list(struct hf *hf, const char *key, uint32_t kind, const void *data,
                 uint64_t count)
{
    hf_add(hf, key, kind, TN_METADATA_LIST, data, count);
}

// --- files -------------------------------------------------------------------------------

tn_status hf_read_text(struct hf *hf, const char *name, uint64_t most, char **out_text,
                       uint64_t *out_size, const char **out_path)
{
    const tn_host *host = hf->host;
    const tn_format_source *source;
    tn_status status = hf->folder->open(hf->folder, name, &source);
    if (status != TN_OK)
        return status;
    if (source->size > most)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: %" PRIu64 " bytes, expected at most %" PRIu64, source->name,
                          source->size, most);
    char *text = host->alloc(host, source->size + 1, 0);
    if (!text)
        return TN_ERR_MEMORY;
    status = source->read(source, 0, text, source->size);
    if (status != TN_OK) {
        host->free(host, text);
        return status;
    }
    text[source->size] = 0;
    *out_text = text;
    *out_size = source->size;
    *out_path = source->name;
    return TN_OK;
}

tn_status hf_read_json(struct hf *hf, const char *name, size_t flags, json_t **out_json)
{
    const tn_host *host = hf->host;
    json_error_t error = {0};
    char *text = NULL;
    uint64_t size = 0;
    const char *path = NULL;
    tn_status status = hf_read_text(hf, name, MOST_JSON, &text, &size, &path);
    if (status != TN_OK)
        return status;
    *out_json = json_loadb(text, size, JSON_REJECT_DUPLICATES | flags, &error);
    host->free(host, text);
    if (!*out_json)
        return host->fail(host, TN_ERR_REFUSED, "%s: line %d: %s", path, error.line,
                          error.text);
    if (!json_is_object(*out_json))
        return host->fail(host, TN_ERR_REFUSED, "%s: expected a JSON object", path);
    return TN_OK;
}

const json_t *hf_member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

tn_status hf_wrong(const struct hf *hf, const char *file, const char *member,
                   const char *expected)
{
    return hf->host->fail(hf->host, TN_ERR_REFUSED, "%s: %s: \"%s\": expected %s",
                          hf->folder->name, file, member, expected);
}
