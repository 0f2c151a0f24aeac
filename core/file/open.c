// SPDX-License-Identifier: MIT
// Opens files: finds the plugin that knows the format, and checks its records of the file.
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <tenon/checked.h>
#include <unistd.h>
#include "../base/fail.h"
#include "../base/memory.h"
#include "../base/shape.h"
#include "../plugin/load/plugins.h"
#include "../primitive/registry.h"
#include "file.h"

#define START 64 // bytes that tell a format

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

static tn_status file_open_find_plugin(tn_runtime *runtime, const char *path,
                                       const struct file_source *opened,
                                       const char **out_plugin)
{
    char extension[32], message[FAIL_TEXT_SIZE], start[START];
    if (opened && opened->table.flags & TN_FORMAT_FOLDER)
        return plugin_in_folder(runtime, TN_IFACE_FORMAT, opened->fd, out_plugin);
    extension_of(path, extension);
    tn_status status =
        extension[0]
            ? tn_provider_find(runtime, TN_IFACE_FORMAT, "extension", extension, out_plugin)
            : fail(TN_ERR_NOT_FOUND, "expected a name whose extension says the "
                                     "format, such as .npy or .safetensors");
    if (status != TN_ERR_NOT_FOUND || !opened)
        return status;
    fail_save(message); // it lists the extensions that are known
    uint64_t size = opened->table.size < START ? opened->table.size : START;
    status = opened->table.read(&opened->table, 0, start, size);
    if (status == TN_OK)
        status = tn_provider_match(runtime, TN_IFACE_FORMAT, start, size, out_plugin);
    if (status == TN_ERR_NOT_FOUND)
        fail_restore(message);
    return status;
}

tn_status file_find_format(tn_runtime *runtime, const char *path, const char *plugin,
                           const struct file_source *opened, const tn_format **out_format,
                           const tn_host **out_host)
{
    const void *table = NULL;
    const char *named = plugin;
    bool is_folder = opened && opened->table.flags & TN_FORMAT_FOLDER;
    tn_status status = plugin && !is_folder
                           ? TN_OK
                           : file_open_find_plugin(runtime, path, opened, &plugin);
    if (is_folder && named && (status != TN_OK || strcmp(named, plugin) != 0))
        status =
            fail(TN_ERR_REFUSED, "it is a directory, expected a file of plugin %s", named);
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
    const struct file_source *source = file_source_at(file, array->file);
    if (!array->name)
        return fail(TN_ERR_INTERNAL, "an array has no name");
    tn_status status = type_check(&array->type);
    if (status == TN_OK && array->block_format &&
        (array->type.dtype != TN_U8 || array->type.rank < 1 || array->columns < 0))
        return fail(TN_ERR_INTERNAL, "array '%s' of %s is no u8 of rows", array->name,
                    array->block_format);
    if (status == TN_OK && (!source || !tn_checked_add(array->offset, array->size, &end) ||
                            end > source->table.size))
        return fail(TN_ERR_INTERNAL, "array '%s' ends behind the file", array->name);
    if (status == TN_OK && (array->flags & TN_FORMAT_IN_PLACE) &&
        array->size != type_bytes(&array->type))
        return fail(TN_ERR_INTERNAL, "array '%s' has %llu bytes, expected %llu",
                    array->name, (unsigned long long)array->size,
                    (unsigned long long)type_bytes(&array->type));
    return status;
}

static tn_status check_metadata(const tn_metadata *pair)
{
    bool is_list = pair->flags & TN_METADATA_LIST;
    if (pair->key && pair->kind && (is_list || pair->count == 1) &&
        (pair->data || !pair->count) && (uintptr_t)pair->data % 8 == 0)
        return TN_OK;
    return fail(TN_ERR_INTERNAL, "metadata '%s' have no key, kind or value",
                pair->key ? pair->key : "");
}

