// SPDX-License-Identifier: MIT
#include "memory_file.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static bool memory_file_fails_now(struct memory_file *file)
{
    return ++file->calls == file->fail_at;
}

static tn_status memory_file_append(const tn_format_sink *sink, const void *data,
                                    uint64_t size)
{
    struct memory_file *file = (void *)(uintptr_t)sink;
    if (memory_file_fails_now(file))
        return file->host->fail(file->host, TN_ERR_IO, "%s: the disk is full",
                                MEMORY_FILE_PATH);
    if (size > file->capacity - file->size) {
        file->capacity = 2 * (file->size + size);
        file->bytes = realloc(file->bytes, file->capacity);
        if (!file->bytes)
            abort(); // checks run in a child process: its parent reports the abort
    }
    if (size)
        memcpy(file->bytes + file->size, data, size);
    file->size += size;
    return TN_OK;
}

static struct memory_file *file_of(const tn_format_source *source)
{
    return (void *)((char *)(uintptr_t)source - offsetof(struct memory_file, source));
}

tn_status memory_file_take(const tn_format_source *source, uint64_t offset, void *data,
                           uint64_t size)
{
    struct memory_file *file = file_of(source);
    if (memory_file_fails_now(file))
        return file->host->fail(file->host, TN_ERR_IO, "%s: the disk is gone",
                                MEMORY_FILE_PATH);
    if (offset > source->size || size > source->size - offset)
        return file->host->fail(
            file->host, TN_ERR_REFUSED, "%s: %llu bytes at %llu of a file of %llu",
            MEMORY_FILE_PATH, (unsigned long long)size, (unsigned long long)offset,
            (unsigned long long)source->size);
    if (size)
        memcpy(data, file->bytes + offset, size);
    return TN_OK;
}

// `open` of a source: the folder has no other file.
static tn_status open_other(const tn_format_source *source, const char *name,
                            const tn_format_source **out_source)
{
    struct memory_file *file = file_of(source);
    (void)out_source;
    file->misuses += !file->is_listed;
    if (memory_file_fails_now(file))
        return file->host->fail(file->host, TN_ERR_IO, "%s: the disk is gone",
                                MEMORY_FILE_PATH);
    return file->host->fail(file->host, TN_ERR_NOT_FOUND, "%s: there is no file '%s'",
                            MEMORY_FILE_PATH, name);
}

void memory_file_start(struct memory_file *file, const tn_host *host)
{
    *file = (struct memory_file){.sink = {.struct_size = sizeof(file->sink),
                                          .name = MEMORY_FILE_PATH,
                                          .write = memory_file_append},
                                 .source = {.struct_size = sizeof(file->source),
                                            .name = MEMORY_FILE_PATH,
                                            .read = memory_file_take,
                                            .open = open_other},
                                 .host = host};
}

const tn_format_source *memory_file_source(struct memory_file *file)
{
    file->source.size = file->size;
    return &file->source;
}

tn_status memory_file_list(struct memory_file *file, const tn_format *format,
                           const tn_format_content **out_content)
{
    file->is_listed = true;
    tn_status status = format->list(file->host, memory_file_source(file), out_content);
    file->is_listed = false;
    return status;
}
