// SPDX-License-Identifier: MIT
// safetensors files: 8 bytes of header length, the header (JSON), and the data. Arrays
// cover the data without holes or overlaps. Metadata are the file's texts.
//
// Nothing in the file is trusted: each size is checked against the file's own.
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/format.h>
#include <tenon/plugin.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define MAX_HEADER 100000000 // bytes: the format's own limit
#define METADATA "__metadata__"

// NULL: the format has no name for the dtype.
static const char *const dtype_names[TN_NUM_DTYPES] = {
    [TN_BOOL] = "BOOL",       [TN_I8] = "I8",         [TN_I16] = "I16",
    [TN_I32] = "I32",         [TN_I64] = "I64",       [TN_U8] = "U8",
    [TN_U16] = "U16",         [TN_U32] = "U32",       [TN_U64] = "U64",
    [TN_F16] = "F16",         [TN_BF16] = "BF16",     [TN_F32] = "F32",
    [TN_F64] = "F64",         [TN_COMPLEX64] = "C64", [TN_F8_E4M3] = "F8_E4M3",
    [TN_F8_E5M2] = "F8_E5M2",
};

// --- the header ------------------------------------------------------------------------

// A content, with all that it points to.
struct safetensors {
    tn_format_content content; // first: it is cast back
    const tn_host *host;
    const char *path;        // while it is read
    json_t *header;          // owns the names and texts
    tn_format_array *arrays; // by offset
    tn_format_text *texts;
    size_t num_arrays, num_texts;
    uint64_t data_begin, data_size; // bytes
};

static tn_status parse_dtype(const struct safetensors *r, tn_format_array *entry,
                             const json_t *value)
{
    const char *name = json_string_value(value);
    for (tn_dtype i = 1; name && i < TN_NUM_DTYPES; i++)
        if (dtype_names[i] && strcmp(name, dtype_names[i]) == 0)
            entry->type.dtype = i;
    if (entry->type.dtype == TN_DTYPE_NONE)
        return r->host->fail(r->host, TN_ERR_REFUSED,
                             "%s: '%s': dtype '%s' is not supported", r->path, entry->name,
                             name ? name : "(none)");
    return TN_OK;
}

static tn_status parse_shape(const struct safetensors *r, tn_format_array *entry,
                             const json_t *value)
{
    tn_type *shape = &entry->type;
    size_t rank = json_array_size(value);
    if (!json_is_array(value))
        return r->host->fail(r->host, TN_ERR_REFUSED, "%s: '%s': expected a shape", r->path,
                             entry->name);
    if (rank > TN_MAX_RANK)
        return r->host->fail(r->host, TN_ERR_REFUSED,
                             "%s: '%s': %zu axes; expected at most %d", r->path,
                             entry->name, rank, TN_MAX_RANK);
    for (size_t i = 0; i < rank; i++) {
        const json_t *extent = json_array_get(value, i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0)
            return r->host->fail(r->host, TN_ERR_REFUSED,
                                 "%s: '%s': extent %zu is no number from 0 to 2^63 - 1",
                                 r->path, entry->name, i);
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
                          "%s: '%s': expected data_offsets of two growing numbers", r->path,
                          entry->name);
    uint64_t first = (uint64_t)json_integer_value(begin);
    uint64_t last = (uint64_t)json_integer_value(end);
    if (last > r->data_size)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s': data up to byte %" PRIu64 ", the file has %" PRIu64,
                          r->path, entry->name, last, r->data_size);
    if (!tn_format_bytes(&entry->type, &bytes))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: '%s': the bytes of its shape overflow 63 bits", r->path,
                          entry->name);
    if (bytes != last - first)
        return host->fail(
            host, TN_ERR_REFUSED,
            "%s: '%s': its shape of %s needs %" PRIu64 " bytes, data_offsets give %" PRIu64,
            r->path, entry->name, tn_dtype_name(entry->type.dtype), bytes, last - first);
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
                             "%s: '%s': expected dtype, shape and data_offsets", r->path,
                             name);
    tn_status status = parse_dtype(r, entry, json_object_get(value, "dtype"));
    if (status == TN_OK)
        status = parse_shape(r, entry, json_object_get(value, "shape"));
    if (status == TN_OK)
        status = parse_offsets(r, entry, json_object_get(value, "data_offsets"));
    // A bool is 0 or 1 here; the file may hold other bytes.
    entry->flags = entry->type.dtype == TN_BOOL ? 0 : TN_FORMAT_IN_PLACE;
    return status;
}

