// SPDX-License-Identifier: MIT
#include "safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_HEADER 100000000 // bytes: the format's own limit

const char *const safetensors_dtypes[TN_NUM_DTYPES] = {
    [TN_BOOL] = "BOOL",       [TN_I8] = "I8",         [TN_I16] = "I16",
    [TN_I32] = "I32",         [TN_I64] = "I64",       [TN_U8] = "U8",
    [TN_U16] = "U16",         [TN_U32] = "U32",       [TN_U64] = "U64",
    [TN_F16] = "F16",         [TN_BF16] = "BF16",     [TN_F32] = "F32",
    [TN_F64] = "F64",         [TN_COMPLEX64] = "C64", [TN_F8_E4M3] = "F8_E4M3",
    [TN_F8_E5M2] = "F8_E5M2",
};

static tn_status entry_parse_dtype(const struct safetensors *r, tn_format_array *entry,
                                   const json_t *value)
{
    const char *name = json_string_value(value);
    for (tn_dtype i = 1; name && i < TN_NUM_DTYPES; i++)
        if (safetensors_dtypes[i] && strcmp(name, safetensors_dtypes[i]) == 0)
            entry->type.dtype = i;
    if (entry->type.dtype == TN_DTYPE_NONE)
        return r->host->fail(r->host, TN_ERR_REFUSED,
                             "%s: '%s': dtype '%s' is not supported", r->source->name,
                             entry->name, name ? name : "(none)");
    return TN_OK;
}

static tn_status entry_parse_shape(const struct safetensors *r, tn_format_array *entry,
                                   const json_t *value)
{
    tn_type *shape = &entry->type;
    size_t rank = json_array_size(value);
    if (!json_is_array(value))
        return r->host->fail(r->host, TN_ERR_REFUSED, "%s: '%s': expected a shape",
                             r->source->name, entry->name);
    if (rank > TN_MAX_RANK)
        return r->host->fail(r->host, TN_ERR_REFUSED,
                             "%s: '%s': %zu axes; expected at most %d", r->source->name,
                             entry->name, rank, TN_MAX_RANK);
    for (size_t i = 0; i < rank; i++) {
        const json_t *extent = json_array_get(value, i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0)
            return r->host->fail(r->host, TN_ERR_REFUSED,
                                 "%s: '%s': extent %zu is no number from 0 to 2^63 - 1",
                                 r->source->name, entry->name, i);
        shape->extent[shape->rank++] = json_integer_value(extent);
    }
    return TN_OK;
}

static tn_status parse_offsets(const struct safetensors *r, tn_format_array *entry,
                               const json_t *value)
{
    const tn_host *host = r->host;
    const json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
    uint64_t bytes;
    if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 ||
        json_integer_value(end) < json_integer_value(begin))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s': expected data_offsets of two growing numbers",
                          r->source->name, entry->name);
    uint64_t first = (uint64_t)json_integer_value(begin);
    uint64_t last = (uint64_t)json_integer_value(end);
    if (last > r->data_size)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s': data up to byte %" PRIu64 ", the file has %" PRIu64,
                          r->source->name, entry->name, last, r->data_size);
    if (!tn_format_bytes(&entry->type, &bytes))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s': the bytes of its shape overflow 63 bits",
                          r->source->name, entry->name);
    if (bytes != last - first)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s': its shape of %s needs %" PRIu64
                          " bytes, data_offsets give %" PRIu64,
                          r->source->name, entry->name, tn_dtype_name(entry->type.dtype),
                          bytes, last - first);
    entry->offset = r->data_begin + first;
    entry->size = bytes;
    return TN_OK;
}

static tn_status parse_entry(const struct safetensors *r, const char *name,
                             const json_t *value, tn_format_array *entry)
{
    entry->name = name;
    if (!json_is_object(value) || json_object_size(value) != 3)
        return r->host->fail(r->host, TN_ERR_REFUSED,
                             "%s: '%s': expected dtype, shape and data_offsets",
                             r->source->name, name);
    tn_status status = entry_parse_dtype(r, entry, json_object_get(value, "dtype"));
    if (status == TN_OK)
        status = entry_parse_shape(r, entry, json_object_get(value, "shape"));
    if (status == TN_OK)
        status = parse_offsets(r, entry, json_object_get(value, "data_offsets"));
    // A bool is 0 or 1 here; the file may hold other bytes.
    entry->flags = entry->type.dtype == TN_BOOL ? 0 : TN_FORMAT_IN_PLACE;
    entry->file = r->source->number;
    return status;
}

