// SPDX-License-Identifier: MIT
// A safetensors file: 8 bytes of header length, the header (JSON), and the data. Arrays
// cover the data without holes or overlaps.
//
// Nothing in the file is trusted: each size is checked against the file's own.
#include "safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define MAX_HEADER 100000000 // bytes: the format's own limit
#define METADATA "__metadata__"

static const char *const dtype_names[TN_NUM_DTYPES] = {
    [TN_BOOL] = "BOOL", [TN_I8] = "I8",   [TN_I16] = "I16",   [TN_I32] = "I32",
    [TN_I64] = "I64",   [TN_U8] = "U8",   [TN_U16] = "U16",   [TN_U32] = "U32",
    [TN_U64] = "U64",   [TN_F16] = "F16", [TN_BF16] = "BF16", [TN_F32] = "F32",
    [TN_F64] = "F64",
};

// --- the header ------------------------------------------------------------------------

// One array as the header states it.
struct entry {
    const char *name; // borrowed from the header
    struct host_array array;
    uint64_t begin, end;
};

struct safetensors_reader {
    const char *path;
    json_t *header;
    struct entry *entries;
    size_t count;
    uint64_t data_size;
};

static int parse_dtype(const struct safetensors_reader *r, struct entry *entry,
                       const json_t *value)
{
    const char *name = json_string_value(value);
    for (tn_dtype i = 1; name && i < TN_NUM_DTYPES; i++)
        if (strcmp(name, dtype_names[i]) == 0)
            entry->array.dtype = i;
    if (entry->array.dtype == TN_DTYPE_NONE)
        return oops("%s: '%s': dtype '%s' is not supported", r->path, entry->name,
                    name ? name : "(none)");
    return 0;
}

static int parse_shape(const struct safetensors_reader *r, struct entry *entry,
                       const json_t *value)
{
    tn_shape *shape = &entry->array.shape;
    size_t rank = json_array_size(value);
    if (!json_is_array(value))
        return oops("%s: '%s': expected a shape", r->path, entry->name);
    if (rank > TN_MAX_RANK)
        return oops("%s: '%s': %zu axes; expected at most %d", r->path, entry->name, rank,
                    TN_MAX_RANK);
    for (size_t i = 0; i < rank; i++) {
        const json_t *extent = json_array_get(value, i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0)
            return oops("%s: '%s': extent %zu is no number from 0 to 2^63 - 1", r->path,
                        entry->name, i);
        shape->extent[shape->rank++] = json_integer_value(extent);
    }
    return 0;
}

static int parse_offsets(const struct safetensors_reader *r, struct entry *entry,
                         const json_t *value)
{
    const json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
    uint64_t elements;
    char text[SHAPE_TEXT];
    if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 ||
        json_integer_value(end) < json_integer_value(begin))
        return oops("%s: '%s': expected data_offsets of two growing numbers", r->path,
                    entry->name);
    entry->begin = (uint64_t)json_integer_value(begin);
    entry->end = (uint64_t)json_integer_value(end);
    if (entry->end > r->data_size)
        return oops("%s: '%s': data up to byte %" PRIu64 ", the file has %" PRIu64, r->path,
                    entry->name, entry->end, r->data_size);
    if (!type_bytes(entry->array.dtype, &entry->array.shape, &elements,
                    &entry->array.bytes))
        return oops("%s: '%s': the bytes of shape %s overflow 63 bits", r->path,
                    entry->name, shape_text(&entry->array.shape, text));
    if (entry->array.bytes != entry->end - entry->begin)
        return oops("%s: '%s': shape %s of %s needs %" PRIu64 " bytes, data_offsets give "
                    "%" PRIu64,
                    r->path, entry->name, shape_text(&entry->array.shape, text),
                    dtype_name(entry->array.dtype), entry->array.bytes,
                    entry->end - entry->begin);
    return 0;
}

static int parse_entry(const struct safetensors_reader *r, const char *name,
                       const json_t *value, struct entry *entry)
{
    entry->name = name;
    if (!json_is_object(value) || json_object_size(value) != 3)
        return oops("%s: '%s': expected dtype, shape and data_offsets", r->path, name);
    int failed = parse_dtype(r, entry, json_object_get(value, "dtype"));
    if (!failed)
        failed = parse_shape(r, entry, json_object_get(value, "shape"));
    if (!failed)
        failed = parse_offsets(r, entry, json_object_get(value, "data_offsets"));
    return failed;
}

static int check_metadata(const struct safetensors_reader *r, json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return oops("%s: expected " METADATA " to be an object of strings", r->path);
    json_object_foreach(metadata, key, value) if (!json_is_string(value)) return oops(
        "%s: metadata '%s' is no string", r->path, key);
    return 0;
}

static int by_offset(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end; // empty arrays first
}

// Sorts the arrays by offset, and checks that they cover the data exactly.
static int check_cover(const struct safetensors_reader *r)
{
    uint64_t at = 0;
    qsort(r->entries, r->count, sizeof(*r->entries), by_offset);
    for (size_t i = 0; i < r->count; i++) {
        const struct entry *entry = &r->entries[i];
        if (entry->begin != at)
            return oops("%s: '%s': data starts at byte %" PRIu64 ", expected %" PRIu64
                        " (no holes, no overlaps)",
                        r->path, entry->name, entry->begin, at);
        at = entry->end;
    }
    if (at != r->data_size)
        return oops("%s: %" PRIu64 " bytes of data, the arrays cover %" PRIu64, r->path,
                    r->data_size, at);
    return 0;
}

