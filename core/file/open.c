// SPDX-License-Identifier: MIT
// Opens files: finds the plugin that knows the format, and checks what it says of the file.
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tenon/checked.h>
#include <unistd.h>
#include "../base/fail.h"
#include "../base/file.h"
#include "../base/memory.h"
#include "../base/shape.h"
#include "../primitive/registry.h"
#include "file.h"

#define START 64                       // bytes that tell a format
#define MOST_PIPED (UINT64_C(1) << 40) // bytes of what is no regular file

void file_bytes_release(struct file_bytes *bytes)
{
    if (!bytes || atomic_fetch_sub(&bytes->refs, 1) != 1)
        return;
    if (bytes->is_mapped)
        munmap(bytes->data, bytes->size);
    else
        mem_free(bytes->data);
    mem_free(bytes);
}

// --- the format --------------------------------------------------------------------------

// The extension of the path in small letters, without the point; "" when there is none.
static void extension_of(const char *path, char out[32])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *point = strrchr(name, '.');
    size_t size = point && point > name ? strlen(point + 1) : 0;
    if (size >= 32)
        size = 0;
    for (size_t i = 0; i < size; i++)
        out[i] = (char)tolower((unsigned char)point[1 + i]);
    out[size] = 0;
}

static tn_status find_plugin(tn_runtime *runtime, const char *path, const void *start,
                             uint64_t size, const char **out_plugin)
{
    char extension[32], message[FAIL_TEXT_SIZE];
    extension_of(path, extension);
    tn_status status =
        extension[0]
            ? tn_provider_find(runtime, TN_IFACE_FORMAT, "extension", extension, out_plugin)
            : fail(TN_ERR_NOT_FOUND, "expected a name whose extension says the "
                                     "format, such as .npy or .safetensors");
    if (status != TN_ERR_NOT_FOUND || !start)
        return status;
    fail_save(message); // it lists the extensions that are known
    status = tn_provider_match(runtime, TN_IFACE_FORMAT, start, size, out_plugin);
    if (status == TN_ERR_NOT_FOUND)
        fail_restore(message);
    return status;
}

tn_status file_find_format(tn_runtime *runtime, const char *path, const char *plugin,
                           const void *start, uint64_t size, const tn_format **out_format,
                           const tn_host **out_host)
{
    const void *table = NULL;
    tn_status status = plugin ? TN_OK : find_plugin(runtime, path, start, size, &plugin);
    if (status == TN_OK)
        status = tn_provider_load(runtime, TN_IFACE_FORMAT, plugin, &table, out_host);
    const tn_format *format = table;
    if (status == TN_OK && (!TN_HAS(format, close) || !format->list))
        status =
            fail(TN_ERR_REFUSED, "plugin %s: its " TN_IFACE_FORMAT " lacks a slot", plugin);
    if (status != TN_OK)
        fail_prefix("%s: ", path);
    else
        *out_format = format;
    return status;
}

// --- the bytes ---------------------------------------------------------------------------

static tn_status read_source(const tn_format_source *source, uint64_t offset, void *data,
                             uint64_t size)
{
    const tn_file *file = (const tn_file *)(const void *)source;
    const struct file_bytes *bytes = atomic_load(&file->bytes);
    if (offset > source->size || size > source->size - offset)
        return fail(TN_ERR_REFUSED, "%s: truncated: bytes %llu to %llu of %llu", file->path,
                    (unsigned long long)offset, (unsigned long long)(offset + size),
                    (unsigned long long)source->size);
    if (bytes) {
        memcpy(data, bytes->data + offset, size);
        return TN_OK;
    }
    ssize_t got = file_read_at(file->fd, data, size, offset);
    if (got < 0)
        return fail(TN_ERR_IO, "cannot read %s: %s", file->path, strerror(errno));
    if ((uint64_t)got < size)
        return fail(TN_ERR_IO, "cannot read %s: it was shortened meanwhile", file->path);
    return TN_OK;
}

