// SPDX-License-Identifier: MIT
// safetensors files; ../common reads the header. Metadata are the file's texts.
#include "../common/safetensors.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/provider.h>

// --- reading ---------------------------------------------------------------------------

// A content, with the memory that it points to.
struct safetensors_file {
    tn_format_content content; // first: the struct is found from it by a cast
    struct safetensors header;
};

static void safetensors_close(const tn_host *host, const tn_format_content *content)
{
    struct safetensors_file *file = (void *)(uintptr_t)content;
    safetensors_finish(&file->header);
    host->free(host, file);
}

static tn_status safetensors_list(const tn_host *host, const tn_format_source *source,
                                  const tn_format_content **out_content)
{
    struct safetensors_file *file = host->alloc(host, sizeof(*file), 0);
    if (!file)
        return TN_ERR_MEMORY;
    *file = (struct safetensors_file){.header = {.host = host, .source = source}};
    struct safetensors *r = &file->header;
    tn_status status = safetensors_read_header(r);
    r->source = NULL;
    file->content = (tn_format_content){.struct_size = sizeof(file->content),
                                        .arrays = r->arrays,
                                        .texts = r->texts,
                                        .num_arrays = r->num_arrays,
                                        .num_texts = r->num_texts,
                                        .array_size = sizeof(*r->arrays),
                                        .text_size = sizeof(*r->texts)};
    if (status == TN_OK)
        *out_content = &file->content;
    else
        safetensors_close(host, &file->content);
    return status;
}

static tn_status safetensors_read(const tn_host *host, const tn_format_source *source,
                                  const tn_format_content *content, uint64_t index,
                                  void *data)
{
    (void)host;
    return safetensors_read_bools(source, &content->arrays[index], data);
}

// --- writing ---------------------------------------------------------------------------

static json_t *safetensors_make_entry(const tn_format_array *array, uint64_t begin)
{
    json_t *shape = json_array();
    for (int32_t axis = 0; axis < array->type.rank; axis++)
        json_array_append_new(shape, json_integer(array->type.extent[axis]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", safetensors_dtypes[array->type.dtype],
                     "shape", shape, "data_offsets", (json_int_t)begin,
                     (json_int_t)(begin + array->size));
}

// The header as text, which the caller frees; NULL when out of memory.
static char *safetensors_header_make(const tn_format_content *content)
{
    json_t *header = json_object(), *texts = json_object();
    uint64_t at = 0;
    int failed = !header || !texts;
    for (uint64_t i = 0; !failed && i < content->num_texts; i++)
        failed = json_object_set_new(texts, content->texts[i].key,
                                     json_string(content->texts[i].value));
    if (!failed && content->num_texts)
        failed = json_object_set(header, SAFETENSORS_METADATA, texts);
    for (uint64_t i = 0; !failed && i < content->num_arrays; i++) {
        const tn_format_array *array = &content->arrays[i];
        failed =
            json_object_set_new(header, array->name, safetensors_make_entry(array, at));
        at += array->size;
    }
    char *text = failed ? NULL : json_dumps(header, JSON_COMPACT);
    json_decref(header);
    json_decref(texts);
    return text;
}

// Writes the length and the header, padded so that the data are aligned to 64 bytes, and a
// mapped file can be used in place.
static tn_status safetensors_write_header(const tn_format_sink *sink, const char *header)
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
        if (strcmp(content->arrays[i].name, SAFETENSORS_METADATA) == 0)
            return host->fail(host, TN_ERR_ARGUMENT, "%s: an array cannot be named '%s'",
                              sink->name, SAFETENSORS_METADATA);
    for (uint64_t i = 0; i < content->num_arrays; i++)
        if (!safetensors_dtypes[content->arrays[i].type.dtype])
            return host->fail(host, TN_ERR_UNSUPPORTED,
                              "%s: '%s': safetensors has no name for %s; cast before "
                              "writing",
                              sink->name, content->arrays[i].name,
                              tn_dtype_name(content->arrays[i].type.dtype));
    char *header = safetensors_header_make(content);
    if (!header)
        return host->fail(host, TN_ERR_MEMORY, "%s: out of memory, or a name is not UTF-8",
                          sink->name);
    tn_status status = safetensors_write_header(sink, header);
    for (uint64_t i = 0; status == TN_OK && i < content->num_arrays; i++) {
        const void *data = NULL;
        status = tn_format_elements(content, i, &data);
        if (status == TN_OK)
            status = sink->write(sink, data, content->arrays[i].size);
    }
    free(header);
    return status;
}

// --- the plugin --------------------------------------------------------------------------

static const tn_format format = {
    .struct_size = sizeof(format),
    .flags = TN_FORMAT_IN_TURN,
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

TN_PROVIDER("org.tenon.safetensors", "0.1.0", "Tenon", TN_IFACE_FORMAT, format, selectors);