static tn_status check_content(tn_file *file)
{
    const tn_format_content *content = file->content;
    tn_status status = TN_OK;
    file->metadata = (tn_metadata_list){.struct_size = sizeof(file->metadata),
                                        .entry_size = sizeof(tn_metadata),
                                        .name = file->first.path};
    if (TN_HAS(content, metadata_size)) {
        file->metadata.entry_size = content->metadata_size;
        file->metadata.entries = content->metadata;
        file->metadata.count = content->num_metadata;
    }
    if (content->array_size < TN_END_OF(content->arrays, columns) && content->num_arrays)
        status = fail(TN_ERR_INTERNAL, "array_size is %u", content->array_size);
    if (file->metadata.count && file->metadata.entry_size < sizeof(tn_metadata))
        status = fail(TN_ERR_INTERNAL, "metadata_size is %u", file->metadata.entry_size);
    for (uint64_t i = 0; status == TN_OK && i < file->metadata.count; i++)
        status = check_metadata(tn_metadata_at(&file->metadata, i));
    for (uint64_t i = 0; status == TN_OK && i < content->num_arrays; i++)
        status = check_array(file, file_array_at(file, i));
    if (status != TN_OK)
        fail_prefix("%s: the format's plugin is at fault: ", file->first.path);
    return status;
}

static tn_status open_content(tn_file *file, const char *plugin)
{
    const char *path = file->first.path;
    tn_status status = file_find_format(file->runtime, path, plugin, &file->first,
                                        &file->format, &file->host);
    if (status != TN_OK)
        return status;
    const tn_format_content *content = NULL;
    fail_clear();
    status = fail_from(file->format->list(file->host, &file->first.table, &content),
                       "opening %s", path);
    if (status != TN_OK)
        return status;
    if (!content)
        return fail(TN_ERR_INTERNAL,
                    "%s: its format lists nothing, and calls that a success", path);
    file->content = content;
    return check_content(file);
}

// --- the public functions ----------------------------------------------------------------

static tn_status file_open_read_options(const tn_file_options *given, tn_file_options *mine)
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

static void file_open_destroy(tn_file *file)
{
    if (file->content)
        file->format->close(file->host, file->content);
    for (uint32_t i = 0; i <= file->num_others; i++)
        file_source_close(file_source_at(file, i));
    for (uint32_t i = 0; i < file->num_others; i++)
        mem_free(file->others[i]);
    mem_free(file->others);
    if (file->directory >= 0)
        close(file->directory);
    mem_free(file->folder);
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
                             : "the output pointer");
    tn_status status = life_check(&runtime->life);
    if (status == TN_OK)
        status = file_open_read_options(options, &mine);
    tn_file *file = status == TN_OK ? mem_zalloc(sizeof(*file)) : NULL;
    if (!file)
        return status == TN_OK ? TN_ERR_MEMORY : status;
    file->runtime = runtime;
    file->directory = -1;
    file->map = mine.flags & TN_FILE_MAP;
    status = file_source_open(file, path);
    if (status == TN_OK)
        status = open_content(file, mine.plugin);
    if (status != TN_OK) {
        file_open_destroy(file);
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
    file_open_destroy(file);
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

const char *tn_file_format(const tn_file *file, uint64_t index)
{
    const tn_format_array *array = file ? file_array_at(file, index) : NULL;
    return array ? array->block_format : NULL;
}

int64_t tn_file_columns(const tn_file *file, uint64_t index)
{
    const tn_format_array *array = file ? file_array_at(file, index) : NULL;
    if (!array)
        return -1;
    if (array->block_format)
        return array->columns;
    return array->type.rank ? array->type.extent[array->type.rank - 1] : 1;
}

const tn_metadata_list *tn_file_metadata(const tn_file *file)
{
    return file ? &file->metadata : NULL;
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
    tn_text text = {NULL, 0};
    if (content)
        (void)tn_metadata_text(tn_metadata_find(&file->metadata, key), &text);
    return text.data;
}
