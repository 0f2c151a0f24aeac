// SPDX-License-Identifier: MIT
// Binds arguments "name=value" of eval, why and graph to arrays.
#include "lang.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>
#include <unistd.h>

static bool lang_bind_is_name(const char *text, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char both[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return length && strchr(letters, text[0]) && strspn(text, both) >= length;
}

// Binds an array of a file; `array` NULL: the only one. The file is mapped: what is not
// used is not read.
static int bind_file(tn_scope *scope, const char *path, const char *array,
                     tn_array **out_array)
{
    static const tn_file_options options = {.struct_size = sizeof(options),
                                            .flags = TN_FILE_MAP};
    tn_file *file = NULL;
    if (tn_file_open(tn_scope_runtime(scope), path, &options, &file))
        return oops_library();
    *out_array = tn_file_array(scope, file, array);
    tn_file_close(file);
    return *out_array ? 0 : oops_scope(scope);
}

// "file.safetensors:tensor": binds the array behind the first colon that follows the name
// of a file.
static int bind_tensor(tn_scope *scope, const char *value, const char *colon,
                       tn_array **out_array)
{
    char *path = strndup(value, (size_t)(colon - value));
    int failed = path ? bind_file(scope, path, colon + 1, out_array) : oops_memory();
    free(path);
    return failed;
}

static const char *colon_behind_file(const char *value)
{
    const char *known = strstr(value, ".safetensors:");
    if (known)
        return known + strlen(".safetensors");
    for (const char *colon = strchr(value, ':'); colon; colon = strchr(colon + 1, ':')) {
        char *path = strndup(value, (size_t)(colon - value));
        bool is_file = path && *path && access(path, F_OK) == 0;
        free(path);
        if (is_file)
            return colon;
    }
    return NULL;
}

// Copies a host array into the scope, and frees it.
static int lang_bind_take_array(tn_scope *scope, const char *name, struct host_array *array,
                                tn_array **out_array)
{
    *out_array = tn_from_data(scope, array->dtype, &array->shape, array->data);
    host_array_finish(array);
    return *out_array ? 0 : oops("%s: %s", name, tn_scope_error(scope));
}

// Evaluates a literal, an expression without names. A number becomes an array of its own
// dtype, so that it can have a gradient.
static int bind_literal(tn_scope *scope, const char *name, const char *text,
                        tn_array **out_array)
{
    struct lang_tree tree;
    struct lang_names none = {0};
    struct lang_results results = {0};
    int failed = lang_parse(text, &tree);
    if (failed)
        return failed;
    failed = lang_eval(&tree, scope, &none, &results);
    if (!failed && results.count != 1)
        failed = oops("expected one value, got %zu in '%s'", results.count, text);
    struct host_array array = {0};
    if (!failed)
        failed = host_array_read(scope, results.items[0], &array);
    if (!failed)
        failed = lang_bind_take_array(scope, name, &array, out_array);
    free(results.items);
    lang_names_finish(&none);
    lang_tree_finish(&tree);
    return failed;
}

// Whether a text can only be meant as a file's name, such as "dir/photo.png": it has a
// letter, a point behind it, and ends with small letters and digits. No literal does.
static bool value_is_path(const char *value)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *point = strrchr(value, '.'),
               *other = value + strcspn(value, "[](){},;*' \"");
    size_t extension =
        point ? strspn(point + 1, "abcdefghijklmnopqrstuvwxyz0123456789") : 0;
    return extension >= 2 && !point[1 + extension] && !*other &&
           strchr(letters, point[1]) && strcspn(value, letters) < (size_t)(point - value);
}

static int bind_value(tn_scope *scope, const char *name, const char *value,
                      tn_array **out_array)
{
    const char *colon = colon_behind_file(value);
    if (ends_with(value, ".npy") || access(value, F_OK) == 0)
        return bind_file(scope, value, NULL, out_array);
    if (colon)
        return bind_tensor(scope, value, colon, out_array);
    if (value_is_path(value))
        return bind_file(scope, value, NULL, out_array);
    return bind_literal(scope, name, value, out_array);
}

int lang_bind(tn_scope *scope, char *const *items, int count, struct lang_names *names)
{
    for (int i = 0; i < count; i++) {
        const char *equals = strchr(items[i], '=');
        if (!equals || !lang_bind_is_name(items[i], (size_t)(equals - items[i])))
            return misuse("'%s': expected NAME=FILE.npy or NAME=literal", items[i]);
        char *name = strndup(items[i], (size_t)(equals - items[i]));
        tn_array *array = NULL;
        int failed = name ? 0 : oops_memory();
        if (!failed && lang_names_find(names, name))
            failed = misuse("'%s' is given twice", name);
        if (!failed)
            failed = bind_value(scope, name, equals + 1, &array);
        if (!failed && !(array = tn_name(scope, array, name)))
            failed = oops_scope(scope);
        if (!failed)
            failed = lang_names_set(names, name, array);
        free(name);
        if (failed)
            return failed;
    }
    return 0;
}
