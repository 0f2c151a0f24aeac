// SPDX-License-Identifier: MIT
// Binds arguments "name=value" of eval, why and graph to arrays.
#include "lang.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/npy.h"
#include "formats/safetensors.h"

static bool is_name(const char *text, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char both[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return length && strchr(letters, text[0]) && strspn(text, both) >= length;
}

static int copy_array(tn_scope *scope, const char *name, const struct host_array *array,
                      tn_array **out_array)
{
    *out_array = tn_from_data(scope, array->dtype, &array->shape, array->data);
    return *out_array ? 0 : oops("%s: %s", name, tn_scope_error(scope));
}

// Copies a host array into the scope, and frees it.
static int take_array(tn_scope *scope, const char *name, struct host_array *array,
                      tn_array **out_array)
{
    int failed = copy_array(scope, name, array, out_array);
    host_array_finish(array);
    return failed;
}

static int bind_npy(tn_scope *scope, const char *name, const char *path,
                    tn_array **out_array)
{
    struct host_array array;
    int failed = npy_read(path, &array);
    return failed ? failed : take_array(scope, name, &array, out_array);
}

// "file.safetensors:tensor"
static int bind_tensor(tn_scope *scope, const char *name, const char *value,
                       const char *colon, tn_array **out_array)
{
    struct safetensors file;
    char *path = strndup(value, (size_t)(colon - value));
    int failed = path ? safetensors_read(path, &file) : oops_memory();
    if (!failed) {
        const struct host_array *found = safetensors_find(&file, colon + 1);
        if (!found)
            failed = oops("%s holds no array '%s'", path, colon + 1);
        else
            failed = copy_array(scope, name, found, out_array);
        safetensors_finish(&file);
    }
    free(path);
    return failed;
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
        failed = take_array(scope, name, &array, out_array);
    free(results.items);
    lang_names_finish(&none);
    lang_tree_finish(&tree);
    return failed;
}

static int bind_value(tn_scope *scope, const char *name, const char *value,
                      tn_array **out_array)
{
    const char *tensor = strstr(value, ".safetensors:");
    if (ends_with(value, ".npy"))
        return bind_npy(scope, name, value, out_array);
    if (tensor)
        return bind_tensor(scope, name, value, tensor + strlen(".safetensors"), out_array);
    if (access(value, F_OK) == 0)
        return oops("%s: expected a file ending in .npy, or file.safetensors:NAME", value);
    return bind_literal(scope, name, value, out_array);
}

int lang_bind(tn_scope *scope, char *const *items, int count, struct lang_names *names)
{
    for (int i = 0; i < count; i++) {
        const char *equals = strchr(items[i], '=');
        if (!equals || !is_name(items[i], (size_t)(equals - items[i])))
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
