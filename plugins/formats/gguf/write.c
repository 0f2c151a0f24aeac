// SPDX-License-Identifier: MIT
// Writes version 3. The header is made in memory after all checks.
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <tenon/checked.h>
#include "gguf.h"

#define MAX_ALIGNMENT (1 << 20)

tn_status gguf_alignment(const tn_host *host, const char *name,
                         const tn_metadata_list *metadata, uint64_t *out_alignment)
{
    int64_t value = GGUF_ALIGNMENT;
    const tn_metadata *pair = tn_metadata_find(metadata, GGUF_KEY_ALIGNMENT);
    if (pair && !tn_metadata_integer(pair, &value))
        value = 0;
    if (value < 1 || value > MAX_ALIGNMENT || (value & (value - 1)) != 0)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: " GGUF_KEY_ALIGNMENT
                          " is no power of two from 1 to %d, but %" PRId64,
                          name, MAX_ALIGNMENT, value);
    *out_alignment = (uint64_t)value;
    return TN_OK;
}

// --- checks -----------------------------------------------------------------------------

// A file to write, and its header so far. Sizes beyond 64 bits have been refused.
struct gguf_header {
    const tn_host *host;
    const tn_format_content *content;
    const char *path;
    tn_metadata_list metadata;
    uint64_t alignment;
    unsigned char *data; // NULL: the header is measured, not written
    uint64_t size;
};

static const tn_format_array *array_at(const struct gguf_header *h, uint64_t index)
{
    const tn_format_content *content = h->content;
    return (const void *)((const char *)content->arrays + index * content->array_size);
}

static const tn_format_text *header_text(const struct gguf_header *h, uint64_t index)
{
    const tn_format_content *content = h->content;
    return (const void *)((const char *)content->texts + index * content->text_size);
}

static tn_status gguf_header_check_array(const struct gguf_header *h,
                                         const tn_format_array *array)
{
    struct gguf_type type;
    const tn_host *host = h->host;
    const char *block = array->block_format;
    const tn_text name = {array->name, strlen(array->name)};
    if (!gguf_type_of_array(array, &type))
        return host->fail(host, TN_ERR_UNSUPPORTED,
                          "%s: '%s': GGUF has no type for %s; cast before writing", h->path,
                          array->name, block ? block : tn_dtype_name(array->type.dtype));
    if (array->type.rank > GGUF_MAX_RANK)
        return host->fail(host, TN_ERR_UNSUPPORTED,
                          "%s: '%s': %d axes, a GGUF file has at most %d", h->path,
                          array->name, array->type.rank, GGUF_MAX_RANK);
    if (name.size > GGUF_MAX_NAME || !gguf_is_text(&name))
        return host->fail(host, TN_ERR_UNSUPPORTED,
                          "%s: '%s': a name in a GGUF file has at most %d bytes of UTF-8",
                          h->path, array->name, GGUF_MAX_NAME);
    if (block && array->type.extent[array->type.rank - 1] % type.bytes != 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "%s: '%s': rows of %" PRId64 " bytes, expected blocks of %" PRId64
                          " (%s)",
                          h->path, array->name, array->type.extent[array->type.rank - 1],
                          type.bytes, block);
    return TN_OK;
}

// Checks that a key occurs once among metadata and texts.
static tn_status check_key(const struct gguf_header *h, const char *key, uint64_t num_texts)
{
    const tn_text text = {key, strlen(key)};
    bool is_twice = tn_metadata_find(&h->metadata, key) != NULL;
    for (uint64_t i = 0; i < num_texts; i++)
        is_twice |= strcmp(header_text(h, i)->key, key) == 0;
    if (is_twice)
        return h->host->fail(h->host, TN_ERR_ARGUMENT,
                             "%s: two pairs of metadata named '%s'", h->path, key);
    if (!*key || !gguf_is_text(&text))
        return h->host->fail(h->host, TN_ERR_UNSUPPORTED,
                             "%s: the key '%s' is empty, or no UTF-8", h->path, key);
    return TN_OK;
}