static tn_status parse_metadata(struct safetensors *r, json_t *metadata)
{
    const char *key;
    json_t *value;
    const tn_host *host = r->host;
    if (!json_is_object(metadata))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: expected " METADATA " to be an object of strings", r->path);
    r->texts = host->alloc(host, (json_object_size(metadata) + 1) * sizeof(*r->texts), 0);
    if (!r->texts)
        return TN_ERR_MEMORY;
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return host->fail(host, TN_ERR_REFUSED, "%s: metadata '%s' is no string",
                              r->path, key);
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
                                 r->path, entry->name, entry->offset - r->data_begin, at);
        at += entry->size;
    }
    if (at != r->data_size)
        return r->host->fail(r->host, TN_ERR_REFUSED,
                             "%s: %" PRIu64 " bytes of data, the arrays cover %" PRIu64,
                             r->path, r->data_size, at);
    return TN_OK;
}

static tn_status parse_header(struct safetensors *r)
{
    const char *name;
    json_t *value;
    const tn_host *host = r->host;
    if (!json_is_object(r->header))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: expected the header to be a JSON object", r->path);
    uint64_t size = (json_object_size(r->header) + 1) * sizeof(*r->arrays);
    r->arrays = host->alloc(host, size, 0);
    if (!r->arrays)
        return TN_ERR_MEMORY;
    memset(r->arrays, 0, size);
    json_object_foreach(r->header, name, value)
    {
        tn_status status = strcmp(name, METADATA) == 0
                               ? parse_metadata(r, value)
                               : parse_entry(r, name, value, &r->arrays[r->num_arrays++]);
        if (status != TN_OK)
            return status;
    }
    return check_cover(r);
}

// --- reading ---------------------------------------------------------------------------

// Reads the length and the header, and computes where the data are.
static tn_status read_header(struct safetensors *r, const tn_format_source *source)
{
    const tn_host *host = r->host;
    unsigned char start[8];
    uint64_t length = 0;
    if (source->size < 8)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: not a safetensors file: shorter than 8 bytes", r->path);
    tn_status status = source->read(source, 0, start, 8);
    if (status != TN_OK)
        return status;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | start[i];
    if (length > MAX_HEADER || length > source->size - 8)
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: not a safetensors file, or truncated: a header of %" PRIu64
                          " bytes in a file of %" PRIu64,
                          r->path, length, source->size);
    r->data_begin = 8 + length;
    r->data_size = source->size - r->data_begin;
    char *text = host->alloc(host, length + 1, 0);
    if (!text)
        return TN_ERR_MEMORY;
    json_error_t error = {0};
    status = source->read(source, 8, text, length);
    if (status == TN_OK &&
        !(r->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error)))
        status =
            host->fail(host, TN_ERR_REFUSED, "%s: damaged header: %s", r->path, error.text);
    host->free(host, text);
    return status;
}

static void safetensors_close(const tn_host *host, const tn_format_content *content)
{
    struct safetensors *r = (void *)(uintptr_t)content;
    json_decref(r->header);
    host->free(host, r->arrays);
    host->free(host, r->texts);
    host->free(host, r);
}

static tn_status safetensors_list(const tn_host *host, const tn_format_source *source,
                                  const tn_format_content **out_content)
{
    struct safetensors *r = host->alloc(host, sizeof(*r), 0);
    if (!r)
        return TN_ERR_MEMORY;
    *r = (struct safetensors){.host = host, .path = source->name};
    tn_status status = read_header(r, source);
    if (status == TN_OK)
        status = parse_header(r);
    r->path = NULL;
    r->content = (tn_format_content){.struct_size = sizeof(r->content),
                                     .arrays = r->arrays,
                                     .texts = r->texts,
                                     .num_arrays = r->num_arrays,
                                     .num_texts = r->num_texts,
                                     .array_size = sizeof(*r->arrays),
                                     .text_size = sizeof(*r->texts)};
    if (status == TN_OK)
        *out_content = &r->content;
    else
        safetensors_close(host, &r->content);
    return status;
}

// Bools alone are not read in place.
static tn_status safetensors_read(const tn_host *host, const tn_format_source *source,
                                  const tn_format_content *content, uint64_t index,
                                  void *data)
{
    const tn_format_array *array = &content->arrays[index];
    unsigned char *bools = data;
    (void)host;
    tn_status status = source->read(source, array->offset, data, array->size);
    for (uint64_t i = 0; status == TN_OK && i < array->size; i++)
        bools[i] = bools[i] != 0;
    return status;
}

