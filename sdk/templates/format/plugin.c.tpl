// SPDX-License-Identifier: @LICENSE@
// Files *.@NAME@ of one array: a line of text, such as "@NAME@ f32 2 3", padded with spaces
// to 256 bytes, and then the elements. No bools.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/format.h>
#include <tenon/provider.h>

#define HEADER 256 // bytes
#define WORD "@NAME@ "

typedef struct file {
    tn_format_content content; // first: it is cast back
    tn_format_array array;
} file;

// Reads "f32 2 3\n". Gives 0 for anything else.
static int parse_type(const char *text, tn_type *type)
{
    size_t size = strcspn(text, " \n");
    for (tn_dtype dtype = 1; dtype < TN_NUM_DTYPES; dtype++)
        if (dtype != TN_BOOL && strlen(tn_dtype_name(dtype)) == size &&
            memcmp(tn_dtype_name(dtype), text, size) == 0)
            type->dtype = dtype;
    for (text += size; *text == ' '; text += size) {
        text += strspn(text, " ");
        size = strspn(text, "0123456789");
        if (size > 18 || (size > 0 && type->rank == TN_MAX_RANK)) // 10^18 fits an int64_t
            return 0;
        if (size > 0)
            type->extent[type->rank++] = strtoll(text, NULL, 10);
    }
    return type->dtype != TN_DTYPE_NONE && *text == '\n';
}

static tn_status read_header(const tn_host *host, const tn_format_source *source,
                             tn_format_array *array)
{
    char text[HEADER + 1] = {0};
    uint64_t size = source->size < HEADER ? source->size : HEADER;
    tn_status status = source->read(source, 0, text, size);
    if (status != TN_OK)
        return status;
    if (size < HEADER || memcmp(text, WORD, strlen(WORD)) != 0 ||
        !parse_type(text + strlen(WORD), &array->type))
        return host->fail(host, TN_ERR_REFUSED,
                          "%s: expected %d bytes that begin like \"" WORD "f32 2 3\"",
                          source->name, HEADER);
    if (!tn_format_bytes(&array->type, &array->size) ||
        array->size != source->size - HEADER)
        return host->fail(host, TN_ERR_REFUSED, "%s: data of %llu bytes, expected %llu",
                          source->name, (unsigned long long)(source->size - HEADER),
                          (unsigned long long)array->size);
    array->name = "";
    array->offset = HEADER;
    array->flags = TN_FORMAT_IN_PLACE; // Tenon reads or maps them
    return TN_OK;
}

static tn_status list(const tn_host *host, const tn_format_source *source,
                      const tn_format_content **out_content)
{
    file *f = host->alloc(host, sizeof(*f), 0);
    if (!f)
        return TN_ERR_MEMORY;
    *f = (file){.content = {.struct_size = sizeof(f->content),
                            .arrays = &f->array,
                            .num_arrays = 1,
                            .array_size = sizeof(f->array),
                            .text_size = sizeof(tn_format_text)}};
    tn_status status = read_header(host, source, &f->array);
    *out_content = &f->content; // counts on TN_OK only
    if (status != TN_OK)
        host->free(host, f);
    return status;
}

static void close_file(const tn_host *host, const tn_format_content *content)
{
    host->free(host, (void *)(uintptr_t)content);
}

static tn_status write_file(const tn_host *host, const tn_format_content *content,
                            const tn_format_sink *sink)
{
    const tn_format_array *array = content->arrays;
    char text[HEADER + 1];
    if (array->type.dtype == TN_BOOL) // where each byte would have to be looked at
        return host->fail(host, TN_ERR_UNSUPPORTED, "%s: got bools, expected numbers",
                          sink->name);
    int used = snprintf(text, sizeof(text), WORD "%s", tn_dtype_name(array->type.dtype));
    for (int32_t i = 0; i < array->type.rank; i++)
        used += snprintf(text + used, sizeof(text) - (size_t)used, " %lld",
                         (long long)array->type.extent[i]);
    snprintf(text + used, sizeof(text) - (size_t)used, "%*s", HEADER - used, "\n");
    tn_status status = sink->write(sink, text, HEADER);
    return status ? status : sink->write(sink, array->data, array->size);
}

static const tn_format format = {.struct_size = sizeof(format),
                                 .flags = TN_FORMAT_SINGLE,
                                 .list = list,
                                 .close = close_file,
                                 .write = write_file};
static const tn_selector selectors[] = {{TN_IFACE_FORMAT, "extension", "@NAME@"},
                                        {TN_IFACE_FORMAT, TN_SELECT_MAGIC, "@MAGIC@"}};

TN_PROVIDER("@ID@", "0.1.0", "@VENDOR@", TN_IFACE_FORMAT, format, selectors);
