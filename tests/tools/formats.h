// SPDX-License-Identifier: MIT
// Files of arrays as the tests of formats see them: through tn_file_open and tn_save, with
// the plugin named, into memory of their own. A failure is recorded by oops().
#ifndef TESTS_TOOLS_FORMATS_H
#define TESTS_TOOLS_FORMATS_H

#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>
#include "base/tool.h"

struct safetensors_item {
    char *name; // owned
    struct host_array array;
};

struct safetensors {
    struct safetensors_item *items;
    size_t count;
};

// One for the process; the null backend keeps what is written to it.
static inline tn_runtime *formats_runtime(void)
{
    static tn_runtime *runtime;
    const char *const variables[] = {"TENON_BACKEND=null", NULL};
    const tn_runtime_options options = {.struct_size = sizeof(options),
                                        .variables = variables};
    const void *table;
    const tn_host *host;
    if (!runtime &&
        (tn_runtime_open(&options, &runtime) ||
         tn_provider_load(runtime, "tn.format/1", "org.tenon.npy", &table, &host) ||
         tn_provider_load(runtime, "tn.format/1", "org.tenon.safetensors", &table, &host) ||
         tn_provider_load(runtime, "tn.format/1", "org.tenon.gguf", &table, &host) ||
         tn_provider_load(runtime, "tn.format/1", "org.tenon.huggingface", &table, &host)))
        abort(); // else every file would be refused
    return runtime;
}

static inline void safetensors_finish(struct safetensors *file)
{
    for (size_t i = 0; i < file->count; i++) {
        free(file->items[i].name);
        host_array_finish(&file->items[i].array);
    }
    free(file->items);
    *file = (struct safetensors){0};
}

// Adds an array with a copy of the name; takes the array's data.
static inline int safetensors_add(struct safetensors *file, const char *name,
                                  struct host_array *array)
{
    struct safetensors_item *items =
        realloc(file->items, (file->count + 1) * sizeof(*items));
    if (!items)
        abort();
    file->items = items;
    items[file->count++] = (struct safetensors_item){strdup(name), *array};
    *array = (struct host_array){0};
    return 0;
}

static inline const struct host_array *safetensors_find(const struct safetensors *file,
                                                        const char *name)
{
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->items[i].name, name) == 0)
            return &file->items[i].array;
    return NULL;
}

static inline int formats_read_array(tn_scope *scope, const tn_file *file, uint64_t index,
                                     struct safetensors *out)
{
    struct host_array array;
    tn_array *read = tn_file_array(scope, file, tn_file_name(file, index));
    if (!read || host_array_read(scope, read, &array))
        return oops("%s", tn_scope_error(scope));
    return safetensors_add(out, tn_file_name(file, index), &array);
}

// Reads all arrays of a file, mapped or not.
static inline int formats_read(const char *path, const char *plugin, uint32_t flags,
                               struct safetensors *out)
{
    tn_file *file = NULL;
    struct safetensors made = {0};
    *out = made;
    const tn_file_options options = {
        .struct_size = sizeof(options), .flags = flags, .plugin = plugin};
    if (tn_file_open(formats_runtime(), path, &options, &file))
        return oops("%s", tn_last_error());
    tn_scope *scope = tn_scope_open(formats_runtime());
    int failed = 0;
    for (uint64_t i = 0; !failed && tn_file_name(file, i); i++)
        failed = formats_read_array(scope, file, i, &made);
    tn_file_close(file);
    tn_scope_close(scope);
    if (failed)
        safetensors_finish(&made);
    else
        *out = made;
    return failed;
}

static inline int formats_write(const char *path, const char *plugin,
                                const struct safetensors *file)
{
    tn_scope *scope = tn_scope_open(formats_runtime());
    tn_array **arrays = calloc(file->count + 1, sizeof(*arrays));
    const char **names = calloc(file->count + 1, sizeof(*names));
    const tn_save_options options = {.struct_size = sizeof(options), .plugin = plugin};
    for (size_t i = 0; i < file->count; i++) {
        const struct host_array *array = &file->items[i].array;
        names[i] = file->items[i].name;
        arrays[i] = tn_from_data(scope, array->dtype, &array->shape, array->data);
    }
    int failed = tn_save(scope, path, arrays, names, file->count, &options)
                     ? oops("%s", tn_scope_error(scope))
                     : 0;
    free(arrays);
    free(names);
    tn_scope_close(scope);
    return failed;
}

static inline int safetensors_read(const char *path, struct safetensors *out)
{
    return formats_read(path, "org.tenon.safetensors", 0, out);
}

static inline int safetensors_write(const char *path, const struct safetensors *file)
{
    return formats_write(path, "org.tenon.safetensors", file);
}

static inline int npy_read(const char *path, struct host_array *out)
{
    struct safetensors file = {0};
    int failed = formats_read(path, "org.tenon.npy", TN_FILE_MAP, &file);
    if (failed)
        return failed;
    *out = file.items[0].array;
    free(file.items[0].name);
    free(file.items);
    return 0;
}

static inline int npy_write(const char *path, const struct host_array *array)
{
    struct safetensors_item item = {.name = (char[]){""}, .array = *array};
    return formats_write(path, "org.tenon.npy", &(struct safetensors){&item, 1});
}

#endif // TESTS_TOOLS_FORMATS_H