static tn_status gguf_header_check(const struct gguf_header *h)
{
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < h->content->num_texts && status == TN_OK; i++)
        status = check_key(h, header_text(h, i)->key, i);
    for (uint64_t i = 0; i < h->metadata.count && status == TN_OK; i++) {
        const tn_metadata *pair = tn_metadata_at(&h->metadata, i);
        tn_metadata_list before = h->metadata;
        before.count = i;
        const struct gguf_header first = {
            .host = h->host, .path = h->path, .metadata = before};
        status = check_key(&first, pair->key, 0);
        if (status == TN_OK &&
            (pair->kind < TN_METADATA_TEXT || pair->kind > TN_METADATA_BOOL))
            status = h->host->fail(h->host, TN_ERR_UNSUPPORTED,
                                   "%s: metadata '%s': kind %" PRIu32 " is unknown",
                                   h->path, pair->key, pair->kind);
    }
    for (uint64_t i = 0; i < h->content->num_arrays && status == TN_OK; i++)
        status = gguf_header_check_array(h, array_at(h, i));
    return status;
}

// --- the header -------------------------------------------------------------------------

static void header_put(struct gguf_header *h, const void *bytes, uint64_t size)
{
    if (h->data && size)
        memcpy(h->data + h->size, bytes, size);
    h->size += size;
}

