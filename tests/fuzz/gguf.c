// SPDX-License-Identifier: MIT
// GGUF: what is read is written, and read again as the same, metadata and blocks too.
#include "fuzz.h"
#include "../tools/formats.h"

#define MAX_SAVED 64 // arrays: more are read, and not written

static const char plugin[] = "org.tenon.gguf";

static tn_file *open_file(const char *path, uint32_t flags)
{
    tn_file *file = NULL;
    const tn_file_options options = {
        .struct_size = sizeof(options), .flags = flags, .plugin = plugin};
    tn_status status = tn_file_open(formats_runtime(), path, &options, &file);
    FUZZ_CHECK(status == TN_OK || (!file && tn_last_error()[0]), "status %d", status);
    FUZZ_CHECK(status != TN_ERR_INTERNAL, "%s", tn_last_error());
    return file;
}

static void same_texts(const tn_text *a, const tn_text *b, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        FUZZ_CHECK(a[i].size == b[i].size && a[i].data[a[i].size] == 0, "text");
        FUZZ_CHECK(memcmp(a[i].data, b[i].data, a[i].size) == 0, "text");
    }
}

static void same_metadata(const tn_metadata_list *a, const tn_metadata_list *b)
{
    FUZZ_CHECK(a->count == b->count, "%d pairs, then %d", (int)a->count, (int)b->count);
    for (uint64_t i = 0; i < a->count; i++) {
        const tn_metadata *x = tn_metadata_at(a, i), *y = tn_metadata_at(b, i);
        FUZZ_CHECK(tn_metadata_is(x, y->key) && x->kind == y->kind &&
                       x->flags == y->flags && x->count == y->count,
                   "'%s'", x->key);
        if (x->kind == TN_METADATA_TEXT)
            same_texts(x->data, y->data, x->count);
        else if (x->count)
            FUZZ_CHECK(memcmp(x->data, y->data,
                              x->count * (x->kind == TN_METADATA_BOOL ? 1 : 8)) == 0,
                       "'%s'", x->key);
    }
}

static void same_arrays(tn_scope *scope, const tn_file *a, const tn_file *b)
{
    for (uint64_t i = 0; tn_file_name(a, i) || tn_file_name(b, i); i++) {
        FUZZ_CHECK(tn_file_name(a, i) && tn_file_name(b, i), "array %d", (int)i);
        const tn_type *x = tn_file_type(a, i), *y = tn_file_type(b, i);
        const char *f = tn_file_format(a, i), *g = tn_file_format(b, i);
        FUZZ_CHECK(strcmp(tn_file_name(a, i), tn_file_name(b, i)) == 0, "name");
        FUZZ_CHECK(x->dtype == y->dtype && x->rank == y->rank, "type");
        FUZZ_CHECK(strcmp(f ? f : "", g ? g : "") == 0, "format");
        FUZZ_CHECK(tn_file_columns(a, i) == tn_file_columns(b, i), "columns");
        uint64_t bytes = (uint64_t)tn_dtype_bytes(x->dtype);
        for (int32_t k = 0; k < x->rank; k++) {
            FUZZ_CHECK(x->extent[k] == y->extent[k], "extent %d", k);
            bytes *= (uint64_t)x->extent[k];
        }
        const void *p = tn_data(scope, tn_file_array(scope, a, tn_file_name(a, i)));
        const void *q = tn_data(scope, tn_file_array(scope, b, tn_file_name(b, i)));
        FUZZ_CHECK(p && q && memcmp(p, q, bytes) == 0, "elements");
    }
}

static void write_and_read(const tn_file *file)
{
    char path[96];
    tn_array *arrays[MAX_SAVED];
    const char *names[MAX_SAVED], *formats[MAX_SAVED];
    uint64_t count = 0, longest = 0;
    tn_scope *scope = tn_scope_open(formats_runtime());
    for (; count < MAX_SAVED && tn_file_name(file, count); count++) {
        names[count] = tn_file_name(file, count);
        formats[count] = tn_file_format(file, count);
        arrays[count] = tn_file_array(scope, file, names[count]);
        longest = strlen(names[count]) > longest ? strlen(names[count]) : longest;
    }
    const tn_save_options options = {.struct_size = sizeof(options),
                                     .plugin = plugin,
                                     .metadata = tn_file_metadata(file),
                                     .block_formats = formats};
    snprintf(path, sizeof(path), "%s/out.gguf", fuzz_folder());
    tn_status status = tn_save(scope, path, arrays, names, count, &options);
    FUZZ_CHECK(status == (longest > 63 ? TN_ERR_UNSUPPORTED : TN_OK), "%s",
               tn_scope_error(scope));
    if (status == TN_OK) {
        tn_file *again = open_file(path, 0);
        FUZZ_CHECK(again, "%s", tn_last_error());
        same_metadata(tn_file_metadata(file), tn_file_metadata(again));
        if (!tn_file_name(file, count))
            same_arrays(scope, file, again);
        tn_file_close(again);
    }
    tn_scope_close(scope);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    tn_file *file = open_file(fuzz_path(data, size), size % 2 ? TN_FILE_MAP : 0);
    if (file)
        write_and_read(file);
    tn_file_close(file);
}
