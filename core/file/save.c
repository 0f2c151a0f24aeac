// SPDX-License-Identifier: MIT
// tn_save: hands evaluated arrays to the plugin that knows the format, and what the plugin
// writes to a file that replaces the old one at once.
#include <string.h>
#include "../base/fail.h"
#include "../base/memory.h"
#include "../base/shape.h"
#include "../graph/graph.h"
#include "../primitive/registry.h"
#include "file.h"

// A sink, and where its bytes go.
struct file_save_target {
    tn_format_sink sink; // first: the sink of a callback is cast back to the target
    tn_new_file *file;   // NULL: the application's function
    tn_status (*write)(void *context, const void *data, uint64_t size);
    void *context;
};

static tn_status write_sink(const tn_format_sink *sink, const void *data, uint64_t size)
{
    const struct file_save_target *target =
        (const struct file_save_target *)(const void *)sink;
    if (target->file)
        return new_file_write(target->file, data, size);
    fail_clear();
    return fail_from(target->write(target->context, data, size), "writing %s", sink->name);
}

// A content whose elements the application gives one array after the other.
struct array_by_array {
    tn_format_content content; // first: that of a callback is cast back
    tn_status (*elements)(void *context, uint64_t index, const void **out_data);
    void *context;
    const char *path;
};

static tn_status save_next_array(const tn_format_content *content, uint64_t index,
                                 const void **out_data)
{
    const struct array_by_array *source =
        (const struct array_by_array *)(const void *)content;
    const void *data = NULL;
    fail_clear();
    tn_status status = fail_from(source->elements(source->context, index, &data),
                                 "%s: the elements of array %llu", source->path,
                                 (unsigned long long)index);
    if (status == TN_OK && !data && content->arrays[index].size)
        status = fail(TN_ERR_ARGUMENT, "%s: no elements of array %llu were given",
                      source->path, (unsigned long long)index);
    if (status == TN_OK)
        *out_data = data;
    return status;
}

static tn_status file_save_read_options(const tn_save_options *given, tn_save_options *mine)
{
    uint32_t size =
        given && given->struct_size ? given->struct_size : TN_END_OF(mine, types);
    *mine = (tn_save_options){0};
    tn_status status = given ? abi_struct_read(mine, sizeof(*mine), given, size,
                                               TN_END_OF(mine, flags), "tn_save_options")
                             : TN_OK;
    if (status == TN_OK && mine->flags)
        return fail(TN_ERR_ARGUMENT, "tn_save_options: flags 0x%x, expected 0",
                    mine->flags);
    if (status == TN_OK && mine->num_texts && (!mine->keys || !mine->texts))
        return fail(TN_ERR_ARGUMENT, "tn_save_options: %llu texts, but no list of %s",
                    (unsigned long long)mine->num_texts, mine->keys ? "texts" : "keys");
    if (status == TN_OK && mine->elements && !mine->types)
        return fail(TN_ERR_ARGUMENT, "tn_save_options: elements, but no list of types");
    return status;
}

// --- the content -------------------------------------------------------------------------

// Fills the arrays that the format gets; its lists are in the scope's scratch.
static tn_status fill_arrays(tn_scope *scope, tn_array *const *arrays,
                             const char *const *names, uint64_t count,
                             const tn_save_options *options, tn_format_array *list)
{
    for (uint64_t i = 0; i < count; i++) {
        const void *data = options->elements ? NULL : tn_data(scope, arrays[i]);
        if (!data && !options->elements)
            return scope->status;
        const tn_type *type =
            options->elements ? &options->types[i] : tn_array_type(arrays[i]);
        list[i] = (tn_format_array){.name = names ? names[i] : "",
                                    .type = *type,
                                    .size = type_bytes(type),
                                    .data = data};
        if (!list[i].name)
            return tn_scope_fail(scope, TN_ERR_ARGUMENT, "save: name %llu is NULL",
                                 (unsigned long long)i);
        list[i].block_format = options->block_formats ? options->block_formats[i] : NULL;
        if (list[i].block_format && (type->dtype != TN_U8 || type->rank < 1))
            return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                                 "save: '%s' of format %s is of %s and rank %d, expected "
                                 "rows of u8",
                                 list[i].name, list[i].block_format,
                                 tn_dtype_name(type->dtype), type->rank);
        for (uint64_t k = 0; k < i; k++)
            if (strcmp(list[k].name, list[i].name) == 0)
                return tn_scope_fail(scope, TN_ERR_ARGUMENT, "save: two arrays named '%s'",
                                     list[k].name);
    }
    return TN_OK;
}