// --- writing ---------------------------------------------------------------------------

static json_t *make_entry(const tn_format_array *array, uint64_t begin)
{
    json_t *shape = json_array();
    for (int32_t axis = 0; axis < array->type.rank; axis++)
        json_array_append_new(shape, json_integer(array->type.extent[axis]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_names[array->type.dtype],
                     "shape", shape, "data_offsets", (json_int_t)begin,
                     (json_int_t)(begin + array->size));
}

// The header as text, which the caller frees; NULL when out of memory.
static char *make_header(const tn_format_content *content)
{
    json_t *header = json_object(), *texts = json_object();
    uint64_t at = 0;
    int failed = !header || !texts;
    for (uint64_t i = 0; !failed && i < content->num_texts; i++)
        failed = json_object_set_new(texts, content->texts[i].key,
                                     json_string(content->texts[i].value));
    if (!failed && content->num_texts)
        failed = json_object_set(header, METADATA, texts);
    for (uint64_t i = 0; !failed && i < content->num_arrays; i++) {
        const tn_format_array *array = &content->arrays[i];
        failed = json_object_set_new(header, array->name, make_entry(array, at));
        at += array->size;
    }
    char *text = failed ? NULL : json_dumps(header, JSON_COMPACT);
    json_decref(header);
    json_decref(texts);
    return text;
}

// Writes the length and the header, padded so that the data are aligned to 64 bytes, and a
// mapped file can be used in place.
static tn_status write_header(const tn_format_sink *sink, const char *header)
{
    static const char spaces[64] = "                                                      "
                                   "          ";
    unsigned char start[8];
    uint64_t length = strlen(header);
    uint64_t padded = ((length + 8 + 63) & ~UINT64_C(63)) - 8;
    for (int i = 0; i < 8; i++)
        start[i] = (unsigned char)(padded >> 8 * i);
    tn_status status = sink->write(sink, start, 8);
    if (status == TN_OK)
        status = sink->write(sink, header, length);
    return status == TN_OK ? sink->write(sink, spaces, padded - length) : status;
}

static tn_status safetensors_write(const tn_host *host, const tn_format_content *content,
                                   const tn_format_sink *sink)
{
    for (uint64_t i = 0; i < content->num_arrays; i++)
        if (strcmp(content->arrays[i].name, METADATA) == 0)
            return host->fail(host, TN_ERR_ARGUMENT, "%s: an array cannot be named '%s'",
                              sink->name, METADATA);
    for (uint64_t i = 0; i < content->num_arrays; i++)
        if (!dtype_names[content->arrays[i].type.dtype])
            return host->fail(host, TN_ERR_UNSUPPORTED,
                              "%s: '%s': safetensors has no name for %s; cast before "
                              "writing",
                              sink->name, content->arrays[i].name,
                              tn_dtype_name(content->arrays[i].type.dtype));
    char *header = make_header(content);
    if (!header)
        return host->fail(host, TN_ERR_MEMORY, "%s: out of memory, or a name is not UTF-8",
                          sink->name);
    tn_status status = write_header(sink, header);
    for (uint64_t i = 0; status == TN_OK && i < content->num_arrays; i++)
        status = sink->write(sink, content->arrays[i].data, content->arrays[i].size);
    free(header);
    return status;
}

// --- the plugin --------------------------------------------------------------------------

static const tn_format format = {
    .struct_size = sizeof(format),
    .list = safetensors_list,
    .close = safetensors_close,
    .read = safetensors_read,
    .write = safetensors_write,
};

// A length below 2^32 and the beginning of a JSON object.
static const tn_selector selectors[] = {
    {TN_IFACE_FORMAT, "extension", "safetensors"},
    {TN_IFACE_FORMAT, TN_SELECT_MAGIC, "????????000000007b"},
};
static const tn_selectors selector_list = {
    .struct_size = sizeof(selector_list),
    .items = selectors,
    .num_items = COUNT(selectors),
    .item_size = sizeof(selectors[0]),
};

static const void *query(const char *id)
{
    if (strcmp(id, TN_IFACE_SELECTORS) == 0)
        return &selector_list;
    return strcmp(id, TN_IFACE_FORMAT) == 0 ? &format : NULL;
}

TN_PLUGIN("org.tenon.safetensors", "0.1.0", "Tenon", .query = query);