static void header_put_number(struct gguf_header *h, uint64_t number, uint64_t size)
{
    unsigned char bytes[8];
    for (uint64_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
    header_put(h, bytes, size);
}

static void header_put_text(struct gguf_header *h, const char *text, uint64_t size)
{
    header_put_number(h, size, 8);
    header_put(h, text, size);
}

// The types that readers expect: llama.cpp reads dimensions as GGUF_U32, lists of integers
// as GGUF_I32 and floats as GGUF_F32. Values beyond these have wider types.
static enum gguf_value type_of_integers(const tn_metadata *pair)
{
    const int64_t *integers = pair->data;
    int64_t least = 0, most = 0;
    for (uint64_t i = 0; i < pair->count; i++) {
        least = integers[i] < least ? integers[i] : least;
        most = integers[i] > most ? integers[i] : most;
    }
    bool fits_i32 = least >= INT32_MIN && most <= INT32_MAX;
    bool fits_u32 = least >= 0 && most <= (int64_t)UINT32_MAX;
    if (fits_i32 && (least < 0 || pair->flags & TN_METADATA_LIST))
        return GGUF_I32;
    return fits_u32 ? GGUF_U32 : GGUF_I64;
}

static enum gguf_value type_of_floats(const tn_metadata *pair)
{
    const double *floats = pair->data;
    for (uint64_t i = 0; i < pair->count; i++) {
        bool is_small = isinf(floats[i]) || fabs(floats[i]) <= (double)FLT_MAX;
        if (!is_small || (double)(float)floats[i] != floats[i])
            return GGUF_F64;
    }
    return GGUF_F32;
}

static enum gguf_value type_of_pair(const tn_metadata *pair)
{
    switch (pair->kind) {
    case TN_METADATA_TEXT:
        return GGUF_TEXT;
    case TN_METADATA_UNSIGNED:
        return GGUF_U64;
    case TN_METADATA_FLOAT:
        return type_of_floats(pair);
    case TN_METADATA_BOOL:
        return GGUF_BOOL;
    default:
        return type_of_integers(pair);
    }
}

static void header_put_value(struct gguf_header *h, enum gguf_value type,
                             const tn_metadata *pair, uint64_t i)
{
    const tn_text *texts = pair->data;
    const int64_t *integers = pair->data;
    const double *floats = pair->data;
    const uint8_t *bools = pair->data;
    uint64_t bits = 0;
    uint32_t low;
    float single;
    switch (type) {
    case GGUF_TEXT:
        header_put_text(h, texts[i].data, texts[i].size);
        return;
    case GGUF_BOOL:
        header_put(h, &bools[i], 1);
        return;
    case GGUF_F32:
        single = (float)floats[i];
        memcpy(&low, &single, sizeof(low));
        header_put_number(h, low, 4);
        return;
    case GGUF_F64:
        memcpy(&bits, &floats[i], sizeof(bits));
        header_put_number(h, bits, 8);
        return;
    case GGUF_U32:
    case GGUF_I32:
        header_put_number(h, (uint64_t)integers[i], 4);
        return;
    default:
        header_put_number(h, (uint64_t)integers[i], 8);
        return;
    }
}

static void put_pair(struct gguf_header *h, const tn_metadata *pair)
{
    enum gguf_value type = type_of_pair(pair);
    header_put_text(h, pair->key, strlen(pair->key));
    if (pair->flags & TN_METADATA_LIST)
        header_put_number(h, GGUF_LIST, 4);
    header_put_number(h, type, 4);
    if (pair->flags & TN_METADATA_LIST)
        header_put_number(h, pair->count, 8);
    for (uint64_t i = 0; i < pair->count; i++)
        header_put_value(h, type, pair, i);
}

static uint64_t header_align(const struct gguf_header *h, uint64_t size)
{
    return (size + h->alignment - 1) & ~(h->alignment - 1);
}

// Writes an array's record; gives the offset behind its elements, where the next array
// begins.
static uint64_t gguf_write_put_array(struct gguf_header *h, const tn_format_array *array,
                                     uint64_t offset)
{
    struct gguf_type type;
    (void)gguf_type_of_array(array, &type); // cannot fail: check_array
    int32_t rank = array->type.rank;
    header_put_text(h, array->name, strlen(array->name));
    header_put_number(h, (uint64_t)rank, 4);
    for (int32_t axis = rank; axis > 0; axis--) { // innermost first
        int64_t extent = array->type.extent[axis - 1];
        bool is_row = axis == rank;
        header_put_number(h,
                          (uint64_t)(is_row && type.block_format
                                         ? extent / type.bytes * type.elements
                                         : extent),
                          8);
    }
    header_put_number(h, type.number, 4);
    header_put_number(h, offset, 8);
    return header_align(h, offset + array->size);
}

static void put_header(struct gguf_header *h)
{
    uint64_t offset = 0;
    const tn_format_content *content = h->content;
    header_put(h, "GGUF", 4);
    header_put_number(h, 3, 4);
    header_put_number(h, content->num_arrays, 8);
    header_put_number(h, h->metadata.count + content->num_texts, 8);
    for (uint64_t i = 0; i < h->metadata.count; i++)
        put_pair(h, tn_metadata_at(&h->metadata, i));
    for (uint64_t i = 0; i < content->num_texts; i++) {
        const tn_text text = {header_text(h, i)->value, strlen(header_text(h, i)->value)};
        const tn_metadata pair = {header_text(h, i)->key, &text, 1, TN_METADATA_TEXT, 0};
        put_pair(h, &pair);
    }
    for (uint64_t i = 0; i < content->num_arrays; i++)
        offset = gguf_write_put_array(h, array_at(h, i), offset);
}

// --- the file ---------------------------------------------------------------------------

static tn_status write_padding(const struct gguf_header *h, const tn_format_sink *sink,
                               uint64_t size)
{
    static const char zeros[4096];
    tn_status status = TN_OK;
    for (uint64_t left = header_align(h, size) - size; left > 0 && status == TN_OK;) {
        uint64_t part = left < sizeof(zeros) ? left : sizeof(zeros);
        status = sink->write(sink, zeros, part);
        left -= part;
    }
    return status;
}

static tn_status gguf_write_all(struct gguf_header *h, const tn_format_sink *sink)
{
    put_header(h); // measures
    uint64_t size = h->size;
    h->size = 0;
    h->data = h->host->alloc(h->host, size, 0);
    if (!h->data)
        return TN_ERR_MEMORY;
    put_header(h);
    tn_status status = sink->write(sink, h->data, size);
    h->host->free(h->host, h->data);
    if (status == TN_OK)
        status = write_padding(h, sink, size);
    for (uint64_t i = 0; i < h->content->num_arrays && status == TN_OK; i++) {
        const void *data = NULL;
        uint64_t bytes = array_at(h, i)->size;
        status = tn_format_elements(h->content, i, &data);
        if (status == TN_OK)
            status = sink->write(sink, data, bytes);
        if (status == TN_OK)
            status = write_padding(h, sink, bytes);
    }
    return status;
}

tn_status gguf_write(const tn_host *host, const tn_format_content *content,
                     const tn_format_sink *sink)
{
    struct gguf_header h = {.host = host,
                            .content = content,
                            .path = sink->name,
                            .metadata = {.struct_size = sizeof(h.metadata)}};
    if (TN_HAS(content, metadata_size)) {
        h.metadata.entry_size = content->metadata_size;
        h.metadata.entries = content->metadata;
        h.metadata.count = content->num_metadata;
    }
    tn_status status = gguf_alignment(host, sink->name, &h.metadata, &h.alignment);
    if (status == TN_OK)
        status = gguf_header_check(&h);
    return status == TN_OK ? gguf_write_all(&h, sink) : status;
}