static tn_status file_save_write_content(const tn_format *format, const tn_host *host,
                                         const tn_format_content *content, const char *path,
                                         const tn_save_options *options)
{
    struct file_save_target target = {
        .sink = {.struct_size = sizeof(target.sink), .name = path, .write = write_sink},
        .write = options->write,
        .context = options->context,
    };
    tn_status status = options->write ? TN_OK : tn_new_file_open(path, NULL, &target.file);
    if (status == TN_OK) {
        fail_clear();
        status = fail_from(format->write(host, content, &target.sink), "writing %s", path);
    }
    if (status == TN_OK && target.file)
        status = tn_new_file_commit(target.file);
    tn_new_file_close(target.file);
    return status;
}

static tn_status file_save(tn_scope *scope, const char *path, tn_array *const *arrays,
                           const char *const *names, uint64_t count,
                           const tn_save_options *options)
{
    const tn_format *format = NULL;
    const tn_host *host = NULL;
    tn_status status =
        file_find_format(scope->runtime, path, options->plugin, NULL, &format, &host);
    if (status != TN_OK)
        return status;
    if (!TN_HAS(format, write))
        return fail(TN_ERR_UNSUPPORTED, "%s: files of this format can be read only", path);
    const tn_metadata_list *metadata = options->metadata;
    if (metadata && metadata->count && !(format->flags & TN_FORMAT_METADATA))
        return fail(TN_ERR_UNSUPPORTED, "%s: files of this format carry no metadata", path);
    if (options->block_formats && !(format->flags & TN_FORMAT_BLOCKS))
        return fail(TN_ERR_UNSUPPORTED,
                    "%s: files of this format carry no arrays of blocks", path);
    if ((format->flags & TN_FORMAT_SINGLE) && (count != 1 || options->num_texts))
        return fail(TN_ERR_ARGUMENT,
                    "%s: a file of this format holds one array and no texts, got %llu and "
                    "%llu",
                    path, (unsigned long long)count,
                    (unsigned long long)options->num_texts);
    if (options->elements && !(format->flags & TN_FORMAT_IN_TURN))
        return fail(TN_ERR_UNSUPPORTED,
                    "%s: files of this format need all arrays in memory together", path);
    tn_format_array *list = arena_alloc(&scope->scratch, (count + 1) * sizeof(*list));
    tn_format_text *texts =
        arena_alloc(&scope->scratch, (options->num_texts + 1) * sizeof(*texts));
    if (!list || !texts)
        return TN_ERR_MEMORY;
    for (uint64_t i = 0; i < options->num_texts; i++)
        texts[i] = (tn_format_text){options->keys[i], options->texts[i]};
    status = fill_arrays(scope, arrays, names, count, options, list);
    const struct array_by_array source = {
        .content = {.struct_size = sizeof(source.content),
                    .arrays = list,
                    .texts = texts,
                    .num_arrays = count,
                    .num_texts = options->num_texts,
                    .array_size = sizeof(*list),
                    .text_size = sizeof(*texts),
                    .metadata = metadata ? metadata->entries : NULL,
                    .num_metadata = metadata ? metadata->count : 0,
                    .metadata_size =
                        metadata ? metadata->entry_size : (uint32_t)sizeof(tn_metadata),
                    .elements = options->elements ? save_next_array : NULL},
        .elements = options->elements,
        .context = options->context,
        .path = path};
    return status == TN_OK
               ? file_save_write_content(format, host, &source.content, path, options)
               : status;
}

tn_status tn_save(tn_scope *scope, const char *path, tn_array *const *arrays,
                  const char *const *names, uint64_t num_arrays,
                  const tn_save_options *options)
{
    tn_save_options mine;
    tn_status status =
        scope_begin(scope, "save",
                    GIVEN({"the path", path, 1},
                          {"names", names, names || num_arrays > 1 ? num_arrays : 0}));
    if (status != TN_OK)
        return status;
    status = file_save_read_options(options, &mine);
    if (status != TN_OK)
        return scope_take_failure(scope, status);
    if (!mine.elements)
        status = scope_begin(scope, "save", GIVEN({"arrays", arrays, num_arrays}));
    if (!mine.elements && status == TN_OK)
        status = tn_eval_n(scope, arrays, num_arrays);
    if (status != TN_OK)
        return scope->status;
    struct arena_mark mark = arena_mark(&scope->scratch);
    if (status == TN_OK)
        status = file_save(scope, path, arrays, names, num_arrays, &mine);
    arena_rewind(&scope->scratch, mark);
    return scope_take_failure(scope, status);
}