static tn_status parse_metadata(struct safetensors *r, json_t *metadata)
{
    const char *key;
    json_t *value;
    const tn_host *host = r->host;
    if (!json_is_object(metadata))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: expected " SAFETENSORS_METADATA
                          " to be an object of strings",
                          r->source->name);
    r->texts = host->alloc(host, (json_object_size(metadata) + 1) * sizeof(*r->texts), 0);
    if (!r->texts)
        return TN_ERR_MEMORY;
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return host->fail(host, TN_ERR_REFUSED, "%s: metadata '%s' is no string",
                              r->source->name, key);
        r->texts[r->num_texts++] = (tn_format_text){key, json_string_value(value)};
    }
    return TN_OK;
}

static int by_offset(const void *a, const void *b)
{
    const tn_format_array *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->size < y->size ? -1 : x->size > y->size; // empty arrays first
}

// Sorts the arrays by offset, and checks that they cover the data exactly.
static tn_status check_cover(const struct safetensors *r)
{
    uint64_t at = 0;
    qsort(r->arrays, r->num_arrays, sizeof(*r->arrays), by_offset);
    for (size_t i = 0; i < r->num_arrays; i++) {
        const tn_format_array *entry = &r->arrays[i];
        if (entry->offset != r->data_begin + at)
            return r->host->fail(r->host, TN_ERR_REFUSED,
                                 "%s: '%s': data starts at byte %" PRIu64
                                 ", expected %" PRIu64 " (no holes, no overlaps)",
                                 r->source->name, entry->name,
                                 entry->offset - r->data_begin, at);
        at += entry->size;
    }
    if (at != r->data_size)
        return r->host->fail(r->host, TN_ERR_REFUSED,
                             "%s: %" PRIu64 " bytes of data, the arrays cover %" PRIu64,
                             r->source->name, r->data_size, at);
    return TN_OK;
}

static tn_status safetensors_parse(struct safetensors *r)
{
    const char *name;
    json_t *value;
    const tn_host *host = r->host;
    if (!json_is_object(r->header))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: expected the header to be a JSON object", r->source->name);
    uint64_t size = (json_object_size(r->header) + 1) * sizeof(*r->arrays);
    r->arrays = host->alloc(host, size, 0);
    if (!r->arrays)
        return TN_ERR_MEMORY;
    memset(r->arrays, 0, size);
    json_object_foreach(r->header, name, value)
    {
        tn_status status = strcmp(name, SAFETENSORS_METADATA) == 0
                               ? parse_metadata(r, value)
                               : parse_entry(r, name, value, &r->arrays[r->num_arrays++]);
        if (status != TN_OK)
            return status;
    }
    return check_cover(r);
}

// Reads the length and the header, and computes where the data are.
static tn_status load_header(struct safetensors *r)
{
    const tn_format_source *source = r->source;
    const tn_host *host = r->host;
    unsigned char start[8];
    uint64_t length = 0;
    if (source->size < 8)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: not a safetensors file: shorter than 8 bytes",
                          r->source->name);
    tn_status status = source->read(source, 0, start, 8);
    if (status != TN_OK)
        return status;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | start[i];
    if (length > MAX_HEADER || length > source->size - 8)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: not a safetensors file, or truncated: a header of %" PRIu64
                          " bytes in a file of %" PRIu64,
                          r->source->name, length, source->size);
    r->data_begin = 8 + length;
    r->data_size = source->size - r->data_begin;
    char *text = host->alloc(host, length + 1, 0);
    if (!text)
        return TN_ERR_MEMORY;
    json_error_t error = {0};
    status = source->read(source, 8, text, length);
    if (status == TN_OK &&
        !(r->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error)))
        status = host->fail(host, TN_ERR_REFUSED, "%s: damaged header: %s", r->source->name,
                            error.text);
    host->free(host, text);
    return status;
}

tn_status safetensors_read_header(struct safetensors *r)
{
    tn_status status = load_header(r);
    return status == TN_OK ? safetensors_parse(r) : status;
}

void safetensors_finish(struct safetensors *r)
{
    json_decref(r->header);
    r->host->free(r->host, r->arrays);
    r->host->free(r->host, r->texts);
}

tn_status safetensors_read_bools(const tn_format_source *source,
                                 const tn_format_array *array, void *data)
{
    unsigned char *bools = data;
    tn_status status = source->read(source, array->offset, data, array->size);
    for (uint64_t i = 0; status == TN_OK && i < array->size; i++)
        bools[i] = bools[i] != 0;
    return status;
}