static int parse_header(struct safetensors_reader *r)
{
    const char *name;
    json_t *value;
    if (!json_is_object(r->header))
        return oops("%s: expected the header to be a JSON object", r->path);
    r->entries = calloc(json_object_size(r->header) + 1, sizeof(*r->entries));
    if (!r->entries)
        return oops_memory();
    json_object_foreach(r->header, name, value)
    {
        int failed = strcmp(name, METADATA) == 0
                         ? check_metadata(r, value)
                         : parse_entry(r, name, value, &r->entries[r->count++]);
        if (failed)
            return failed;
    }
    return check_cover(r);
}

// --- reading ---------------------------------------------------------------------------

// Reads the length and the header, and computes the size of the data.
static int read_header(struct safetensors_reader *r, FILE *stream, int64_t file_size)
{
    unsigned char start[8];
    uint64_t length = 0;
    if (file_size < 8 || fread(start, 1, 8, stream) != 8)
        return oops("%s: not a safetensors file: shorter than 8 bytes", r->path);
    for (int i = 7; i >= 0; i--)
        length = length << 8 | start[i];
    if (length > MAX_HEADER || length > (uint64_t)file_size - 8)
        return oops("%s: not a safetensors file, or truncated: a header of %" PRIu64
                    " bytes in a file of %" PRId64,
                    r->path, length, file_size);
    r->data_size = (uint64_t)file_size - 8 - length;
    char *text = malloc(length + 1);
    if (!text)
        return oops_memory();
    json_error_t error;
    int failed = 0;
    if (fread(text, 1, length, stream) != length)
        failed = oops("%s: truncated header", r->path);
    if (!failed && !(r->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error)))
        failed = oops("%s: damaged header: %s", r->path, error.text);
    free(text);
    return failed;
}

static int read_data(struct safetensors_reader *r, FILE *stream, struct safetensors *out)
{
    for (size_t i = 0; i < r->count; i++) {
        struct host_array array = r->entries[i].array;
        array.data = malloc(array.bytes ? array.bytes : 1);
        if (!array.data)
            return oops_memory();
        if (fread(array.data, 1, array.bytes, stream) != array.bytes) {
            free(array.data);
            return oops("%s: truncated data", r->path);
        }
        int failed = safetensors_add(out, r->entries[i].name, &array);
        if (failed)
            return failed;
    }
    return 0;
}

int safetensors_read(const char *path, struct safetensors *out)
{
    FILE *stream;
    int64_t size;
    int failed = file_open(path, &stream, &size);
    if (failed)
        return failed;
    struct safetensors_reader r = {.path = path};
    struct safetensors file = {0};
    failed = read_header(&r, stream, size);
    if (!failed)
        failed = parse_header(&r);
    if (!failed)
        failed = read_data(&r, stream, &file);
    fclose(stream);
    json_decref(r.header);
    free(r.entries);
    if (failed)
        safetensors_finish(&file);
    else
        *out = file;
    return failed;
}

const struct host_array *safetensors_find(const struct safetensors *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->items[i].name, name) == 0)
            return &file->items[i].array;
    return NULL;
}

// --- making and writing ----------------------------------------------------------------

int safetensors_add(struct safetensors *file, const char *name, struct host_array *array)
{
    struct safetensors_item *items = NULL;
    char *copy = strdup(name);
    bool is_full = file->count == 0 || (file->count & (file->count - 1)) == 0;
    if (copy && is_full) // the capacity doubles at powers of two
        items = realloc(file->items, (file->count ? file->count * 2 : 1) * sizeof(*items));
    else if (copy)
        items = file->items;
    if (!items) {
        free(copy);
        host_array_finish(array);
        return oops_memory();
    }
    file->items = items;
    items[file->count++] = (struct safetensors_item){.name = copy, .array = *array};
    *array = (struct host_array){0};
    return 0;
}

static json_t *make_header(const struct safetensors *file)
{
    uint64_t at = 0;
    json_t *header = json_object();
    for (size_t i = 0; i < file->count; i++) {
        const struct host_array *array = &file->items[i].array;
        json_t *shape = json_array();
        for (int32_t axis = 0; axis < array->shape.rank; axis++)
            json_array_append_new(shape, json_integer(array->shape.extent[axis]));
        json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype",
                                  dtype_names[array->dtype], "shape", shape, "data_offsets",
                                  (json_int_t)at, (json_int_t)(at + array->bytes));
        at += array->bytes;
        if (json_object_set_new(header, file->items[i].name, entry)) {
            json_decref(header);
            return NULL;
        }
    }
    return header;
}

static void write_all(FILE *stream, const struct safetensors *file, const char *header)
{
    uint64_t length = strlen(header), padded = (length + 7) & ~UINT64_C(7);
    for (int i = 0; i < 8; i++)
        fputc((int)(padded >> 8 * i & 0xff), stream);
    fwrite(header, 1, length, stream);
    fprintf(stream, "%*s", (int)(padded - length), ""); // aligns the data to 8 bytes
    for (size_t i = 0; i < file->count; i++)
        fwrite(file->items[i].array.data, 1, file->items[i].array.bytes, stream);
}

int safetensors_write(const char *path, const struct safetensors *file)
{
    json_t *header = make_header(file);
    char *text = header ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    if (!text)
        return oops_memory();
    struct new_file target;
    int failed = new_file_open(&target, path);
    if (!failed) {
        write_all(target.stream, file, text);
        failed = new_file_commit(&target); // also reports failed writes
    }
    free(text);
    return failed;
}

void safetensors_finish(struct safetensors *file)
{
    for (size_t i = 0; i < file->count; i++) {
        free(file->items[i].name);
        host_array_finish(&file->items[i].array);
    }
    free(file->items);
    *file = (struct safetensors){0};
}
