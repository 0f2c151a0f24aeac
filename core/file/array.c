// SPDX-License-Identifier: MIT
// Arrays of files: the mapped bytes themselves where they can be used, else the bytes read
// into memory that becomes the array's.
#include <stdio.h>
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/memory.h"
#include "../base/shape.h"
#include "../graph/graph.h"
#include "file.h"

static tn_status no_such_array(const tn_file *file, const char *name)
{
    char list[256] = "";
    size_t at = 0;
    for (uint64_t i = 0; i < file->content->num_arrays && at < sizeof(list); i++)
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", at ? ", " : "",
                               file_array_at(file, i)->name);
    if (!name)
        return fail(TN_ERR_ARGUMENT, "%s holds %llu arrays: name one of %s",
                    file->first.path, (unsigned long long)file->content->num_arrays,
                    *list ? list : "none");
    return fail(TN_ERR_NOT_FOUND, "%s holds no array '%s' (it holds %s)", file->first.path,
                name, *list ? list : "none");
}

static tn_status file_find_array(const tn_file *file, const char *name, uint64_t *out_index)
{
    uint64_t count = file->content->num_arrays;
    if (!name && count != 1)
        return no_such_array(file, name);
    for (uint64_t i = 0; i < count; i++)
        if (!name || strcmp(file_array_at(file, i)->name, name) == 0) {
            *out_index = i;
            return TN_OK;
        }
    return no_such_array(file, name);
}

static void release_bytes(void *context)
{
    file_bytes_release(context);
}

static tn_array *file_array_import(tn_scope *scope, const tn_format_array *array,
                                   void *data, void (*release)(void *context),
                                   void *context)
{
    tn_shape shape = {.rank = array->type.rank};
    memcpy(shape.extent, array->type.extent, sizeof(shape.extent));
    for (int32_t i = shape.rank; i < TN_MAX_RANK; i++)
        shape.extent[i] = 0;
    const tn_host_memory memory = {.struct_size = sizeof(memory),
                                   .data = data,
                                   .release = release,
                                   .context = context};
    return tn_array_import_host(scope, array->type.dtype, &shape, &memory);
}

// Reads the elements into memory of their own, which the array keeps.
static tn_array *file_read_array(tn_scope *scope, const tn_file *file, uint64_t index)
{
    const tn_format_array *array = file_array_at(file, index);
    const struct file_source *source = file_source_at(file, array->file);
    uint64_t size = type_bytes(&array->type);
    void *data = mem_alloc_aligned(size ? size : 1, 64);
    tn_status status = TN_ERR_MEMORY;
    fail_clear();
    if (!data)
        fail(status, "%s: out of memory: %llu bytes", source->path,
             (unsigned long long)size);
    else if (array->flags & TN_FORMAT_IN_PLACE)
        status = source->table.read(&source->table, array->offset, data, size);
    else if (!TN_HAS(file->format, read))
        status = fail(TN_ERR_INTERNAL, "%s: the format's plugin cannot read '%s'",
                      file->first.path, array->name);
    else
        status = fail_from(
            file->format->read(file->host, &file->first.table, file->content, index, data),
            "reading %s", source->path);
    if (status == TN_OK)
        return file_array_import(scope, array, data, mem_free, data);
    mem_free(data);
    scope_take_failure(scope, status);
    return NULL;
}

tn_array *tn_file_array(tn_scope *scope, const tn_file *file, const char *name)
{
    uint64_t index = 0;
    if (scope_begin(scope, "file_array", NO_LISTS) != TN_OK)
        return NULL;
    if (!file) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT, "file_array: the file is NULL");
        return NULL;
    }
    tn_status status = file_find_array(file, name, &index);
    if (status != TN_OK) {
        scope_take_failure(scope, status);
        return NULL;
    }
    const tn_format_array *array = file_array_at(file, index);
    struct file_bytes *bytes = file_source_at(file, array->file)->bytes;
    char *data = bytes ? bytes->data + array->offset : NULL;
    if (!data || !(array->flags & TN_FORMAT_IN_PLACE) ||
        (uintptr_t)data % dtype_size(tn_dtype_real(array->type.dtype)))
        return file_read_array(scope, file, index);
    atomic_fetch_add(&bytes->refs, 1);
    return file_array_import(scope, array, data, release_bytes, bytes);
}

tn_array *tn_load(tn_scope *scope, const char *path, const char *name)
{
    tn_file *file = NULL;
    if (scope_begin(scope, "load", NO_LISTS) != TN_OK)
        return NULL;
    tn_status status = tn_file_open(scope->runtime, path, NULL, &file);
    if (status != TN_OK) {
        scope_take_failure(scope, status);
        return NULL;
    }
    tn_array *array = tn_file_array(scope, file, name);
    tn_file_close(file);
    return array;
}