// Reads all of a pipe: its size is known at its end only.
static tn_status read_pipe(tn_file *file)
{
    struct file_bytes *bytes = mem_zalloc(sizeof(*bytes));
    uint64_t room = 0;
    if (!bytes)
        return TN_ERR_MEMORY;
    atomic_init(&bytes->refs, 1);
    atomic_store(&file->bytes, bytes);
    for (;;) {
        if (bytes->size == room) {
            room = room ? 2 * room : 65536;
            char *more = room > MOST_PIPED ? NULL : mem_realloc(bytes->data, room);
            if (!more)
                return fail(TN_ERR_MEMORY, "%s: out of memory: %llu bytes", file->path,
                            (unsigned long long)room);
            bytes->data = more;
        }
        ssize_t got = read(file->fd, bytes->data + bytes->size, room - bytes->size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(TN_ERR_IO, "cannot read %s: %s", file->path, strerror(errno));
        if (got == 0)
            break;
        bytes->size += (uint64_t)got;
    }
    file->source.size = bytes->size;
    return TN_OK;
}

static tn_status map_file(tn_file *file)
{
    struct file_bytes *bytes = mem_zalloc(sizeof(*bytes));
    if (!bytes)
        return TN_ERR_MEMORY;
    void *data = mmap(NULL, file->source.size, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (data == MAP_FAILED) { // such as on some network file systems: reading works
        mem_free(bytes);
        return TN_OK;
    }
    *bytes =
        (struct file_bytes){.is_mapped = true, .data = data, .size = file->source.size};
    atomic_init(&bytes->refs, 1);
    atomic_store(&file->bytes, bytes);
    return TN_OK;
}

static tn_status open_bytes(tn_file *file)
{
    struct stat info;
    file->fd = file_open(AT_FDCWD, file->path, O_RDONLY, 0);
    if (file->fd < 0 || fstat(file->fd, &info))
        return fail(TN_ERR_IO, "cannot read %s: %s", file->path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return fail(TN_ERR_IO, "cannot read %s: it is a directory", file->path);
    if (!S_ISREG(info.st_mode))
        return read_pipe(file);
    file->source.size = (uint64_t)info.st_size;
    return file->map && info.st_size > 0 ? map_file(file) : TN_OK;
}

// --- what the plugin says ----------------------------------------------------------------

const tn_format_array *file_array_at(const tn_file *file, uint64_t index)
{
    const tn_format_content *content = file->content;
    return index < content->num_arrays
               ? (const void *)((const char *)content->arrays + index * content->array_size)
               : NULL;
}

static tn_status check_array(const tn_file *file, const tn_format_array *array)
{
    uint64_t end;
    if (!array->name)
        return fail(TN_ERR_INTERNAL, "an array has no name");
    tn_status status = type_check(&array->type);
    if (status == TN_OK &&
        (!tn_checked_add(array->offset, array->size, &end) || end > file->source.size))
        return fail(TN_ERR_INTERNAL, "array '%s' ends behind the file", array->name);
    if (status == TN_OK && (array->flags & TN_FORMAT_IN_PLACE) &&
        array->size != type_bytes(&array->type))
        return fail(TN_ERR_INTERNAL, "array '%s' has %llu bytes, expected %llu",
                    array->name, (unsigned long long)array->size,
                    (unsigned long long)type_bytes(&array->type));
    return status;
}

static tn_status check_content(const tn_file *file)
{
    const tn_format_content *content = file->content;
    tn_status status = TN_OK;
    if (content->array_size < TN_END_OF(content->arrays, reserved) && content->num_arrays)
        status = fail(TN_ERR_INTERNAL, "array_size is %u", content->array_size);
    for (uint64_t i = 0; status == TN_OK && i < content->num_arrays; i++)
        status = check_array(file, file_array_at(file, i));
    if (status != TN_OK)
        fail_prefix("%s: the format's plugin is at fault: ", file->path);
    return status;
}

static tn_status open_content(tn_file *file, const char *plugin)
{
    char start[START];
    uint64_t size = file->source.size < START ? file->source.size : START;
    tn_status status = read_source(&file->source, 0, start, size);
    if (status == TN_OK)
        status = file_find_format(file->runtime, file->path, plugin, start, size,
                                  &file->format, &file->host);
    if (status != TN_OK)
        return status;
    const tn_format_content *content = NULL;
    fail_clear();
    status = fail_from(file->format->list(file->host, &file->source, &content),
                       "opening %s", file->path);
    if (status != TN_OK)
        return status;
    if (!content)
        return fail(TN_ERR_INTERNAL,
                    "%s: its format lists nothing, and calls that a success", file->path);
    file->content = content;
    return check_content(file);
}

// --- the public functions ----------------------------------------------------------------

static tn_status read_options(const tn_file_options *given, tn_file_options *mine)
{
    uint32_t size =
        given && given->struct_size ? given->struct_size : TN_END_OF(mine, plugin);
    *mine = (tn_file_options){0};
    tn_status status = given ? abi_struct_read(mine, sizeof(*mine), given, size,
                                               TN_END_OF(mine, flags), "tn_file_options")
                             : TN_OK;
    if (status == TN_OK && (mine->flags & ~(uint32_t)TN_FILE_MAP))
        return fail(TN_ERR_ARGUMENT, "tn_file_options: flags 0x%x are unknown",
                    mine->flags);
    return status;
}

static void destroy(tn_file *file)
{
    if (file->content)
        file->format->close(file->host, file->content);
    file_bytes_release(atomic_load(&file->bytes));
    if (file->fd >= 0)
        close(file->fd);
    mem_free(file->path);
    mem_free(file);
}

tn_status tn_file_open(tn_runtime *runtime, const char *path,
                       const tn_file_options *options, tn_file **out_file)
{
    tn_file_options mine;
    if (!runtime || !path || !out_file)
        return fail(TN_ERR_ARGUMENT, "file_open: %s is NULL",
                    !runtime ? "the runtime"
                    : !path  ? "the path"
                             : "the place for the result");
    tn_status status = life_check(&runtime->life);
    if (status == TN_OK)
        status = read_options(options, &mine);
    tn_file *file = status == TN_OK ? mem_zalloc(sizeof(*file)) : NULL;
    if (!file)
        return status == TN_OK ? TN_ERR_MEMORY : status;
    file->runtime = runtime;
    file->fd = -1;
    file->map = mine.flags & TN_FILE_MAP;
    file->path = mem_strdup(path);
    file->source = (tn_format_source){
        .struct_size = sizeof(file->source), .name = file->path, .read = read_source};
    status = file->path ? open_bytes(file) : TN_ERR_MEMORY;
    if (status == TN_OK)
        status = open_content(file, mine.plugin);
    if (status != TN_OK) {
        destroy(file);
        return status;
    }
    life_add(&runtime->life, LIFE_FILES);
    *out_file = file;
    return TN_OK;
}

void tn_file_close(tn_file *file)
{
    if (!file)
        return;
    struct life *life = &file->runtime->life;
    destroy(file);
    life_remove(life, LIFE_FILES);
}

const char *tn_file_name(const tn_file *file, uint64_t index)
{
    const tn_format_array *array = file ? file_array_at(file, index) : NULL;
    return array ? array->name : NULL;
}

const tn_type *tn_file_type(const tn_file *file, uint64_t index)
{
    const tn_format_array *array = file ? file_array_at(file, index) : NULL;
    return array ? &array->type : NULL;
}

const char *tn_file_text(const tn_file *file, const char *key)
{
    const tn_format_content *content = file && key ? file->content : NULL;
    for (uint64_t i = 0; content && i < content->num_texts; i++) {
        const tn_format_text *text =
            (const void *)((const char *)content->texts + i * content->text_size);
        if (strcmp(text->key, key) == 0)
            return text->value;
    }
    return NULL;
}
